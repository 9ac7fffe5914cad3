"""What a request's head decides before anything else is done for it, and who is served in whose turn."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network

import pytest

from cardbeat.concurrency.later import WAITING_EACH
from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route, Router
from cardbeat.web.server import HttpServer
from tests.http.malformed import get
from tests.http.sockets import PATIENCE_SECONDS, Client, Start, starting, wait_until_all_is_read
from tests.support import wait_until

BODY = b"x" * 1000


@dataclass(frozen=True)
class Holder:
    id: str

    @property
    def queue(self) -> str:
        return self.id


class Guard:
    """Knows at once who sends `Authorization: known ID`, and after a look-up, which the test lets end, `slow ID`."""

    def __init__(self) -> None:
        self.asked = 0
        self.let_go = threading.Event()
        self.looked_up = threading.Semaphore(0)
        self.revoked: set[str] = set()

    def find(self, request: Request, work_soon: Callable[[Callable[[], None]], None]) -> Holder | None:
        self.asked += 1
        kind, _, name = request.headers.get("authorization", "").partition(" ")
        if kind not in ("known", "slow"):
            raise Refusal("key_missing", "Send a key.")
        return Holder(name) if kind == "known" else None

    def look_up(self, request: Request) -> Holder:
        kind, _, name = request.headers["authorization"].partition(" ")
        if kind == "slow":
            self.looked_up.release()
            assert self.let_go.wait(PATIENCE_SECONDS)
        if name == "nobody" or name in self.revoked:
            raise Refusal("key_unknown", "Nobody has this key.")
        return Holder(name)

    def name_of(self, request: Request) -> str | None:
        return None


class Site:
    """`/mine` takes a key and echoes the body, `/held` answers when the test lets it; `/free` takes anybody's body."""

    def __init__(self) -> None:
        self.guard = Guard()
        self.let_go = threading.Event()
        self.entered = threading.Semaphore(0)
        self.served: list[str] = []
        self.router = Router(
            [
                Route("GET", "/healthz", lambda _: Response(200, b"ok"), in_loop=True),
                Route("POST", "/mine", self.echo, guard=self.guard),
                Route("POST", "/held", self.held, guard=self.guard),
                Route("POST", "/free", lambda request: Response(200, request.body)),
                Route("GET", "/big", lambda _: Response(200, bytes(16 * 1024 * 1024)), in_loop=True),
            ]
        )

    def echo(self, request: Request) -> Response:
        assert isinstance(request.key, Holder)
        self.served.append(request.key.id)
        return Response(200, request.key.id.encode() + request.body)

    def held(self, request: Request) -> Response:
        self.entered.release()
        assert self.let_go.wait(PATIENCE_SECONDS)
        return self.echo(request)


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def start(site: Site) -> Iterator[Start]:
    with starting(site.router) as start:
        yield start
        site.guard.let_go.set()
        site.let_go.set()


def post(path: str, *headers: str, key: str = "", length: int = len(BODY)) -> bytes:
    """The head of a request with a body."""
    sent = [f"Content-Length: {length}", *([f"Authorization: {key}"] if key else []), *headers]
    return get(*(header.encode() for header in sent), line=f"POST {path} HTTP/1.1".encode())


def code_of(body: bytes) -> str:
    return str(json.loads(body)["code"])


REFUSED = [("/nowhere", 404), ("/healthz", 405), ("/mine", 401)]


@pytest.mark.parametrize(("path", "status"), REFUSED)
def test_what_a_head_refuses_is_refused_before_the_body_and_the_next_request_is_read_behind_that(
    start: Start, path: str, status: int
) -> None:
    with Client(start(), post(path)) as client:
        assert client.answer()[0] == status
        client.send(BODY[:10])
        client.send(BODY[10:] + get())
        assert client.answer()[0] == 200


@pytest.mark.parametrize(("path", "status"), REFUSED)
def test_a_refused_body_that_has_come_in_part_or_whole_is_left_out_too(start: Start, path: str, status: int) -> None:
    stream = (post(path) + BODY + get()) * 2 + post(path) + BODY[:1]
    with Client(start(), stream) as client:
        assert [client.answer()[0] for _ in range(5)] == [status, 200, status, 200, status]
        client.send(BODY[1:] + get(b"Connection: close"))
        assert client.answer()[0] == 200
        assert client.rest() == b""


