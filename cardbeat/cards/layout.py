"""Where the texts and shapes of a card stand. Lengths are pixels from the upper left corner."""

from dataclasses import dataclass, replace

from cardbeat.cards.themes import Colour, Theme
from cardbeat.typeset.text import Block

WIDTH = 1200
HEIGHT = 630
MARGIN = 72
INNER = WIDTH - 2 * MARGIN
TOP = 64
BOTTOM = HEIGHT - TOP

_OTHER_SIDE = {"left": "right", "right": "left", "center": "center"}


@dataclass(frozen=True, slots=True)
class Text:
    """A block of text in a box of `width`, aligned to its "left", "center" or "right"."""

    block: Block
    x: int
    y: int
    width: int
    colour: Colour
    over: Colour | None = None
    """Of the shape it stands on; None on the background."""
    align: str = "left"


@dataclass(frozen=True, slots=True)
class Shape:
    """A filled rectangle with rounded corners; a disc where the radius is half its size."""

    x: int
    y: int
    width: int
    height: int
    colour: Colour
    radius: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """What to paint, shapes first, on the theme's background, which is mirrored too where the layout is."""

    theme: Theme
    shapes: tuple[Shape, ...]
    texts: tuple[Text, ...]
    mirrored: bool = False

    @property
    def missing_glyphs(self) -> int:
        return sum(text.block.missing for text in self.texts)

    def mirror_image(self) -> "Layout":
        """The same with left and right exchanged; the text itself stays readable."""
        return replace(
            self,
            shapes=tuple(replace(shape, x=WIDTH - shape.x - shape.width) for shape in self.shapes),
            texts=tuple(replace(t, x=WIDTH - t.x - t.width, align=_OTHER_SIDE[t.align]) for t in self.texts),
            mirrored=not self.mirrored,
        )
