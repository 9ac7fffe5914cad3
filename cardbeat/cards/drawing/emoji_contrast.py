"""Emoji that can't be seen on their background: dark ones on a dark card, white ones on a white one."""

from collections.abc import Iterator
from enum import Enum
from math import ceil, cos, floor, pi, sin

from PIL import Image, ImageChops, ImageStat

from cardbeat.cards.drawing.colours import luma, rgb
from cardbeat.cards.drawing.themes import Colour
from cardbeat.typeset.faces.emoji import emoji_signs
from cardbeat.typeset.line import TextLine

_DARKEST, _LIGHTEST = 84, 228
"""Brightness, 0 to 255: a colour below the first is not seen on a dark card, from the second on not on a light one."""
_MOST_LOST = 0.5  # part of an emoji that may be unseen before it gets an outline
_ONE_COLOUR = 0.97  # part of an emoji that is dark if it has no other colour
_COLOURED = 64
"""Difference of the strongest and the weakest of red, green and blue in a sign with a colour of its own: ♥️ is red."""
_OUTLINE_EM = 0.03
_DIRECTIONS = [(cos(n * pi / 6), sin(n * pi / 6)) for n in range(12)]


class Rescue(Enum):
    """How an emoji is made visible."""

    NONE = 0
    INK = 1  # it is a black sign, such as a tick: drawn in the colour of the text
    OUTLINE = 2


def cells(line: TextLine, height: int) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    """For each emoji of a line the private-use character that draws it, and its box on the line's layer of a height.

    Neighbours are drawn together, all of the same width.
    """
    for emoji in line.emoji:
        step = emoji.width / len(emoji.text)
        for n, drawn in enumerate(emoji.text):
            left = emoji.x + n * step
            yield drawn, (max(floor(left), 0), 0, ceil(left + step), height)


class EmojiContrast:
    """Judges each emoji once for light and once for dark cards. Any number of threads may use one."""

    def __init__(self) -> None:
        self._judged: dict[tuple[str, bool], Rescue] = {}
        """By private-use character and whether the card is dark. Any thread writes it: all write the same."""

    def judge(self, drawn: str, picture: Image.Image, ink: Colour) -> Rescue:
        """What an emoji, drawn as "RGBA", needs beside text of a colour, which is light on a dark card."""
        key = drawn, luma(rgb(ink)) > 127
        if key not in self._judged:
            opaque = picture.getchannel("A").convert("1", dither=Image.Dither.NONE)
            counts = picture.convert("L").histogram(opaque)
            dark, light = (sum(part) / max(sum(counts), 1) for part in (counts[:_DARKEST], counts[_LIGHTEST:]))
            lost = dark if key[1] else light
            if dark >= _ONE_COLOUR and drawn in emoji_signs():
                means = ImageStat.Stat(picture.convert("RGB"), opaque).mean
                self._judged[key] = Rescue.NONE if max(means) - min(means) > _COLOURED else Rescue.INK
            else:
                self._judged[key] = Rescue.OUTLINE if lost > _MOST_LOST else Rescue.NONE
        return self._judged[key]


def outlined(picture: Image.Image, size_px: int) -> tuple[Image.Image, int]:
    """Coverage of an emoji with a line around it, and the width of that line."""
    width = max(2, round(_OUTLINE_EM * size_px))
    alpha = Image.new("L", (picture.width + 2 * width, picture.height + 2 * width))
    alpha.paste(picture.getchannel("A"), (width, width))
    grown = alpha
    for x, y in _DIRECTIONS:
        grown = ImageChops.lighter(grown, ImageChops.offset(alpha, round(x * width), round(y * width)))
    return grown, width
