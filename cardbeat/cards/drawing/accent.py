"""The colours of a template for an accent, the colour that an operator gives: `theme_of`."""

from functools import lru_cache

from cardbeat.cards.drawing.colours import (
    Rgb,
    coloured,
    contrast,
    hex_of,
    hue_and_chroma,
    luminance,
    rgb,
)
from cardbeat.cards.drawing.themes import THEME_OF, Colour, Theme

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


@lru_cache(64)
def theme_of(template: str, name: str, accent: Colour | None = None) -> Theme:
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
        on_mark=max(_ON_MARK, key=lambda colour: contrast(rgb(colour), mark)),
    )


def recoloured(template: str, name: str, accent: Colour, colour: Colour) -> Colour:
    """What a colour of a theme is for an accent."""
    theme = THEME_OF[template, name]
    if colour in (theme.accent, theme.mark):
        return _readable(accent, theme)
    return _turned(colour, accent)


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
    return hex_of(_apart(rgb(accent), [rgb(colour) for colour in behind], CONTRAST))


def _apart(colour: Rgb, grounds: list[Rgb], least: float) -> Rgb:
    """The colour, lighter or darker where its contrast to a ground is less than `least`."""
    lights = [luminance(ground) + 0.05 for ground in grounds]
    light = luminance(colour)
    if min(contrast(colour, ground) for ground in grounds) >= least:
        return colour
    hue, chroma = hue_and_chroma(colour)
    is_dark = max(lights) < 0.2
    wanted = max(lights) * least - 0.05 if is_dark else min(lights) / least - 0.05
    return coloured(_warmer(hue, wanted) if wanted < light else hue, chroma, max(wanted, 0.0))


def _warmer(hue: float, light: float) -> float:
    """A hue near yellow nearer to orange, the darker it is: dark yellow looks like olive green."""
    nearness = max(0.0, 1 - abs(hue - _YELLOW) / 0.08)
    return float(hue - 0.07 * nearness * (1 - light) ** 3)
