"""Whose request it is when proxies stand between."""

from ipaddress import ip_network

import pytest

from cardbeat.web.forwarded import (
    client_address,
    is_trusted,
    network_of,
    parse_address,
    peer_of,
)

TRUSTED = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


@pytest.mark.parametrize(
    ("headers", "client"),
    [
        ({}, "10.0.0.1"),
        ({"x-forwarded-for": "203.0.113.7"}, "203.0.113.7"),
        ({"x-forwarded-for": "192.0.2.1, 203.0.113.7"}, "203.0.113.7"),
        ({"x-forwarded-for": "192.0.2.1,203.0.113.7 , 10.2.3.4,fd00::1"}, "203.0.113.7"),
        ({"x-forwarded-for": "10.9.9.9, 10.2.3.4"}, "10.9.9.9"),
        ({"x-forwarded-for": "203.0.113.7:4711"}, "203.0.113.7"),
        ({"x-forwarded-for": "[2001:db8::1]:4711"}, "2001:db8::1"),
        ({"x-forwarded-for": "::ffff:203.0.113.7"}, "203.0.113.7"),
        ({"x-forwarded-for": "garbage"}, "10.0.0.1"),
        ({"x-forwarded-for": ""}, "10.0.0.1"),
        ({"x-forwarded-for": "192.0.2.1, garbage, 10.2.3.4"}, "10.2.3.4"),
        ({"x-forwarded-for": "1.2.3.4\r\nforged"}, "10.0.0.1"),
        ({"forwarded": "for=192.0.2.1, proto=https;For=203.0.113.7;by=10.0.0.1"}, "203.0.113.7"),
        ({"forwarded": 'for="[2001:db8::1]:4711"'}, "2001:db8::1"),
        ({"forwarded": "for=unknown"}, "10.0.0.1"),
        ({"forwarded": 'for=203.0.113.7;host="x,for=9.9.9.9"'}, "203.0.113.7"),
        ({"forwarded": 'host="x;for=9.9.9.9" ; for="203.0.113.7:80" , for=10.2.3.4;by="a"'}, "203.0.113.7"),
        ({"forwarded": r'for=203.0.113.7;host="a\",for=9.9.9.9;b=\""'}, "203.0.113.7"),
        ({"forwarded": r'for=203.0.113.7;host="a\\", for=192.0.2.1'}, "192.0.2.1"),
        ({"forwarded": r"for=9.9.9.9;x=\", for=203.0.113.7"}, "203.0.113.7"),
        ({"forwarded": r'for=203.0.113.7;host="x\"'}, "10.0.0.1"),
        ({"forwarded": 'for=9.9.9.9;x=", for=203.0.113.7'}, "10.0.0.1"),
        ({"forwarded": 'for=9.9.9.9;x=", for=203.0.113.7;host="x"'}, "10.0.0.1"),
        ({"forwarded": r'for=9.9.9.9;x=", for=203.0.113.7;host="x\"'}, "10.0.0.1"),
        ({"forwarded": 'for=9.9.9.9;x="a"b, for=10.2.3.4'}, "10.2.3.4"),
        ({"forwarded": "for=203.0.113.7;host=x;for=9.9.9.9"}, "10.0.0.1"),
        ({"forwarded": "for=203.0.113.7", "x-forwarded-for": "192.0.2.1, 203.0.113.7"}, "203.0.113.7"),
        ({"forwarded": "for=192.0.2.1", "x-forwarded-for": "203.0.113.7"}, "10.0.0.1"),
        ({"forwarded": "for=unknown", "x-forwarded-for": "203.0.113.7"}, "10.0.0.1"),
    ],
)
def test_the_client_is_the_nearest_that_no_trusted_proxy_is(headers: dict[str, str], client: str) -> None:
    assert client_address("10.0.0.1", headers, TRUSTED) == client


@pytest.mark.parametrize(
    ("address", "trusted"), [("10.1.2.3", True), ("::ffff:10.1.2.3", True), ("fd00::1%eth0", True), ("11.0.0.1", False)]
)
def test_a_proxy_is_trusted_in_whatever_spelling(address: str, trusted: bool) -> None:
    assert is_trusted(parse_address(address), TRUSTED) is trusted


@pytest.mark.parametrize(
    ("client", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/48"),
        ("2002:cb00:7107:1::1", "203.0.113.7"),
        ("2002:cb00:7107:ffff::2", "203.0.113.7"),
        ("64:ff9b::203.0.113.7", "203.0.113.7"),
        ("2001:0:4136:e378:8000:63bf:34ff:8ef8", "203.0.113.7"),
        ("2001:0:102:304:0:1:34ff:8ef8", "203.0.113.7"),
        ("::1", "::/48"),
        ("-", "-"),
    ],
)
def test_one_client_is_an_address_or_the_network_that_one_customer_has(client: str, network: str) -> None:
    assert network_of(client) == network


def test_each_connection_of_a_trusted_proxy_is_read_in_a_turn_of_its_own() -> None:
    assert peer_of("10.0.0.1", 4711, TRUSTED).network != peer_of("10.0.0.1", 4712, TRUSTED).network
    assert peer_of("203.0.113.7", 4711, TRUSTED) == peer_of("203.0.113.7", 4712, TRUSTED)


@pytest.mark.parametrize(
    ("client", "host"),
    [
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("203.0.113.7", "203.0.113.7"),
        ("2002:cb00:7107:1::1", "203.0.113.7"),
    ],
)
def test_one_host_has_an_address_or_the_smallest_network(client: str, host: str) -> None:
    assert network_of(client, 64) == host


def test_the_networks_of_one_customer_are_read_in_one_turn() -> None:
    one, other, stranger = (peer_of(f"2001:db8:{host}::1", 4711, ()) for host in ("1:1", "1:2", "2:1"))
    assert one.network == other.network != stranger.network


def test_an_address_inside_another_makes_no_trusted_proxy() -> None:
    assert not is_trusted(parse_address("2002:0a01:0203::1"), TRUSTED)


def test_only_so_many_proxies_are_looked_at() -> None:
    """Each costs the loop microseconds, and a header has room for a thousand: 100 clients held up pings for 0.8 s."""
    proxies = ", ".join(["10.0.0.1"] * 15)
    for before, client in (("9.9.9.9, ", "9.9.9.9"), ("9.9.9.9, " + "10.0.0.1, " * 1000, "10.0.0.1")):
        assert client_address("10.0.0.1", {"x-forwarded-for": before + proxies}, TRUSTED) == client
        forwarded = ", ".join(f"for={entry}" for entry in (before + proxies).split(", "))
        assert client_address("10.0.0.1", {"forwarded": forwarded}, TRUSTED) == client


def test_an_element_of_forwarded_that_is_long_or_has_too_many_quotes_before_it_names_nobody() -> None:
    for forwarded in ("for=203.0.113.7" + ";a=b" * 4_000, 'a="b",' * 65 + "for=203.0.113.7"):
        assert client_address("10.0.0.1", {"forwarded": forwarded}, TRUSTED) == "10.0.0.1"
    assert client_address("10.0.0.1", {"forwarded": 'a="b",' * 64 + "for=203.0.113.7"}, TRUSTED) == "203.0.113.7"
