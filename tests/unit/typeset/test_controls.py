"""Soft hyphens and isolates, and what hangs before an ellipsis."""

import pytest

from cardbeat.typeset.paragraph import hangs
from cardbeat.typeset.unicode.bidi import ordered
from cardbeat.typeset.unicode.breaks import Break, breaks_at_hyphens
from cardbeat.typeset.unicode.clusters import clean_for_lines, clusters


def test_controls_are_taken_out_and_count_by_what_stands_behind_them() -> None:
    found = ordered(clusters(clean_for_lines("a\u00adb\u2067c\u2069\u00ad")))
    assert (found.graphemes, found.hyphens) == (["a", "b", "c"], {1, 3})


def test_isolates_order_the_text() -> None:
    found = ordered(clusters(clean_for_lines("שפת \u2066C++\u2069 היא \u2066.NET\u2069")))
    assert found.rtl
    assert [(g, level) for g, level in zip(found.graphemes, found.levels, strict=True) if g in "+."] == [
        ("+", 2), ("+", 2), (".", 2),
    ]  # fmt: skip


def test_the_first_letter_outside_isolates_decides_the_direction() -> None:
    assert ordered(clusters("\u2066C++\u2069 שפה")).rtl
    assert not ordered(clusters("\u2067שפה\u2069 C++")).rtl


def test_a_soft_hyphen_is_drawn_only_inside_a_word() -> None:
    graphemes, _, _, hyphens = ordered(clusters("Rha\u00adbar, \u00adBarbara日\u00ad本"))
    found, drawn = breaks_at_hyphens(graphemes, "ja", hyphens)
    assert drawn == {3}
    assert found[3] == Break.FAIR


@pytest.mark.parametrize("sign", [" ", ",", ";", ":", "–", "—", "(", "«", "“", "、", "。", "・", "¿", "/", "،", "।"])
def test_what_hangs_before_an_ellipsis(sign: str) -> None:
    assert hangs(sign)


@pytest.mark.parametrize("sign", ["a", "!", "?", ")", "»", "”", "%", "7", "ก", "🎉", "+", "’"])
def test_what_does_not_hang(sign: str) -> None:
    assert not hangs(sign)
