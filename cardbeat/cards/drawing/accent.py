"""The colours of a template for an accent, the colour that an operator gives: `theme_of`."""

from functools import lru_cache, partial

from cardbeat.cards.drawing.colours import Rgb, chroma_and_hue, coloured, luminance, rgb
from cardbeat.cards.drawing.themes import THEME_OF, Colour, Theme

CONTRAST = 4.6  # of an accent: the 4.5 of text, and what the rounding of colours may take from it
COLOURFUL = 0.11
"""The chroma of an accent from which on cards are as colourful as they were designed."""
YELLOW = 1.75  # its hue in radians


@lru_cache(64)
def theme_of(template: str, name: str, accent: Colour | None = None) -> Theme:
    """The theme of that name of a template: as designed, or for an accent."""
    theme = THEME_OF[template, name]
    if accent is None:
        return theme
    turned = partial(recoloured, template, name, accent)
    return theme._replace(
        ramp=tuple(map(turned, theme.ramp)),
        ink=turned(theme.ink),
        muted=turned(theme.muted),
        accent=turned(theme.accent),
        disc=theme.disc and turned(theme.disc),
        panel=theme.panel and turned(theme.panel),
        on_avatar=turned(theme.on_avatar),
    )


def recoloured(template: str, name: str, accent: Colour, colour: Colour) -> Colour:
    """What a colour of a theme is for an accent.

    The accent takes the place of the designed one, lighter or darker if its contrast asks for that. In an `article` no
    other colour changes. Elsewhere all others get its hue and keep their luminance, and so their contrast.
    """
    theme, given = THEME_OF[template, name], rgb(accent)
    chroma, hue = chroma_and_hue(given)
    if colour == theme.accent:
        light = _readable(luminance(given), theme)
        return _hex(coloured(light, chroma, hue - _turn(hue, light) + _turn(hue, luminance(given))))
    if template == "article":
        return colour
    light = luminance(rgb(colour))
    own_chroma, _ = chroma_and_hue(rgb(colour))
    return _hex(coloured(light, own_chroma * min(1, chroma / COLOURFUL), hue - _turn(hue, light)))


def _turn(hue: float, light: float) -> float:
    """How much nearer to orange a shade of yellow is: dark yellow looks like olive green."""
    return 0.5 * max(0, 1 - abs(hue - YELLOW) / 0.5) * (1 - light) ** 3


def _readable(light: float, theme: Theme) -> float:
    """The luminance nearest to this one that can be read where a tag or an initial is: not on the brightest light."""
    behind = (theme.panel, theme.on_avatar) if theme.panel else theme.ramp[:4]
    lights = [luminance(rgb(colour)) + 0.05 for colour in behind]
    if luminance(rgb(theme.ink)) > max(lights):
        return max(light, max(lights) * CONTRAST - 0.05)
    return min(light, min(lights) / CONTRAST - 0.05)


def _hex(colour: Rgb) -> Colour:
    return "#" + bytes(colour).hex()
