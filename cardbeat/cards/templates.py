"""The three templates: where each text stands, and in which colour. Pure; `render` paints what is laid out here.

Lengths are pixels on a card of 1200 x 630, on a grid of 8. Everything is laid out from left to right; a card whose
title runs from right to left is mirrored as a whole.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from cardbeat.cards.request import Card
from cardbeat.cards.themes import THEMES, Colour, Theme
from cardbeat.typeset.clusters import clean, clusters
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.han import language_of
from cardbeat.typeset.text import Block, fit

WIDTH = 1200
HEIGHT = 630
MARGIN = 72
INNER = WIDTH - 2 * MARGIN
TOP = 64
BOTTOM = HEIGHT - TOP

GAP = 24
KICKER_GAP = 8
LABEL_PX = 28
CAPITAL = 0.72
"""A capital's height in parts of the size: what the eye centres text by."""
AVATAR = 96
PILL = 48
TAG = 640


@dataclass(frozen=True, slots=True)
class Style:
    """How a text is set: it shrinks from its largest size to its smallest before it is cut."""

    weight: int
    largest_px: int
    smallest_px: int
    leading: float
    max_lines: int = 1
    headline: bool = False


SHORT_TITLE = Style(700, 128, 100, leading=1.15, max_lines=2, headline=True)
TITLE = Style(700, 96, 40, leading=1.15, max_lines=5, headline=True)
DESCRIPTION = Style(400, 32, 28, leading=1.4, max_lines=3)


@dataclass(frozen=True, slots=True)
class Text:
    """A block of text in a box, flush with its left or right side. `over` is the shape's colour it stands on."""

    block: Block
    x: int
    y: int
    width: int
    colour: Colour
    over: Colour | None = None
    align: str = "left"


@dataclass(frozen=True, slots=True)
class Shape:
    """A filled rectangle with rounded corners; a disc where the radius is half its size."""

    x: int
    y: int
    width: int
    height: int
    colour: Colour
    radius: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """What to paint, shapes first. `mirrored` also turns the background around."""

    theme: Theme
    shapes: tuple[Shape, ...]
    texts: tuple[Text, ...]
    mirrored: bool

    @property
    def missing_glyphs(self) -> int:
        return sum(text.block.missing for text in self.texts)


def lay_out(fonts: Fonts, serif: Fonts, card: Card) -> Layout:
    """The card's layout in its template and theme; `serif` sets the headlines of articles."""
    page = _Page(fonts, serif if card.template == "article" else fonts, card)
    _TEMPLATES[card.template](page)
    layout = Layout(page.theme, tuple(page.shapes), tuple(page.texts), mirrored=page.rtl)
    return _mirrored(layout) if page.rtl else layout


class _Page:
    """A card while it is laid out."""

    def __init__(self, fonts: Fonts, title_fonts: Fonts, card: Card) -> None:
        self.card = card
        self.theme = THEMES[card.template, card.theme]
        self.shapes: list[Shape] = []
        self.texts: list[Text] = []
        self.rtl = False
        self._fonts = fonts
        self._title_fonts = title_fonts
        self._language = language_of("".join((card.title, card.description, card.author, card.tag, card.domain)))

    def label(self, text: str, width: int, *, size: int = LABEL_PX, weight: int = 500) -> Block:
        """One line, cut where it does not fit."""
        return _label(self._fonts, text, Style(weight, size, size, leading=1.3), width, language=self._language)

    def body(self, top: int, bottom: int, *, spare_above: float = 0.5, kicker: str = "") -> None:
        """The title between two heights, a kicker over it and the description under it."""
        card, theme = self.card, self.theme
        over = self.label(kicker, INNER, weight=700) if kicker else None
        room = bottom - top - (over.height_px + KICKER_GAP if over else 0)
        under = self._set(card.description, DESCRIPTION, INNER, int(room * 0.4)) if card.description else None
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

    def pair(self, left: str, right: str) -> int:
        """Two labels at the two ends of the last line, one alone at its beginning. Returns where they begin."""
        end = self.label(right, INNER // 2 - GAP) if left and right else None
        width = ceil(end.width_px) if end else 0
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
        large = self._set(title, SHORT_TITLE, INNER, height) if len(title) <= 32 else None
        return large if large and not large.cut else self._set(title, TITLE, INNER, height)

    def _set(self, text: str, style: Style, width: int, height: int | None = None) -> Block:
        fonts = self._title_fonts if style.headline else self._fonts
        return _set(fonts, text, style, width, language=self._language, height=height)


def _set(fonts: Fonts, text: str, style: Style, width: int, *, language: str, height: int | None = None) -> Block:
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
    )


_label = lru_cache(32)(_set)
"""The cards of a site share their author, tag and domain: these are drawn once."""


