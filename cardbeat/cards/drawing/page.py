"""A card while it is laid out: its texts as blocks, and what the templates share."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import inf
from typing import NamedTuple

from cardbeat.cards.drawing.colours import Colour, theme_of
from cardbeat.cards.drawing.layout import Area, Layout, Shape, Text
from cardbeat.cards.request import Card
from cardbeat.typeset.faces.fonts import Fonts, is_emoji
from cardbeat.typeset.paragraph import ELLIPSIS, Paragraph
from cardbeat.typeset.text import (
    Block,
    LinePlan,
    Style,
    drawn,
    fit,
    height_px,
    planned,
)
from cardbeat.typeset.unicode.clusters import clean, clusters, is_european
from cardbeat.typeset.unicode.han import language_of, small_words

GAP = 26
"""Between the title and what is above or below it."""
AIR = 36
"""Left free around a title with a description."""
BETWEEN = 36
"""Between the labels of a row."""
ROW_GAP = 8
MOST_OF_LABEL = 120
MOST_OF_DESCRIPTION = 400
"""Characters that are looked at: more than fit."""
MOST_NAMES = 8
"""Names at the end of a long domain that are looked at."""
QUOTATION_MARK = "“"
CAPITAL = 0.72
"""A capital's height in parts of the size: text is centred by its capitals."""

LABEL_PX = 32
LABEL_LEADING = 1.3
BOLD = 600
INITIAL = Style(700, 76, 24)
QUOTATION = Style(700, 180, 180)
"""The mark in an avatar without a name."""
MARGINAL_PX = (30, 20)
"""Largest and smallest size of the texts beside the title."""
MARGINAL_LINES = 5

HEADLINE = 700
"""Of titles."""
TITLE = Style(HEADLINE, 152, 56, max_lines=6)
LEADING = 1.18
EUROPEAN_LEADING = 1.0
"""Of titles whose letters are all Latin, Greek or Cyrillic."""
DESCRIPTION = Style(400, 34, 32, leading=1.32)
KEPT = (0.0, 0.7, 0.85)
"""What a title keeps of its size for a first line of description, a second, a third."""

_LOOKED_AT = 64
"""Characters of a name in which its first letter is looked for."""
_LEADING_VOWEL = re.compile("[\u0e40-\u0e44\u0ec0-\u0ec4]")
"""Vowels of Thai and Lao that are written before the consonant that begins the word."""
_EAST_ASIAN = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "BOPOMOFO",
    "IDEOGRAPHIC",
)


Part = tuple[Block, Colour]
"""A label that is set."""

_fitted = lru_cache(64)(fit)
"""Blocks of labels are kept: the cards of a site share author, tag and domain."""


class Label(NamedTuple):
    """One line of text in one colour.

    A long domain is shortened from the left, since its end names the site.
    """

    text: str
    colour: Colour
    weight: int = 500
    is_domain: bool = False


