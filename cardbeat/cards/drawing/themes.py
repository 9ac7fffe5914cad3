"""The colours and the light of each template in its two themes."""

from dataclasses import dataclass

Colour = str  # `#rrggbb`


@dataclass(frozen=True, slots=True)
class Light:
    """Round light around a point, in parts of the background's ramp.

    The glow fades over `reach` pixels. Each disc, a radius and a strength, is brightest at its sharp edge.
    """

    x: int
    y: int
    reach: int
    glow: float
    discs: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Disc:
    """A disc of one colour around a point, clear of all other shapes."""

    x: int
    y: int
    radius: int
    colour: Colour


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a template. Text has a contrast of 4.5:1 or more on everything that can be under it."""

    ramp: tuple[Colour, ...]  # the background from no light to full light, in `steps` colours
    ink: Colour
    muted: Colour
    accent: Colour
    steps: int = 1
    lights: tuple[Light, ...] = ()
    fading: int = 0
    """The distance from the upper edge at which 37 % of a light from there are left, in pixels; 0 for `lights`."""
    edge: float = 0
    """Light of the card's edges, in parts of the ramp: without it a light card has none on a white page."""
    fill: Colour = "#000000"
    """The colour of a thin rule."""
    discs: tuple[Disc, ...] = ()
    panel: Colour | None = None  # the colour of a title's bubble
    on_avatar: Colour = "#ffffff"  # the colour of the letter in an avatar, which is a disc of the accent


_WAVES = (Light(1136, 16, 640, 0.5, ((152, 0.34), (304, 0.26), (472, 0.2), (656, 0.14), (856, 0.1))),)

THEME_OF = {
    ("default", "dark"): Theme(
        ramp=("#080a11", "#0d1222", "#161f47", "#24337a", "#3548a8"),
        steps=88,
        lights=_WAVES,
        ink="#f6f8fd",
        muted="#b1bad3",
        accent="#9fb0ff",
    ),
    ("default", "light"): Theme(
        ramp=("#fcfcfe", "#f3f5fd", "#e5eafd", "#d2dbfc", "#becbfb"),
        steps=88,
        lights=_WAVES,
        edge=0.75,
        ink="#0f121c",
        muted="#474f66",
        accent="#3141c4",
    ),
    ("blog", "dark"): Theme(
        ramp=("#5a2334",),
        discs=(Disc(1080, -60, 180, "#f3775b"),),
        ink="#fff6f0",
        muted="#dcc6be",
        accent="#ffb996",
        panel="#1c1118",
        on_avatar="#24100f",
    ),
    ("blog", "light"): Theme(
        ramp=("#ffd4bb",),
        discs=(Disc(1080, -60, 180, "#f4785a"),),
        ink="#2a1512",
        muted="#6a473c",
        accent="#a8371b",
        panel="#fffaf5",
    ),
    ("article", "dark"): Theme(
        ramp=("#0f211b", "#1d3d31"),
        steps=29,
        fading=640,
        ink="#f6efdf",
        muted="#b9c4b4",
        accent="#efb75e",
        fill="#48685b",
    ),
    ("article", "light"): Theme(
        ramp=("#f2efdf", "#fcf9f3"),
        steps=21,
        fading=640,
        ink="#1a1714",
        muted="#5f574b",
        accent="#a5281d",
        fill="#cdc4b2",
    ),
}
"""By template and theme, as `request` names them."""
