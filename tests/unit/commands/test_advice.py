"""Sentences about what is likely a mistake in how the program is set up."""

import pytest

from cardbeat.commands.advice import open_registration, undefined_tiers, unknown_variables, unreachable_base_url


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


@pytest.mark.parametrize("host", ["cards.example.com", "1.1.1.1", "[2606:4700::1111]:8443", "cards.example.com."])
def test_an_open_registration_at_a_public_url_is_told(host):
    (said,) = open_registration(True, f"https://{host}")
    assert said.startswith(f"everyone who reaches https://{host} can get keys there; ")
    assert "--registration closed" in said
    assert list(open_registration(False, f"https://{host}")) == []


LOCAL = ("localhost:8080", "127.0.0.1", "[::1]", "10.0.0.7", "192.168.7.7", "[fd00::1]", "169.254.1.1", "100.64.0.1")
LOCAL_NAMES = ("cards", "cards.localhost", "cards.local", "cards.lan", "cards.internal", "cards.home.arpa")


@pytest.mark.parametrize("url", [None, *(f"http://{host}" for host in LOCAL + LOCAL_NAMES)])
def test_an_open_registration_elsewhere_is_not(url):
    assert list(open_registration(True, url)) == []


def test_keys_in_tiers_that_are_gone_are_counted():
    assert list(undefined_tiers({"free": 9, "plus": 1}, {"free", "unlimited", "plus"})) == []
    (one,) = undefined_tiers({"free": 9, "plus": 1}, {"free", "unlimited"})
    assert one.startswith(
        "1 key is in tiers that are not defined (plus: 1): a server without these tiers gives free's limits; "
    )
    (more,) = undefined_tiers({"plus": 1, "gold": 2, "free": 3}, {"free"})
    assert more.startswith("3 keys are in tiers that are not defined (gold: 2, plus: 1)")
