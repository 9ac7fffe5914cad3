"""What comes together, what comes while the loop is held up, and what must not keep it busy."""

import contextlib
import dataclasses
import errno
import ipaddress
import os
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from cardbeat.concurrency.later import Later
from cardbeat.config import HttpLimits
from cardbeat.host.system import READ_FLAGS
from cardbeat.web.connection import ClientConnection
from cardbeat.web.loop import AT_ONCE
from cardbeat.web.message import FileBody, Request, Response
from cardbeat.web.router import Route, Router
from cardbeat.web.server import HttpServer
from tests.http.malformed import get
from tests.http.sockets import PATIENCE_SECONDS, Client, Start, starting
from tests.support import wait_until

OK = Response(200, b"ok")


class Site:
    """`/healthz` answers at once, `/held` holds up the loop, `/asked` is answered by the test.

    `/body` is content if the request's body is another request, `/file` has a body in a file.
    """

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()
        self.asked: SimpleQueue[Later[Response]] = SimpleQueue()
        self.file: FileBody | None = None
        self.router = Router(
            [
                Route("GET", "/healthz", lambda _: OK, in_loop=True),
                Route("GET", "/held", self.held, in_loop=True),
                Route("GET", "/asked", self.ask, in_loop=True),
                Route("GET", "/file", lambda _: Response(200, self.file or b""), in_loop=True),
                Route("POST", "/body", lambda request: Response(201 if request.body == get() else 400, b"ok")),
                Route("GET", "/other", lambda _: Response(202), in_loop=True),
            ]
        )

    def ask(self, _: Request) -> Later[Response]:
        answer: Later[Response] = Later()
        self.asked.put(answer)
        return answer

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
        yield start
        site.let_go.set()


class Asking(Client):
    """A client whose requests have come to the server's kernel once they are sent."""

    def send(self, data: bytes) -> None:
        super().send(data)
        self.wait_until_sent()

    def wait_until_sent(self) -> None:
        if sys.platform == "linux":
            import fcntl
            import termios

            wait_until(lambda: fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4)) == bytes(4))
        else:
            # No other system tells; within one host this is long.
            time.sleep(0.1)

    def ask(self, path: str = "/healthz") -> None:
        self.send(get(line=f"GET {path} HTTP/1.1".encode()))

    def status(self) -> int:
        status, _, body = self.answer()
        assert body == b"ok"
        return status


@contextlib.contextmanager
def connected(server: HttpServer, receive_bytes: int | None = None) -> Iterator[Asking]:
    """A client that was answered already."""
    with Asking(server, get(), receive_bytes) as client:
        assert client.status() == 200
        yield client


@pytest.fixture
def file(tmp_path: Path) -> FileBody:
    """A body of 4 MB; that it is closed once it is sent is the server's part."""
    path = tmp_path / "body"
    path.write_bytes(bytes(range(256)) * 16 * 1024)
    return FileBody(os.open(path, READ_FLAGS), 4 * 1024 * 1024)


def is_closed(file: FileBody) -> bool:
    try:
        os.fstat(file.descriptor)
    except OSError:
        return True
    return False


@pytest.mark.parametrize("receive_bytes", [None, 4096])
def test_a_body_in_a_file_arrives_whole_and_is_closed(
    start: Start, site: Site, file: FileBody, receive_bytes: int | None
) -> None:
    site.file, expected = file, file.read()
    with connected(start(), receive_bytes) as client:
        client.socket.sendall(get(line=b"GET /file HTTP/1.1") + get())
        assert client.answer()[2] == expected
        assert client.status() == 200
    assert is_closed(file)


def test_a_body_in_a_file_is_sent_without_sendfile_too(
    start: Start, site: Site, file: FileBody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cardbeat.web.sending.sendfile", None)
    test_a_body_in_a_file_arrives_whole_and_is_closed(start, site, file, 4096)


def test_a_body_in_a_file_is_left_out_for_head_and_closed(start: Start, site: Site, file: FileBody) -> None:
    site.file = file
    with connected(start()) as client:
        client.send(get(line=b"HEAD /file HTTP/1.1") + get())
        assert client.answer(with_body=False)[1]["content-length"] == str(file.length)
        assert client.status() == 200
    assert is_closed(file)


def test_a_body_in_a_file_that_is_cut_short_while_it_is_sent_ends_the_connection(
    start: Start, site: Site, file: FileBody
) -> None:
    site.file = dataclasses.replace(file, length=file.length + 1)
    with connected(start()) as client:
        client.socket.sendall(get(line=b"GET /file HTTP/1.1") + get())
        with pytest.raises((EOFError, ConnectionResetError)):
            client.answer()
    wait_until(lambda: is_closed(file))


BODY = get(b"Content-Length: %d" % len(get()), line=b"POST /body HTTP/1.1") + get()
STATUSES = {get(): 200, get(line=b"GET /other HTTP/1.1"): 202, get(line=b"GET /nothing HTTP/1.1"): 404, BODY: 201}


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))])
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


def test_requests_that_came_together_leave_other_clients_their_turn(start: Start, site: Site) -> None:
    seen: list[str] = []
    server = start(observe=lambda answers: seen.extend(request.path for request, _, _ in answers))
    with connected(server) as holder, connected(server) as greedy, connected(server) as other:
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        greedy.send(get(line=b"GET /other HTTP/1.1") * 3)
        other.ask()
        site.let_go.set()
        assert (holder.status(), other.status()) == (200, 200)
        assert [greedy.answer()[0] for _ in range(3)] == [202] * 3
    wait_until(lambda: seen.count("/other") == 3)
    # Only epoll is known to tell first of whom has asked first.
    waited = [] if sys.platform == "linux" else [["/healthz", "/other", "/other", "/other"]]
    assert seen[-4:] in [["/other", "/healthz", "/other", "/other"], *waited]


