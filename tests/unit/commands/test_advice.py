"""Sentences about what is likely a mistake in how the program is set up."""

import pytest

from cardbeat.commands.advice import undefined_tiers, unknown_variables, unreachable_base_url


def test_a_misspelt_variable_is_told_with_the_name_that_is_nearest():
    (said,) = unknown_variables({"CARDBEAT_BASEURL", "CARDBEAT_PORT", "HOME", "cardbeat_host"})
    assert said == "the variable CARDBEAT_BASEURL is unknown and has no effect; did you mean CARDBEAT_BASE_URL?"


def test_one_like_none_of_them_is_told_with_all_names():
    (said,) = unknown_variables({"CARDBEAT_Q"})
    assert "CARDBEAT_BASE_URL, CARDBEAT_DATA" in said


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0:0::0"])
def test_listening_on_every_address_needs_a_base_url(host):
    (said,) = unreachable_base_url(host, None)
    assert "--base-url" in said
    assert list(unreachable_base_url(host, "https://cards.example")) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "::1", "localhost", "cards.example"])
def test_one_address_is_its_own_base_url(host):
    assert list(unreachable_base_url(host, None)) == []


def test_keys_in_tiers_that_are_gone_are_counted():
    assert list(undefined_tiers({"free": 9, "plus": 1}, {"free", "unlimited", "plus"})) == []
    (one,) = undefined_tiers({"free": 9, "plus": 1}, {"free", "unlimited"})
    assert one.startswith("1 key is in tiers that are not defined (plus: 1) and have free's limits; ")
    (more,) = undefined_tiers({"plus": 1, "gold": 2, "free": 3}, {"free"})
    assert more.startswith("3 keys are in tiers that are not defined (gold: 2, plus: 1)")
