"""Where the texts and shapes of a card stand. Lengths are pixels from the upper left corner."""

from typing import NamedTuple

from cardbeat.cards.drawing.colours import Colour, Theme
from cardbeat.typeset.text import Block

WIDTH = 1200
HEIGHT = 630
MARGIN = 28
AXIS = 300
"""Where each title begins: inside the middle square, to which some networks crop a card."""
RIGHT = WIDTH - MARGIN

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


PANEL = Area(264, 16, 920, 598)
"""The speech bubble of the template `blog`, which is part of the empty background."""


class Text(NamedTuple):
    """A block of text in a box of `width`, at its "left", "center" or "right"."""

    block: Block
    x: int
    y: int
    width: int
    colour: Colour
    over: Colour | None = None
    """The one colour under it; None on the background's light."""
    align: str = "left"


class Shape(NamedTuple):
    """A filled triangle, or a rectangle with round corners: a disc if the radius is half of it."""

    x: int
    y: int
    width: int
    height: int
    colour: Colour
    radius: int = 0
    over: Colour | None = None
    """The colour under it; None for the background's colour at its upper left corner."""
    points: str = ""
    """The side that a triangle points to: "left" or "right"."""


class Layout(NamedTuple):
    """What to paint, shapes first, on the theme's background, which is `mirrored` with it."""

    theme: Theme
    shapes: tuple[Shape, ...]
    texts: tuple[Text, ...]
    mirrored: bool = False

    def mirror_image(self) -> "Layout":
        """The same with left and right exchanged. Text is moved, not mirrored."""
        shapes = [
            shape._replace(
                x=WIDTH - shape.x - shape.width,
                points=_OTHER_SIDE.get(shape.points, ""),
            )
            for shape in self.shapes
        ]
        texts = [
            text._replace(
                x=WIDTH - text.x - text.width,
                align=_OTHER_SIDE[text.align],
            )
            for text in self.texts
        ]
        return self._replace(
            shapes=tuple(shapes),
            texts=tuple(texts),
            mirrored=not self.mirrored,
        )
