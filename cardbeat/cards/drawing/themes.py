"""The colours of each template in its two themes."""

from typing import NamedTuple

Colour = str  # `#rrggbb`


class Theme(NamedTuple):
    """The colours of a template. Text has a contrast of 4.5:1 or more on everything that can be under it."""

    ramp: tuple[Colour, ...]  # the background from no light to full light, in `steps` colours
    ink: Colour
    muted: Colour
    accent: Colour
    light: str
    """The name of what `build` makes: where the colours of the ramp, of the disc and of the panel are."""
    steps: int = 1
    disc: Colour | None = None  # the colour of a disc that is clear of all other shapes
    panel: Colour | None = None  # the colour of a title's bubble
    on_avatar: Colour = "#ffffff"  # the colour of the letter in an avatar, which is a disc of the accent


THEME_OF = {
    ("default", "dark"): Theme(
        ramp=("#080a11", "#0d1222", "#161f47", "#24337a", "#3548a8"),
        light="default-dark",
        steps=88,
        ink="#f6f8fd",
        muted="#b1bad3",
        accent="#9fb0ff",
    ),
    ("default", "light"): Theme(
        ramp=("#fcfcfe", "#f3f5fd", "#e5eafd", "#d2dbfc", "#becbfb"),
        light="default-light",
        steps=88,
        ink="#0f121c",
        muted="#474f66",
        accent="#3141c4",
    ),
    ("blog", "dark"): Theme(
        ramp=("#5a2334",),
        light="blog",
        disc="#f3775b",
        ink="#fff6f0",
        muted="#dcc6be",
        accent="#ffb996",
        panel="#1c1118",
        on_avatar="#24100f",
    ),
    ("blog", "light"): Theme(
        ramp=("#ffd4bb",),
        light="blog",
        disc="#f4785a",
        ink="#2a1512",
        muted="#6a473c",
        accent="#a8371b",
        panel="#fffaf5",
    ),
    ("article", "dark"): Theme(
        ramp=("#0f211b", "#1d3d31"),
        light="article-dark",
        steps=29,
        ink="#f6efdf",
        muted="#b9c4b4",
        accent="#efb75e",
    ),
    ("article", "light"): Theme(
        ramp=("#f2efdf", "#fcf9f3"),
        light="article-light",
        steps=21,
        ink="#1a1714",
        muted="#5f574b",
        accent="#a5281d",
    ),
}
"""By template and theme, as `request` names them."""
