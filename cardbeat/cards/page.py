"""A card while it is laid out: its texts set into blocks, and the parts that the templates share."""

from dataclasses import dataclass
from functools import lru_cache

from cardbeat.cards.layout import BOTTOM, INNER, MARGIN, WIDTH, Layout, Shape, Text
from cardbeat.cards.request import Card
from cardbeat.cards.themes import THEME_OF
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.han import language_of
from cardbeat.typeset.text import Block, fit

GAP = 24
KICKER_GAP = 8
LABEL_PX = 28
CAPITAL = 0.72
"""A capital's height in parts of the size: text is centred by its capitals."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a text is set: it shrinks from its largest size to its smallest before it is cut."""

    weight: int
    largest_px: int
    smallest_px: int
    leading: float
    max_lines: int = 1


TEXT_FONT_BYTES = 1_100_000
"""Of the font files opened for a title or a description: inflating one takes time in proportion to its length, that of
27 KB of Han about a twentieth of an ordinary card. A full one in which no Han character comes twice needs 1 MB, and one
in 25 scripts; prose needs half as much."""
LABEL_FONT_BYTES = 650_000
"""Likewise for a line of 38 different Han characters."""
LABELS_FONT_BYTES = 900_000
"""For all labels of a card together."""

SHORT_TITLE = Style(700, 128, 100, leading=1.15, max_lines=2)
TITLE = Style(700, 96, 40, leading=1.15, max_lines=5)
DESCRIPTION = Style(400, 32, 28, leading=1.4, max_lines=3)


class Page:
    """Collects what is painted. `rtl` says whether the title is right-to-left, once `body` has set it."""

    def __init__(self, fonts: Fonts, title_fonts: Fonts, card: Card) -> None:
        self.card = card
        self.theme = THEME_OF[card.template, card.theme]
        self.shapes: list[Shape] = []
        self.texts: list[Text] = []
        self.rtl = False
        self._label_font_bytes = LABELS_FONT_BYTES
        """What the labels that are not yet set may have together."""
        self._fonts = fonts
        self._title_fonts = title_fonts
        self._language = language_of("".join((card.title, card.description, card.author, card.tag, card.domain)))

    def layout(self) -> Layout:
        """What was collected; the mirror image of it where the title is right-to-left."""
        layout = Layout(self.theme, tuple(self.shapes), tuple(self.texts))
        return layout.mirror_image() if self.rtl else layout

    def label(self, text: str, width: int, *, size: int = LABEL_PX, weight: int = 500) -> Block:
        """One line, cut where it does not fit."""
        style = Style(weight, size, size, leading=1.3)
        most = min(LABEL_FONT_BYTES, self._label_font_bytes)
        block = _label(self._fonts, text, style, width, language=self._language, max_font_bytes=most)
        self._label_font_bytes -= block.font_bytes
        return block

    def body(self, top: int, bottom: int, *, spare_above: float = 0.5, kicker: str = "") -> None:
        """The title between two heights, a kicker (a small line) over it and the description under it.

        `spare_above` is the part of the room left that goes above them.
        """
        card, theme = self.card, self.theme
        over = self.label(kicker, INNER, weight=700) if kicker else None
        room = bottom - top - (over.height_px + KICKER_GAP if over else 0)
        under = self._description(int(room * 0.4)) if card.description else None
        title = self._title(room - (under.height_px + GAP if under else 0))
        self.rtl = title.rtl
        used = title.height_px + (under.height_px + GAP if under else 0)
        y = bottom - room + int((room - used) * spare_above)
        if over:
            self.texts.append(Text(over, MARGIN, y - KICKER_GAP - over.height_px, INNER, theme.accent))
        self.texts.append(Text(title, MARGIN, y, INNER, theme.ink))
        if under:
            align = "left" if under.rtl == title.rtl else "right"
            self.texts.append(Text(under, MARGIN, y + title.height_px + GAP, INNER, theme.muted, align=align))

    def footer(self, left: str, right: str) -> int:
        """Labels at both ends of the last line, one alone at its beginning. Returns the top of the higher one."""
        end = self.label(right, INNER // 2 - GAP) if left and right else None
        width = end.width_px if end else 0
        start = self.label(left or right, INNER - (width + 2 * GAP if end else 0))
        blocks = [block for block in (start, end) if block]
        baseline = BOTTOM - max(block.height_px - block.first_baseline_px for block in blocks)
        top = baseline - start.first_baseline_px
        self.texts.append(Text(start, MARGIN, top, INNER, self.theme.ink if left else self.theme.muted))
        if end:
            end_top = baseline - end.first_baseline_px
            self.texts.append(Text(end, WIDTH - MARGIN - width, end_top, width, self.theme.muted, align="right"))
            top = min(top, end_top)
        return top

    def _title(self, height: int) -> Block:
        """Short titles stand larger; long ones shrink, then are cut."""
        title = self.card.title
        large = self._set(title, SHORT_TITLE, height, self._title_fonts) if len(title) <= 32 else None
        return large if large and not large.cut else self._set(title, TITLE, height, self._title_fonts)

    def _description(self, height: int) -> Block:
        return self._set(self.card.description, DESCRIPTION, height, self._fonts)

    def _set(self, text: str, style: Style, height: int, fonts: Fonts) -> Block:
        most = TEXT_FONT_BYTES
        return _set(fonts, text, style, INNER, language=self._language, height=height, max_font_bytes=most)


def _set(
    fonts: Fonts,
    text: str,
    style: Style,
    width: int,
    *,
    language: str,
    max_font_bytes: int,
    height: int | None = None,
) -> Block:
    return fit(
        fonts,
        text,
        width_px=width,
        height_px=height,
        max_lines=style.max_lines,
        size_px=style.largest_px,
        min_size_px=style.smallest_px,
        weight=style.weight,
        leading=style.leading,
        language=language,
        max_font_bytes=max_font_bytes,
    )


_label = lru_cache(32)(_set)
"""The cards of a site share their author, tag and domain, whose drawn lines are kept here for all threads.

`lru_cache` has a lock of its own, and nobody changes a `Block`; two threads may draw the same label once each.
"""


def middle_of(block: Block, top: int) -> int:
    """The height at which the capitals of a one-line block have their middle, if the block begins at `top`."""
    return top + block.first_baseline_px - round(block.size_px * CAPITAL / 2)


def top_at(block: Block, middle: int) -> int:
    """The top of a one-line block whose capitals have their middle at `middle`."""
    return middle - middle_of(block, 0)