def _default(page: _Page) -> None:
    """Any page: the title in the middle, what it is about above, where it stands below."""
    card, theme = page.card, page.theme
    top, bottom = TOP, BOTTOM
    if card.tag:
        tag = page.label(card.tag, TAG, weight=600)
        page.shapes.append(Shape(MARGIN, _middle_of(tag, TOP) - 8, 16, 16, theme.accent, 8))
        page.texts.append(Text(tag, MARGIN + 32, TOP, TAG, theme.accent))
        top += tag.height_px + GAP
    if card.domain or card.author:
        bottom = page.pair(card.domain, card.author) - GAP
    page.body(top, bottom)


def _blog(page: _Page) -> None:
    """The author as a person above, then what they wrote."""
    card, theme = page.card, page.theme
    middle = TOP + (AVATAR if card.author else PILL) // 2
    top, right = TOP, WIDTH - MARGIN
    if card.tag:
        left = _pill(page, middle, right if card.author or card.domain else None)
        top, right = TOP + PILL + GAP, left - 2 * GAP
    if card.author:
        top = _author(page, middle, right) + GAP
    elif card.domain:
        domain = page.label(card.domain, right - MARGIN, weight=600)
        y = max(TOP, _top_at(domain, middle))
        page.texts.append(Text(domain, MARGIN, y, right - MARGIN, theme.ink))
        top = max(TOP + PILL, y + domain.height_px) + GAP
    page.body(top, BOTTOM)


def _pill(page: _Page, middle: int, right: int | None) -> int:
    """The tag, ending at `right` or beginning at the margin. Returns where it begins."""
    theme = page.theme
    tag = page.label(page.card.tag, 360, size=26, weight=600)
    inner = ceil(tag.width_px)
    width = inner + 56
    left = MARGIN if right is None else right - width
    page.shapes.append(Shape(left, middle - PILL // 2, width, PILL, theme.fill, PILL // 2))
    page.texts.append(Text(tag, left + 28, _top_at(tag, middle), inner, theme.accent, theme.fill, align="center"))
    return left


def _author(page: _Page, middle: int, right: int) -> int:
    """An avatar with the author's initial; beside it their name, and under that the domain. Returns where they end."""
    card, theme = page.card, page.theme
    colour = theme.people[zlib.crc32(card.author.encode("utf-8", "replace")) % len(theme.people)]
    # What no font has of the initial is counted where it stands in the name.
    initial = replace(page.label(_initial(card.author), AVATAR - 24, size=44, weight=700), missing=0)
    page.shapes.append(Shape(MARGIN, TOP, AVATAR, AVATAR, colour, AVATAR // 2))
    y = _top_at(initial, middle)
    page.texts.append(Text(initial, MARGIN + 12, y, AVATAR - 24, theme.on_people, colour, align="center"))
    left = MARGIN + AVATAR + GAP
    name = page.label(card.author, right - left, size=36, weight=700)
    y = max(TOP, _top_at(name, middle - 20 if card.domain else middle))
    page.texts.append(Text(name, left, y, right - left, theme.ink))
    end = y + name.height_px
    if card.domain:
        domain = page.label(card.domain, right - left, weight=400)
        y = max(end, _top_at(domain, middle + 24))
        page.texts.append(Text(domain, left, y, right - left, theme.muted))
        end = y + domain.height_px
    return max(TOP + AVATAR, end)


def _article(page: _Page) -> None:
    """A front page: a masthead under a rule, the headline low, the byline last."""
    card, theme = page.card, page.theme
    top, bottom = TOP + 40, BOTTOM
    page.shapes.append(Shape(MARGIN, TOP, INNER, 2, theme.ink))
    page.shapes.append(Shape(MARGIN, TOP, 96, 12, theme.accent))
    if card.domain:
        domain = page.label(card.domain, INNER, weight=700)
        page.texts.append(Text(domain, MARGIN, TOP + 24, INNER, theme.ink))
        top += domain.height_px
    if card.author:
        author = page.label(card.author, INNER)
        y = BOTTOM - author.height_px
        page.shapes.append(Shape(MARGIN, y - 16, INNER, 2, theme.fill))
        page.texts.append(Text(author, MARGIN, y, INNER, theme.muted))
        bottom = y - 16 - GAP
    page.body(top, bottom, spare_above=1, kicker=card.tag)


_TEMPLATES: dict[str, Callable[[_Page], None]] = {"default": _default, "blog": _blog, "article": _article}


def _middle_of(block: Block, top: int) -> int:
    """The height at which the capitals of a one-line block have their middle."""
    return top + block.first_baseline_px - round(block.size_px * CAPITAL / 2)


def _top_at(block: Block, middle: int) -> int:
    """Where a one-line block begins if its capitals have their middle at a height."""
    return middle - _middle_of(block, 0)


def _initial(author: str) -> str:
    """The first grapheme, as a capital where there are capitals."""
    return "".join(clusters(clean(author[:64]))[:1]).upper()


def _mirrored(layout: Layout) -> Layout:
    flip = {"left": "right", "right": "left", "center": "center"}
    return replace(
        layout,
        shapes=tuple(replace(shape, x=WIDTH - shape.x - shape.width) for shape in layout.shapes),
        texts=tuple(replace(text, x=WIDTH - text.x - text.width, align=flip[text.align]) for text in layout.texts),
    )
