"""A title set as large as its room allows, and what that leaves for the description."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from cardbeat.cards.layout import INNER
from cardbeat.cards.styles import (
    ALMOST_LARGE_PX,
    DESCRIPTION,
    EUROPEAN_LEADING,
    LARGE_TITLE_PX,
    SERIF_SCALE,
    SHORT_DESCRIPTION,
    SHORT_TITLES,
    TEXT_WORK,
    TITLE,
    Style,
)
from cardbeat.typeset.breaks import Break
from cardbeat.typeset.edge import is_european
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.paragraph import Paragraph
from cardbeat.typeset.text import (
    UNBOUNDED_PX,
    Block,
    Box,
    ending_well,
    fitted,
    fitted_whole,
    lines_needed,
    room_of,
    whole_ending,
)

GAP = 24
"""Between the title and what stands above or below it."""


class Headline:
    """One title, in one thread."""

    def __init__(self, fonts: Fonts, text: str, language: str, *, serif: bool = False) -> None:
        """`serif` says whether the fonts draw it with serifs."""
        self._paragraph = paragraph_of(fonts, text, TITLE, language, TEXT_WORK)
        self._styles = tuple(_styles_for(text, SERIF_SCALE if serif else 1))
        breaks_badly = any(map(self._paragraph.has, (Break.FAIR, Break.POOR)))
        self._least_px = ALMOST_LARGE_PX if breaks_badly else LARGE_TITLE_PX

    @property
    def blank(self) -> bool:
        """Whether no font has any of it."""
        return self._paragraph.blank

    @property
    def missing(self) -> int:
        return self._paragraph.missing

    @property
    def work(self) -> int:
        """What setting it takes, in the unit of `typeset.work`."""
        return self._paragraph.work

    def alone(self, width: int, height: int) -> Block:
        """As large as it can be, or cut where even the smallest size is too large."""
        return self._large(width, height) or _set(self._paragraph, self._styles[-1], width, height)

    def above(self, description: Callable[[], Paragraph], width: int, height: int) -> tuple[Block, Block | None]:
        """With as many lines of description as leave room for a large title; with none where that is not whole.

        The description gives up lines too before words of katakana are broken, but not its place.
        `description` is called only where there may be room for any of it.
        """
        broken = None
        for under in self._settings(description, width, height):
            room = height - under.height_px - GAP
            title = self._large(width, room, Break.FAIR)
            if title:
                return title, under
            if not broken and self._paragraph.has(Break.POOR):
                title = self._large(width, room)
                broken = (title, under) if title else None
        return broken or (self.alone(width, height), None)

    def _settings(self, description: Callable[[], Paragraph], width: int, height: int) -> Iterator[Block]:
        """The description in as many lines as there may be room for, then in fewer and fewer."""
        most = self._lines_left(width, height)
        if not most:
            return
        paragraph = description()
        if len(self._styles) > 1:
            style = SHORT_DESCRIPTION
            box = Box(width, height, style.max_lines, style.leading)
            large = fitted_whole(paragraph, box, size_px=style.largest_px, min_size_px=style.smallest_px)
            yield from (large,) if large else ()
        for lines in range(most, 0, -1):
            yield _set(paragraph, replace(DESCRIPTION, max_lines=lines), width)

    def _large(self, width: int, height: int, worst: Break = Break.POOR) -> Block | None:
        """The whole title at `LARGE_TITLE_PX` or more where it has room, or a little smaller where that breaks less."""
        whole = partial(self._whole, width, height)
        if self._least_px < LARGE_TITLE_PX and not any(whole(b, LARGE_TITLE_PX - 1) for b in (Break.GOOD, Break.POOR)):
            return None
        return ending_well(self._paragraph, whole, worst)

    def _whole(self, width: int, height: int, least: Break, above_px: float) -> Block | None:
        for style in self._styles:
            box = Box(width, height, style.max_lines, style.leading)
            above = max(style.smallest_px - 1, self._least_px - 1, above_px)
            block = whole_ending(self._paragraph, box, least, size_px=style.largest_px, above_px=above)
            if block:
                return block
        return None

    def _lines_left(self, width: int, height: int) -> int:
        """How many lines of description there may be room for, as planned, under a title that is just large enough."""
        title_px = lines_needed(self._paragraph, width, LARGE_TITLE_PX) * LARGE_TITLE_PX * self._styles[-1].leading
        lines = (height - title_px - GAP) / (DESCRIPTION.smallest_px * DESCRIPTION.leading)
        return max(0, min(DESCRIPTION.max_lines, int(lines)))


def paragraph_of(fonts: Fonts, text: str, style: Style, language: str, most: int) -> Paragraph:
    """A text that takes no more work than `most`."""
    room = room_of(INNER, style.max_lines, style.smallest_px)
    return Paragraph(
        fonts,
        text,
        room=room,
        weight=style.weight,
        language=language,
        max_work=most,
        tracking_em=style.tracking_em,
    )


def _styles_for(title: str, scale: float) -> Iterator[Style]:
    """What is tried for a title, from the largest."""
    european = all(is_european(character) for character in title if character.isalpha())
    leading = EUROPEAN_LEADING if european else TITLE.leading
    for most, style in SHORT_TITLES.items():
        if len(title) <= most:
            yield replace(style, leading=leading, largest_px=round(style.largest_px * scale))
    yield replace(TITLE, leading=leading)


def _set(paragraph: Paragraph, style: Style, width: int, height: float = UNBOUNDED_PX) -> Block:
    box = Box(width, height, style.max_lines, style.leading)
    return fitted(paragraph, box, size_px=style.largest_px, min_size_px=style.smallest_px)