class Page:
    """Collects what is painted."""

    def __init__(
        self, fonts: Fonts, card: Card, accent: Colour | None
    ) -> None:
        self.card = card._replace(domain=readable_domain(card.domain))
        self.theme = theme_of(card.template, card.theme, accent)
        self.shapes: list[Shape] = []
        self.texts: list[Text] = []
        self._fonts = fonts
        texts = " ".join(
            (card.title, card.description, card.author, card.tag)
        )
        self._language = language_of(texts, card.lang, card.domain)
        self._small_words = small_words(
            f"{card.title} {card.description}", card.lang
        )
        self._title = self._paragraph(
            card.title, HEADLINE, card.template == "article"
        )
        if self.card.domain and not self._title.graphemes:
            self._title = self._paragraph(self.card.domain, HEADLINE)
            self.card = self.card._replace(domain="")

    def layout(self) -> Layout:
        """What was collected, mirrored where the title is right-to-left."""
        layout = Layout(self.theme, tuple(self.shapes), tuple(self.texts))
        if self._title.rtl:
            return layout.mirror_image()
        return layout

    def rows(
        self, labels: Sequence[Label], width: int
    ) -> list[list[Part]]:
        """The labels that have a text, in as few rows as hold them.

        One is cut if it fills a row alone.
        """
        rows: list[list[Part]] = []
        left_px = 0
        for label in labels:
            if not label.text:
                continue
            block = self._label(label, width)
            if not rows or block.width_px > left_px:
                rows.append([])
                left_px = width
            rows[-1].append((block, label.colour))
            left_px -= block.width_px + BETWEEN
        return rows

    def add_rows(
        self,
        rows: Sequence[Sequence[Part]],
        area: Area,
        middle: int,
        last_right: bool = False,
    ) -> int:
        """Put rows of labels below each other, the first at `middle`; returns the end of the last.

        With `last_right` the last label of each row with several ends at the right.
        """
        baseline = middle + round(LABEL_PX * CAPITAL / 2)
        bottom = area.y
        for number, parts in enumerate(rows):
            above = max(block.first_baseline_px for block, _ in parts)
            if number:
                baseline = bottom + ROW_GAP + above
            x = area.x
            for place, (block, colour) in enumerate(parts):
                if last_right and place and place == len(parts) - 1:
                    x = area.right - block.width_px
                inside = area._replace(x=x, width=block.width_px)
                self.add(
                    block,
                    inside,
                    baseline - block.first_baseline_px,
                    colour,
                )
                x += block.width_px + BETWEEN
            below = max(
                block.height_px - block.first_baseline_px
                for block, _ in parts
            )
            bottom = baseline + below
        return bottom

    def margin(self, labels: Sequence[Label], area: Area) -> None:
        """Put texts below each other in a narrow area, each in as many lines as it needs."""
        y = area.y
        largest_px, smallest_px = MARGINAL_PX
        for label in labels:
            if not label.text:
                continue
            style = Style(
                label.weight, largest_px, smallest_px, 1.2, MARGINAL_LINES
            )
            text = label.text[:MOST_OF_LABEL]
            block = _fitted(
                self._fonts,
                text,
                style,
                area.width,
                language=self._language,
            )
            self.add(block, area, y, label.colour)
            y += block.height_px + 2 * ROW_GAP

    def avatar(self, area: Area) -> None:
        """Put the initial of the author, else of the domain, into an area, or a quotation mark."""
        domain = self.card.domain.removeprefix("www.")
        initial = initial_of(self.card.author) or initial_of(domain)
        block = _fitted(
            self._fonts,
            initial or QUOTATION_MARK,
            INITIAL if initial else QUOTATION,
            area.width,
            area.height if initial else inf,
            language=self._language,
        )
        # Its capitals are in the middle.
        below = (
            round(block.size_px * CAPITAL / 2) - block.first_baseline_px
        )
        y = area.y + area.height // 2 + below
        if initial:
            # A stack of marks stays in the area.
            y = max(area.y, min(y, area.bottom - block.height_px))
        else:
            y += round(block.size_px * 0.2)
        self.add(block, area, y, self.theme.on_mark, "center")

    def body(self, area: Area, spare_above: float = 0.5) -> None:
        """The title in an area, and below it as many lines of description as leave it large.

        `spare_above` is the part of the spare height that goes above them.
        """
        leading = EUROPEAN_LEADING if self._is_european else LEADING
        style = TITLE._replace(leading=leading)
        plan, under = self._planned_above(style, area) or (
            planned(self._title, style, area.width, area.height),
            None,
        )
        title = drawn(self._title, plan, style, area.width)
        used = title.height_px
        if under:
            used += under.height_px + GAP
        y = area.y + int((area.height - used) * spare_above)
        self.add(title, area, y, self.theme.ink)
        if under:
            align = "left" if under.rtl == title.rtl else "right"
            self.add(
                under,
                area,
                y + title.height_px + GAP,
                self.theme.muted,
                align,
            )

    def _planned_above(
        self, style: Style, area: Area
    ) -> tuple[LinePlan, Block] | None:
        """The title above as many lines of description as leave it large, one at least.

        None if the title would be cut for that line.
        """
        found: tuple[LinePlan, LinePlan, Style] | None = None
        size_px = 0
        for lines, kept in enumerate(KEPT, 1):
            if not self.card.description or (
                found and not found[1].is_cut
            ):
                break
            under_style = DESCRIPTION._replace(max_lines=lines)
            under = planned(self._description, under_style, area.width)
            left_px = (
                area.height
                - height_px(self._description, under, under_style)
                - GAP
                - AIR
            )
            title = planned(self._title, style, area.width, left_px)
            if title.is_cut or title.size_px < kept * size_px:
                break
            found = title, under, under_style
            size_px = title.size_px
        if not found:
            return None
        title, under, under_style = found
        return title, drawn(
            self._description, under, under_style, area.width
        )

    def add(
        self,
        block: Block,
        area: Area,
        y: int,
        colour: Colour,
        align: str = "left",
    ) -> None:
        """Put a block of text into an area, `y` below the card's top."""
        self.texts.append(
            Text(block, area.x, y, area.width, colour, area.over, align)
        )

    @property
    def _is_european(self) -> bool:
        letters = filter(
            str.isalpha,
            {grapheme[0] for grapheme in self._title.graphemes},
        )
        return all(map(is_european, letters))

    @cached_property
    def _description(self) -> Paragraph:
        return self._paragraph(
            self.card.description[:MOST_OF_DESCRIPTION],
            DESCRIPTION.weight,
        )

    def _paragraph(
        self, text: str, weight: int, serif: bool = False
    ) -> Paragraph:
        return Paragraph(
            self._fonts,
            text,
            weight,
            language=self._language,
            serif=serif,
            small_words=self._small_words,
        )

    def _label(self, label: Label, width: int) -> Block:
        style = Style(label.weight, LABEL_PX, LABEL_PX, LABEL_LEADING)
        names = label.text.split(".")[-MOST_NAMES:]
        starts = range(1, len(names) if label.is_domain else 1)
        shorter = tuple(
            ELLIPSIS + ".".join(names[start:]) for start in starts
        )
        text = label.text[:MOST_OF_LABEL]
        language = self._language
        return _fitted(
            self._fonts,
            text,
            style,
            width,
            language=language,
            shorter=shorter,
        )


