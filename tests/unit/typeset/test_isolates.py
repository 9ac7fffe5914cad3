"""Explicit directions: embeddings, overrides and isolates."""

import unicodedata

from cardbeat.typeset.isolates import ExplicitLevels, fill_removed, first_is_rtl, isolating_runs, matching

RLI, LRI, FSI, PDI, RLO, PDF = "\u2067\u2066\u2068\u2069\u202e\u202c"


def kinds(text: str) -> list[str]:
    return [unicodedata.bidirectional(character) for character in text]


def explicit(text: str) -> ExplicitLevels:
    return ExplicitLevels(kinds(text), 0)


def test_an_isolate_ends_at_the_sign_that_matches_it() -> None:
    assert matching(kinds(f"{RLI}{LRI}a{PDI}{PDI}{PDI}{FSI}")) == {0: 4, 1: 3}


def test_what_stands_in_an_isolate_does_not_decide_a_direction() -> None:
    text = kinds(f"{RLI}א{PDI} a")
    assert not first_is_rtl(text, matching(text), 0, len(text))


def test_an_isolate_takes_the_direction_that_it_says_or_holds() -> None:
    assert explicit(f"a{RLI}b{PDI}c").levels == [0, 0, 1, 0, 0]
    assert explicit(f"a{FSI}א{PDI}c").levels == [0, 0, 1, 0, 0]
    assert explicit(f"a{FSI}b{PDI}c").levels == [0, 0, 2, 0, 0]


def test_an_override_makes_letters_of_the_other_kind() -> None:
    assert explicit(f"{RLO}ab{PDF}c").kinds[1:3] == ["R", "R"]


def test_too_many_isolates_are_as_none() -> None:
    assert max(explicit(RLI * 1_000 + "a").levels) == 125


def test_text_around_an_isolate_is_one_run() -> None:
    text = f"a{RLI}א{PDI}b"
    assert [run.places for run in isolating_runs(kinds(text), explicit(text), 0)] == [[0, 1, 3, 4], [2]]


def test_what_is_taken_out_has_the_level_before_it() -> None:
    levels = [2, 0, 3]
    fill_removed(["R", "BN", "L"], levels, 0)
    assert levels == [2, 2, 3]