def test_a_head_request_is_refused_by_its_head_too(start: Start) -> None:
    head = get(b"Content-Length: 1000", line=b"HEAD /nowhere HTTP/1.1")
    with Client(start(), head) as client:
        assert client.answer(with_body=False)[0] == 404
        client.send(BODY + get())
        assert client.answer()[0] == 200


@pytest.mark.parametrize(("path", "status"), REFUSED)
def test_who_asks_before_sending_a_body_is_not_told_to_continue_but_refused_for_good(
    start: Start, path: str, status: int
) -> None:
    """Nobody could tell whether the body or another request follows."""
    with Client(start(), post(path, "Expect: 100-continue")) as client:
        got, headers, _ = client.answer()
        assert (got, headers["connection"]) == (status, "close")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.rest() == b""


def test_a_body_that_was_left_out_and_never_comes_gets_no_second_answer(start: Start) -> None:
    with Client(start(HttpLimits(body_seconds=0.3)), post("/nowhere") + BODY[:10]) as client:
        assert client.answer()[0] == 404
        assert client.rest() == b""


def test_a_body_is_asked_for_once_its_key_is_known(start: Start, site: Site) -> None:
    with Client(start(), post("/mine", "Expect: 100-continue", key="slow a")) as client:
        assert site.guard.looked_up.acquire(timeout=PATIENCE_SECONDS)
        assert client.buffer == b""
        site.guard.let_go.set()
        assert client.answer()[0] == 100
        client.send(BODY + get())
        assert client.answer()[2] == b"a" + BODY
        assert client.answer()[0] == 200


@pytest.mark.parametrize("come", [0, 10, len(BODY)])
def test_a_key_is_looked_up_before_the_body_is_read(start: Start, site: Site, come: int) -> None:
    server = start()
    with Client(server, post("/mine", key="slow a") + BODY[:come]) as known:
        assert site.guard.looked_up.acquire(timeout=PATIENCE_SECONDS)
        with Client(server, post("/mine", key="slow nobody") + BODY[:come]) as unknown:
            known.send(BODY[come:] + get())
            site.guard.let_go.set()
            assert known.answer()[2] == b"a" + BODY
            assert known.answer()[0] == 200
            assert code_of(unknown.answer()[2]) == "key_unknown"
            unknown.send(BODY[come:] + get())
            assert unknown.answer()[0] == 200
    assert site.served == ["a"]


def test_a_key_that_is_revoked_while_its_body_comes_opens_nothing(start: Start, site: Site) -> None:
    with Client(start(), post("/mine", "Expect: 100-continue", key="known a")) as client:
        assert client.answer()[0] == 100
        site.guard.revoked.add("a")
        client.send(BODY + get())
        status, _, body = client.answer()
        assert (status, code_of(body)) == (401, "key_unknown")
        assert client.answer()[0] == 200
    assert site.served == []


