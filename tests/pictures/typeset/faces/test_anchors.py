"""Marks placed on their letters by anchors."""

import pytest

from cardbeat.typeset.faces.unshaped import Anchors, placed

ANCHORS = Anchors(
    marks={"^": {"top": [0.2, 0.6]}, "~": {"above": [0.1, 0.1]}},
    bases={"a": {"top": [0.5, 0.8]}, "^": {"above": [0.2, 0.9]}},
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a^", [("a", 0, 0), ("^", 30, -20)]),
        ("a^~", [("a", 0, 0), ("^", 30, -20), ("~", 40, -100)]),
        ("bca^bc", [("bcabc", 0, 0), ("^", 50, -20)]),
        (
            "b^",
            [("b", 0, 0), ("^", -15, 0)],
        ),  # without an anchor: centred
        ("^b", [("^b", 0, 0)]),
    ],
)
def test_a_mark_stands_where_its_anchor_meets_that_below_it(text, parts):
    """Letters of 10 pixels each at a size of 100."""
    found = placed(
        text, ANCHORS, 100, lambda letters: 10.0 * len(letters)
    )
    assert [
        (part.text, round(part.x_px, 6), round(part.y_px, 6))
        for part in found
    ] == parts


@pytest.mark.parametrize(
    ("text", "has"),
    [("a", True), ("a^~", True), ("a~", False), ("b^", False)],
)
def test_a_mark_has_its_place_on_a_letter_or_on_a_mark_before_it(
    text, has
):
    assert ANCHORS.places(text) is has
