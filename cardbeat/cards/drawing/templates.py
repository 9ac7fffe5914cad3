"""The three templates: the place and the colour of each text of a card.

Lengths are pixels, on a grid of 8. Every card is laid out from left to right. If its title is right-to-left, the whole
card is then mirrored.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace

from cardbeat.cards.drawing.headline import GAP
from cardbeat.cards.drawing.layout import BOTTOM, HEIGHT, INNER, MARGIN, PANEL, TOP, WIDTH, Area, Layout, Shape
from cardbeat.cards.drawing.page import Label, Page, middle_of, top_at
from cardbeat.cards.drawing.styles import BOLD, LABEL_PX
from cardbeat.cards.drawing.themes import Colour
from cardbeat.cards.request import Card
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.labels import initial_of

BELOW_MASTHEAD = 32
ABOVE_ROW = 36  # from the body of `default` to the last line: more than within the body
TAG = 640  # width for a tag beside the light of `default`
AVATAR = 88
AVATAR_TOP = 502
PADDING = 56  # from the sides of the bubble to its texts, and to the avatar below
PADDING_ABOVE = 40
BAND = Area(0, PANEL.bottom, WIDTH, HEIGHT - PANEL.y - PANEL.bottom)
"""Between the bubble and the lower margin, which is as high as the one above the bubble."""
NAME = 560  # width for an author beside the light of `blog`
NAME_PX = 36


def lay_out(fonts: Fonts, serif: Fonts, card: Card, accent: Colour | None = None) -> Layout:
    """The layout of a card in its template and theme, for an accent. `serif` sets the headlines of articles."""
    page = Page(fonts, serif, card, accent)
    title = _TEMPLATE_OF[card.template](page)
    if page.blank:
        _mark(page, title)
    return page.layout()


def _default(page: Page) -> Area:
    """For any page: the tag above, title and description in the middle, domain and author below."""
    card, theme = page.card, page.theme
    top, bottom = TOP, BOTTOM
    if card.tag:
        tag = page.label(Label(card.tag, theme.accent, BOLD), TAG)
        page.shapes.append(Shape(MARGIN, middle_of(tag, TOP) - 9, 18, 18, theme.accent, 9))
        page.add(tag, Area(MARGIN + 36, TOP, TAG, 0), TOP, theme.accent)
        top += tag.height_px + GAP
    if card.domain or card.author:
        domain = Label(card.domain, theme.ink, BOLD, domain=True)
        bottom = page.row(domain, Label(card.author, theme.muted)).y - ABOVE_ROW
    return page.body(Area(MARGIN, top, INNER, bottom - top))


def _blog(page: Page) -> Area:
    """What a person says: title and description in a speech bubble, the author below."""
    _author(page)
    inner = Area(
        PANEL.x + PADDING, PANEL.y + PADDING_ABOVE, PANEL.width - 2 * PADDING, PANEL.height - 2 * PADDING_ABOVE
    )
    return page.body(replace(inner, over=page.theme.panel), kicker=page.card.tag)


def _author(page: Page) -> None:
    """Add the avatar, the name beside it, and the domain below the name."""
    card, theme = page.card, page.theme
    avatar = Area(PANEL.x + PADDING, AVATAR_TOP, AVATAR, AVATAR)
    _avatar(page, avatar)
    beside = Area(avatar.x + AVATAR + GAP, AVATAR_TOP, NAME, AVATAR, theme.ramp[0])
    name = Label(card.author or card.domain, theme.ink, 700, domain=not card.author)
    if card.author and card.domain:
        _two_lines(page, beside, name, Label(card.domain, theme.muted, 400, domain=True))
    elif name.text:
        block = page.label(name, NAME, NAME_PX)
        page.add(block, beside, top_at(block, AVATAR_TOP + AVATAR // 2), name.colour)


def _two_lines(page: Page, area: Area, first: Label, second: Label) -> None:
    """Add two labels, one below the other, smaller if they are of a script that is too high."""
    above, below = page.label(first, area.width, NAME_PX), page.label(second, area.width)
    scale = BAND.height / (above.height_px + below.height_px + 2)
    if scale < 1:
        above = page.label(first, area.width, int(NAME_PX * scale))
        below = page.label(second, area.width, int(LABEL_PX * scale))
    middle = area.y + area.height // 2
    y = max(BAND.y, min(top_at(above, middle - 22), BAND.bottom - above.height_px - below.height_px))
    page.add(above, area, y, first.colour)
    lower = max(y + above.height_px, top_at(below, middle + 24))
    page.add(below, area, min(lower, BAND.bottom - below.height_px), second.colour)


def _avatar(page: Page, place: Area) -> None:
    """Add a disc with the author's initial, or with a head and shoulders if the card has no author."""
    card, theme = page.card, page.theme
    someone = card.author or card.domain or card.title
    colour = theme.avatars[zlib.crc32(someone.encode("utf-8", "replace")) % len(theme.avatars)]
    disc = Shape(place.x, place.y, AVATAR, AVATAR, colour, AVATAR // 2, over=theme.ramp[0])
    page.shapes.append(disc)
    if not initial_of(card.author):
        page.shapes.append(replace(disc, colour=theme.on_avatar, over=colour, person=True))
        return
    inside = Area(place.x + 10, place.y, AVATAR - 20, AVATAR, colour)
    # Missing characters of the initial are counted in the name.
    initial = replace(page.initial(card.author, inside.width), missing=0)
    page.add(initial, inside, top_at(initial, place.y + AVATAR // 2), theme.on_avatar, "center")


def _article(page: Page) -> Area:
    """A front page: domain and tag below a rule, the title low, the author below another rule."""
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
    high = Area(MARGIN, top + BELOW_MASTHEAD, INNER, bottom - GAP * bool(card.author) - top - BELOW_MASTHEAD)
    return page.body(high, spare_above=1)


_TEMPLATE_OF: dict[str, Callable[[Page], Area]] = {"default": _default, "blog": _blog, "article": _article}


def _mark(page: Page, place: Area) -> None:
    """Add discs in the place of a title of which nothing can be drawn."""
    size, steps = _MARK_OF[page.card.template]
    x, y = place.x, place.y + (place.height - size) // 2
    for across, down in steps:
        page.shapes.append(Shape(x + across, y + down, size, size, page.theme.accent, size // 2, place.over))


_MARK_OF = {
    "default": (120, ((0, 0),)),
    "blog": (48, ((0, 0), (80, 0), (160, 0))),
    "article": (40, ((36, -32), (0, 32), (72, 32))),
}
"""By template the size of its discs, and the place of each."""
