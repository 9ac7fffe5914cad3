"""A colour of one's own: it reaches the whole card, and everything can be read."""

from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from cardbeat.cards.drawing.colours import (
    THEME_OF,
    contrast,
    hex_of,
    hue_and_chroma,
    luminance,
    rgb,
    theme_of,
)
from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.request import TEMPLATES, THEMES, card_from
from tests.kit.fonts import FONTS

LOOKS = [(template, theme) for template in TEMPLATES for theme in THEMES]
COLOURS = st.tuples(*[st.integers(0, 255)] * 3).map(hex_of)
ACCENTS = (
    "#16a34a",
    "#e11d48",
    "#facc15",
    "#0ea5e9",
    "#7c3aed",
    "#000000",
    "#ffffff",
    "#888888",
)


@settings(max_examples=150, deadline=None)
@given(st.none() | COLOURS, st.sampled_from(LOOKS))
def test_all_text_has_enough_contrast_as_designed_and_for_every_accent(
    accent: str | None, look: tuple[str, str]
):
    theme = theme_of(*look, accent)
    ground = [
        *map(rgb, (theme.panel,) if theme.panel else theme.ramp[:4])
    ]
    for text in (theme.ink, theme.muted, theme.accent):
        assert min(contrast(rgb(text), under) for under in ground) >= 4.5
    assert (
        not theme.panel
        or contrast(rgb(theme.on_mark), rgb(theme.mark)) >= 4.5
    )


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(
    "accent", ["#000000", "#111827", "#f8fafc", "#ffffff"]
)
def test_a_sign_near_black_or_white_is_seen(
    look: tuple[str, str], accent: str
):
    theme = theme_of(*look, accent)
    assert contrast(rgb(theme.mark), rgb(theme.ramp[-1])) >= 1.95


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("accent", ACCENTS)
def test_the_ground_turns_to_the_accents_hue_and_stays_as_light(
    look: tuple[str, str], accent: str
):
    designed = THEME_OF[look]
    for before, after in zip(
        designed.ramp, theme_of(*look, accent).ramp, strict=True
    ):
        assert abs(luminance(rgb(before)) - luminance(rgb(after))) < 0.02
        hue, chroma = hue_and_chroma(rgb(after))
        wanted, strength = hue_and_chroma(rgb(accent))
        assert chroma < 0.02 or (
            strength
            and min(abs(hue - wanted), 1 - abs(hue - wanted)) < 0.1
        )


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("accent", ["#16a34a", "#e11d48", "#f59e0b"])
def test_the_sign_has_the_accent_itself(
    look: tuple[str, str], accent: str
):
    assert theme_of(*look, accent).mark == accent
    png = (
        Renderer(FONTS, accent)
        .render(
            card_from(
                {"title": "x", "template": look[0], "theme": look[1]}
            )
        )
        .png
    )
    image = Image.open(BytesIO(png)).convert("RGB")
    colours = {colour for _, colour in image.getcolors(1 << 20) or []}
    assert rgb(accent) in colours


def test_a_colour_that_can_be_read_is_not_changed_and_another_one_is_made_lighter_or_darker() -> (
    None
):
    assert theme_of("blog", "dark", "#ffb996").accent == "#ffb996"
    assert luminance(
        rgb(theme_of("blog", "dark", "#300808").accent)
    ) > luminance(rgb("#300808"))
    assert luminance(
        rgb(theme_of("blog", "light", "#ffe0e0").accent)
    ) < luminance(rgb("#ffe0e0"))
