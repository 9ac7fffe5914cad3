"""The three templates: the place and the colour of each text of a card.

Lengths are pixels, on a grid of 8. Every card is laid out from left to right. If its title is right-to-left, the whole
card is then mirrored.
"""

from collections.abc import Callable

from cardbeat.cards.drawing.headline import GAP
from cardbeat.cards.drawing.layout import BOTTOM, INNER, MARGIN, PANEL, TOP, WIDTH, Area, Layout, Shape
from cardbeat.cards.drawing.page import BETWEEN, DOT, Label, Page, Part, height_of, packed, top_at
from cardbeat.cards.drawing.styles import BOLD, LABEL_PX
from cardbeat.cards.drawing.themes import Colour
from cardbeat.cards.request import Card
from cardbeat.typeset.faces.fonts import Fonts, SerifFonts

MASTHEAD = TOP + 26  # top of the line below the rule of an article
BELOW_LABELS = 32
ABOVE_BOTTOM = 24  # below the body of an article, where X covers a card with the page's title
HEADER, WIDE_HEADER = 588, 848
"""Width for the labels above a title, centred, so that a square crop shows them, and from the left, so that they end
before the brightest light."""
LEAST_TAG = 156  # what a long domain leaves of that for a tag
AVATAR = 88
PADDING = 56  # from the sides of the bubble to its texts, and to the avatar above
PADDING_ABOVE = 32
ABOVE_PANEL = 32  # from the avatar to the bubble
BAND = Area(0, 24, WIDTH, 2 * (PANEL.y - ABOVE_PANEL - AVATAR // 2 - 24))
"""Above the bubble, with the middle of the avatar in its middle."""
NAME = 496  # width for an author: with the avatar it is as wide as the middle square
NAME_PX = 36
TAIL = (56, 26)


def lay_out(fonts: Fonts, serif: SerifFonts, card: Card, accent: Colour | None = None) -> Layout:
    """The layout of a card in its template and theme, for an accent. `serif` sets the headlines of articles."""
    page = Page(fonts, serif, card, accent)
    title = _TEMPLATE_OF[card.template](page)
    if page.blank:
        _mark(page, title)
    return page.layout()


def _default(page: Page) -> Area:
    """For any page: domain, tag and author above, title and description in the middle of what is below."""
    card, theme = page.card, page.theme
    domain, tag = Label(card.domain, theme.ink, BOLD, domain=True), Label(card.tag, theme.accent, BOLD)
    parts = page.parts((domain,), HEADER - BETWEEN - LEAST_TAG if card.tag else HEADER)
    parts += page.parts((tag,), HEADER - sum(BETWEEN + part.block.width_px for part in parts))
    parts += page.parts((Label(card.author, theme.muted),), HEADER)
    return _below(page, parts, Area(MARGIN, TOP, INNER, BOTTOM - TOP), WIDE_HEADER, dot=True)


def _below(page: Page, parts: list[Part], area: Area, width: int, *, dot: bool = False, low: bool = False) -> Area:
    """Labels, and title and description below them: in the middle of the card if the title is short, else `low`."""
    spare_above = 1 if low else 0.5
    lines, align = packed(parts, HEADER), "center"
    place = page.centred(_under(lines, area))
    if not page.short:
        lines, align = packed(parts, min(width, area.right - page.left - 2 * DOT * dot)), "apart" if low else "left"
    place = place or page.body(_under(lines, area), spare_above)
    page.lines(lines, area.y, align, dot=dot)
    return place


def _under(lines: list[list[Part]], area: Area) -> Area:
    above = height_of(lines) + BELOW_LABELS if lines else 0
    return area._replace(y=area.y + above, height=area.height - above)


def _blog(page: Page) -> Area:
    """What a person says: the author above, title and description in a speech bubble."""
    card, theme = page.card, page.theme
    name = Label(card.author or card.domain, theme.ink, 700, domain=not card.author)
    second = Label(card.domain if card.author else "", theme.muted, 400, domain=True)
    names = _names(page, name, second)
    kicker = page.label(Label(card.tag, theme.accent, BOLD), PANEL.width - 2 * PADDING) if card.tag else None
    across, down = 2 * PADDING, 2 * PADDING_ABOVE
    inner = Area(PANEL.x + PADDING, PANEL.y + PADDING_ABOVE, PANEL.width - across, PANEL.height - down, theme.panel)
    place = page.centred(inner, kicker=kicker) or page.body(inner, kicker=kicker)
    width = AVATAR + max((GAP + part.block.width_px for part in names), default=0)
    _author(page, names, (WIDTH - width) // 2 if page.short else page.left)
    return place


def _names(page: Page, *labels: Label) -> list[Part]:
    """The lines beside the avatar, smaller if they are of a script that is too high."""
    sizes = NAME_PX, LABEL_PX
    shown = [(label, size) for label, size in zip(labels, sizes, strict=True) if label.text]
    blocks = [page.label(label, NAME, size) for label, size in shown]
    scale = BAND.height / (sum(block.height_px for block in blocks) + 2)
    if scale < 1:
        blocks = [page.label(label, NAME, int(size * scale)) for label, size in shown]
    return [Part(block, label.colour) for block, (label, _) in zip(blocks, shown, strict=True)]


def _author(page: Page, names: list[Part], x: int) -> None:
    """Add the avatar, what stands beside it, and the tail of the bubble below it."""
    theme = page.theme
    avatar = Area(x, PANEL.y - AVATAR - ABOVE_PANEL, AVATAR, AVATAR, theme.accent)
    disc = Shape(x, avatar.y, AVATAR, AVATAR, theme.accent, AVATAR // 2, over=theme.ramp[0])
    width, height = TAIL
    tail_x = x + (AVATAR - width) // 2
    tail = Shape(tail_x, PANEL.y - height, width, height, theme.panel or "", over=theme.ramp[0], points_up=True)
    page.shapes += [disc, tail]
    page.avatar(avatar)
    middle = avatar.y + AVATAR // 2
    beside = Area(x + AVATAR + GAP, BAND.y, NAME, BAND.height, theme.ramp[0])
    if len(names) < 2:
        tops = [top_at(part.block, middle) for part in names]
    else:
        first, second = (part.block for part in names)
        top = max(BAND.y, min(top_at(first, middle - 22), BAND.bottom - first.height_px - second.height_px))
        below = max(top + first.height_px, top_at(second, middle + 24))
        tops = [top, min(below, BAND.bottom - second.height_px)]
    for part, top in zip(names, tops, strict=True):
        page.add(part.block, beside, top, part.colour)


def _article(page: Page) -> Area:
    """A front page: domain, author and tag below a rule, the title low."""
    card, theme = page.card, page.theme
    labels = (
        Label(card.domain, theme.ink, BOLD, domain=True),
        Label(card.author, theme.muted),
        Label(card.tag, theme.accent, BOLD),
    )
    parts = page.parts(labels, (INNER - BETWEEN) // 2)
    area = Area(MARGIN, MASTHEAD, INNER, BOTTOM - ABOVE_BOTTOM - MASTHEAD)
    place = _below(page, parts, area, INNER, low=True)
    page.shapes += [
        Shape(MARGIN, TOP, INNER, 3, theme.ink),
        Shape((WIDTH - 120) // 2 if page.short else page.left, TOP, 120, 14, theme.accent),
    ]
    return place


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
