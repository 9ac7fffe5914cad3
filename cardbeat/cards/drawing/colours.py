"""The colours of each template in its two themes, also for the accent that an operator gives.

Below `theme_of` is its arithmetic: sRGB, hue and chroma, and luminance for contrast (WCAG 2.2).
"""

import colorsys
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

Colour = str
"""`#rrggbb`."""
Rgb = tuple[int, ...]
"""Red, green and blue, 0 to 255."""

SHADES = 8
"""Anti-aliasing steps of an ink, the last of which is the ink itself."""
_HALVINGS = 20
CONTRAST = 4.6
"""Of a tag: the 4.5 of text, and what the rounding of colours may take from it."""
_SEEN = 1.25
_SEEN_EXTREME = 2.0
"""Contrast of a shape without text: of a colour, and of one near black or white."""
_EXTREME = (0.05, 0.8)
"""Luminance below and above which a colour is near black or white."""
_COLOURFUL = 0.4
"""Chroma of an accent from which on cards are as colourful as they were designed."""
_YELLOW = 1 / 6
_ON_MARK = ("#ffffff", "#000000")


class Theme(NamedTuple):
    """The colours of a template.

    Text has a contrast of 4.5:1 or more on everything that can be under it.
    """

    ramp: tuple[Colour, ...]
    """The background from no light to full light, in `steps` colours."""
    ink: Colour
    muted: Colour
    accent: Colour
    """Of the tag."""
    mark: Colour
    """Of the template's sign, on which no text stands but the letter of an avatar."""
    light: str
    """The name of the picture in `light` that says where the ramp and the panel are."""
    steps: int = 1
    panel: Colour | None = None
    """The colour of a title's bubble."""
    on_mark: Colour = "#ffffff"


THEME_OF = {
    ("default", "dark"): Theme(
        ramp=("#080a11", "#0d1222", "#161f47", "#24337a", "#3548a8"),
        light="default-dark",
        steps=58,
        ink="#f6f8fd",
        muted="#b1bad3",
        accent="#9fb0ff",
        mark="#9fb0ff",
    ),
    ("default", "light"): Theme(
        ramp=("#fcfcfe", "#f3f5fd", "#e5eafd", "#d2dbfc", "#becbfb"),
        light="default-light",
        steps=58,
        ink="#0f121c",
        muted="#474f66",
        accent="#3141c4",
        mark="#3141c4",
    ),
    ("blog", "dark"): Theme(
        ramp=("#5a2334",),
        light="blog",
        ink="#fff6f0",
        muted="#dcc6be",
        accent="#ffb996",
        mark="#ffb996",
        panel="#1c1118",
        on_mark="#24100f",
    ),
    ("blog", "light"): Theme(
        ramp=("#ffd4bb",),
        light="blog",
        ink="#2a1512",
        muted="#6a473c",
        accent="#a8371b",
        mark="#a8371b",
        panel="#fffaf5",
    ),
    ("article", "dark"): Theme(
        ramp=("#0f211b", "#1d3d31"),
        light="article-dark",
        steps=29,
        ink="#f6efdf",
        muted="#b9c4b4",
        accent="#efb75e",
        mark="#efb75e",
    ),
    ("article", "light"): Theme(
        ramp=("#f2efdf", "#fcf9f3"),
        light="article-light",
        steps=24,
        ink="#1a1714",
        muted="#5f574b",
        accent="#a5281d",
        mark="#a5281d",
    ),
}
"""By template and theme, as `request` names them."""


@lru_cache(64)
def theme_of(
    template: str, name: str, accent: Colour | None = None
) -> Theme:
    """The theme of that name of a template: as designed, or for an accent.

    The tag gets the accent, lighter or darker where it would not be read; the sign the accent as it
    is, unless that would not be seen. All other colours get its hue and keep their luminance, and
    so their contrast.
    """
    theme = THEME_OF[template, name]
    if accent is None:
        return theme
    ground = theme.ramp if theme.panel else theme.ramp[-2:]
    darkest, lightest = _EXTREME
    is_extreme = not darkest < luminance(rgb(accent)) < lightest
    seen = _SEEN_EXTREME if is_extreme else _SEEN
    mark = _apart(rgb(accent), [rgb(colour) for colour in ground], seen)
    return theme._replace(
        ramp=tuple(_turned(colour, accent) for colour in theme.ramp),
        ink=_turned(theme.ink, accent),
        muted=_turned(theme.muted, accent),
        panel=theme.panel and _turned(theme.panel, accent),
        accent=_readable(accent, theme),
        mark=hex_of(mark),
        on_mark=max(
            _ON_MARK, key=lambda colour: contrast(rgb(colour), mark)
        ),
    )


