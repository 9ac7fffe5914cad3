"""The three templates: where each text stands, and in which colour. Pure; `render` paints what is laid out here.

Lengths are pixels on a card of 1200 x 630, on a grid of 8. Everything is laid out from left to right; a card whose
title runs from right to left is mirrored as a whole.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from cardbeat.cards.fonts import Fonts
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


def lay_out(fonts: Fonts, card: Card) -> Layout:
    """The card's layout in its template and theme."""
    page = _Page(fonts, card)
    _TEMPLATES[card.template](page)
    layout = Layout(page.theme, tuple(page.shapes), tuple(page.texts), mirrored=page.rtl)
    return _mirrored(layout) if page.rtl else layout


class _Page:
    """A card while it is laid out."""

    def __init__(self, fonts: Fonts, card: Card) -> None:
        self.card = card
        self.theme = THEMES[card.template, card.theme]
        self.shapes: list[Shape] = []
        self.texts: list[Text] = []
        self.rtl = False
        self._fonts = fonts

    def label(self, text: str, width: int, *, size: int = LABEL_PX, weight: int = 500) -> Block:
        """One line, cut where it does not fit."""
        return fit(self._fonts, text, width_px=width, size_px=size, min_size_px=size, weight=weight, leading=1.3)

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

    def pair(self, left: str, right: str, y: int, weight: int = 500) -> None:
        """Two labels at the two ends of a line; one alone stands at its beginning."""
        room = INNER - 2 * GAP
        first, second = left or right, right if left else ""
        end = self.label(second, room // 2, weight=500) if second else None
        start = self.label(first, room - round(end.width_px) if end else INNER, weight=weight if left else 500)
        self.texts.append(Text(start, MARGIN, y, INNER, self.theme.ink if left else self.theme.muted))
        if end:
            width = round(end.width_px) + 1
            self.texts.append(Text(end, WIDTH - MARGIN - width, y, width, self.theme.muted, align="right"))

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
        return fit(
            self._fonts,
            text,
            width_px=INNER,
            max_lines=lines,
            height_px=height,
            size_px=largest,
            min_size_px=smallest,
            weight=700,
            leading=1.15,
        )

    def _description(self, height: int) -> Block:
        return fit(
            self._fonts,
            self.card.description,
            width_px=INNER,
            max_lines=3,
            height_px=height,
            size_px=32,
            min_size_px=28,
            leading=1.4,
        )


def _default(page: _Page) -> None:
    """Any page: the title in the middle, what it is about above, where it stands below."""
    card, theme = page.card, page.theme
    top, bottom = TOP, BOTTOM
    if card.tag:
        tag = page.label(card.tag, INNER - 40, weight=600)
        middle = TOP + tag.height_px // 2
        page.shapes.append(Shape(MARGIN, middle - 8, 16, 16, theme.accent, 8))
        page.texts.append(Text(tag, MARGIN + 32, _middled(tag, middle), INNER - 40, theme.accent))
        top += tag.height_px + GAP
    if card.domain or card.author:
        y = BOTTOM - 36
        page.pair(card.domain, card.author, y)
        bottom = y - GAP
    page.body(top, bottom)


def _blog(page: _Page) -> None:
    """The author as a person above, then what they wrote."""
    card, theme = page.card, page.theme
    header = card.author or card.domain or card.tag
    height = AVATAR if card.author else PILL
    middle = TOP + height // 2
    right = WIDTH - MARGIN
    if card.tag:
        tag = page.label(card.tag, 360, size=26, weight=600)
        width = round(tag.width_px) + 56
        left = right - width if card.author or card.domain else MARGIN
        page.shapes.append(Shape(left, middle - PILL // 2, width, PILL, theme.fill, PILL // 2))
        page.texts.append(
            Text(tag, left + 28, _middled(tag, middle), width - 56, theme.accent, theme.fill, align="center")
        )
        right = left - 2 * GAP
    if card.author:
        _author(page, right)
    elif card.domain:
        domain = page.label(card.domain, right - MARGIN, weight=600)
        page.texts.append(Text(domain, MARGIN, _middled(domain, middle), right - MARGIN, theme.ink))
    page.body(TOP + height + GAP if header else TOP, BOTTOM)


def _author(page: _Page, right: int) -> None:
    """An avatar with the author's initial; beside it their name, and under that the domain."""
    card, theme = page.card, page.theme
    colour = theme.people[zlib.crc32(card.author.encode("utf-8", "replace")) % len(theme.people)]
    initial = page.label(_initial(card.author), AVATAR - 24, size=44, weight=700)
    page.shapes.append(Shape(MARGIN, TOP, AVATAR, AVATAR, colour, AVATAR // 2))
    middle = TOP + AVATAR // 2
    page.texts.append(
        Text(initial, MARGIN + 12, _middled(initial, middle), AVATAR - 24, theme.on_people, colour, align="center")
    )
    left = MARGIN + AVATAR + GAP
    name = page.label(card.author, right - left, size=36, weight=700)
    name_middle = middle - 20 if card.domain else middle
    page.texts.append(Text(name, left, _middled(name, name_middle), right - left, theme.ink))
    if card.domain:
        domain = page.label(card.domain, right - left, weight=400)
        page.texts.append(Text(domain, left, _middled(domain, middle + 24), right - left, theme.muted))


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


def _middled(block: Block, middle: int) -> int:
    """The top of a one-line block whose capitals are to be centred on a height."""
    return middle + round(block.size_px * CAPITAL / 2) - block.first_baseline_px


def _initial(author: str) -> str:
    return author[:1].upper()


def _mirrored(layout: Layout) -> Layout:
    flip = {"left": "right", "right": "left", "center": "center"}
    return replace(
        layout,
        shapes=tuple(replace(shape, x=WIDTH - shape.x - shape.width) for shape in layout.shapes),
        texts=tuple(replace(text, x=WIDTH - text.x - text.width, align=flip[text.align]) for text in layout.texts),
    )
