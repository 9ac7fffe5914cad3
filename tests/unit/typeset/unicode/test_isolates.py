"""Explicit directions: isolates."""

import unicodedata

from cardbeat.typeset.unicode.bidi import explicit_levels, first_is_rtl, isolating_runs, matching

RLI, LRI, FSI, PDI = "\u2067\u2066\u2068\u2069"


def kinds(text: str) -> list[str]:
    return [unicodedata.bidirectional(character) for character in text]


def levels_of(text: str) -> list[int]:
    return explicit_levels(kinds(text), matching(kinds(text)), 0)


def test_an_isolate_ends_at_the_sign_that_matches_it() -> None:
    assert matching(kinds(f"{RLI}{LRI}a{PDI}{PDI}{PDI}{FSI}")) == {0: 4, 1: 3}


def test_what_stands_in_an_isolate_does_not_decide_a_direction() -> None:
    text = kinds(f"{RLI}א{PDI} a")
    assert not first_is_rtl(text, matching(text), 0, len(text))


def test_an_isolate_takes_the_direction_that_it_says_or_holds() -> None:
    assert levels_of(f"a{RLI}b{PDI}c") == [0, 0, 1, 0, 0]
    assert levels_of(f"a{FSI}א{PDI}c") == [0, 0, 1, 0, 0]
    assert levels_of(f"a{FSI}b{PDI}c") == [0, 0, 2, 0, 0]


def test_too_many_isolates_are_as_none() -> None:
    assert max(levels_of(RLI * 1_000 + "a")) == 125
    assert levels_of(RLI * 1_000 + PDI * 1_000)[-1] == 0


def test_text_around_an_isolate_is_one_run() -> None:
    text = f"a{RLI}א{PDI}b"
    _, runs = isolating_runs(kinds(text), 0)
    assert [run.places for run in runs] == [[0, 1, 3, 4], [2]]
