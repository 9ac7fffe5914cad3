"""A card while it is laid out: its texts set into blocks, and the parts that the templates share."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from cardbeat.cards.drawing import styles
from cardbeat.cards.drawing.accent import theme_of
from cardbeat.cards.drawing.headline import GAP, Headline
from cardbeat.cards.drawing.layout import BOTTOM, INNER, MARGIN, WIDTH, Area, Layout, Shape, Text
from cardbeat.cards.drawing.themes import Colour
from cardbeat.cards.request import Card
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.labels import fit_end, initial_block
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.text import Block, fit
from cardbeat.typeset.unicode.clusters import clean_for_lines
from cardbeat.typeset.unicode.han import language_of

KICKER_GAP = 8
CAPITAL = 0.72  # a capital's height in parts of the size: text is centred by its capitals


class Label(NamedTuple):
    """One line of text in one colour. A long domain is shortened from the left, since its end names the site."""

    text: str
    colour: Colour
    weight: int = 500
    domain: bool = False


class Page:
    """Collects what is painted.

    `body` sets `rtl`, whether the title is right-to-left, and `blank`, whether nothing of it can be drawn.
    """

    def __init__(self, fonts: Fonts, serif: Fonts, card: Card, accent: Colour | None) -> None:
        """`serif` sets the headline of an article if it has all of its letters."""
        self.card = card
        self.theme = theme_of(card.template, card.theme, accent)
        self.shapes: list[Shape] = []
        self.texts: list[Text] = []
        self.rtl = self.blank = self._left_out = False
        self._fonts, self._serif = fonts, serif
        texts = "".join((card.title, card.description, card.author, card.tag, card.domain))
        self._language = language_of(texts, domain=card.domain)
        self._title = self._headline(card.title)
        self._undrawn = 0
        if self._title.paragraph.blank and card.domain:
            self._undrawn = self._title.paragraph.missing
            self.card = replace(card, title=card.domain, domain="")
            self._title = self._headline(card.domain)
        self._work = styles.CARD_WORK - self._title.paragraph.work  # what the texts that are not yet set may take
        self._labels_work = styles.LABELS_WORK if self._work >= styles.LABELS_WORK else styles.LEAST_LABELS_WORK
        """What the labels that are not yet set may take. It starts as one of two figures, so that `_label` is kept."""

    def layout(self) -> Layout:
        """What was collected, mirrored where the title is right-to-left."""
        shapes, texts, left_out = tuple(self.shapes), tuple(self.texts), self._left_out
        layout = Layout(self.theme, shapes, texts, undrawn=self._undrawn, left_out=left_out)
        return layout.mirror_image() if self.rtl else layout

    def label(self, label: Label, width: int, size: int = styles.LABEL_PX) -> Block:
        """One line, cut where it does not fit."""
        style = Style(label.weight, size, size, styles.LABEL_LEADING)
        most = min(styles.LABEL_WORK, self._labels_work)
        block = _label(self._fonts, label.text, style, width, domain=label.domain, language=self._language, most=most)
        self._labels_work -= block.work
        self._work -= block.work
        return block

    def initial(self, name: str, width: int) -> Block:
        """The first letter of a name, for an avatar."""
        block = initial_block(self._fonts, name, styles.INITIAL, width, self._language)
        self._work -= block.work
        return block

    def body(self, area: Area, *, spare_above: float = 0.5, kicker: str = "") -> Area:
        """The title in an area, with a kicker (a small line) above it and the description below it.

        `spare_above` is the part of the spare height that goes above them. Returns the place of the title, which is
        empty if the title is blank.
        """
        theme = self.theme
        over = self.label(Label(kicker, theme.accent, styles.BOLD), area.width) if kicker else None
        room = area.height - (over.height_px + KICKER_GAP if over else 0)
        if self.card.description:
            title, under = self._title.above(self._description, area.width, room)
        else:
            title, under = self._title.alone(area.width, room), None
        self.rtl, self.blank = title.rtl, not any(line.ink or line.emoji for line in title.lines)
        used = title.height_px + (under.height_px + GAP if under else 0)
        y = area.bottom - room + int((room - used) * spare_above)
        if over:
            self.add(over, area, y - KICKER_GAP - over.height_px, theme.accent)
        self.add(title, area, y, theme.ink)
        if under:
            align = "left" if under.rtl == title.rtl else "right"
            self.add(under, area, y + title.height_px + GAP, theme.muted, align)
        else:
            self._left_out = bool(self.card.description)
            # Counted as in the end of a text that is cut.
            self._undrawn += self._fonts.drawable(clean_for_lines(self.card.description))[1]
        return replace(area, y=y, height=title.height_px)

    def row(self, start: Label, end: Label, top: int | None = None) -> Area:
        """One line at `top`, else at the lower margin: a label at each end, or the only one at its start."""
        first, second = (start, end) if start.text else (end, start)
        right = self.label(second, INNER // 2 - GAP) if second.text else None
        left = self.label(first, INNER - (right.width_px + 2 * GAP if right else 0))
        blocks = [block for block in (left, right) if block]
        above = max(block.first_baseline_px for block in blocks)
        height = above + max(block.height_px - block.first_baseline_px for block in blocks)
        row = Area(MARGIN, BOTTOM - height if top is None else top, INNER, height)
        self.add(left, row, row.y + above - left.first_baseline_px, first.colour)
        if right:
            place = Area(WIDTH - MARGIN - right.width_px, row.y, right.width_px, height)
            self.add(right, place, row.y + above - right.first_baseline_px, second.colour, "right")
        return row

    def add(self, block: Block, area: Area, y: int, colour: Colour, align: str = "left") -> None:
        """Put a block of text into an area, `y` below the card's top."""
        self.texts.append(Text(block, area.x, y, area.width, colour, area.over, align))

    def _description(self) -> Paragraph:
        text, most = self.card.description, min(styles.TEXT_WORK, self._work)
        return Paragraph(self._fonts, text, styles.DESCRIPTION, INNER, language=self._language, max_work=most)

    def _headline(self, text: str) -> Headline:
        serif = self.card.template == "article" and self._serif.all_serif(text)
        return Headline(self._serif if serif else self._fonts, text, self._language, serif=serif)


@lru_cache(64)
def _label(fonts: Fonts, text: str, style: Style, width: int, *, domain: bool, language: str, most: int) -> Block:
    """The block of a label. The cards of a site share author, tag and domain, so it is kept, for all threads.

    Two threads may draw the same label once each. A `Block` is never changed.
    """
    fitted: Callable[..., Block] = fit_end if domain else fit
    return fitted(fonts, text, style, width, language=language, max_work=most)


def middle_of(block: Block, top: int) -> int:
    """The middle of the capitals of a one-line block that begins at `top`."""
    return top + block.first_baseline_px - round(block.size_px * CAPITAL / 2)


def top_at(block: Block, middle: int) -> int:
    """The top of a one-line block whose capitals have their middle at `middle`."""
    return middle - middle_of(block, 0)