def test_a_key_that_is_revoked_while_its_request_waits_opens_nothing(
    start: Start, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cardbeat.web.exchange.JUDGED_SECONDS", -1)
    server = start()
    with (
        Client(server, post("/held", key="known a", length=0)) as first,
        Client(server, post("/mine", key="known a", length=0)) as second,
    ):
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        wait_until(lambda: site.guard.asked == 2)
        site.guard.revoked.add("a")
        site.let_go.set()
        assert first.answer()[0] == 200
        assert second.answer()[0] == 401
    assert site.served == ["a"]


def test_a_stop_lets_an_admitted_body_come_and_ends_a_refused_one(start: Start, site: Site) -> None:
    server = start(HttpLimits(stop_seconds=PATIENCE_SECONDS))
    with (
        Client(server, post("/mine", key="slow a")) as admitted,
        Client(server, post("/nowhere")) as refused,
    ):
        assert refused.answer()[0] == 404
        assert site.guard.looked_up.acquire(timeout=PATIENCE_SECONDS)
        server.stop()
        site.guard.let_go.set()
        admitted.send(BODY)
        assert admitted.answer()[2] == b"a" + BODY
        refused.send(BODY)
        assert refused.rest() == b""


def test_a_caller_with_too_much_waiting_is_refused_and_others_are_answered_meanwhile(start: Start, site: Site) -> None:
    server = start()
    ask = post("/held", key="known greedy", length=0)
    with contextlib.ExitStack() as stack:

        def connect(data: bytes) -> Client:
            return stack.enter_context(Client(server, data))

        first = connect(ask)
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        greedy = [connect(ask) for _ in range(WAITING_EACH)]
        wait_until(lambda: site.guard.asked == 1 + WAITING_EACH)
        status, headers, body = connect(ask).answer()
        assert (status, code_of(body), headers["retry-after"]) == (503, "busy", "1")
        assert connect(post("/mine", key="known other", length=0)).answer()[0] == 200
        site.let_go.set()
        assert [client.answer()[0] for client in (first, *greedy)] == [200] * (1 + WAITING_EACH)


def test_keys_are_looked_up_for_each_address_in_its_turn(start: Start, site: Site) -> None:
    server = start()
    with contextlib.ExitStack() as stack:

        def ask(name: str) -> None:
            stack.enter_context(Client(server, post("/mine", key=f"slow {name}", length=0)))

        for _ in range(1 + WAITING_EACH):
            ask("nobody")
        assert site.guard.looked_up.acquire(timeout=PATIENCE_SECONDS)
        wait_until(lambda: site.guard.asked == 1 + WAITING_EACH)
        with Client(server, post("/mine", key="slow a", length=0)) as same_address:
            assert same_address.answer()[0] == 503
        with Client(server, post("/mine", key="known a", length=0)) as known:
            assert known.answer()[0] == 200
        site.guard.let_go.set()


HOLDING = HttpLimits(held_bytes=200_000, stop_seconds=2)
MIB = 1024 * 1024


def nothing_is_held(server: HttpServer) -> bool:
    """Whether requests have room that together come near the budget of `HOLDING`."""
    before = server.connections_shed
    whole = post("/free", length=60_000) + bytes(60_000)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server, whole[:-1])) for _ in range(3)]
        wait_until_all_is_read(server)
        for client in clients:
            client.send(whole[-1:])
            assert client.answer()[0] == 200
    return server.connections_shed == before


def test_past_the_budget_unfinished_bodies_give_way_that_were_held_longest(start: Start) -> None:
    server = start(HOLDING)
    with contextlib.ExitStack() as stack:
        sent = [
            *[post("/free", length=60_000) + bytes(50_000)] * 4,
            *[post("/free", length=40_000) + bytes(30_000)] * 2,
        ]
        clients = [stack.enter_context(Client(server, data)) for data in sent]
        wait_until(lambda: server.connections_shed >= 2)
        for client in clients[-2:]:
            # With these there is room for all who are left.
            client.send(bytes(10_000) + get())
            assert client.answer()[2] == bytes(40_000)
            assert client.answer()[0] == 200
        with contextlib.suppress(ConnectionResetError):
            assert clients[0].rest() == b""
    wait_until(lambda: server.connections == 0)
    assert nothing_is_held(server)


