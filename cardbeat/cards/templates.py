"""The three templates: which text stands where on a card, and in which colour.

Lengths are pixels, on a grid of 8. Everything is laid out from left to right; a card whose title is right-to-left is
mirrored as a whole.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace

from cardbeat.cards.layout import BOTTOM, INNER, MARGIN, TOP, WIDTH, Layout, Shape, Text
from cardbeat.cards.page import GAP, Page, middle_of, top_at
from cardbeat.cards.request import Card
from cardbeat.typeset.fonts import Fonts

AVATAR = 96
PILL = 48
TAG = 640
"""The width that a tag may take."""


def lay_out(fonts: Fonts, serif: Fonts, card: Card) -> Layout:
    """The card's layout in its template and theme; `serif` sets the headlines of articles."""
    page = Page(fonts, serif if card.template == "article" else fonts, card)
    _TEMPLATE_OF[card.template](page)
    return page.layout()


def _default(page: Page) -> None:
    """Any page: the tag above, the title and the description in the middle, the domain and the author below."""
    card, theme = page.card, page.theme
    top, bottom = TOP, BOTTOM
    if card.tag:
        tag = page.label(card.tag, TAG, weight=600)
        page.shapes.append(Shape(MARGIN, middle_of(tag, TOP) - 8, 16, 16, theme.accent, 8))
        page.texts.append(Text(tag, MARGIN + 32, TOP, TAG, theme.accent))
        top += tag.height_px + GAP
    if card.domain or card.author:
        bottom = page.footer(card.domain, card.author) - GAP
    page.body(top, bottom)


def _blog(page: Page) -> None:
    """The author with an avatar above, beside the tag; then the title and the description."""
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
        y = max(TOP, top_at(domain, middle))
        page.texts.append(Text(domain, MARGIN, y, right - MARGIN, theme.ink))
        top = max(TOP + PILL, y + domain.height_px) + GAP
    page.body(top, BOTTOM)


def _pill(page: Page, middle: int, right: int | None) -> int:
    """The tag in a rounded shape, which ends at `right` or begins at the margin. Returns its left side."""
    theme = page.theme
    tag = page.label(page.card.tag, 360, size=26, weight=600)
    width = tag.width_px + 56
    left = MARGIN if right is None else right - width
    page.shapes.append(Shape(left, middle - PILL // 2, width, PILL, theme.fill, PILL // 2))
    page.texts.append(Text(tag, left + 28, top_at(tag, middle), tag.width_px, theme.accent, theme.fill, align="center"))
    return left


def _author(page: Page, middle: int, right: int) -> int:
    """An avatar with the author's initial; beside it their name, and under that the domain. Returns their bottom."""
    card, theme = page.card, page.theme
    colour = theme.avatars[zlib.crc32(card.author.encode("utf-8", "replace")) % len(theme.avatars)]
    # What no font has of the initial is counted where it stands in the name.
    initial = replace(page.initial(card.author, AVATAR - 24, size=44), missing=0)
    page.shapes.append(Shape(MARGIN, TOP, AVATAR, AVATAR, colour, AVATAR // 2))
    y = top_at(initial, middle)
    page.texts.append(Text(initial, MARGIN + 12, y, AVATAR - 24, theme.on_avatar, colour, align="center"))
    left = MARGIN + AVATAR + GAP
    name = page.label(card.author, right - left, size=36, weight=700)
    y = max(TOP, top_at(name, middle - 20 if card.domain else middle))
    page.texts.append(Text(name, left, y, right - left, theme.ink))
    end = y + name.height_px
    if card.domain:
        domain = page.label(card.domain, right - left, weight=400)
        y = max(end, top_at(domain, middle + 24))
        page.texts.append(Text(domain, left, y, right - left, theme.muted))
        end = y + domain.height_px
    return max(TOP + AVATAR, end)


def _article(page: Page) -> None:
    """A front page: the domain under a rule, the title low, the author under another rule."""
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


_TEMPLATE_OF: dict[str, Callable[[Page], None]] = {"default": _default, "blog": _blog, "article": _article}
