"""Arabic letters joined without a shaping engine."""

import unicodedata

from cardbeat.typeset.faces.unshaped import joined


def forms(text: str) -> list[str]:
    """The form of each letter, as its Unicode name tells."""
    return [unicodedata.name(c).split()[-2] if "FORM" in unicodedata.name(c) else "-" for c in joined(text)]


def test_letters_take_the_form_their_neighbours_ask_for() -> None:
    assert forms("بيت") == ["INITIAL", "MEDIAL", "FINAL"]
    assert forms("دار") == ["ISOLATED", "ISOLATED", "ISOLATED"]
    assert forms("بار") == ["INITIAL", "FINAL", "ISOLATED"]


def test_lam_and_alef_are_one() -> None:
    assert joined("السلام") == "\ufe8d\ufedf\ufeb4\ufefc\ufee1"
    assert joined("لا") == "\ufefb"


def test_marks_do_not_part_letters() -> None:
    assert joined("بَيت") == "\ufe91\u064e\ufef4\ufe96"


def test_a_non_joiner_parts_letters_and_a_joiner_joins() -> None:
    assert joined("می\u200cخواهم")[1] == "\ufbfd"
    assert joined("ه\u200d") == "\ufeeb"


def test_persian_and_urdu_letters_join() -> None:
    assert forms("گپچ") == ["INITIAL", "MEDIAL", "FINAL"]
    assert forms("ٹیکے") == ["INITIAL", "MEDIAL", "MEDIAL", "FINAL"]


def test_kurdish_and_uyghur_letters_join() -> None:
    assert forms("مرۆڤەکان") == ["INITIAL", "FINAL", "ISOLATED", "INITIAL", "FINAL", "INITIAL", "FINAL", "ISOLATED"]
    assert forms("ئەركىن") == ["INITIAL", "FINAL", "ISOLATED", "INITIAL", "MEDIAL", "FINAL"]


def test_letters_without_forms_join_the_one_before() -> None:
    assert forms("سړی") == ["INITIAL", "-", "ISOLATED"]
    assert forms("پښتو") == ["INITIAL", "-", "INITIAL", "FINAL"]
    assert forms("راځي") == ["ISOLATED", "ISOLATED", "-", "ISOLATED"]
