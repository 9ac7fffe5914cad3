"""Colours as numbers: sRGB, the luminance that contrast is made of, and OKLCH, in which equal steps look equal.

OKLCH is https://bottosson.github.io/posts/oklab/ in polar coordinates; luminance is that of WCAG 2.2.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import atan2, cos, hypot, sin

Rgb = tuple[int, int, int]
Triple = tuple[float, float, float]

_CONE_OF_RGB = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_LAB_OF_CONE = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_CONE_OF_AB = ((0.3963377774, 0.2158037573), (-0.1055613458, -0.0638541728), (-0.0894841775, -1.2914855480))
_RGB_OF_CONE = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
_LUMINANCE = (0.2126, 0.7152, 0.0722)
_LUMINANCE_OF_CONE = (-0.0407745, 1.1124922, -0.0717176)
"""`_LUMINANCE` of `_RGB_OF_CONE`."""
CHROMA_STEPS = 64
SHADES = 12  # anti-aliasing steps of an ink, the last of which is the ink itself


def rgb(colour: str) -> Rgb:
    """`#rrggbb` as numbers."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def mix(under: Rgb, over: Rgb, part: float) -> Rgb:
    """One colour with `part` of the other over it."""
    red, green, blue = (round(u + (o - u) * part) for u, o in zip(under, over, strict=True))
    return red, green, blue


# All threads share what it keeps. `lru_cache` has a lock of its own; two threads may each make the same.
@lru_cache(128)
def shades(under: Sequence[Rgb], colour: str) -> list[Rgb]:
    """An ink's colours over each of `under`, from nearly transparent to opaque."""
    return [mix(tone, rgb(colour), n / SHADES) for tone in under for n in range(1, SHADES + 1)]


def luma(colour: Rgb) -> int:
    """The brightness of a colour, 0 to 255, as `Image.convert("L")` has it."""
    red, green, blue = colour
    return (299 * red + 587 * green + 114 * blue) // 1000


def luminance(colour: Rgb) -> float:
    """The light of a colour, 0 to 1."""
    return _dot(_LUMINANCE, _linear(colour))


def chroma_and_hue(colour: Rgb) -> tuple[float, float]:
    """How colourful a colour is, 0 to 0.32, and its hue in radians."""
    cones = [part ** (1 / 3) for part in _times(_CONE_OF_RGB, _linear(colour))]
    _, a, b = _times(_LAB_OF_CONE, cones)
    return hypot(a, b), atan2(b, a)


def coloured(light: float, chroma: float, hue: float) -> Rgb:
    """The colour of that luminance and hue with this chroma, or as much of it as a screen can show."""
    tried = (_linear_of(light, chroma * part / CHROMA_STEPS, hue) for part in range(CHROMA_STEPS, -1, -1))
    red, green, blue = next(linear for linear in tried if all(-0.0001 <= part <= 1.0001 for part in linear))
    return _encoded(red), _encoded(green), _encoded(blue)


def _linear_of(light: float, chroma: float, hue: float) -> Triple:
    a, b = chroma * cos(hue), chroma * sin(hue)
    away = [x * a + y * b for x, y in _CONE_OF_AB]
    lightness = max(light, 1e-6) ** (1 / 3)
    for _ in range(4):  # Newton's method: luminance is a sum of cubes
        cones = [lightness + part for part in away]
        slope = sum(3 * weight * cone**2 for weight, cone in zip(_LUMINANCE_OF_CONE, cones, strict=True))
        lightness -= (_dot(_LUMINANCE_OF_CONE, [cone**3 for cone in cones]) - light) / slope
    return _times(_RGB_OF_CONE, [(lightness + part) ** 3 for part in away])


def _linear(colour: Rgb) -> Triple:
    red, green, blue = (part / 3294.6 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in colour)
    return red, green, blue


def _encoded(part: float) -> int:
    return round(255 * (12.92 * part if part <= 0.0031308 else 1.055 * min(part, 1) ** (1 / 2.4) - 0.055))


def _times(matrix: Sequence[Triple], parts: Sequence[float]) -> Triple:
    first, second, third = (_dot(row, parts) for row in matrix)
    return first, second, third


def _dot(ones: Sequence[float], others: Sequence[float]) -> float:
    return sum(one * other for one, other in zip(ones, others, strict=True))
