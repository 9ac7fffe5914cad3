"""Who may register, and how often."""

import pytest

from cardbeat.config import FREE, Config
from cardbeat.errors import Refusal, TooMany
from cardbeat.keys.key import IssuedKey, Key
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.routes import KeyRoutes
from cardbeat.web.message import Request, network_of
from tests.kit.support import FakeClock

KEY = Key("key_1", "cards", "free", FREE, None, "sk_1", 0, None, None)


class AnyKeys:
    def issue(self, _email):
        return IssuedKey(KEY, "sk_1")


def registration(config, clock=None):
    return KeyRoutes(
        config,
        AnyKeys(),
        None,
        None,
        None,
        RateLimit(clock or FakeClock(0)),
    )


def asking(client="192.0.2.7", **headers):
    return Request(
        "POST",
        "/register",
        "/register",
        headers=headers,
        client=client,
        network=network_of(client),
    )


def refusal_of(routes, request):
    try:
        assert routes.register(request).status == 201
    except Refusal as refusal:
        return refusal
    return None


def issued(routes, *clients):
    """How many of these clients get a key."""
    return sum(
        refusal_of(routes, asking(client)) is None for client in clients
    )


def test_a_client_gets_30_keys_a_minute_and_is_told_how_long_to_wait():
    clock = FakeClock(0)
    routes = registration(Config(), clock)
    assert issued(routes, *["192.0.2.7"] * 40) == 30
    refused = refusal_of(routes, asking("::ffff:192.0.2.7"))
    assert isinstance(refused, TooMany)
    assert refused.headers == {"Retry-After": "2"}
    assert issued(routes, *["192.0.2.8"] * 40) == 30
    clock.advance(60)
    assert issued(routes, *["192.0.2.7"] * 40) == 30


def test_hosts_of_an_ipv6_64_share_a_limit_and_its_48_has_ten_times_as_many():
    routes = registration(Config())
    assert (
        issued(
            routes,
            *[f"2001:db8:7:1::{number:x}" for number in range(400)],
        )
        == 30
    )
    others = [f"2001:db8:7:{number:x}::1" for number in range(2, 1000)]
    assert issued(routes, *others) == 270
    assert issued(routes, "2001:db8:8::1") == 1


@pytest.mark.parametrize("site", ["cross-site", "same-site", "x", ""])
def test_a_page_of_another_site_registers_nothing(site):
    routes = registration(Config())
    refused = refusal_of(routes, asking(**{"sec-fetch-site": site}))
    assert refused.status == 403
    assert refused.code == "cross_site"
    for allowed in ("same-origin", "none"):
        assert (
            refusal_of(routes, asking(**{"sec-fetch-site": allowed}))
            is None
        )


def test_closed_registration_is_refused():
    refused = refusal_of(
        registration(Config(registration_open=False)), asking()
    )
    assert refused.status == 403
    assert refused.code == "registration_closed"
