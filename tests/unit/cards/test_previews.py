"""The small pictures of the templates on the builder's page."""

import re

import pytest

from cardbeat.cards.drawing.background import empty_card
from cardbeat.cards.drawing.colours import rgb
from cardbeat.cards.drawing.themes import THEME_OF
from cardbeat.cards.request import TEMPLATES
from cardbeat.resources import read_text


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_preview_has_the_colours_of_its_template(template: str) -> None:
    [picture] = re.findall(rf'value="{template}".*?<svg(.*?)</svg>', read_text("pages/builder/builder.html"), re.DOTALL)
    shown = set(re.findall("#[0-9a-f]{6}", picture))
    theme = THEME_OF[template, "light" if template == "article" else "dark"]
    own = [*empty_card(theme, mirrored=False).colours, *map(rgb, (theme.ink, theme.muted, theme.accent))]
    assert len(shown) >= 4
    for colour in map(rgb, shown):
        assert min(max(abs(a - b) for a, b in zip(colour, other, strict=True)) for other in own) <= 8
