"""The colours of cards for an accent: of its hue, and readable whatever it is."""

from colorsys import hls_to_rgb
from functools import cache
from io import BytesIO
from math import degrees

import pytest
from PIL import Image

from cardbeat.cards.drawing.accent import theme_of
from cardbeat.cards.drawing.background import ramp_of
from cardbeat.cards.drawing.colours import chroma_and_hue, coloured, luminance, rgb
from cardbeat.cards.drawing.render import Renderer, own_version
from cardbeat.cards.drawing.themes import THEME_OF, Theme
from cardbeat.cards.request import card_from
from cardbeat.light.build.lights import LIGHTS
from cardbeat.typeset.faces.fonts import Fonts
from tests.unit.cards.test_templates import ARABIC, EMPTY, FULL, LONG, SEEN, SHORT, box_of, contrast, layout_of

HUES = [hls_to_rgb(hue / 360, 0.5, 0.9) for hue in range(360)]
EXTREMES = [
    "#000000",
    "#ffffff",
    "#010101",
    "#fefefe",
    "#7f7f7f",
    "#808080",
    "#000001",
    "#00000f",
    "#fffffe",
    "#0000ff",
]
ACCENTS = [*("#" + bytes(round(255 * part) for part in hue).hex() for hue in HUES), *EXTREMES]
FEW = ["#e11d48", "#facc15", "#16a34a", "#2563eb", "#64748b", "#000000", "#ffffff"]
KEYS = list(THEME_OF)


@cache
def stands_on(template: str, theme: str) -> set[tuple[str, str | int]]:
    """The texts of real layouts by their field of the theme, each with what is behind it.

    That is a field too, or the darkest and the lightest step of the light.
    """
    designed = THEME_OF[template, theme]
    fields = {getattr(designed, name): name for name in ("on_avatar", "ink", "muted", "accent", "panel")}
    found: set[tuple[str, str | int]] = set()
    for texts in (FULL, LONG, SHORT, ARABIC):
        layout = layout_of(template, theme, **texts)
        _, rows = SEEN[template, theme, layout.mirrored]
        for text in layout.texts:
            left, top, right, bottom = map(int, box_of(text))
            steps = rows.crop((left + 1, top, right + 1, bottom)).getextrema()
            behind = steps if text.over is None else [fields.get(text.over, 0)]
            found |= {(fields[text.colour], one) for one in behind}
    return found


def least_contrast(template: str, theme: str, colours: Theme) -> float:
    steps = ramp_of(colours)
    pairs = [(getattr(colours, text), on) for text, on in stands_on(template, theme)]
    return min(
        contrast(rgb(text), steps[on] if isinstance(on, int) else rgb(getattr(colours, on))) for text, on in pairs
    )


@pytest.mark.parametrize(("template", "theme"), KEYS)
def test_text_has_enough_contrast_for_every_accent(template: str, theme: str) -> None:
    assert len(stands_on(template, theme)) >= 4
    least = {accent: least_contrast(template, theme, theme_of(template, theme, accent)) for accent in ACCENTS}
    assert min(least.values()) >= 4.5, min(least, key=least.__getitem__)


@pytest.mark.parametrize(("template", "theme"), KEYS)
def test_without_an_accent_a_theme_is_as_designed(template: str, theme: str) -> None:
    assert theme_of(template, theme) is THEME_OF[template, theme]


def hue_of(colour: str) -> float:
    return degrees(chroma_and_hue(rgb(colour))[1]) % 360


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("accent", ["#e11d48", "#16a34a", "#0891b2", "#2563eb", "#9333ea"])
def test_the_light_of_default_and_what_surrounds_the_bubble_have_the_hue_of_the_accent(accent: str, theme: str) -> None:
    default, blog = theme_of("default", theme, accent), theme_of("blog", theme, accent)
    for colour in (default.ramp[-1], default.accent, blog.ramp[0], blog.accent, blog.disc or ""):
        away = abs(hue_of(colour) - hue_of(accent))
        assert min(away, 360 - away) < 6


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_an_article_changes_its_accent_alone(theme: str) -> None:
    designed, own = THEME_OF["article", theme], theme_of("article", theme, "#2563eb")
    assert own.accent != designed.accent
    assert (own.ramp, own.ink, own.muted) == (designed.ramp, designed.ink, designed.muted)


