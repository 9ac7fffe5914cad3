"""A stop answers every client that has connected, and waits for no client that is idle."""

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cardbeat.config import HttpLimits
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route, Router
from cardbeat.web.server import ACCEPT_AT_ONCE, ANSWER_SECONDS, HttpServer
from tests.http.malformed import get
from tests.http.sockets import PATIENCE_SECONDS, Client, Start, server_of, starting, wait_until_all_is_read
from tests.support import FakeClock, wait_until

STOP_SECONDS = HttpLimits().stop_seconds
LAST_REQUEST_SECONDS = STOP_SECONDS - ANSWER_SECONDS - 0.1
IDLE_SECONDS = HttpLimits().idle_seconds


BIG = b"0123456789abcdef" * 320 * 1024


class Site:
    """`/healthz` answers at once, `/work` works in a thread and `/hold` holds the loop until the test lets them."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.let_go = threading.Event()
        self.router = Router(
            [
                Route("GET", "/healthz", lambda _: Response(200, b"ok"), in_loop=True),
                Route("GET", "/work", self.held),
                Route("GET", "/hold", self.held, in_loop=True),
                Route("GET", "/big", lambda _: Response(200, BIG), in_loop=True),
            ]
        )

    def held(self, _: Request) -> Response:
        self.entered.release()
        assert self.let_go.wait(PATIENCE_SECONDS)
        return Response(200, b"ok")


class Clock(FakeClock):
    def pass_in(self, server: HttpServer, seconds: float) -> None:
        """Let time pass, and return once the server has begun to act on it."""
        self.advance(seconds)
        server.loop.wake()
        wait_until(lambda: server.loop.now >= self.now)


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def clock() -> Clock:
    return Clock(0)


@pytest.fixture
def start(site: Site, clock: Clock) -> Iterator[Start]:
    """Starts servers whose time only the test lets pass."""
    with starting(site.router) as start_one:

        def start_with_clock(**options: Any) -> HttpServer:
            return start_one(HttpLimits(), elapsed=clock, **options)

        yield start_with_clock
        site.let_go.set()
        clock.advance(STOP_SECONDS)


def ask(path: str) -> bytes:
    return get(line=f"GET {path} HTTP/1.1".encode())


def begin_stop(server: HttpServer) -> None:
    """Stop, and return once new clients are refused. To try that with a client would add one that has not asked."""
    server.stop()
    wait_until(lambda: server.socket.fileno() == -1)


def has_ended(server: HttpServer) -> bool:
    """Whether a stop ends though no time passes."""
    return server._has_ended.wait(PATIENCE_SECONDS)


def assert_last_answer(client: Client) -> None:
    status, headers, body = client.answer()
    assert (status, headers["connection"], body) == (200, "close", b"ok")
    assert client.rest() == b""


@pytest.mark.parametrize("begun", [b"", b"GET /heal", get()[:-1]])
@pytest.mark.parametrize("seconds", [0, LAST_REQUEST_SECONDS])
def test_a_client_that_has_connected_may_ask_until_the_end_of_a_stop(
    start: Start, clock: Clock, begun: bytes, seconds: float
) -> None:
    server = start()
    with Client(server, get()) as idle, Client(server, begun) as client:
        assert idle.answer()[0] == 200
        wait_until(lambda: server.connections == 2)
        begin_stop(server)
        assert idle.rest() == b""
        clock.pass_in(server, seconds)
        client.send(get()[len(begun) :])
        assert_last_answer(client)
    assert has_ended(server)


def test_clients_that_were_not_accepted_before_a_stop_are_answered(start: Start, clock: Clock, site: Site) -> None:
    server = start()
    with Client(server, ask("/hold")) as holder, contextlib.ExitStack() as stack:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        silent, *asking = [stack.enter_context(Client(server, data)) for data in [b"", *[get()] * (3 * ACCEPT_AT_ONCE)]]
        assert server.connections == 1
        server.stop()
        site.let_go.set()
        for client in (holder, *asking):
            assert client.answer()[0] == 200
            assert client.rest() == b""
        clock.pass_in(server, LAST_REQUEST_SECONDS)
        silent.send(get())
        assert_last_answer(silent)


def test_a_client_that_leaves_the_queue_keeps_no_other_from_being_accepted(
    start: Start, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some systems report such a client by an error of `accept`."""
    server = start()
    accept, troubles = socket.socket.accept, [ConnectionAbortedError()]

    def accept_in_the_end(listener: socket.socket) -> Any:
        if troubles:
            raise troubles.pop()
        return accept(listener)

    with Client(server, ask("/hold")) as holder, contextlib.ExitStack() as stack:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        monkeypatch.setattr(socket.socket, "accept", accept_in_the_end)
        clients = [stack.enter_context(Client(server, get())) for _ in range(ACCEPT_AT_ONCE)]
        server.stop()
        site.let_go.set()
        assert [client.answer()[0] for client in (holder, *clients)] == [200] * (1 + ACCEPT_AT_ONCE)
        assert troubles == []


