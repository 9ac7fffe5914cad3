"""A title set as large as its room allows, and what that leaves for the description."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from cardbeat.cards.drawing import styles
from cardbeat.cards.drawing.layout import INNER, SQUARE
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.text import Block, Setting, ending_well
from cardbeat.typeset.unicode.breaks import Break
from cardbeat.typeset.unicode.clusters import is_european
from cardbeat.typeset.wrap import Length, wrapped

GAP = 24  # pixels between the title and what is above or below it
_PLANNED_BADLY_PX = 4  # how much smaller a title may be than it was planned

Describe = Callable[[], Paragraph]
Set = tuple[Block, Block | None]
"""A title, and its description if that has room."""


class Place(NamedTuple):
    """The width of a title's lines, and that of its first line."""

    width: int
    first: int


class Headline:
    """One title, in one thread."""

    def __init__(self, fonts: Fonts, text: str, language: str, *, serif: bool = False) -> None:
        """`serif` says whether the fonts have serifs."""
        self.paragraph = Paragraph(fonts, text, styles.TITLES[-1], INNER, language=language, max_work=styles.TEXT_WORK)
        european = all(is_european(character) for character in text if character.isalpha())
        leading = styles.EUROPEAN_LEADING if european else styles.LEADING
        scale = styles.SERIF_SCALE if serif else 1
        self._wide = [style._replace(leading=leading) for style in styles.TITLES]
        self._short = [
            style._replace(leading=leading, largest_px=round(style.largest_px * scale)) for style in styles.SHORT_TITLES
        ]
        self._planned: dict[tuple[Place, int], int] = {}
        self._breaks_badly = not self.paragraph.slow and any(map(self.paragraph.has, (Break.FAIR, Break.POOR)))

    def short(self, describe: Describe | None, width: int, height: int) -> Set | None:
        """A short title, to be centred. None if the title is long.

        The description keeps its place if the title is almost large beside it.
        """
        wide_px = self._planned_px(Place(width, width), height) if self._is_short else 0
        if wide_px < (styles.LARGE_TITLE_PX if self.paragraph.has(Break.POOR) else 1):
            return None
        # The description gives up its lines before a square crop hides how the title begins.
        for places in self._seen, lambda *_: [(Place(width, width), styles.LEAST_SHORT_PX, Break.FAIR)]:
            for under in chain(self._unders(describe, width, height) if describe else (), (None,)):
                room = _above(under, height)
                for place, least_px, worst in places(width, room):
                    hardly_px = int(styles.HARDLY_SMALLER * self._planned_px(place, height)) if under else 0
                    beside_px = max(least_px, min(styles.ALMOST_LARGE_PX, hardly_px))
                    title = self._largest(self._short, place, room, beside_px, worst)
                    if title:
                        return title, under
        return None

    def _seen(self, width: int, height: int) -> Iterator[tuple[Place, int, Break]]:
        """The places in which a square crop shows how the title begins, with the least size and the worst break there.

        If the title gets much smaller there, or a word is broken, it is still large.
        """
        square, first, wide = Place(SQUARE, SQUARE), Place(width, SQUARE), Place(width, width)
        square_px, first_px, wide_px = (self._planned_px(place, height) for place in (square, first, wide))
        large_px = min(styles.SQUARE_PX, styles.MUCH_SMALLER * wide_px)
        if square_px >= max(large_px, styles.SLIGHTLY_SMALLER * first_px):
            yield square, styles.LEAST_SHORT_PX, Break.FAIR
        if first_px >= large_px:
            yield first, styles.LEAST_SHORT_PX, Break.FAIR
        yield first, styles.LARGE_TITLE_PX, Break.POOR

    def _planned_px(self, place: Place, height: int) -> int:
        """The size of a short title, as planned."""
        key = place, height
        if key not in self._planned:
            settings = [Setting(self.paragraph, style, place.width, height, place.first) for style in self._short]
            sizes = (s.planned_px(least) for least in (Break.GOOD, Break.FAIR) for s in settings)
            self._planned[key] = next(filter(None, sizes), 0)
        return self._planned[key]

    def alone(self, width: int, height: int) -> Block:
        """The title at the largest size at which it fits, cut if the smallest size is too large."""
        return self._large(width, height, Break.FAIR) or self._small(width, height)[0]

    def above(self, describe: Describe, width: int, height: int) -> Set:
        """The title, and as many lines of description as leave room for a large title: none where that must be cut.

        The description gives up its place before words are broken. It keeps it where a title that can't be large is
        hardly larger without it. `describe` is called only if there may be room for one line.
        """
        unders = []
        for under in self._unders(describe, width, height):
            title = self._large(width, _above(under, height), Break.FAIR)
            if title:
                return title, under
            unders.append(under)
        title = self._large(width, height, Break.FAIR)
        return (title, None) if title else self._small_above(unders, width, height)

    def _small_above(self, unders: Sequence[Block], width: int, height: int) -> Set:
        """A title that can't be large, or only broken inside a word, and what it leaves of the description."""
        title, worst = self._small(width, height)
        least_px = int(styles.HARDLY_SMALLER * title.size_px)
        if worst == Break.POOR:
            least_px = min(styles.LARGE_TITLE_PX, least_px)
        for under in () if title.cut or self.paragraph.tried_enough else unders:
            smaller = self._largest(self._wide, Place(width, width), _above(under, height), least_px, worst)
            if smaller:
                return smaller, under
        return title, None

    def _small(self, width: int, height: int) -> tuple[Block, Break]:
        """The title, and its worst break: inside a word only if that makes it much larger."""
        style = self._wide[-1]
        small = self._largest([style], Place(width, width), height, style.smallest_px, Break.FAIR)
        broken = self._large(width, height) if self.paragraph.has(Break.POOR) else None
        if small and (not broken or small.size_px >= styles.HARDLY_SMALLER * broken.size_px):
            return small, Break.FAIR
        return broken or Setting(self.paragraph, style, width, height).block(), Break.POOR

    @cached_property
    def _is_short(self) -> bool:
        if self.paragraph.blank or self.paragraph.truncated:
            return False
        words = self.paragraph.words(Break.GOOD)
        spelled = sum(map(self.paragraph.is_spelled, words))
        # Han and kana have a break inside a phrase at nearly each letter.
        few = spelled <= styles.SHORT_WORDS and len(self.paragraph.words(Break.FAIR)) <= len(words) + 1
        return few or Length.of(words).full_em <= styles.SHORT_EM

    def _unders(self, describe: Describe, width: int, height: int) -> Iterator[Block]:
        """The description in as many lines as there may be room for, then in fewer and fewer."""
        most = self._lines_left(width, height)
        if most:
            paragraph = describe()
            for lines in range(most, 0, -1):
                yield Setting(paragraph, styles.DESCRIPTION._replace(max_lines=lines), width).block()

    def _large(self, width: int, height: int, worst: Break = Break.POOR) -> Block | None:
        """The whole title at `LARGE_TITLE_PX` or more, or at a little less where its lines end better there."""
        place, large_px = Place(width, width), styles.LARGE_TITLE_PX
        settings = (Setting(self.paragraph, style, width, height) for style in self._wide)
        planned_px = max(setting.planned_px(Break.POOR) for setting in settings)
        if planned_px < large_px:
            return None
        least_px = styles.ALMOST_LARGE_PX if self._breaks_badly else large_px
        title = self._largest(self._wide, place, height, least_px, worst)
        if not title or title.size_px >= large_px:
            return title
        if title.size_px < styles.HARDLY_SMALLER * planned_px:
            return self._largest(self._wide, place, height, large_px) if worst == Break.POOR else None
        if planned_px >= large_px + _PLANNED_BADLY_PX:
            return title
        return title if self._largest(self._wide, place, height, large_px) else None

    def _largest(
        self, choices: list[Style], place: Place, height: int, least_px: int, worst: Break = Break.POOR
    ) -> Block | None:
        """The whole title at that size or more, in the first style that allows it."""

        def largest(least: Break, above_px: float) -> Block | None:
            settings = (Setting(self.paragraph, style, place.width, height, place.first) for style in choices)
            blocks = (setting.ending(least, max(least_px - 1, above_px)) for setting in settings)
            return next(filter(None, blocks), None)

        return ending_well(self.paragraph, largest, worst)

    def _lines_left(self, width: int, height: int) -> int:
        """How many lines of description there may be room for under a title of `LARGE_TITLE_PX`, as planned."""
        title_lines = len(wrapped(self.paragraph.words(Break.POOR), width / styles.LARGE_TITLE_PX))
        left = height - title_lines * styles.LARGE_TITLE_PX * self._wide[-1].leading - GAP
        style = styles.DESCRIPTION
        return max(0, min(style.max_lines, int(left / (style.smallest_px * style.leading))))


def _above(under: Block | None, height: int) -> int:
    """The room above a description."""
    return height - under.height_px - GAP if under else height