def test_an_accent_that_can_be_read_is_not_changed() -> None:
    assert theme_of("article", "light", "#1d4ed8").accent == "#1d4ed8"
    assert theme_of("blog", "dark", "#facc15").accent == "#facc15"


def test_a_grey_accent_makes_grey_cards() -> None:
    for accent in ("#000000", "#777777", "#ffffff"):
        for template, theme in KEYS:
            if template != "article":
                assert all(len({*rgb(colour)}) == 1 for colour in theme_of(template, theme, accent).ramp)


def test_shades_of_yellow_are_no_olive_green() -> None:
    red, green, _ = rgb(theme_of("default", "dark", "#facc15").ramp[-1])
    assert red > 1.3 * green
    red, green, _ = rgb(theme_of("article", "light", "#facc15").accent)
    assert red > 1.3 * green


def test_a_turned_colour_keeps_its_luminance() -> None:
    for light in (0.003, 0.08, 0.45, 0.94):
        for hue in range(0, 360, 15):
            assert luminance(coloured(light, 0.2, hue / 57.3)) == pytest.approx(light, abs=0.006)


@pytest.mark.parametrize(
    "colour", ["#000000", "#ffffff", "#3548a8", "#ff0000", "#00ff00", "#0000ff", "#ffff00", "#777777"]
)
def test_a_colour_in_oklch_and_back_is_the_same(colour: str) -> None:
    back = coloured(luminance(rgb(colour)), *chroma_and_hue(rgb(colour)))
    assert max(abs(one - other) for one, other in zip(back, rgb(colour), strict=True)) <= 1


def test_oklch_is_that_of_its_author() -> None:
    """By https://oklch.com: oklch(62.8% 0.2577 29.23) and oklch(45.2% 0.3132 264.05)."""
    for colour, chroma, hue in (("#ff0000", 0.2577, 29.23), ("#0000ff", 0.3132, 264.05)):
        assert chroma_and_hue(rgb(colour))[0] == pytest.approx(chroma, abs=0.0005)
        assert hue_of(colour) == pytest.approx(hue, abs=0.1)


@pytest.mark.parametrize("accent", FEW)
def test_a_drawn_card_has_these_colours_and_stays_small(accent: str) -> None:
    renderer = Renderer(Fonts(), accent)
    for template, theme in KEYS:
        png = renderer.render(card_from({**FULL, "template": template, "theme": theme})).png
        assert len(png) < 60_000
        shown = {colour for _, colour in Image.open(BytesIO(png)).convert("RGB").getcolors(256) or []}
        colours = theme_of(template, theme, accent)
        assert {rgb(colours.ink), rgb(colours.muted), rgb(colours.accent)} <= shown
        assert {*ramp_of(colours)} & shown


def test_the_same_accent_draws_the_same_bytes_and_another_one_others() -> None:
    card = card_from(FULL)
    one, same, other = (Renderer(Fonts(), accent).render(card).png for accent in ("#16a34a", "#16a34a", "#16a34b"))
    assert one == same != other
    assert one != Renderer(Fonts()).render(card).png


def test_the_renderer_version_changes_with_the_accent() -> None:
    versions = [own_version(accent) for accent in (None, "#16a34a", "#16a34b")]
    assert len({*versions}) == 3
    assert own_version("#16a34a") == versions[1]


def test_the_edge_of_default_light_is_seen_on_a_white_page() -> None:
    for key, designed in THEME_OF.items():
        if LIGHTS[designed.light].edge:
            colours, rows = SEEN[(*key, False)]
            edges = [(1, 300), (1200, 300), (600, 0), (600, 629), (1, 0), (1, 629), (1200, 629)]
            for place in edges:
                assert contrast(colours[rows.getpixel(place)], (255, 255, 255)) >= 1.1, (key, place)
        assert EMPTY[(*key, False)].steps == designed.steps
