"""Where the texts and shapes of a card stand. Lengths are pixels from the upper left corner."""

from typing import NamedTuple

from cardbeat.cards.drawing.themes import Colour, Theme
from cardbeat.typeset.text import Block

WIDTH = 1200
HEIGHT = 630
MARGIN = 72
INNER = WIDTH - 2 * MARGIN
TOP = 64
BOTTOM = HEIGHT - TOP
SQUARE = 612
"""Width of the middle of a card that is still seen where it is cropped to a square, without its edges."""

_OTHER_SIDE = {"left": "right", "right": "left", "center": "center"}


class Area(NamedTuple):
    """An area for texts. `over` is its colour, None if it lies on the background picture."""

    x: int
    y: int
    width: int
    height: int
    over: Colour | None = None

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height


PANEL = Area(40, 160, WIDTH - 80, 430)
"""The speech bubble of the template `blog`, which is part of the empty background."""
PANEL_RADIUS = 40


class Text(NamedTuple):
    """A block of text in a box of `width`, at its "left", "center" or "right"."""

    block: Block
    x: int
    y: int
    width: int
    colour: Colour
    over: Colour | None = None  # the one colour under it; None on the background's light
    align: str = "left"


class Shape(NamedTuple):
    """A filled rectangle with rounded corners; a disc if the radius is half its size; or a triangle that points up."""

    x: int
    y: int
    width: int
    height: int
    colour: Colour
    radius: int = 0
    over: Colour | None = None  # the colour under it; None for the background's colour at its upper left corner
    points_up: bool = False


class Layout(NamedTuple):
    """What to paint, shapes first, on the theme's background, which is `mirrored` with it."""

    theme: Theme
    shapes: tuple[Shape, ...]
    texts: tuple[Text, ...]
    mirrored: bool = False
    undrawn: int = 0
    """Characters that no font has in a title that the domain replaced, and in a description that had no room."""
    left_out: bool = False
    """Whether the description had no room."""

    @property
    def missing_glyphs(self) -> int:
        return self.undrawn + sum(text.block.missing for text in self.texts)

    def mirror_image(self) -> "Layout":
        """The same with left and right exchanged. Text is moved, not mirrored."""
        return self._replace(
            shapes=tuple(shape._replace(x=WIDTH - shape.x - shape.width) for shape in self.shapes),
            texts=tuple(t._replace(x=WIDTH - t.x - t.width, align=_OTHER_SIDE[t.align]) for t in self.texts),
            mirrored=not self.mirrored,
        )
