"""The three templates: where each text stands, and in which colour. Pure; `render` paints what is laid out here.

Everything is laid out from left to right; a card whose title runs from right to left is mirrored as a whole.
Lengths are pixels on a card of 1200 x 630, on a grid of 8.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cardbeat.cards.fonts import Fonts
from cardbeat.cards.request import Card
from cardbeat.cards.text import Block, fit

WIDTH = 1200
HEIGHT = 630
MARGIN = 72
INNER = WIDTH - 2 * MARGIN
TOP = 64
BOTTOM = HEIGHT - TOP

Colour = str


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
class Glow:
    """A soft round light: `strength` of the background's ramp at its centre, falling off over `reach`."""

    x: int
    y: int
    reach: int
    strength: float


@dataclass(frozen=True, slots=True)
class Rings:
    """Circles around a point, `step` apart, each weaker than the one inside it."""

    x: int
    y: int
    step: int
    count: int
    strength: float


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a template. `ramp` are the background's colours from no light to full light."""

    ramp: tuple[Colour, ...]
    ink: Colour
    muted: Colour
    accent: Colour
    on_accent: Colour
    glows: tuple[Glow, ...] = ()
    rings: tuple[Rings, ...] = ()
    steps: int = 64
    """How many colours the ramp gets."""


@dataclass(slots=True)
class Layout:
    """What to paint, shapes first. `mirrored` also turns the background around."""

    theme: Theme
    shapes: list[Shape] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    mirrored: bool = False

    @property
    def missing_glyphs(self) -> int:
        return sum(text.block.missing for text in self.texts)


THEMES = {
    ("default", "dark"): Theme(
        ramp=("#090b12", "#0e1220", "#1a2240", "#33407f", "#5a6ad0"),
        ink="#f5f7fc",
        muted="#a9b2c9",
        accent="#8fa2ff",
        on_accent="#0a0c14",
        glows=(Glow(1080, 40, 560, 0.62), Glow(60, 700, 520, 0.28)),
        rings=(Rings(1080, 40, 80, 12, 0.16),),
    ),
    ("default", "light"): Theme(
        ramp=("#fbfbfd", "#f2f3fb", "#e2e6fa", "#c9d1f8", "#aab6f4"),
        ink="#12141d",
        muted="#525a70",
        accent="#3d4fd1",
        on_accent="#ffffff",
        glows=(Glow(1080, 40, 560, 0.62), Glow(60, 700, 520, 0.28)),
        rings=(Rings(1080, 40, 80, 12, 0.16),),
    ),
    ("blog", "dark"): Theme(
        ramp=("#171016", "#22141c", "#3a1c26", "#6b2c33", "#b04a41"),
        ink="#fff6f0",
        muted="#d3b9b1",
        accent="#ff9d7a",
        on_accent="#2a0f0c",
        glows=(Glow(1120, 640, 620, 0.7),),
    ),
    ("blog", "light"): Theme(
        ramp=("#fffaf5", "#fff1e6", "#ffe2d1", "#ffcbb3", "#ffae90"),
        ink="#2a1512",
        muted="#75544b",
        accent="#b23a20",
        on_accent="#ffffff",
        glows=(Glow(1120, 640, 620, 0.7),),
    ),
    ("article", "dark"): Theme(
        ramp=("#12110f", "#1b1916"),
        ink="#f4eee2",
        muted="#b9af9d",
        accent="#e3a857",
        on_accent="#12110f",
        glows=(Glow(600, 0, 700, 1),),
        steps=10,
    ),
    ("article", "light"): Theme(
        ramp=("#f7f3ea", "#fcfaf5"),
        ink="#1a1714",
        muted="#655c50",
        accent="#a5281d",
        on_accent="#ffffff",
        glows=(Glow(600, 0, 700, 1),),
        steps=10,
    ),
}


def lay_out(fonts: Fonts, card: Card) -> Layout:
    """The card's layout in its template and theme."""
    layout = Layout(THEMES[card.template, card.theme])
    _TEMPLATES[card.template](fonts, card, layout)
    return _mirrored(layout) if layout.texts[0].block.rtl else layout


