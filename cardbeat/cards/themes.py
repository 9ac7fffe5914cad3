"""The colours and the light of each template in its two themes, as data."""

from dataclasses import dataclass

Colour = str
"""`#rrggbb`."""


@dataclass(frozen=True, slots=True)
class Light:
    """Round light about a point, in parts of the background's ramp.

    The glow falls off softly over `reach` pixels; each disc, a radius and a strength, is brightest at its sharp edge.
    """

    x: int
    y: int
    reach: int
    glow: float
    discs: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Theme:
    """What a template is painted with. Every text colour has a contrast of 4.5:1 or more on all it can stand on."""

    ramp: tuple[Colour, ...]
    """The background from no light to full light, in `steps` colours."""
    steps: int
    lights: tuple[Light, ...]
    ink: Colour
    muted: Colour
    accent: Colour
    fill: Colour
    """Of quiet shapes: a pill, a hairline."""
    avatars: tuple[Colour, ...] = ()
    """Colours of avatars, of which an author always gets the same one."""
    on_avatar: Colour = "#ffffff"


_WAVES = (Light(1136, 16, 640, 0.5, ((152, 0.34), (304, 0.26), (472, 0.2), (656, 0.14), (856, 0.1))),)
_HEADS = (Light(1064, 712, 640, 0.5, ((416, 0.3),)), Light(736, 816, 320, 0.2, ((272, 0.26),)))
_LAMP = (Light(600, -80, 720, 1),)

THEME_OF = {
    ("default", "dark"): Theme(
        ramp=("#080a11", "#0d1222", "#161f47", "#24337a", "#3548a8"),
        steps=88,
        lights=_WAVES,
        ink="#f6f8fd",
        muted="#b1bad3",
        accent="#9fb0ff",
        fill="#2a3358",
    ),
    ("default", "light"): Theme(
        ramp=("#fcfcfe", "#f3f5fd", "#e5eafd", "#d2dbfc", "#becbfb"),
        steps=88,
        lights=_WAVES,
        ink="#0f121c",
        muted="#474f66",
        accent="#3141c4",
        fill="#cfd6ee",
    ),
    ("blog", "dark"): Theme(
        ramp=("#170f17", "#20121c", "#351827", "#582434", "#8a3a3f"),
        steps=64,
        lights=_HEADS,
        ink="#fff6f0",
        muted="#dac2ba",
        accent="#ffc2a8",
        fill="#47232f",
        avatars=("#ffa07c", "#f5c66f", "#8ed8b4", "#8fc6f2", "#c7adf5", "#f4a0c4"),
        on_avatar="#24100f",
    ),
    ("blog", "light"): Theme(
        ramp=("#fffaf4", "#fff3e9", "#ffe6d7", "#ffd4bf", "#ffbfa5"),
        steps=64,
        lights=_HEADS,
        ink="#2a1512",
        muted="#69493f",
        accent="#8f2c15",
        fill="#ffdfcd",
        avatars=("#b5401f", "#8a5a00", "#1f7050", "#1d60a3", "#6b43b3", "#a8336d"),
    ),
    ("article", "dark"): Theme(
        ramp=("#11100e", "#1d1b17"),
        steps=10,
        lights=_LAMP,
        ink="#f4eee2",
        muted="#b9af9d",
        accent="#ecb15f",
        fill="#4a443a",
    ),
    ("article", "light"): Theme(
        ramp=("#f4efe4", "#fcfaf5"),
        steps=10,
        lights=_LAMP,
        ink="#1a1714",
        muted="#5f574b",
        accent="#a5281d",
        fill="#cdc4b2",
    ),
}
"""By template and theme, as `request` names them."""
