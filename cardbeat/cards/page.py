"""A card while it is laid out: its texts set into blocks, and the parts that the templates share."""

from dataclasses import dataclass
from functools import lru_cache

from cardbeat.cards.layout import BOTTOM, INNER, MARGIN, WIDTH, Layout, Shape, Text
from cardbeat.cards.request import Card
from cardbeat.cards.themes import THEME_OF
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.han import language_of
from cardbeat.typeset.initial import initial_block
from cardbeat.typeset.paragraph import Paragraph
from cardbeat.typeset.text import Block, Box, fit, fitted, room_of

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


TEXT_WORK = 3_400_000
"""What a title or a description may take, in the unit of `typeset.work`: a full one in which no Han character comes
twice takes 2.7 million, one of Hindi with ten English words in it 3.2, other prose up to 1.2."""
LABEL_WORK = 1_300_000
"""Likewise a line of 38 different Han characters."""
LABELS_WORK = 1_600_000
"""What all labels of a card may take together."""
CARD_WORK = 4_500_000
"""What all texts of a card may take together. The title and the labels come first."""

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
        self._labels_work = LABELS_WORK
        """What the labels that are not yet set may take. It depends on no other text: see `_label`."""
        self._fonts = fonts
        texts = "".join((card.title, card.description, card.author, card.tag, card.domain))
        self._language = language_of(texts, domain=card.domain)
        self._title = self._paragraph(title_fonts, card.title, TITLE, TEXT_WORK)
        self._work = CARD_WORK - self._title.work
        """What is left for the texts that are not yet set."""

    def layout(self) -> Layout:
        """What was collected; the mirror image of it where the title is right-to-left."""
        layout = Layout(self.theme, tuple(self.shapes), tuple(self.texts))
        return layout.mirror_image() if self.rtl else layout

    def label(self, text: str, width: int, *, size: int = LABEL_PX, weight: int = 500) -> Block:
        """One line, cut where it does not fit."""
        style = Style(weight, size, size, leading=1.3)
        most = min(LABEL_WORK, self._labels_work)
        block = _label(self._fonts, text, style, width, language=self._language, most=most)
        self._labels_work -= block.work
        self._work -= block.work
        return block

    def initial(self, name: str, width: int, *, size: int) -> Block:
        """The first letter of a name, for an avatar."""
        return initial_block(self._fonts, name, width_px=width, size_px=size, weight=700, language=self._language)

    def body(self, top: int, bottom: int, *, spare_above: float = 0.5, kicker: str = "") -> None:
        """The title between two heights, a kicker (a small line) over it and the description under it.

        `spare_above` is the part of the room left that goes above them.
        """
        card, theme = self.card, self.theme
        over = self.label(kicker, INNER, weight=700) if kicker else None
        room = bottom - top - (over.height_px + KICKER_GAP if over else 0)
        under = self._description(int(room * 0.4)) if card.description else None
        title = self._set_title(room - (under.height_px + GAP if under else 0))
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

    def _set_title(self, height: int) -> Block:
        """Short titles stand larger; long ones shrink, then are cut."""
        large = _set(self._title, SHORT_TITLE, height) if len(self.card.title) <= 32 else None
        return large if large and not large.cut else _set(self._title, TITLE, height)

    def _description(self, height: int) -> Block:
        most = min(TEXT_WORK, self._work)
        return _set(self._paragraph(self._fonts, self.card.description, DESCRIPTION, most), DESCRIPTION, height)

    def _paragraph(self, fonts: Fonts, text: str, style: Style, most: int) -> Paragraph:
        room = room_of(INNER, style.max_lines, style.smallest_px)
        return Paragraph(fonts, text, room=room, weight=style.weight, language=self._language, max_work=most)


def _set(paragraph: Paragraph, style: Style, height: int) -> Block:
    box = Box(INNER, height, style.max_lines, style.leading)
    return fitted(paragraph, box, size_px=style.largest_px, min_size_px=style.smallest_px)


@lru_cache(32)
def _label(fonts: Fonts, text: str, style: Style, width: int, *, language: str, most: int) -> Block:
    """The cards of a site share their author, tag and domain, whose drawn lines are kept here for all threads.

    `lru_cache` has a lock of its own, and nobody changes a `Block`; two threads may draw the same label once each.
    """
    return fit(
        fonts,
        text,
        width_px=width,
        size_px=style.largest_px,
        min_size_px=style.smallest_px,
        weight=style.weight,
        leading=style.leading,
        language=language,
        max_work=most,
    )


def middle_of(block: Block, top: int) -> int:
    """The height at which the capitals of a one-line block have their middle, if the block begins at `top`."""
    return top + block.first_baseline_px - round(block.size_px * CAPITAL / 2)


def top_at(block: Block, middle: int) -> int:
    """The top of a one-line block whose capitals have their middle at `middle`."""
    return middle - middle_of(block, 0)
