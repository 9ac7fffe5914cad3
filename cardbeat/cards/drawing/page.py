"""A card while it is laid out: its texts set into blocks, and the parts that the templates share."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from cardbeat.cards.drawing import styles
from cardbeat.cards.drawing.accent import theme_of
from cardbeat.cards.drawing.headline import GAP, Headline, Set
from cardbeat.cards.drawing.layout import INNER, MARGIN, WIDTH, Area, Layout, Shape, Text
from cardbeat.cards.drawing.themes import Colour
from cardbeat.cards.request import Card
from cardbeat.typeset.faces.fonts import Fonts, SerifFonts
from cardbeat.typeset.labels import fit_end, initial_block, initial_of
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.text import Block, fit
from cardbeat.typeset.unicode.clusters import clean_for_lines
from cardbeat.typeset.unicode.han import language_of

KICKER_GAP = 12
BETWEEN = 36  # pixels between the labels of a line
ROW_GAP = 8  # between lines of labels
DOT = 18
QUOTATION_MARK = "“"
CAPITAL = 0.72  # a capital's height in parts of the size: text is centred by its capitals


class Label(NamedTuple):
    """One line of text in one colour. A long domain is shortened from the left, since its end names the site."""

    text: str
    colour: Colour
    weight: int = 500
    domain: bool = False


class Part(NamedTuple):
    """A label that is set."""

    block: Block
    colour: Colour


class Page:
    """Collects what is painted.

    The title sets `rtl`, whether it is right-to-left, `short`, whether it stands in the middle square, `left`, where it
    begins if not, and `blank`, whether nothing of it can be drawn.
    """

    def __init__(self, fonts: Fonts, serif: SerifFonts, card: Card, accent: Colour | None) -> None:
        """`serif` sets the headline of an article if it suits."""
        self.card = card
        self.theme = theme_of(card.template, card.theme, accent)
        self.shapes: list[Shape] = []
        self.texts: list[Text] = []
        self.rtl = self.short = self.blank = self._left_out = False
        self.left = MARGIN
        self._fonts, self._serif = fonts, serif
        texts = "".join((card.title, card.description, card.author, card.tag, card.domain))
        self._language = language_of(texts, domain=card.domain)
        self._title = self._headline(card.title)
        self._undrawn = 0
        if self._title.paragraph.blank and card.domain:
            self._undrawn = self._title.paragraph.missing
            self.card = card._replace(title=card.domain, domain="")
            self._title = self._headline(card.domain)
        self._work = styles.CARD_WORK - self._title.paragraph.work  # what the texts that are not yet set may take
        step = styles.LABELS_WORK_STEP
        self._labels_work = min(styles.LABELS_WORK, max(styles.LEAST_LABELS_WORK, self._work // step * step))
        """What the labels that are not yet set may take. Begins in whole steps, so that `_label` is kept."""

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

    def parts(self, labels: Iterable[Label], width: int) -> list[Part]:
        """The labels that have a text, each cut to that width."""
        return [Part(self.label(label, width), label.colour) for label in labels if label.text]

    def avatar(self, area: Area) -> None:
        """Put the initial of the author, else of the domain, into an area, or a quotation mark if there is none."""
        domain = self.card.domain.removeprefix("www.")
        name = next(filter(initial_of, (self.card.author, domain)), "")
        inside = area._replace(x=area.x + 10, width=area.width - 20)
        if name:
            block = _initial(self._fonts, name, styles.INITIAL, inside.width, self._language)
            y = top_at(block, area.y + area.height // 2)
        else:
            block = _initial(self._serif, QUOTATION_MARK, styles.QUOTATION, inside.width, self._language)
            [line] = block.lines
            above = block.first_baseline_px + line.ink_y
            y = area.y + (area.height - line.ink.height) // 2 - above if line.ink else area.y
        self._work -= block.work
        # Missing characters of the initial are counted in the name.
        self.add(block._replace(missing=0), inside, y, self.theme.on_avatar, "center")

    def centred(self, area: Area, kicker: Block | None = None) -> Area | None:
        """A short title in the middle of an area, as `body` sets others. None if the title is long."""
        describe = (lambda: self._description) if self.card.description else None
        found = self._title.short(describe, area.width, area.height - _above(kicker))
        self.short, self.left = bool(found), area.x
        return self._put(found, area, kicker, 0.5, "center") if found else None

    def body(self, area: Area, spare_above: float = 0.5, kicker: Block | None = None) -> Area:
        """The title in an area, with a kicker (a small line) above it and the description below it.

        `spare_above` is the part of the spare height that goes above them. Returns the place of the title, which is
        empty if the title is blank.
        """
        room = area.height - _above(kicker)
        if self.card.description:
            found = self._title.above(lambda: self._description, area.width, room)
        else:
            found = self._title.alone(area.width, room), None
        return self._put(found, area, kicker, spare_above, "left")

    def _put(self, found: Set, area: Area, kicker: Block | None, spare_above: float, align: str) -> Area:
        (title, under), theme = found, self.theme
        self.rtl, self.blank = title.rtl, not any(line.ink or line.emoji for line in title.lines)
        used = _above(kicker) + title.height_px + (under.height_px + GAP if under else 0)
        y = area.y + int((area.height - used) * spare_above) + _above(kicker)
        if kicker:
            self.add(kicker, area, y - KICKER_GAP - kicker.height_px, theme.accent, align)
        self.add(title, area, y, theme.ink, align)
        if under:
            if align == "left" and under.rtl != title.rtl:
                align = "right"
            self.add(under, area, y + title.height_px + GAP, theme.muted, align)
        else:
            self._left_out = bool(self.card.description)
            # Counted as in the end of a text that is cut.
            self._undrawn += self._fonts.drawable(clean_for_lines(self.card.description))[1]
        return area._replace(y=y, height=title.height_px)

    def lines(self, lines: Iterable[Sequence[Part]], top: int, align: str = "left", *, dot: bool = False) -> None:
        """Put lines of labels below each other; aligned "apart", a tag at the right margin.

        With `dot` a disc of the accent stands before the first, and lines from the left begin behind it.
        """
        before = 2 * DOT * dot
        for number, parts in enumerate(lines):
            above, height = _extents(parts)
            x = self.left + before
            if align == "center":
                x = (WIDTH - _width_of(parts) + before * (not number)) // 2
            if dot and not number:
                middle = middle_of(parts[0].block, top + above - parts[0].block.first_baseline_px)
                self.shapes.append(Shape(x - before, middle - DOT // 2, DOT, DOT, self.theme.accent, DOT // 2))
            for part in parts:
                if align == "apart" and part.colour == self.theme.accent:
                    x = WIDTH - MARGIN - part.block.width_px
                place = Area(x, top, part.block.width_px, height)
                self.add(part.block, place, top + above - part.block.first_baseline_px, part.colour)
                x += part.block.width_px + BETWEEN
            top += height + ROW_GAP

    def add(self, block: Block, area: Area, y: int, colour: Colour, align: str = "left") -> None:
        """Put a block of text into an area, `y` below the card's top."""
        self.texts.append(Text(block, area.x, y, area.width, colour, area.over, align))

    @cached_property
    def _description(self) -> Paragraph:
        text, most = self.card.description, min(styles.TEXT_WORK, self._work)
        return Paragraph(self._fonts, text, styles.DESCRIPTION, INNER, language=self._language, max_work=most)

    def _headline(self, text: str) -> Headline:
        serif = self.card.template == "article" and self._serif.suits(text, self._language)
        return Headline(self._serif if serif else self._fonts, text, self._language, serif=serif)