def readable_domain(domain: str) -> str:
    """A domain as people write it: `münchen.example` for `xn--mnchen-3ya.example`.

    A name in which letters of several scripts are mixed stays encoded: it may imitate another one.
    """
    return ".".join(map(_decoded, domain.split(".")))


def initial_of(name: str) -> str:
    """The first letter of a name as a grapheme, in upper case where its script has it.

    Quotation marks, `@` and other signs before it are skipped. "" for a name without letters and
    emoji.
    """
    graphemes = clusters(clean(name[:_LOOKED_AT]))
    while graphemes and not _begins_name(graphemes[0]):
        graphemes.pop(0)
    first = "".join(graphemes[:1])
    if _LEADING_VOWEL.match(first):
        first = "".join(graphemes[:2])
    capital = unicodedata.normalize("NFC", first.title())
    # Georgian has capitals for whole words, not for names; that of `ß` would be two letters.
    if "\u10d0" <= first[:1] <= "\u10ff" or len(capital) > len(first):
        return first
    return capital


def _decoded(name: str) -> str:
    if not name.lower().startswith("xn--"):
        return name
    try:
        decoded = name[4:].encode("ascii").decode("punycode")
    except ValueError:
        return name
    scripts = {
        _script_of(character)
        for character in decoded
        if character.isalpha()
    }
    return decoded if len(scripts) == 1 else name


def _script_of(letter: str) -> str:
    """The first word of its name in Unicode; one for all of Chinese, Japanese and Korean."""
    script = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if script.startswith(_EAST_ASIAN) else script


def _begins_name(grapheme: str) -> bool:
    category = unicodedata.category(grapheme[0])
    return (category[0] in "LN" and category != "Lm") or is_emoji(
        grapheme
    )
