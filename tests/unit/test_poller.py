"""The pollers: Linux's own, and what stands in for it elsewhere."""

import socket
import time
from collections.abc import Iterator

import pytest

from cardbeat.web.poller import READ, WRITE, Poller, make_poller


@pytest.fixture(params=["epoll", "kqueue, poll or select"])
def poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Poller]:
    if request.param != "epoll":
        monkeypatch.setattr("cardbeat.system.epoll", lambda: None)
    poller = make_poller()
    yield poller
    poller.close()


def test_what_is_ready_is_called_until_it_is_forgotten(poller: Poller) -> None:
    near, far = socket.socketpair()
    with near, far:
        poller.watch(near.fileno(), READ, call)
        assert poller.ready(0) == []
        far.send(b"x")
        assert poller.ready(None) == [call]
        poller.watch(near.fileno(), WRITE, call)
        assert poller.ready(None) == [call]
        for _ in range(2):
            poller.watch(near.fileno(), 0, call)
            assert poller.ready(0) == []


def test_a_client_that_has_left_makes_its_socket_ready(poller: Poller) -> None:
    near, far = socket.socketpair()
    with near:
        poller.watch(near.fileno(), READ, call)
        far.close()
        assert poller.ready(None) == [call]


def test_waiting_ends_in_time(poller: Poller) -> None:
    started = time.monotonic()
    assert poller.ready(0.05) == []
    assert 0.04 <= time.monotonic() - started < 5


def call() -> None:
    raise AssertionError("a poller calls nothing itself")