@lru_cache(64)
def _label(fonts: Fonts, text: str, style: Style, width: int, *, domain: bool, language: str, most: int) -> Block:
    """The block of a label. The cards of a site share author, tag and domain, so it is kept, for all threads.

    Two threads may draw the same label once each. A `Block` is never changed.
    """
    fitted: Callable[..., Block] = fit_end if domain else fit
    return fitted(fonts, text, style, width, language=language, max_work=most)


_initial = lru_cache(16)(initial_block)  # as `_label`


def packed(parts: Sequence[Part], width: int) -> list[list[Part]]:
    """The labels in as few lines as hold them, the first label alone if that takes no more lines."""
    lines, apart = _in_lines(parts, width), [[*parts[:1]], *_in_lines(parts[1:], width)]
    return apart if len(apart) == len(lines) else lines


def _in_lines(parts: Sequence[Part], width: int) -> list[list[Part]]:
    lines: list[list[Part]] = []
    for part in parts:
        if lines and _width_of([*lines[-1], part]) <= width:
            lines[-1].append(part)
        else:
            lines.append([part])
    return lines


def height_of(lines: Sequence[Sequence[Part]]) -> int:
    """The height of lines of labels."""
    return sum(_extents(parts)[1] for parts in lines) + ROW_GAP * (len(lines) - 1) if lines else 0


def _extents(parts: Sequence[Part]) -> tuple[int, int]:
    """How far the baseline of a line of labels is below its top, and how high it is."""
    above = max(part.block.first_baseline_px for part in parts)
    return above, above + max(part.block.height_px - part.block.first_baseline_px for part in parts)


def _width_of(parts: Sequence[Part]) -> int:
    return sum(part.block.width_px for part in parts) + BETWEEN * (len(parts) - 1)


def _above(kicker: Block | None) -> int:
    """The height that a kicker takes above a title."""
    return kicker.height_px + KICKER_GAP if kicker else 0


def middle_of(block: Block, top: int) -> int:
    """The middle of the capitals of a one-line block that begins at `top`."""
    return top + block.first_baseline_px - round(block.size_px * CAPITAL / 2)


def top_at(block: Block, middle: int) -> int:
    """The top of a one-line block whose capitals have their middle at `middle`."""
    return middle - middle_of(block, 0)
