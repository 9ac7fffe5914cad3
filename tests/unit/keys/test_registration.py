"""Who may register, and how often."""

import contextlib

import pytest

from cardbeat.config import Config
from cardbeat.errors import Refusal, TooMany
from cardbeat.keys.routes import Registration
from cardbeat.web.clients import network_of
from cardbeat.web.message import Request
from tests.support import FakeClock


def asking(client="192.0.2.7", **headers):
    return Request(
        "POST", "/register", "/register", headers=headers, client=client, network=network_of(client)
    )


def issued(registration, *clients):
    """How many of these clients get a key."""
    count = 0
    for client in clients:
        with contextlib.suppress(TooMany):
            registration.take(asking(client))
            count += 1
    return count


@pytest.fixture
def clock():
    return FakeClock(0)


@pytest.fixture
def registration(clock):
    return Registration(Config(), clock)


def test_a_client_gets_30_keys_a_minute(registration, clock):
    assert issued(registration, *["192.0.2.7"] * 40) == 30
    assert issued(registration, "::ffff:192.0.2.7") == 0
    assert issued(registration, *["192.0.2.8"] * 40) == 30
    clock.advance(60)
    assert issued(registration, *["192.0.2.7"] * 40) == 30


def test_hosts_of_an_ipv6_64_share_a_limit_and_its_48_has_ten_times_as_many(registration):
    assert issued(registration, *[f"2001:db8:7:1::{number:x}" for number in range(400)]) == 30
    others = [f"2001:db8:7:{number:x}::1" for number in range(2, 1000)]
    assert issued(registration, *others) == 270
    assert issued(registration, "2001:db8:8::1") == 1


def test_a_refusal_says_how_long_to_wait(registration):
    issued(registration, *["192.0.2.7"] * 30)
    with pytest.raises(TooMany) as refused:
        registration.take(asking())
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "2"})


@pytest.mark.parametrize("site", ["cross-site", "same-site", "x", ""])
def test_a_page_of_another_site_registers_nothing(registration, site):
    with pytest.raises(Refusal) as refused:
        registration.judge(asking(**{"sec-fetch-site": site}))
    assert (refused.value.status, refused.value.code) == (403, "cross_site")
    for allowed in ("same-origin", "none"):
        registration.judge(asking(**{"sec-fetch-site": allowed}))


def test_closed_registration_is_refused():
    with pytest.raises(Refusal) as refused:
        Registration(Config(registration_open=False)).judge(asking())
    assert (refused.value.status, refused.value.code) == (403, "registration_closed")
