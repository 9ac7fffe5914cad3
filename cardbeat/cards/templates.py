"""The three templates: where each text stands, and in which colour. Pure; `render` paints what is laid out here.

Lengths are pixels on a card of 1200 x 630, on a grid of 8. Everything is laid out from left to right; a card whose
title runs from right to left is mirrored as a whole.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from cardbeat.cards.clusters import clean, clusters
from cardbeat.cards.fonts import Fonts, language_of
from cardbeat.cards.request import Card
from cardbeat.cards.text import Block, fit
from cardbeat.cards.themes import THEMES, Colour, Theme

WIDTH = 1200
HEIGHT = 630
MARGIN = 72
INNER = WIDTH - 2 * MARGIN
TOP = 64
BOTTOM = HEIGHT - TOP

GAP = 24
LABEL_PX = 28
CAPITAL = 0.72
"""A capital's height in parts of the size: what the eye centres text by."""
AVATAR = 96
PILL = 48
TAG = 640


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
        box: dict[str, Any] = {"size_px": size, "min_size_px": size, "leading": 1.3}
        return fit(self._fonts, text, width_px=width, weight=weight, language=self._language, **box)

    def body(self, top: int, bottom: int, *, spare_above: float = 0.5, kicker: str = "") -> None:
        """The title between two heights, a kicker over it and the description under it."""
        height = bottom - top
        stack = []
        if kicker:
            stack.append((self.label(kicker, INNER, weight=700), self.theme.accent, 8))
        height -= sum(block.height_px + gap for block, _, gap in stack)
        description = self._description(int(height * 0.4)) if self.card.description else None
        title = self._title(height - (description.height_px + GAP if description else 0))
        self.rtl = title.rtl
        stack.append((title, self.theme.ink, GAP))
        if description:
            stack.append((description, self.theme.muted, 0))
        used = sum(block.height_px + gap for block, _, gap in stack) - stack[-1][2]
        y = top + int((bottom - top - used) * spare_above)
        for block, colour, gap in stack:
            align = "left" if block.rtl == title.rtl else "right"
            self.texts.append(Text(block, MARGIN, y, INNER, colour, align=align))
            y += block.height_px + gap

    def pair(self, left: str, right: str) -> int:
        """Two labels at the two ends of the last line, one alone at its beginning. Returns where they begin."""
        ink, muted = self.theme.ink, self.theme.muted
        ends = [(text, colour) for text, colour in ((left, ink), (right, muted)) if text]
        second = self.label(ends[1][0], INNER // 2 - GAP) if len(ends) > 1 else None
        first = self.label(ends[0][0], INNER - 2 * GAP - ceil(second.width_px) if second else INNER)
        blocks = [first, second] if second else [first]
        baseline = BOTTOM - max(block.height_px - block.first_baseline_px for block in blocks)
        tops = [baseline - block.first_baseline_px for block in blocks]
        self.texts.append(Text(first, MARGIN, tops[0], INNER, ends[0][1]))
        if second:
            width = ceil(second.width_px)
            self.texts.append(Text(second, WIDTH - MARGIN - width, tops[1], width, ends[1][1], align="right"))
        return min(tops)

    def _title(self, height: int) -> Block:
        """Short titles stand larger; long ones shrink, then are cut."""
        text = self.card.title
        if len(text) <= 32:
            large = self._set_title(text, height, lines=2, sizes=(128, 100))
            if not large.cut:
                return large
        return self._set_title(text, height, lines=5, sizes=(96, 40))

    def _set_title(self, text: str, height: int, lines: int, sizes: tuple[int, int]) -> Block:
        largest, smallest = sizes
        box: dict[str, Any] = {
            "max_lines": lines,
            "height_px": height,
            "size_px": largest,
            "min_size_px": smallest,
            "leading": 1.15,
        }
        return fit(self._title_fonts, text, width_px=INNER, weight=700, language=self._language, **box)

    def _description(self, height: int) -> Block:
        box: dict[str, Any] = {"max_lines": 3, "height_px": height, "size_px": 32, "min_size_px": 28, "leading": 1.4}
        return fit(self._fonts, self.card.description, width_px=INNER, language=self._language, **box)


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
    initial = page.label(_initial(card.author), AVATAR - 24, size=44, weight=700)
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
    return "".join(clusters(clean(author, 64))[:1]).upper()


def _mirrored(layout: Layout) -> Layout:
    flip = {"left": "right", "right": "left", "center": "center"}
    return replace(
        layout,
        shapes=tuple(replace(shape, x=WIDTH - shape.x - shape.width) for shape in layout.shapes),
        texts=tuple(replace(text, x=WIDTH - text.x - text.width, align=flip[text.align]) for text in layout.texts),
    )
