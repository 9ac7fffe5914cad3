"""What a text takes, and what of it is left out where that is too much."""

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.unicode.clusters import clusters
from cardbeat.typeset.work import UNBOUNDED, Work, graphemes_within

FONTS = Fonts()


def drawn(text: str, most: int) -> str:
    """What is not left out."""
    graphemes = clusters(text)
    found = Work(400, most).affordable(FONTS.choose(graphemes, "ja"), [0] * len(graphemes), len(text))
    return "".join(g for g, choice in zip(graphemes, found, strict=True) if choice.pieces)


def spent(text: str) -> int:
    graphemes = clusters(text)
    work = Work(400, UNBOUNDED)
    work.affordable(FONTS.choose(graphemes, "ja"), [0] * len(graphemes), len(text))
    return work.spent


def _bytes(text: str) -> int:
    choices = FONTS.choose(clusters(text), "ja")
    return sum(subset.bytes(400) for subset in {piece.subset for choice in choices for piece in choice.pieces})


def test_what_no_font_has_is_looked_at_and_takes_nothing_else() -> None:
    assert 0 < spent("\ue000") < spent("aa") - spent("a")


def test_a_font_is_paid_for_once_and_a_run_each_time() -> None:
    first, again = spent("aक") - spent("a"), spent("aकbख") - spent("aकb")
    assert 0 < again < first


def test_the_font_of_another_script_takes_more_than_one_of_more_han_beside_its_bytes() -> None:
    script, han = (spent(text) - _bytes(text) for text in ("aж", "a漢"))
    assert script > 1.2 * han


def test_a_run_in_a_font_with_many_rules_takes_more_than_one_in_letters_alone() -> None:
    assert spent("aकbखc") - spent("aकbbc") > 10 * (spent("aжbзc") - spent("aжbbc"))


def test_an_emoji_takes_more_than_a_letter() -> None:
    assert spent("🎉🎉") - spent("🎉") > spent("aa") - spent("a")


def test_the_first_run_is_drawn_whatever_it_takes_and_none_after_it() -> None:
    assert drawn("कa漢жא", most=1) == "क"


def test_a_run_of_letters_is_never_cut() -> None:
    assert drawn("a" * 500, most=1) == "a" * 500


def test_emoji_are_left_out_one_by_one() -> None:
    assert drawn("🎉" * 100, most=1_000_000).count("🎉") in range(40, 80)


def test_what_costs_too_much_leaves_room_for_what_does_not() -> None:
    text = "aक" * 20 + "漢"
    assert drawn(text, most=2_000_000).count("क") < 20
    assert drawn(text, most=2_000_000).startswith("aकa")


def test_no_more_graphemes_are_looked_at_than_the_work_pays_for_but_as_many_as_a_label_shows() -> None:
    assert graphemes_within(3_000_000) > 1_000
    assert graphemes_within(100_000) < 100
    assert graphemes_within(0) == graphemes_within(-1_000_000) >= 30


def test_what_is_drawn_again_in_another_size_costs_no_font() -> None:
    for text in ("aaaa", "aकaक", "漢字漢字"):
        graphemes = clusters(text)
        work = Work(400, UNBOUNDED)
        work.affordable(FONTS.choose(graphemes, "ja"), [0] * len(graphemes), len(text))
        fonts = {piece.subset for choice in FONTS.choose(graphemes, "ja") for piece in choice.pieces}
        assert 0 < work.again < work.spent - sum(font.bytes(400) for font in fonts)