PIPELINE = get(line=b"GET /other HTTP/1.1") * 300


@contextlib.contextmanager
def pipelining(server: HttpServer, site: Site, clients: int) -> Iterator[None]:
    """So many clients of two other addresses, each of whose requests come before the loop serves the first of them."""
    with contextlib.ExitStack() as stack:
        holder, *others = [
            stack.enter_context(Asking(server, address=f"127.0.0.{2 + 2 * number // clients}"))
            for number in range(clients)
        ]
        wait_until(lambda: server.connections >= clients)
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        for client in (holder, *others):
            client.socket.sendall(PIPELINE)
        for client in (holder, *others):
            client.wait_until_sent()
        yield


def test_where_requests_that_came_together_take_all_places_one_gives_way_to_a_new_client(
    start: Start, site: Site
) -> None:
    seen: list[str] = []
    server = start(max_connections=4, observe=lambda answers: seen.extend(request.path for request, _, _ in answers))
    with pipelining(server, site, 4), Asking(server, get()) as other:
        site.let_go.set()
        assert other.status() == 200
        wait_until(lambda: "/healthz" in seen)
        # In its turn, not after a pause, in which hundreds of others are answered.
        assert seen.index("/healthz") < 3 * AT_ONCE


def test_requests_that_came_together_give_way_when_too_much_is_held(start: Start, site: Site) -> None:
    server = start(HttpLimits(held_bytes=5 * len(PIPELINE), stop_seconds=2), max_connections=32)
    with pipelining(server, site, 16), Asking(server, get()) as other:
        site.let_go.set()
        assert other.status() == 200
        wait_until(lambda: server.connections_shed > 0)


def test_a_new_client_is_served_in_its_turn_beside_many_requests_of_another(start: Start, site: Site) -> None:
    seen: list[str] = []
    server = start(observe=lambda answers: seen.extend(request.path for request, _, _ in answers))
    with connected(server) as other, pipelining(server, site, 64):
        before = len(seen)
        other.ask()
        site.let_go.set()
        assert other.status() == 200
        wait_until(lambda: "/healthz" in seen[before:])
        assert seen[before:].index("/healthz") < 3 * AT_ONCE


PROXY = ipaddress.ip_network("127.0.0.1")


def forwarded(client: str, path: str) -> bytes:
    return get(f"X-Forwarded-For: {client}".encode(), line=f"GET {path} HTTP/1.1".encode())


def test_clients_behind_a_trusted_proxy_have_turns_by_their_own_network(start: Start, site: Site) -> None:
    seen: list[str] = []
    server = start(
        trusted_proxies=[PROXY], observe=lambda answers: seen.extend(request.client for request, _, _ in answers)
    )
    with contextlib.ExitStack() as stack:
        holder, other, *crowd = [stack.enter_context(connected(server)) for _ in range(2 + 4 * AT_ONCE)]
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        for client in crowd:
            client.socket.sendall(forwarded("192.0.2.1", "/healthz") * 2)
        other.send(forwarded("192.0.2.2", "/healthz"))
        before = len(seen)
        site.let_go.set()
        assert [client.status() for client in (holder, other, *crowd, *crowd)] == [200] * (2 + 2 * len(crowd))
        wait_until(lambda: "192.0.2.2" in seen[before:])
    assert seen[before:].index("192.0.2.2") <= 3


def test_what_comes_behind_a_request_that_waits_for_its_client_s_turn_is_answered_after_it(
    start: Start, site: Site
) -> None:
    server = start(trusted_proxies=[PROXY])
    with connected(server) as holder, connected(server) as client:
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        body = get()
        head = get(f"Content-Length: {len(body)}".encode(), line=b"POST /body HTTP/1.1")
        client.send(forwarded("192.0.2.1", "/asked") + get(line=b"GET /other HTTP/1.1") + head + body[:9])
        site.let_go.set()
        answer = site.asked.get(timeout=PATIENCE_SECONDS)
        client.send(body[9:] + b"nonsense\r\n\r\n")
        answer.settle(lambda: OK)
        assert [client.answer()[0] for _ in range(4)] == [200, 202, 201, 400]


def test_however_many_requests_have_come_before_a_stop_they_are_answered(start: Start, site: Site) -> None:
    server = start(HttpLimits(stop_seconds=PATIENCE_SECONDS))
    with contextlib.ExitStack() as stack:
        holder, *clients = [stack.enter_context(connected(server)) for _ in range(4 * AT_ONCE)]
        holder.ask("/held")
        assert site.entered.wait(PATIENCE_SECONDS)
        for client in clients:
            client.socket.sendall(get())
        clients[-1].wait_until_sent()
        server.stop()
        site.let_go.set()
        assert [client.status() for client in (holder, *clients)] == [200] * 4 * AT_ONCE


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
    paused: Counter[int] = Counter()
    watch = ClientConnection.watch

    def counted(connection: ClientConnection, events: int = 0) -> None:
        if not events:
            paused[id(connection)] += 1
        watch(connection, events)

    monkeypatch.setattr(ClientConnection, "watch", counted)
    server = start()
    with connected(server) as waiting, connected(server) as other:
        waiting.ask("/asked")
        answer = site.asked.get(timeout=PATIENCE_SECONDS)
        waiting.ask()
        wait_until(lambda: paused)
        for _ in range(3):
            other.ask()
            assert other.status() == 200
        assert list(paused.values()) == [1]
        answer.settle(lambda: OK)
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
