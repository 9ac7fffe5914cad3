"""Text ordered without a shaping engine."""

from cardbeat.typeset.faces.unshaped import characters_to_draw


def test_letters_are_drawn_from_right_to_left_with_brackets_turned() -> None:
    assert characters_to_draw(["א", "(", "ב"], rtl=True) == "ב)א"


def test_indic_vowel_signs_stand_before_their_consonant() -> None:
    assert characters_to_draw(["कि"], rtl=False) == "\u093fक"
    assert characters_to_draw(["কো"], rtl=False) == "\u09c7ক\u09be"