def test_connections_closed_past_the_budget_are_counted_and_told_once_a_minute(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    server = start(HOLDING)
    with contextlib.ExitStack() as stack:

        def come(count: int) -> None:
            for _ in range(count):
                stack.enter_context(Client(server, post("/free", length=60_000) + bytes(50_000)))

        come(6)
        wait_until(lambda: caplog.messages)
        first = server.connections_shed
        assert first > 0
        come(6)
        wait_until(lambda: server.connections_shed > first)
    (line,) = caplog.messages
    assert line.startswith("closed ")
    assert "0 MiB were held for all clients together" in line


def test_past_the_budget_answers_that_nobody_takes_give_way(start: Start) -> None:
    server = start(HOLDING)
    with Client(server, get(line=b"GET /big HTTP/1.1"), receive_bytes=4096) as slow:
        wait_until(lambda: server.connections == 0)
        with contextlib.suppress(ConnectionResetError):
            assert len(slow.rest()) < 16 * 1024 * 1024


def test_an_answer_counts_whole_until_its_last_byte_is_taken(start: Start) -> None:
    server = start(HttpLimits(held_bytes=28 * MIB, stop_seconds=2))
    big = get(line=b"GET /big HTTP/1.1")
    with Client(server, big) as done:
        assert len(done.answer()[2]) == 16 * MIB
    with Client(server, big, receive_bytes=4096) as slow:
        # What is left of it, and another one, are less than the budget.
        slow.receive(6 * MIB)
        assert server.connections_shed == 0
        with Client(server, big) as other:
            wait_until(lambda: server.connections_shed == 1)
            assert len(other.answer()[2]) == 16 * MIB


def test_past_the_budget_requests_that_wait_give_way_and_those_at_work_do_not(start: Start, site: Site) -> None:
    server = start(HOLDING)
    whole = post("/held", key="known a", length=60_000) + bytes(60_000)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Client(server, whole))
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        others = [stack.enter_context(Client(server, whole)) for _ in range(6)]
        wait_until(lambda: server.connections <= 4)
        site.let_go.set()
        answered = 0
        for client in (first, *others):
            with contextlib.suppress(EOFError, ConnectionResetError):
                assert client.answer()[2] == b"a" + bytes(60_000)
                answered += 1
        assert answered == len(site.served) < 7
    wait_until(lambda: server.connections == 0)
    assert nothing_is_held(server)


def test_what_came_behind_a_request_that_waits_counts_as_held(start: Start, site: Site) -> None:
    server = start(HOLDING)
    behind = get(line=b"GET /other HTTP/1.1") * 600
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Client(server, post("/held", key="known a") + BODY))
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        for _ in range(HOLDING.held_bytes // 10_000):
            stack.enter_context(Client(server, post("/held", key="known a") + BODY + behind))
        wait_until(lambda: server.connections_shed > 0)
        site.let_go.set()
        assert first.answer()[0] == 200


def test_where_requests_that_wait_for_a_worker_take_all_places_one_gives_way_to_a_new_client(
    start: Start, site: Site
) -> None:
    server = start(max_connections=8)
    wait = post("/held", key="known greedy", length=0)
    with contextlib.ExitStack() as stack:
        first, *greedy = [
            stack.enter_context(Client(server, wait, address=f"127.0.0.{2 + number // 4}")) for number in range(8)
        ]
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        wait_until(lambda: site.guard.asked == 8)
        with Client(server, get()) as other:
            assert other.answer()[0] == 200
        site.let_go.set()
        assert first.answer()[0] == 200
        answered = 0
        for client in greedy:
            with contextlib.suppress(EOFError, ConnectionResetError):
                answered += client.answer()[0] == 200
    assert answered == 6


def test_a_network_has_half_of_all_places_but_a_trusted_proxy_has_all(start: Start, site: Site) -> None:
    wait = post("/held", key="known greedy", length=0)
    for proxies, places in (([], 4), ([ip_network("127.0.0.1")], 8)):
        server = start(HttpLimits(stop_seconds=PATIENCE_SECONDS), max_connections=8, trusted_proxies=proxies)
        asked = site.guard.asked
        with contextlib.ExitStack() as stack:
            for number in range(8):
                stack.enter_context(Client(server, wait))
                wait_until(lambda expected=asked + number + 1: site.guard.asked == expected)
            assert server.connections == places


def test_whoever_has_most_connections_gives_way_to_new_ones(start: Start) -> None:
    server = start(max_connections=20)
    with contextlib.ExitStack() as stack:

        def connect(address: str) -> socket.socket:
            client = stack.enter_context(socket.socket())
            client.settimeout(PATIENCE_SECONDS)
            client.bind((address, 0))
            client.connect(server.server_address[:2])
            client.sendall(get())
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
            return client

        modest = connect("127.0.0.2")
        crowd = [connect("127.0.0.1") for _ in range(40)]
        modest.sendall(get())
        assert modest.recv(1000).startswith(b"HTTP/1.1 200")
        assert crowd[0].recv(1) == b""
        crowd[-1].sendall(get())
        assert crowd[-1].recv(1000).startswith(b"HTTP/1.1 200")
