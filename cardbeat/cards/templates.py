"""The three templates: which text stands where on a card, and in which colour.

Lengths are pixels, on a grid of 8. Everything is laid out from left to right; a card whose title is right-to-left is
mirrored as a whole.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace

from cardbeat.cards.headline import GAP
from cardbeat.cards.layout import BOTTOM, INNER, MARGIN, PANEL, TOP, Area, Layout, Shape
from cardbeat.cards.page import Label, Page, middle_of, top_at
from cardbeat.cards.request import Card
from cardbeat.cards.styles import BOLD
from cardbeat.typeset.clusters import clean, clusters
from cardbeat.typeset.fonts import Fonts

TAG = 640
"""The width that a tag beside the light of `default` may take."""
AVATAR = 88
AVATAR_TOP = 502
PADDING = 56
"""From the sides of the bubble to its texts; the avatar stands under their beginning."""
PADDING_ABOVE = 40
NAME = 560
"""The width that an author may take beside the light of `blog`."""
NAME_PX, INITIAL_PX, SMALLEST_INITIAL_PX = 36, 44, 24


def lay_out(fonts: Fonts, serif: Fonts, card: Card) -> Layout:
    """The card's layout in its template and theme; `serif` sets the headlines of articles."""
    page = Page(fonts, serif, card)
    title = _TEMPLATE_OF[card.template](page)
    if page.blank:
        _mark(page, title)
    return page.layout()


def _default(page: Page) -> Area:
    """Any page: the tag above, the title and the description in the middle, the domain and the author below."""
    card, theme = page.card, page.theme
    top, bottom = TOP, BOTTOM
    if card.tag:
        tag = page.label(Label(card.tag, theme.accent, BOLD), TAG)
        page.shapes.append(Shape(MARGIN, middle_of(tag, TOP) - 9, 18, 18, theme.accent, 9))
        page.add(tag, Area(MARGIN + 36, TOP, TAG, 0), TOP, theme.accent)
        top += tag.height_px + GAP
    if card.domain or card.author:
        domain = Label(card.domain, theme.ink, BOLD, domain=True)
        bottom = page.row(domain, Label(card.author, theme.muted)).y - GAP
    return page.body(Area(MARGIN, top, INNER, bottom - top))


def _blog(page: Page) -> Area:
    """What a person says: the title and the description in a speech bubble, and under it the author."""
    _author(page)
    inner = Area(
        PANEL.x + PADDING, PANEL.y + PADDING_ABOVE, PANEL.width - 2 * PADDING, PANEL.height - 2 * PADDING_ABOVE
    )
    return page.body(replace(inner, over=page.theme.panel), kicker=page.card.tag)


def _author(page: Page) -> None:
    """An avatar with the author's initial, or a head and shoulders; beside it the name, and under that the domain."""
    card, theme = page.card, page.theme
    field, x, middle = theme.ramp[0], PANEL.x + PADDING, AVATAR_TOP + AVATAR // 2
    someone = card.author or card.domain or card.title
    colour = theme.avatars[zlib.crc32(someone.encode("utf-8", "replace")) % len(theme.avatars)]
    disc = Shape(x, AVATAR_TOP, AVATAR, AVATAR, colour, AVATAR // 2, over=field)
    page.shapes.append(disc)
    if card.author:
        _initial(page, Area(x, AVATAR_TOP, AVATAR, AVATAR, colour))
    else:
        page.shapes.append(replace(disc, colour=theme.on_avatar, over=colour, person=True))
    beside = Area(x + AVATAR + GAP, AVATAR_TOP, NAME, AVATAR, field)
    name = Label(card.author or card.domain, theme.ink, 700, domain=not card.author)
    domain = Label(card.domain if card.author else "", theme.muted, 400, domain=True)
    if name.text:
        _two_lines(page, beside, middle, name, domain)


def _two_lines(page: Page, area: Area, middle: int, name: Label, under: Label) -> None:
    """Two labels about a height, or one at it."""
    first = page.label(name, area.width, NAME_PX)
    y = top_at(first, middle - 22 * bool(under.text))
    page.add(first, area, y, name.colour)
    if under.text:
        second = page.label(under, area.width)
        page.add(second, area, max(y + first.height_px, top_at(second, middle + 24)), under.colour)


def _initial(page: Page, disc: Area) -> None:
    """The author's first grapheme, as a capital where there are capitals, in the middle of a disc."""
    text = "".join(clusters(clean(page.card.author[:64]))[:1]).upper()
    label = Label(text, page.theme.on_avatar, 700)
    # What no font has of it is counted where it stands in the name.
    initial = replace(page.label(label, AVATAR - 20, INITIAL_PX, SMALLEST_INITIAL_PX), missing=0)
    place = replace(disc, x=disc.x + 10, width=AVATAR - 20)
    page.add(initial, place, top_at(initial, disc.y + AVATAR // 2), label.colour, "center")


def _article(page: Page) -> Area:
    """A front page: the domain and the tag under a rule, the title low, the author under another rule."""
    card, theme = page.card, page.theme
    top, bottom = TOP + 16, BOTTOM
    page.shapes.append(Shape(MARGIN, TOP, INNER, 3, theme.ink))
    page.shapes.append(Shape(MARGIN, TOP, 120, 14, theme.accent))
    if card.domain or card.tag:
        domain = Label(card.domain, theme.ink, BOLD, domain=True)
        top = page.row(domain, Label(card.tag, theme.accent, BOLD), TOP + 26).bottom
    if card.author:
        bottom = page.row(Label(card.author, theme.muted), Label("", theme.muted)).y - 16
        page.shapes.append(Shape(MARGIN, bottom, INNER, 2, theme.fill))
    return page.body(Area(MARGIN, top + GAP, INNER, bottom - GAP * bool(card.author) - top - GAP), spare_above=1)


_TEMPLATE_OF: dict[str, Callable[[Page], Area]] = {"default": _default, "blog": _blog, "article": _article}


def _mark(page: Page, place: Area) -> None:
    """Stands for a title of which nothing can be drawn: a light, a pause in the bubble, three stars."""
    size, steps = _MARK_OF[page.card.template]
    x, y = place.x, place.y + (place.height - size) // 2
    for across, down in steps:
        disc = Shape(x + across, y + down, size, size, page.theme.accent, size // 2, place.over)
        page.shapes.append(disc)


_MARK_OF = {
    "default": (120, ((0, 0),)),
    "blog": (48, ((0, 0), (80, 0), (160, 0))),
    "article": (40, ((36, -32), (0, 32), (72, 32))),
}
"""By template the size of its discs, and where each stands."""
