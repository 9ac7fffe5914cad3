"""Text ordered without a shaping engine."""

from cardbeat.typeset.unshaped import in_visual_order


def test_letters_are_drawn_from_right_to_left_with_brackets_turned() -> None:
    assert in_visual_order(["א", "(", "ב"], rtl=True) == "ב)א"


def test_indic_vowel_signs_stand_before_their_consonant() -> None:
    assert in_visual_order(["कि"], rtl=False) == "\u093fक"
    assert in_visual_order(["কো"], rtl=False) == "\u09c7ক\u09be"
