"""The server's loop: what comes together, what comes while it is held up, and what must not keep it busy."""

import contextlib
import errno
import fcntl
import random
import socket
import termios
import threading
import time
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_network
from queue import SimpleQueue
from typing import Any

import pytest

from cardbeat.config import HttpLimits
from cardbeat.web.message import Given, Request, Response
from cardbeat.web.poller import Poller
from cardbeat.web.router import Answer, Route, Router
from cardbeat.web.server import FRESH_SECONDS, Server
from tests.http.malformed import get
from tests.http.sockets import PATIENCE_SECONDS, Client, Start, starting
from tests.support import wait_until

OK = Response(200, b"ok")
OTHER = Response(202)
BIG = Response(200, bytes(range(256)) * 256)


class Site:
    """`/healthz` answers at once, `/held` holds up the loop, `/asked` is answered by the test.

    `/tardy` takes longer than a look may be shared, `/big` has a larger answer, and `/body` is content if the request's
    body is another request.
    """

    def __init__(self) -> None:
        self.moments: list[float] = []
        self.given: list[Given] = []
        self.entered = threading.Event()
        self.let_go = threading.Event()
        self.asked: SimpleQueue[Answer] = SimpleQueue()
        self.router = Router(
            [
                Route("GET", "/healthz", self.quick, self.quick),
                Route("GET", "/held", self.held, self.held),
                Route("GET", "/asked", later=lambda _, answer: self.asked.put(answer)),
                Route("GET", "/big", quick=self.big, later=lambda _, answer: answer(lambda: BIG)),
                Route("POST", "/body", lambda request: Response(201 if request.body == get() else 400, b"ok")),
                Route("GET", "/other", quick=lambda _: OTHER, handler=lambda _: OTHER),
                Route("GET", "/tardy", self.tardy, self.tardy),
            ]
        )

    def quick(self, request: Request) -> Response:
        self.moments.append(request.received_at)
        return OK

    def big(self, request: Request) -> Response:
        self.moments.append(request.received_at)
        return BIG

    def tardy(self, request: Request) -> Response:
        time.sleep(2 * FRESH_SECONDS)
        return self.quick(request)

    def held(self, _: Request) -> Response:
        self.entered.set()
        assert self.let_go.wait(PATIENCE_SECONDS)
        return OK


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def start(site: Site) -> Iterator[Start]:
    with starting(site.router) as start:

        def observed(*args: Any, **options: Any) -> Server:
            server = start(*args, **options)
            server.observe = lambda answers: site.given.extend(one for _, _, given in answers for one in given)
            return server

        yield observed
        site.let_go.set()


class Asking(Client):
    """A client whose requests have come to the server's kernel once they are sent."""

    def send(self, data: bytes) -> None:
        super().send(data)
        wait_until(lambda: fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4)) == bytes(4))

    def ask(self, path: str = "/healthz") -> None:
        self.send(get(line=f"GET {path} HTTP/1.1".encode()))

    def status(self) -> int:
        status, _, body = self.answer()
        assert body == b"ok"
        return status


@contextlib.contextmanager
def connected(server: Server, receive_bytes: int | None = None) -> Iterator[Asking]:
    """A client that was answered already."""
    with Asking(server, get(), receive_bytes) as client:
        assert client.status() == 200
        yield client


