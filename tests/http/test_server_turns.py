"""The server's loop: what comes together, what comes while it is held up, and what must not keep it busy."""

import contextlib
import errno
import fcntl
import socket
import termios
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from cardbeat.config import HttpLimits
from cardbeat.web.message import Request, Response
from cardbeat.web.poller import Poller
from cardbeat.web.router import Answer, Route, Router
from cardbeat.web.server import Server
from tests.http.malformed import get
from tests.support import wait_until

PATIENCE_SECONDS = 10
OK = Response(200, b"ok")


class Site:
    """`/healthz` answers at once, `/held` holds up the loop, `/asked` is answered by the test."""

    def __init__(self) -> None:
        self.moments: list[float] = []
        self.entered = threading.Event()
        self.let_go = threading.Event()
        self.asked: SimpleQueue[Answer] = SimpleQueue()
        self.router = Router(
            [
                Route("GET", "/healthz", self.quick, self.quick),
                Route("GET", "/held", self.held, self.held),
                Route("GET", "/asked", later=lambda _, answer: self.asked.put(answer)),
            ]
        )

    def quick(self, request: Request) -> Response:
        self.moments.append(request.received_at)
        return OK

    def held(self, _: Request) -> Response:
        self.entered.set()
        assert self.let_go.wait(PATIENCE_SECONDS)
        return OK


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def start(site: Site) -> Iterator[Callable[..., Server]]:
    """Starts a server, which the end of the test stops."""
    with contextlib.ExitStack() as stack:

        def start(limits: HttpLimits = HttpLimits(stop_seconds=2)) -> Server:  # noqa: B008
            server = Server(site.router, "127.0.0.1", 0, limits)
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            stack.callback(thread.join, PATIENCE_SECONDS)
            stack.callback(server.stop)
            stack.callback(site.let_go.set)
            return server

        yield start


class Client:
    """A connection; each answer is read up to its body."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(server.server_address[:2], timeout=PATIENCE_SECONDS)
        self.answers = self.socket.makefile("rb")

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send, and wait until the server's kernel has it."""
        self.socket.sendall(data)
        wait_until(lambda: fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4)) == bytes(4))

    def ask(self, path: str = "/healthz") -> None:
        self.send(get(line=f"GET {path} HTTP/1.1".encode()))

    def status(self) -> int:
        status = int(self.answers.readline().split()[1])
        while self.answers.readline().strip():
            pass
        assert self.answers.read(2) == b"ok"
        return status


def connected(server: Server) -> Client:
    """A client that was answered already."""
    client = Client(server)
    client.ask()
    assert client.status() == 200
    return client


def test_what_is_read_after_an_answer_from_elsewhere_counts_as_later_than_what_was_read_before(
    start: Callable[..., Server], site: Site
) -> None:
    """So that a card is judged anew once its key's revocation was answered, though all is done in one turn."""
    server = start()
    with connected(server) as holder, connected(server) as revoker, connected(server) as one, connected(server) as two:
        revoker.ask("/asked")
        answer = site.asked.get(timeout=PATIENCE_SECONDS)
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        site.moments.clear()
        one.ask()
        answer(lambda: OK)
        two.ask()
        with Client(server) as three:
            three.ask()
            site.let_go.set()
            assert [client.status() for client in (one, revoker, two, three)] == [200] * 4
    first, second, third = site.moments
    assert first < second < third


def test_what_has_come_before_a_stop_is_answered(start: Callable[..., Server], site: Site) -> None:
    server = start()
    with connected(server) as holder, connected(server) as client:
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        client.ask()
        server.stop()
        site.let_go.set()
        assert (holder.status(), client.status()) == (200, 200)


def test_who_stays_after_the_last_answer_is_closed_on(start: Callable[..., Server]) -> None:
    server = start(HttpLimits(linger_seconds=0.2))
    with Client(server) as client:
        client.send(b"nonsense\r\n\r\n")
        assert client.answers.read().startswith(b"HTTP/1.1 400 ")
        wait_until(lambda: server.connections == 0)


def test_what_is_sent_while_a_request_is_at_work_wakes_the_loop_once(
    start: Callable[..., Server], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: Counter[int] = Counter()
    ready = Poller.ready

    def counted(poller: Poller, seconds: float | None) -> list[Any]:
        tokens = ready(poller, seconds)
        woken.update(map(id, tokens))
        return tokens

    monkeypatch.setattr(Poller, "ready", counted)
    server = start()
    with connected(server) as waiting, connected(server) as other:
        waiting.ask("/asked")
        answer = site.asked.get(timeout=PATIENCE_SECONDS)
        woken.clear()
        waiting.ask()
        wait_until(lambda: woken)
        other.ask()
        assert other.status() == 200
        assert list(woken.values()) == [1, 1]
        answer(lambda: OK)
        assert [waiting.status() for _ in range(2)] == [200, 200]


def test_nobody_gives_way_where_that_would_make_no_room(
    start: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Descriptors that the whole system lacks are not ours to free."""
    accept = socket.socket.accept
    troubles = [OSError(errno.ENFILE, "Too many open files in system")]

    def accept_in_the_end(listener: socket.socket) -> Any:
        if troubles:
            raise troubles.pop()
        return accept(listener)

    server = start()
    with connected(server) as idle:
        monkeypatch.setattr(socket.socket, "accept", accept_in_the_end)
        with connected(server):
            assert troubles == []
            idle.ask()
            assert idle.status() == 200