def _default(fonts: Fonts, card: Card, layout: Layout) -> None:
    theme = layout.theme
    body_top, body_bottom = TOP, BOTTOM
    tag = _label(fonts, card.tag, INNER, 28, 600) if card.tag else None
    footer = [
        (_label(fonts, text, INNER // 2 - 24, 28, 500), colour, align)
        for text, colour, align in ((card.domain, theme.ink, "left"), (card.author, theme.muted, "right"))
        if text
    ]
    if tag:
        body_top += tag.height_px + 32
    if footer:
        body_bottom -= footer[0][0].height_px + 32
    title, description = _title_and_description(fonts, card, INNER, body_bottom - body_top, largest=96)
    y = _centre(body_top, body_bottom, title, description)
    _place_body(layout, title, description, MARGIN, y, INNER)
    if tag:
        layout.texts.append(Text(tag, MARGIN, TOP, INNER, theme.accent))
    for n, (block, colour, align) in enumerate(footer):
        side = align if len(footer) > 1 else "left"
        x = MARGIN + n * (INNER // 2 + 24)
        layout.texts.append(Text(block, x, BOTTOM - block.height_px, INNER // 2 - 24, colour, align=side))


def _blog(fonts: Fonts, card: Card, layout: Layout) -> None:
    theme = layout.theme
    size = 96
    body_top, body_bottom = TOP, BOTTOM
    tag = _label(fonts, card.tag, 360, 26, 600) if card.tag else None
    byline_left = MARGIN
    byline: list[Text] = []
    if card.author:
        monogram = fit(fonts, _initial(card.author), width_px=72, size_px=44, min_size_px=20, weight=700)
        layout.shapes.append(Shape(MARGIN, TOP, size, size, theme.accent, size // 2))
        byline.append(
            Text(monogram, MARGIN, TOP + (size - monogram.height_px) // 2, size, theme.on_accent, theme.accent, "center")
        )
        byline_left += size + 24
    room = WIDTH - MARGIN - byline_left - ((round(tag.width_px) + 56 + 32) if tag else 0)
    names = [
        (_label(fonts, text, room, px, weight), colour)
        for text, px, weight, colour in ((card.author, 36, 700, theme.ink), (card.domain, 28, 400, theme.muted))
        if text
    ]
    if card.author or names or tag:
        height = sum(block.height_px for block, _ in names)
        y = TOP + (size - height) // 2 if card.author else TOP
        for block, colour in names:
            byline.append(Text(block, byline_left, y, room, colour))
            y += block.height_px
        body_top += (size if card.author else 48) + 32
    title, description = _title_and_description(fonts, card, INNER, body_bottom - body_top, largest=96)
    y = _centre(body_top, body_bottom, title, description)
    _place_body(layout, title, description, MARGIN, y, INNER)
    layout.texts += byline
    if tag:
        width = round(tag.width_px) + 56
        x = WIDTH - MARGIN - width if names else MARGIN
        y = TOP + (24 if card.author else 0)
        layout.shapes.append(Shape(x, y, width, 48, theme.accent, 24))
        layout.texts.append(
            Text(tag, x + 28, y + (48 - tag.height_px) // 2, width - 56, theme.on_accent, theme.accent, "center")
        )


def _article(fonts: Fonts, card: Card, layout: Layout) -> None:
    theme = layout.theme
    layout.shapes.append(Shape(MARGIN, TOP, INNER, 6, theme.ink))
    body_top, body_bottom = TOP + 6, BOTTOM
    texts: list[Text] = []
    masthead = [
        (_label(fonts, text, INNER // 2 - 24, px, weight), colour)
        for text, px, weight, colour in ((card.domain, 30, 700, theme.ink), (card.author, 28, 500, theme.muted))
        if text
    ]
    if masthead:
        for n, (block, colour) in enumerate(masthead):
            texts.append(Text(block, MARGIN + n * (INNER // 2 + 24), body_top + 16, INNER // 2 - 24, colour,
                              align="right" if n else "left"))
        body_top += 64
        layout.shapes.append(Shape(MARGIN, body_top, INNER, 2, theme.ink))
    body_top += 32
    tag = _label(fonts, card.tag, INNER, 28, 700) if card.tag else None
    if tag:
        texts.append(Text(tag, MARGIN, body_top, INNER, theme.accent))
        body_top += tag.height_px + 16
    layout.shapes.append(Shape(MARGIN, BOTTOM - 2, INNER, 2, theme.ink))
    body_bottom -= 32
    title, description = _title_and_description(fonts, card, INNER, body_bottom - body_top, largest=96)
    y = body_top if tag else _centre(body_top, body_bottom, title, description)
    _place_body(layout, title, description, MARGIN, y, INNER)
    layout.texts += texts


_TEMPLATES: dict[str, Callable[[Fonts, Card, Layout], None]] = {"default": _default, "blog": _blog, "article": _article}


def _label(fonts: Fonts, text: str, width: int, size: int, weight: int) -> Block:
    return fit(fonts, text, width_px=width, size_px=size, min_size_px=size, weight=weight, leading=1.3)


def _title_and_description(
    fonts: Fonts, card: Card, width: int, height: int, largest: int
) -> tuple[Block, Block | None]:
    """The title gets what room the description leaves; a description never takes more than a third."""
    description = None
    if card.description:
        description = fit(
            fonts, card.description, width_px=width, max_lines=3, height_px=height // 3, size_px=32, min_size_px=28,
            leading=1.4,
        )
        height -= description.height_px + 24
    title = fit(
        fonts, card.title, width_px=width, max_lines=5, height_px=height, size_px=largest, min_size_px=40, weight=700,
        leading=1.15,
    )
    return title, description


def _centre(top: int, bottom: int, title: Block, description: Block | None) -> int:
    height = title.height_px + (description.height_px + 24 if description else 0)
    return top + (bottom - top - height) // 2


def _place_body(layout: Layout, title: Block, description: Block | None, x: int, y: int, width: int) -> None:
    theme = layout.theme
    layout.texts.append(Text(title, x, y, width, theme.ink))
    if description:
        y += title.height_px + 24
        layout.texts.append(Text(description, x, y, width, theme.muted))


def _initial(author: str) -> str:
    return author[:1].upper()


def _mirrored(layout: Layout) -> Layout:
    flip = {"left": "right", "right": "left", "center": "center"}
    return Layout(
        layout.theme,
        [replace(shape, x=WIDTH - shape.x - shape.width) for shape in layout.shapes],
        [replace(text, x=WIDTH - text.x - text.width, align=flip[text.align]) for text in layout.texts],
        mirrored=True,
    )