def test_what_is_read_after_an_answer_from_elsewhere_counts_as_later_than_what_was_read_before(
    start: Start, site: Site
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
        with Asking(server) as three:
            three.ask()
            site.let_go.set()
            assert [client.status() for client in (one, revoker, two, three)] == [200] * 4
    first, second, third = site.moments
    assert first < second < third


@contextlib.contextmanager
def held_up(server: Server, site: Site) -> Iterator[None]:
    """What is sent meanwhile comes together."""
    with connected(server) as holder:
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        site.moments.clear()
        yield
        site.let_go.set()
        assert holder.status() == 200


def test_requests_of_the_same_bytes_share_one_look_if_they_came_together(start: Start, site: Site) -> None:
    server = start()
    with connected(server) as one, connected(server) as two, connected(server) as three:
        with held_up(server, site):
            for client in (one, two, three):
                client.ask()
        answers = [client.answer() for client in (one, two, three)]
        assert [(status, headers["connection"], body) for status, headers, body in answers] == [
            (200, "keep-alive", b"ok")
        ] * 3
        assert len(site.moments) == 1
        wait_until(lambda: len(site.given) == 8)
        ids = {request_id for request_id, _, _ in site.given}
        assert len(ids) == 8
        assert len({headers["x-request-id"] for _, headers, _ in answers} & ids) == 3
        two.ask()
        assert two.status() == 200
        assert len(site.moments) == 2


def test_a_shared_answer_has_no_body_for_head(start: Start, site: Site) -> None:
    request = get(line=b"HEAD /healthz HTTP/1.1")
    server = start()
    with connected(server) as one, connected(server) as two:
        one.send(request)  # what came before is known by its bytes
        assert one.answer(with_body=False)[1]["content-length"] == "2"
        with held_up(server, site):
            one.send(request)
            two.send(request)
        assert [client.answer(with_body=False)[1]["content-length"] for client in (one, two)] == ["2", "2"]
        assert len(site.moments) == 1
        one.ask()
        two.ask()
        assert [one.status(), two.status()] == [200, 200]


def test_a_shared_answer_arrives_whole_though_the_kernel_takes_only_part_at_once(start: Start, site: Site) -> None:
    server = start()
    with connected(server) as one, connected(server, receive_bytes=4096) as two:
        one.ask("/big")
        assert one.answer()[2] == BIG.body
        with held_up(server, site):
            [near] = [near for near in server._idle.members if near.socket.getpeername() == two.socket.getsockname()]
            near.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            one.ask("/big")
            two.ask("/big")
        wait_until(lambda: near.phase is server._writing)
        assert len(site.moments) == 1
        two.ask()
        for client in (one, two):
            assert client.answer()[2] == BIG.body
        assert two.status() == 200
        assert isinstance(near.unsent, bytes), "the answer's buffer is kept"


def test_a_look_that_took_long_is_not_shared(start: Start, site: Site) -> None:
    server = start()
    with connected(server) as one, connected(server) as two:
        one.ask("/tardy")
        assert one.status() == 200
        with held_up(server, site):
            one.ask("/tardy")
            two.ask("/tardy")
        assert [one.status(), two.status()] == [200, 200]
        assert len(site.moments) == 2


def test_a_shared_answer_is_noted_for_the_client_that_each_proxy_forwarded(start: Start, site: Site) -> None:
    request = get(b"X-Forwarded-For: 203.0.113.9")
    server = start(trusted_proxies=[ip_network("127.0.0.0/8")])
    with connected(server) as one, connected(server) as two:
        one.send(request)
        assert one.status() == 200
        with held_up(server, site):
            one.send(request)
            two.send(request)
        assert [one.status(), two.status()] == [200, 200]
        assert len(site.moments) == 1
    wait_until(lambda: [client for _, client, _ in site.given].count("203.0.113.9") == 3)


def test_a_body_is_no_request_though_one_of_its_bytes_came_with_it(start: Start, site: Site) -> None:
    length = b"Content-Length: %d" % len(get())
    server = start()
    with connected(server) as one, connected(server) as two:
        two.send(get(length, b"Expect: 100-continue", line=b"POST /body HTTP/1.1"))
        assert two.answer()[0] == 100
        with held_up(server, site):
            one.ask()
            two.send(get())
        assert [one.status(), two.status()] == [200, 201]
        assert len(site.moments) == 1


BODY = get(b"Content-Length: %d" % len(get()), line=b"POST /body HTTP/1.1") + get()
STATUSES = {get(): 200, get(line=b"GET /other HTTP/1.1"): 202, get(line=b"GET /nothing HTTP/1.1"): 404, BODY: 201}


@pytest.mark.parametrize("seed", range(10))
def test_each_client_has_its_own_answers_however_the_requests_of_all_fall_together(
    start: Start, site: Site, seed: int
) -> None:
    chance = random.Random(seed)
    server = start()
    with contextlib.ExitStack() as stack:
        holder, *clients = [stack.enter_context(connected(server)) for _ in range(5)]
        asked = [chance.choices(list(STATUSES), k=12) for _ in clients]
        for requests in zip(*asked, strict=True):
            cuts = [chance.choice([0, 0, 20, len(request) - len(get())]) for request in requests]
            for client, request, cut in zip(clients, requests, cuts, strict=True):
                client.socket.sendall(request[:cut])
            holder.ask("/held")
            assert site.entered.wait(PATIENCE_SECONDS)
            site.entered.clear()
            for client, request, cut in zip(clients, requests, cuts, strict=True):
                client.socket.sendall(request[cut:])
            site.let_go.set()
            assert holder.status() == 200
            site.let_go.clear()
        for client, requests in zip(clients, asked, strict=True):
            assert [client.answer()[0] for _ in requests] == [STATUSES[request] for request in requests]


def test_what_has_come_before_a_stop_is_answered(start: Start, site: Site) -> None:
    server = start()
    with connected(server) as holder, connected(server) as client:
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        client.ask()
        server.stop()
        site.let_go.set()
        assert (holder.status(), client.status()) == (200, 200)


def test_who_stays_after_the_last_answer_is_closed_on(start: Start) -> None:
    server = start(HttpLimits(linger_seconds=0.2))
    with Client(server, b"nonsense\r\n\r\n") as client:
        assert client.answer()[0] == 400
        assert client.rest() == b""
        wait_until(lambda: server.connections == 0)


def test_what_is_sent_while_a_request_is_at_work_wakes_the_loop_once(
    start: Start, site: Site, monkeypatch: pytest.MonkeyPatch
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


def test_nobody_gives_way_where_that_would_make_no_room(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
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
