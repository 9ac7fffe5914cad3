"""The three templates: the place and the colour of each text of a card.

Lengths are pixels, on a grid of 8. Every card is laid out from left to right; each title begins at
`AXIS`, and the template's sign stands in the margin beside it. If the title is right-to-left, the
card is then mirrored.
"""

from cardbeat.cards.drawing.colours import Colour
from cardbeat.cards.drawing.layout import (
    AXIS,
    HEIGHT,
    MARGIN,
    PANEL,
    RIGHT,
    Area,
    Layout,
    Shape,
)
from cardbeat.cards.drawing.page import BOLD, Label, Page
from cardbeat.cards.request import Card
from cardbeat.typeset.faces.fonts import Fonts

BOTTOM = HEIGHT - 26
SOURCE = (136, 72)
"""The middle of the dot from which the rings of `default` spread, at the height of the labels."""
DOT = 96
AVATAR = 128
AVATAR_X = 48
HEAD = 80
"""The middle of the first row of labels in a bubble, and of the avatar beside it."""
TAIL = (34, 56)
PADDING = 24
"""Between the title and the right and lower edges of a bubble."""
RULE = 40
BAR = (184, 16)
COLUMN = 232
"""Width of what stands in the margin of an article."""


def lay_out(
    fonts: Fonts, card: Card, accent: Colour | None = None
) -> Layout:
    """The layout of a card in its template and theme, for an accent."""
    page = Page(fonts, card, accent)
    if card.template == "blog":
        _blog(page)
    elif card.template == "article":
        _article(page)
    else:
        _default(page)
    return page.layout()


def _default(page: Page) -> None:
    """For any page: a dot sends out rings; labels beside it, title and description below them."""
    theme = page.theme
    x, y = SOURCE
    dot = Shape(
        x - DOT // 2, y - DOT // 2, DOT, DOT, theme.mark, DOT // 2
    )
    page.shapes.append(dot)
    labels = (
        Label(page.card.domain, theme.ink, BOLD, is_domain=True),
        Label(page.card.tag, theme.accent, BOLD),
        Label(page.card.author, theme.muted),
    )
    area = Area(AXIS, 32, RIGHT - AXIS, BOTTOM - 32)
    rows = page.rows(labels, area.width)
    _below(page, area, page.add_rows(rows, area, y))


def _blog(page: Page) -> None:
    """What a person says: the avatar beside a speech bubble with name, title and description."""
    card = page.card
    theme = page.theme
    ground = theme.ramp[0]
    width, height = TAIL
    avatar = Area(
        AVATAR_X, HEAD - AVATAR // 2, AVATAR, AVATAR, theme.mark
    )
    page.shapes += [
        Shape(
            avatar.x,
            avatar.y,
            AVATAR,
            AVATAR,
            theme.mark,
            AVATAR // 2,
            over=ground,
        ),
        Shape(
            PANEL.x - width,
            HEAD - height // 2,
            width,
            height,
            theme.panel or "",
            over=ground,
            points="left",
        ),
    ]
    page.avatar(avatar)
    labels = (
        Label(card.author, theme.ink, 700),
        Label(
            card.domain,
            theme.muted if card.author else theme.ink,
            500,
            is_domain=True,
        ),
        Label(card.tag, theme.accent, BOLD),
    )
    area = Area(
        AXIS,
        PANEL.y + 12,
        PANEL.right - PADDING - AXIS,
        PANEL.height - 12 - PADDING,
        theme.panel,
    )
    rows = page.rows(labels, area.width)
    _below(
        page,
        area,
        page.add_rows(rows, area, HEAD, last_right=bool(card.tag)),
    )


def _article(page: Page) -> None:
    """A front page: a bar, tag and author in the margin; a rule and the domain; the title low."""
    card = page.card
    theme = page.theme
    width, height = BAR
    page.shapes += [
        Shape(AXIS, RULE, RIGHT - AXIS, 3, theme.ink),
        Shape(MARGIN, RULE, width, height, theme.mark),
    ]
    column = Area(MARGIN, RULE + height + 20, COLUMN, BOTTOM - RULE)
    page.margin(
        (
            Label(card.tag, theme.accent, BOLD),
            Label(card.author, theme.muted),
        ),
        column,
    )
    area = Area(AXIS, RULE + 16, RIGHT - AXIS, BOTTOM - RULE - 16)
    rows = page.rows(
        [Label(card.domain, theme.ink, BOLD, is_domain=True)], area.width
    )
    _below(
        page, area, page.add_rows(rows, area, RULE + 40), spare_above=1
    )


def _below(
    page: Page, area: Area, top: int, spare_above: float = 0.5
) -> None:
    """Title and description in what labels leave of an area."""
    if top > area.y:
        top += 12
    page.body(area._replace(y=top, height=area.bottom - top), spare_above)
