"""Arabic letters joined without a shaping engine."""

import unicodedata

import pytest

from cardbeat.typeset.faces.unshaped import joined


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("بيت", "INITIAL MEDIAL FINAL"),
        ("بار", "INITIAL FINAL ISOLATED"),
        ("گپچ", "INITIAL MEDIAL FINAL"),
        ("ٹیکے", "INITIAL MEDIAL MEDIAL FINAL"),
        ("بَيت", "INITIAL FATHA MEDIAL FINAL"),  # a mark parts no letters
        (
            "می\u200cخواهم",
            "INITIAL FINAL NON-JOINER INITIAL FINAL ISOLATED INITIAL FINAL",
        ),
        ("ه\u200d", "INITIAL"),
        # Letters without forms of their own join the one before.
        ("پښتو", "INITIAL ABOVE INITIAL FINAL"),
        ("السلام", "ISOLATED INITIAL MEDIAL FINAL ISOLATED"),
        ("لا", "ISOLATED"),
    ],
)
def test_letters_take_the_form_their_neighbours_ask_for(text, forms):
    assert " ".join(map(form, joined(text))) == forms


def form(character):
    name = unicodedata.name(character)
    return name.split()[-2] if "FORM" in name else name.split()[-1]
