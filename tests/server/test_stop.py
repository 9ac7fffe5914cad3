"""A stop answers every client that has connected, and waits for no client that is idle."""

import contextlib
import socket

import pytest

from cardbeat.config import HttpLimits
from tests.kit.lists import times
from tests.kit.support import wait_until
from tests.server.malformed import get, post
from tests.server.sockets import (
    BIG,
    PATIENCE_SECONDS,
    Client,
    ask,
    starting,
    wait_until_all_is_read,
)

LIMITS = HttpLimits()
STOP_SECONDS = LIMITS.stop_seconds
ASK_SECONDS = LIMITS.unasked_seconds
MANY = 200
"""Clients: more than the server accepts at once."""


@pytest.fixture
def start(site, clock):
    """Starts servers whose time only the test lets pass."""
    with starting(site.router) as start_one:
        yield lambda **options: start_one(
            HttpLimits(), elapsed=clock, **options
        )
        site.let_go.set()
        clock.advance(STOP_SECONDS)


def begin_stop(server):
    """Stop, and return once new clients are refused."""
    server.shutdown()
    wait_until(lambda: server.socket.fileno() == -1)


def has_ended(server):
    """Whether a stop ends though no time passes."""
    server.shutdown()
    server.thread.join(PATIENCE_SECONDS)
    return not server.thread.is_alive()


def assert_last_answer(client):
    status, headers, _ = client.answer()
    assert status == 200
    assert headers["connection"] == "close"
    assert client.rest() == b""


@pytest.mark.parametrize("begun", [b"", b"GET /heal", get()[:-1]])
@pytest.mark.parametrize("seconds", [0, ASK_SECONDS - 0.1])
def test_a_client_that_has_connected_may_ask_for_some_seconds(
    start, connect, clock, begun, seconds
):
    server = start()
    idle = connect(server, get())
    client = connect(server, begun)
    assert idle.status() == 200
    wait_until(lambda: len(server.connections) == 2)
    wait_until_all_is_read(server)
    begin_stop(server)
    assert idle.rest() == b""
    clock.pass_in(server, seconds)
    client.send(get()[len(begun) :])
    assert_last_answer(client)
    assert has_ended(server)


@pytest.mark.parametrize("begun", [b"", b"GET /"])
def test_a_client_that_does_not_ask_is_closed_then(
    start, clock, site, begun, connect
):
    server = start()
    working = connect(server, ask("/held"))
    silent = connect(server, begun)
    assert site.is_entered()
    wait_until(lambda: len(server.connections) == 2)
    begin_stop(server)
    clock.pass_in(server, ASK_SECONDS)
    assert silent.rest() == b""
    site.let_go.set()
    assert_last_answer(working)
    assert has_ended(server)


@pytest.fixture
def hold(start, site, connect):
    """A server whose loop is held, and the client that holds it."""
    server = start()
    holder = connect(server, ask("/held-in-loop"))
    assert site.is_entered()
    return server, holder


def test_clients_that_were_not_accepted_before_a_stop_are_answered(
    hold, site, connect
):
    server, holder = hold
    silent = connect(server)
    asking = times(MANY, connect, server, get())
    assert len(server.connections) == 1
    server.shutdown()
    site.let_go.set()
    for client in (holder, *asking):
        assert client.status() == 200
        assert client.rest() == b""
    silent.send(get())
    assert_last_answer(silent)


def test_a_client_that_leaves_the_queue_keeps_no_other_from_being_accepted(
    hold, site, connect, monkeypatch
):
    """Some systems report such a client by an error of `accept`."""
    server, holder = hold
    accept = socket.socket.accept
    troubles = [ConnectionAbortedError()]

    def accept_in_the_end(listener):
        if troubles:
            raise troubles.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", accept_in_the_end)
    clients = times(64, connect, server, get())
    server.shutdown()
    site.let_go.set()
    assert [*map(Client.status, (holder, *clients))] == [200] * 65
    assert troubles == []


def test_what_kept_connections_have_sent_before_a_stop_is_answered(
    start, site, connect
):
    server = start()
    clients = times(50, connect, server, get())
    assert {*map(Client.status, clients)} == {200}
    holder = connect(server, ask("/held-in-loop"))
    assert site.is_entered()
    for client in clients:
        client.send(get())
    server.shutdown()
    site.let_go.set()
    assert [*map(Client.status, (holder, *clients))] == [200] * 51


@pytest.mark.parametrize("path", ["/held", "/big"])
def test_a_stop_ends_with_its_time(start, clock, site, path, connect):
    server = start()
    slow = connect(server, ask(path), receive_bytes=4096)
    if path == "/held":
        assert site.is_entered()
    else:
        slow.receive(1)
    begin_stop(server)
    clock.pass_in(server, STOP_SECONDS)
    assert has_ended(server)
    with contextlib.suppress(ConnectionResetError):
        assert len(slow.rest()) < len(BIG)


def test_a_body_that_has_begun_to_come_is_waited_for(
    start, clock, connect
):
    server = start()
    sending = connect(server, post(b"Content-Length: 4", body=b"o"))
    wait_until_all_is_read(server)
    begin_stop(server)
    clock.pass_in(server, ASK_SECONDS)
    sending.send(b"kay")
    assert sending.body() == b"okay"
    assert sending.rest() == b""
    assert has_ended(server)


def test_a_large_answer_that_a_stop_finds_half_sent_ends_its_connection(
    start, connect
):
    server = start()
    reading = connect(server, ask("/big"), receive_bytes=65536)
    reading.receive(1)
    begin_stop(server)
    assert reading.body() == BIG
    assert reading.rest() == b""
    assert has_ended(server)
