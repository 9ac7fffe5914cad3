"""Planned widths are those that are drawn, as far as they can be known before."""

import pytest
from PIL import features

from cardbeat.typeset.faces.catalogue import FontSubset
from cardbeat.typeset.faces.fonts import Fonts

FONTS = Fonts()


def subset_of(character: str) -> FontSubset:
    return FONTS.choose([character], "ja")[0].pieces[0].subset


@pytest.mark.parametrize("text", ["Designing", "Ελλάδα", "日本語"])
def test_a_planned_width_is_the_drawn_one_but_for_kerning(text: str) -> None:
    subset = subset_of(text[0])
    drawn = FONTS.faces.face(400, subset, 1000).font.getlength(text) / 1000
    assert FONTS.faces.width_em(subset, 400, list(text), rtl=False) == pytest.approx(drawn, rel=0.03)


def test_superscripts_are_narrower_by_their_size() -> None:
    line, above = subset_of("5"), subset_of("⁵")
    assert FONTS.faces.width_em(above, 400, ["5"], rtl=False) == pytest.approx(
        0.6 * FONTS.faces.width_em(line, 400, ["5"], rtl=False)
    )


@pytest.mark.skipif(not features.check("raqm"), reason="no Raqm here")
def test_the_shaping_factor_makes_a_planned_width_the_shaped_one() -> None:
    text = list("हिन्दी")
    subset = subset_of("ह")
    drawn = FONTS.faces.face(400, subset, 1000).font.getlength("".join(text)) / 1000
    factor = FONTS.faces.shaping_factor(subset, 400, text, rtl=False)
    assert factor != 1
    assert factor * FONTS.faces.width_em(subset, 400, text, rtl=False) == pytest.approx(drawn, rel=0.01)


def test_without_raqm_and_for_letters_that_stand_alone_there_is_no_factor() -> None:
    assert Fonts(shaping=False).faces.shaping_factor(subset_of("ह"), 400, list("हिन्दी"), rtl=False) == 1
    assert FONTS.faces.shaping_factor(subset_of("a"), 400, ["a"], rtl=False) == 1
