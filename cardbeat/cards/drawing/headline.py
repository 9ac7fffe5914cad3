"""A title set as large as its room allows, and what that leaves for the description."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from cardbeat.cards.drawing import styles
from cardbeat.cards.drawing.layout import INNER
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.text import Block, Setting, ending_well
from cardbeat.typeset.unicode.breaks import Break
from cardbeat.typeset.unicode.clusters import is_european
from cardbeat.typeset.wrap import wrapped

GAP = 24  # pixels between the title and what is above or below it


class Headline:
    """One title, in one thread."""

    def __init__(self, fonts: Fonts, text: str, language: str, *, serif: bool = False) -> None:
        """`serif` says whether the fonts have serifs."""
        self.paragraph = Paragraph(fonts, text, styles.TITLE, INNER, language=language, max_work=styles.TEXT_WORK)
        self._styles = tuple(_styles_for(text, styles.SERIF_SCALE if serif else 1))
        breaks_badly = any(map(self.paragraph.has, (Break.FAIR, Break.POOR)))
        self._least_px = styles.ALMOST_LARGE_PX if breaks_badly else styles.LARGE_TITLE_PX

    def alone(self, width: int, height: int) -> Block:
        """The title at the largest size at which it fits, cut if the smallest size is too large."""
        return self._large(width, height) or Setting(self.paragraph, self._styles[-1], width, height).block()

    def above(self, description: Callable[[], Paragraph], width: int, height: int) -> tuple[Block, Block | None]:
        """The title, and as many lines of description as leave room for a large title: none where that must be cut.

        The description also gives up lines, but not its last one, before words of katakana are broken. `description` is
        called only if there may be room for one line.
        """
        broken = None
        for under in self._settings(description, width, height):
            room = height - under.height_px - GAP
            title = self._large(width, room, Break.FAIR)
            if title:
                return title, under
            if not broken and self.paragraph.has(Break.POOR):
                title = self._large(width, room)
                broken = (title, under) if title else None
        return broken or (self.alone(width, height), None)

    def _settings(self, description: Callable[[], Paragraph], width: int, height: int) -> Iterator[Block]:
        """The description in as many lines as there may be room for, then in fewer and fewer."""
        most = self._lines_left(width, height)
        if not most:
            return
        paragraph = description()
        if len(self._styles) > 1 and (large := Setting(paragraph, styles.SHORT_DESCRIPTION, width, height).whole()):
            yield large
        for lines in range(most, 0, -1):
            yield Setting(paragraph, replace(styles.DESCRIPTION, max_lines=lines), width).block()

    def _large(self, width: int, height: int, worst: Break = Break.POOR) -> Block | None:
        """The whole title at `LARGE_TITLE_PX` or more, or at a little less where its lines end better there."""
        whole = partial(self._whole, width, height)
        almost_px = styles.LARGE_TITLE_PX - 1
        if self._least_px <= almost_px and not (whole(Break.GOOD, almost_px) or whole(Break.POOR, almost_px)):
            return None
        return ending_well(self.paragraph, whole, worst)

    def _whole(self, width: int, height: int, least: Break, above_px: float) -> Block | None:
        above_px = max(self._least_px - 1, above_px)
        blocks = (Setting(self.paragraph, style, width, height).ending(least, above_px) for style in self._styles)
        return next(filter(None, blocks), None)

    def _lines_left(self, width: int, height: int) -> int:
        """How many lines of description there may be room for under a title of `LARGE_TITLE_PX`, as planned."""
        title_lines = len(wrapped(self.paragraph.words(Break.POOR), width / styles.LARGE_TITLE_PX))
        left = height - title_lines * styles.LARGE_TITLE_PX * self._styles[-1].leading - GAP
        style = styles.DESCRIPTION
        return max(0, min(style.max_lines, int(left / (style.smallest_px * style.leading))))


def _styles_for(title: str, scale: float) -> Iterator[Style]:
    """The styles to try for a title, the largest first."""
    european = all(is_european(character) for character in title if character.isalpha())
    leading = styles.EUROPEAN_LEADING if european else styles.TITLE.leading
    for most, style in styles.SHORT_TITLES.items():
        if len(title) <= most:
            yield replace(style, leading=leading, largest_px=round(style.largest_px * scale))
    yield replace(styles.TITLE, leading=leading)
