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
class Area:
    """A part of the card in which texts stand; `over` is its colour, None on the background's light."""

    x: int
    y: int
    width: int
    height: int
    over: Colour | None = None

    @property
    def bottom(self) -> int:
        return self.y + self.height


PANEL = Area(40, 40, WIDTH - 80, 426)
"""Of the template `blog`: what the author says, as a speech bubble. Its edges are on the empty background."""
PANEL_RADIUS = 40
PANEL_TAIL = ((104, PANEL.bottom), (192, PANEL.bottom), (122, PANEL.bottom + 32))
"""The corners of the bubble's tail, which points to the author."""


@dataclass(frozen=True, slots=True)
class Text:
    """A block of text in a box of `width`, aligned to its "left", "center" or "right"."""

    block: Block
    x: int
    y: int
    width: int
    colour: Colour
    over: Colour | None = None
    """What it stands on where that is one colour; None on the background's light."""
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
    over: Colour | None = None
    """What it stands on; None for the background's colour at its upper left corner."""
    person: bool = False
    """The part of the disc that a head and shoulders take, instead of all of it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What to paint, shapes first, on the theme's background, which is mirrored too where the layout is."""

    theme: Theme
    shapes: tuple[Shape, ...]
    texts: tuple[Text, ...]
    mirrored: bool = False
    undrawn: int = 0
    """Characters that no font has in a title that gave its place to others, and in a description that gave up its."""

    @property
    def missing_glyphs(self) -> int:
        return self.undrawn + sum(text.block.missing for text in self.texts)

    def mirror_image(self) -> "Layout":
        """The same with left and right exchanged; the text itself stays readable."""
        return replace(
            self,
            shapes=tuple(replace(shape, x=WIDTH - shape.x - shape.width) for shape in self.shapes),
            texts=tuple(replace(t, x=WIDTH - t.x - t.width, align=_OTHER_SIDE[t.align]) for t in self.texts),
            mirrored=not self.mirrored,
        )
