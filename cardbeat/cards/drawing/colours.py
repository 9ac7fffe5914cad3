"""Colours as numbers: sRGB, hue and chroma, and luminance for contrast (WCAG 2.2)."""

import colorsys
from collections.abc import Sequence
from functools import lru_cache

Rgb = tuple[int, int, int]

SHADES = 8
"""Anti-aliasing steps of an ink, the last of which is the ink itself."""
_HALVINGS = 20


def rgb(colour: str) -> Rgb:
    """`#rrggbb` as numbers."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def hex_of(colour: Rgb) -> str:
    return "#" + bytes(colour).hex()


def mix(under: Rgb, over: Rgb, part: float) -> Rgb:
    """One colour with `part` of the other over it."""
    red, green, blue = (round(u + (o - u) * part) for u, o in zip(under, over, strict=True))
    return red, green, blue


@lru_cache(128)
def shades(under: Sequence[Rgb], colour: str) -> list[Rgb]:
    """An ink's colours over each of `under`, from nearly transparent to opaque."""
    ink = rgb(colour)
    return [mix(tone, ink, step / SHADES) for tone in under for step in range(1, SHADES + 1)]


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
    red, green, blue = (
        round(255 * part) for part in colorsys.hls_to_rgb(hue, lightness, saturation)
    )
    return red, green, blue


def _linear(part: int) -> float:
    return part / 3294.6 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4
