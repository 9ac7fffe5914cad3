"""The colours of each template in its two themes."""

from typing import NamedTuple

Colour = str
"""`#rrggbb`."""


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
