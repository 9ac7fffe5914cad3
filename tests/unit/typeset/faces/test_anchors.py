"""Marks placed on their letters by anchors."""

from cardbeat.typeset.faces.unshaped import Anchors, PlacedText, placed

ANCHORS = Anchors(
    marks={"^": {"top": [0.2, 0.6]}, "~": {"above": [0.1, 0.1]}},
    bases={"a": {"top": [0.5, 0.8]}, "^": {"above": [0.2, 0.9]}},
)


def parts(text: str) -> list[tuple[str, float, float]]:
    """Letters of 10 pixels each at a size of 100."""
    found = placed(text, ANCHORS, 100, lambda letters: 10.0 * len(letters))
    assert all(isinstance(part, PlacedText) for part in found)
    return [(part.text, round(part.x_px, 6), round(part.y_px, 6)) for part in found]


def test_a_mark_stands_where_its_anchor_meets_the_letters() -> None:
    assert parts("a^") == [("a", 0, 0), ("^", 30, -20)]


def test_a_mark_on_a_mark_stands_on_it() -> None:
    assert parts("a^~")[2] == ("~", 30 + 10, -20 - 80)


def test_a_mark_has_its_place_on_a_letter_or_on_a_mark_before_it() -> None:
    assert ANCHORS.places("a")
    assert ANCHORS.places("a^~")
    assert not ANCHORS.places("a~")
    assert not ANCHORS.places("b^")


def test_letters_go_on_behind_a_mark() -> None:
    assert parts("bca^bc") == [("bca", 0, 0), ("^", 20 + 30, -20), ("bc", 30, 0)]


def test_a_letter_without_anchors_has_its_mark_centred() -> None:
    assert parts("b^") == [("b", 0, 0), ("^", 5 - 20, 0)]


def test_a_mark_without_a_letter_is_drawn_as_a_letter() -> None:
    assert parts("^b") == [("^b", 0, 0)]