def _turned(colour: Colour, accent: Colour) -> Colour:
    """A colour in the hue of the accent, as light as before. Grey accents make all grey."""
    hue, strength = hue_and_chroma(rgb(accent))
    _, chroma = hue_and_chroma(rgb(colour))
    light = luminance(rgb(colour))
    chroma *= min(1.0, strength / _COLOURFUL)
    return hex_of(coloured(_warmer(hue, light), chroma, light))


def _readable(accent: Colour, theme: Theme) -> Colour:
    """The accent, as light or dark as a tag must be. None stands on the brightest light."""
    behind = (theme.panel,) if theme.panel else theme.ramp[:4]
    return hex_of(
        _apart(rgb(accent), [rgb(colour) for colour in behind], CONTRAST)
    )


def _apart(colour: Rgb, grounds: list[Rgb], least: float) -> Rgb:
    """The colour, lighter or darker where its contrast to a ground is less than `least`."""
    lights = [luminance(ground) + 0.05 for ground in grounds]
    light = luminance(colour)
    if min(contrast(colour, ground) for ground in grounds) >= least:
        return colour
    hue, chroma = hue_and_chroma(colour)
    is_dark = max(lights) < 0.2
    wanted = (
        max(lights) * least - 0.05
        if is_dark
        else min(lights) / least - 0.05
    )
    return coloured(
        _warmer(hue, wanted) if wanted < light else hue,
        chroma,
        max(wanted, 0.0),
    )


def _warmer(hue: float, light: float) -> float:
    """A hue near yellow nearer to orange, the darker it is: dark yellow looks like olive green."""
    nearness = max(0.0, 1 - abs(hue - _YELLOW) / 0.08)
    return float(hue - 0.07 * nearness * (1 - light) ** 3)


def rgb(colour: Colour) -> Rgb:
    """`#rrggbb` as numbers."""
    return tuple(bytes.fromhex(colour[1:]))


def hex_of(colour: Rgb) -> str:
    return "#" + bytes(colour).hex()


def mix(under: Rgb, over: Rgb, part: float) -> Rgb:
    """One colour with `part` of the other over it."""
    return tuple(
        round(u + (o - u) * part)
        for u, o in zip(under, over, strict=True)
    )


@lru_cache(128)
def shades(under: Sequence[Rgb], colour: Colour) -> list[Rgb]:
    """An ink's colours over each of `under`, from nearly transparent to opaque."""
    ink = rgb(colour)
    return [
        mix(tone, ink, step / SHADES)
        for tone in under
        for step in range(1, SHADES + 1)
    ]


def luminance(colour: Rgb) -> float:
    """The light of a colour, 0 to 1."""
    red, green, blue = map(_linear, colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Rgb, other: Rgb) -> float:
    """The contrast of two colours: 1 of equal ones, 21 of black and white."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def hue_and_chroma(colour: Rgb) -> tuple[float, float]:
    """The hue of a colour, and its chroma: its strongest part less its weakest, 0 to 1."""
    hue, _, _ = colorsys.rgb_to_hls(*(part / 255 for part in colour))
    return hue, (max(colour) - min(colour)) / 255


def coloured(hue: float, chroma: float, light: float) -> Rgb:
    """The colour of that hue and luminance, with as much of the chroma as there is.

    The lightness (HLS) is found by halving.
    """
    dark = 0.0
    bright = 1.0
    for _ in range(_HALVINGS):
        middle = (dark + bright) / 2
        if luminance(_of_hls(hue, middle, chroma)) < light:
            dark = middle
        else:
            bright = middle
    return _of_hls(hue, bright, chroma)


def _of_hls(hue: float, lightness: float, chroma: float) -> Rgb:
    most = 1 - abs(2 * lightness - 1)
    saturation = min(1.0, chroma / most) if most else 0.0
    return tuple(
        round(255 * part)
        for part in colorsys.hls_to_rgb(hue, lightness, saturation)
    )


def _linear(part: int) -> float:
    return (
        part / 3294.6
        if part <= 10
        else ((part / 255 + 0.055) / 1.055) ** 2.4
    )
