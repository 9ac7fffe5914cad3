"""The poller, with epoll and with what stands in for it elsewhere."""

import select
import socket
import time
from collections.abc import Iterator

import pytest

from cardbeat.web.poller import READ, WRITE, Poller


@pytest.fixture(params=["epoll", "poll"])
def poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Poller]:
    if request.param == "poll":
        monkeypatch.delattr(select, "epoll", raising=False)
    poller = Poller()
    yield poller
    poller.close()


def test_what_is_ready_is_told_by_its_token_until_it_is_forgotten(poller: Poller) -> None:
    near, far = socket.socketpair()
    with near, far:
        poller.watch(near.fileno(), READ, "near")
        assert poller.watches(near.fileno())
        assert poller.ready(0) == []
        far.send(b"x")
        assert poller.ready(None) == ["near"]
        poller.watch(near.fileno(), WRITE)
        assert poller.ready(None) == ["near"]
        poller.watch(near.fileno(), 0)
        assert not poller.watches(near.fileno())
        assert poller.ready(0) == []


def test_a_client_that_has_left_makes_its_socket_ready(poller: Poller) -> None:
    near, far = socket.socketpair()
    with near:
        poller.watch(near.fileno(), READ, "near")
        far.close()
        assert poller.ready(None) == ["near"]


def test_waiting_ends_in_time(poller: Poller) -> None:
    started = time.monotonic()
    assert poller.ready(0.05) == []
    assert 0.04 <= time.monotonic() - started < 5