def test_a_stop_waits_for_no_client_that_had_been_silent_for_5_s(start: Start, clock: Clock) -> None:
    server = start()
    with Client(server) as silent:
        wait_until(lambda: server.connections == 1)
        clock.pass_in(server, IDLE_SECONDS)
        server.stop()
        assert has_ended(server)
        assert silent.rest() == b""


def test_what_a_server_answers_that_is_stopped_before_it_serves_has_the_present_time(
    clock: Clock, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = server_of(site.router, limits=HttpLimits(), elapsed=clock)
    with Client(server, ask("/healthz")) as client:
        clock.advance(60)
        server.stop(clock.now)
        server.serve_forever()
        assert client.answer()[1]["date"].endswith(" GMT")
    assert "GET /healthz 200 2 0.0ms" in caplog.text


def test_the_time_for_a_stop_runs_from_when_it_was_asked_for(start: Start, clock: Clock) -> None:
    server = start()
    with Client(server) as silent:
        wait_until(lambda: server.connections == 1)
        clock.pass_in(server, 4)
        server.stop(clock.now - 4)
        clock.pass_in(server, STOP_SECONDS - ANSWER_SECONDS - 4)
        assert silent.rest() == b""
    assert has_ended(server)


@pytest.mark.parametrize("begun", [b"", b"\r\n"])
def test_a_client_that_sent_no_request_for_less_than_10_s_is_answered(start: Start, clock: Clock, begun: bytes) -> None:
    server = start()
    with Client(server, begun) as silent:
        wait_until_all_is_read(server)
        clock.pass_in(server, IDLE_SECONDS)
        clock.pass_in(server, IDLE_SECONDS - 0.1)
        silent.send(get())
        assert silent.answer()[0] == 200
        clock.pass_in(server, IDLE_SECONDS)
        assert silent.rest() == b""
    with Client(server, begun) as silent:
        wait_until_all_is_read(server)
        clock.pass_in(server, IDLE_SECONDS)
        clock.pass_in(server, IDLE_SECONDS)
        assert silent.rest() == b""


def test_an_answer_that_takes_time_is_given_after_the_last_moment_to_ask(
    start: Start, clock: Clock, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = start()
    with Client(server, ask("/work")) as working, Client(server) as silent, Client(server, b"GET /") as half_sent:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        wait_until(lambda: server.connections == 3)
        begin_stop(server)
        wait_until(lambda: "waiting up to 7.5 s for clients that have connected and not asked (2)" in caplog.text)
        clock.pass_in(server, STOP_SECONDS - ANSWER_SECONDS)
        assert (silent.rest(), half_sent.rest()) == (b"", b"")
        site.let_go.set()
        assert_last_answer(working)
    assert has_ended(server)


def test_a_stop_ends_with_its_time(start: Start, clock: Clock, site: Site) -> None:
    server = start()
    with Client(server, ask("/work")) as working:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        begin_stop(server)
        clock.pass_in(server, STOP_SECONDS)
        assert working.rest() == b""
        assert has_ended(server)


def test_a_stop_that_is_hurried_waits_for_answers_alone(start: Start, site: Site) -> None:
    server = start()
    with Client(server, ask("/work")) as working, Client(server) as silent, Client(server, b"GET /") as half_sent:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        wait_until(lambda: server.connections == 3)
        begin_stop(server)
        server.hurry()
        assert (silent.rest(), half_sent.rest()) == (b"", b"")
        site.let_go.set()
        assert_last_answer(working)
    assert has_ended(server)


def test_a_large_answer_that_a_stop_finds_half_sent_ends_its_connection(start: Start) -> None:
    """It was announced as one that more may follow."""
    server = start()
    with Client(server, ask("/big"), receive_bytes=65536) as reading:
        wait_until(lambda: server._phases.writing.deadlines)
        begin_stop(server)
        assert reading.answer()[2] == BIG
        assert reading.rest() == b""
    assert has_ended(server)
