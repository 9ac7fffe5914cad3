"""The server on a real socket: framing, deadlines, the limit of connections, stopping."""

import contextlib
import errno
import json
import logging
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from ipaddress import ip_network
from math import inf
from pathlib import Path

import pytest

from cardbeat.concurrency.later import Job, Later
from cardbeat.config import HttpLimits
from cardbeat.errors import StartupError, Unavailable
from cardbeat.web.listener import Listener
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route, Router
from tests.http.malformed import MALFORMED, get, post
from tests.http.sockets import PATIENCE_SECONDS, Client, Start, server_of, starting, wait_until_all_is_read
from tests.support import wait_until
from tests.systems import LIMITS, PASSED_SOCKETS

BRIEF = HttpLimits(header_seconds=0.4, body_seconds=0.4, idle_seconds=0.4, write_seconds=0.6, linger_seconds=0.4)
BIG = b"0123456789abcdef" * 1024 * 1024


class Site:
    """Routes to try a server with: `/held` answers when the test lets it."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.entered = threading.Semaphore(0)
        self.seen: list[Request] = []
        self.router = Router(
            [
                Route("GET", "/healthz", self.quick, in_loop=True),
                Route("POST", "/register", self.echo),
                Route("POST", "/beat/{id}", lambda r: Response(200, r.body or b"nothing was kept"), ignores_body=True),
                Route("GET", "/held", self.held),
                Route("GET", "/big", lambda _: Response(200, BIG)),
                Route("GET", "/checks/{id}", self.quick),
                Route("GET", "/split", lambda _: Response(200, b"", {"Location": "/\r\nSet-Cookie: a"})),
                Route("GET", "/broken", self.broken),
                Route("DELETE", "/register", lambda _: Response(204)),
                Route("GET", "/held-big", self.held_big),
                Route("GET", "/later", self.later, in_loop=True),
                Route("GET", "/never", self.broken_later, in_loop=True),
            ]
        )

    def quick(self, request: Request) -> Response:
        self.seen.append(request)
        return Response.json(200, {"client": request.client})

    def echo(self, request: Request) -> Response:
        return Response(200, request.body)

    def held(self, _: Request) -> Response:
        self.entered.release()
        self.let_go.wait(PATIENCE_SECONDS)
        return Response(200, b"held")

    def held_big(self, request: Request) -> Response:
        self.held(request)
        return Response(200, BIG)

    def broken(self, _: Request) -> Response:
        raise RuntimeError("secret detail")

    def later(self, request: Request) -> Later[Response]:
        answer = Job(partial(self.broken if request.query else self.quick, request))
        threading.Thread(target=answer.do).start()
        return answer

    def broken_later(self, request: Request) -> Later[Response]:
        raise Unavailable("stopping", "No more work is taken.")


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.let_go.set()


@pytest.fixture
def start(site: Site) -> Iterator[Start]:
    with starting(site.router) as start:
        yield start
        site.let_go.set()


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_gets_one_json_answer_and_the_end(start: Start, name: str) -> None:
    data, status = MALFORMED[name]
    with Client(start(), data + get()) as client:
        got, headers, body = client.answer()
        assert got == status
        assert set(json.loads(body)) == {"error", "code"}
        assert headers["connection"] == "close"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-request-id"]
        client.socket.shutdown(socket.SHUT_WR)
        assert client.rest() == b""


def test_an_answer_to_a_body_too_large_survives_the_body(start: Start) -> None:
    with Client(start(), post(b"Content-Length: 3000000")) as client:
        client.send(b"x" * 3_000_000)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer()[0] == 413
        assert client.rest() == b""


def test_a_body_that_is_ignored_may_be_large_and_the_next_request_is_read_behind_it(start: Start) -> None:
    with Client(start()) as client:
        for _ in range(2):
            client.send(get(b"Content-Length: 3000000", line=b"POST /beat/7 HTTP/1.1"))
            client.send(b"x" * 3_000_000 + get())
            assert client.answer()[2] == b"nothing was kept"
            assert client.answer()[0] == 200


def test_pipelined_requests_are_answered_in_order_once_each(start: Start) -> None:
    bodies = [str(i).encode() for i in range(50)]
    stream = b"".join(post(b"Content-Length: %d" % len(body), body=body) + get() for body in bodies)
    with Client(start(), stream + get(b"Connection: close")) as client:
        for body in bodies:
            assert client.answer()[2] == body
            assert client.answer()[0] == 200
        assert client.answer()[1]["connection"] == "close"
        assert client.rest() == b""


def test_a_waiting_client_is_told_to_continue_once(start: Start) -> None:
    with Client(start(), post(b"Content-Length: 2", b"Expect: 100-continue")) as client:
        assert client.answer()[0] == 100
        client.send(b"{")
        client.send(b"}" + get())
        assert client.answer()[2] == b"{}"
        assert client.answer()[0] == 200


def test_head_has_the_headers_of_get_and_no_body(start: Start) -> None:
    with Client(start(), get(line=b"HEAD /healthz HTTP/1.1") + get()) as client:
        _, of_head, _ = client.answer(with_body=False)
        _, of_get, _ = client.answer()
        assert of_head.keys() == of_get.keys()
        assert of_head["content-length"] == of_get["content-length"]


def test_an_answer_without_content_has_no_length(start: Start) -> None:
    with Client(start(), get(line=b"DELETE /register HTTP/1.1") + get()) as client:
        status, headers, _ = client.answer()
        assert status == 204
        assert "content-length" not in headers
        assert client.answer()[0] == 200


def test_http_1_0_is_answered_and_closed_unless_it_asks(start: Start) -> None:
    server = start()
    with Client(server, get(line=b"GET /healthz HTTP/1.0")) as client:
        assert client.answer()[1]["connection"] == "close"
        assert client.rest() == b""
    with Client(server, get(b"Connection: keep-alive", line=b"GET /healthz HTTP/1.0")) as client:
        assert client.answer()[1]["connection"] == "keep-alive"
        client.send(get())
        assert client.answer()[0] == 200


@pytest.mark.parametrize(
    ("target", "status"), [("/nowhere", 404), ("/register", 405), ("/broken", 500), ("/split", 500)]
)
def test_an_error_of_a_route_keeps_the_connection(start: Start, target: str, status: int) -> None:
    with Client(start(), get(line=f"GET {target} HTTP/1.1".encode()) + get()) as client:
        got, headers, body = client.answer()
        assert got == status
        assert set(json.loads(body)) == {"error", "code"}
        assert "set-cookie" not in headers
        assert b"secret" not in body
        assert client.answer()[0] == 200


@pytest.mark.parametrize(
    ("begin", "drop"), [(b"GET / HTTP/1.1\r\n", b"A: b\r\n"), (post(b"Content-Length: 1000"), b"x")]
)
def test_a_trickled_request_is_ended_by_its_deadline(start: Start, begin: bytes, drop: bytes) -> None:
    with Client(start(BRIEF), begin) as client:
        client.socket.settimeout(0.05)
        for _ in range(200):
            with contextlib.suppress(OSError):
                client.send(drop)
            with contextlib.suppress(TimeoutError):
                assert client.answer()[0] == 408
                return
    pytest.fail("the server waits on")


@pytest.mark.parametrize("data", [b"", get()])
def test_an_idle_connection_is_closed_in_silence(start: Start, data: bytes) -> None:
    with Client(start(BRIEF), data) as client:
        if data:
            assert client.answer()[0] == 200
        assert client.rest() == b""


def test_a_client_that_does_not_read_is_cut_off(start: Start) -> None:
    server = start(BRIEF)
    with Client(server, get(line=b"GET /big HTTP/1.1")) as client, Client(server, get()) as other:
        assert other.answer()[0] == 200
        wait_until(lambda: server.connections == 0)
        with contextlib.suppress(ConnectionResetError):
            assert len(client.rest()) < len(BIG)


def test_a_slow_reader_gets_a_large_answer_whole(start: Start) -> None:
    with Client(start(), get(line=b"GET /big HTTP/1.1") + get()) as client:
        assert client.answer()[2] == BIG
        assert client.answer()[0] == 200


def test_quick_routes_answer_while_every_worker_is_held(start: Start, site: Site) -> None:
    server = start(workers=1)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(Client(server, get(line=b"GET /held HTTP/1.1"))) for _ in range(5)]
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        assert stack.enter_context(Client(server, get())).answer()[0] == 200
        site.let_go.set()
        assert [client.answer()[2] for client in held] == [b"held"] * 5


@pytest.mark.parametrize(("target", "status"), [(b"/later", 200), (b"/later?broken", 500), (b"/never", 503)])
def test_an_answer_from_another_thread_needs_no_worker(start: Start, target: bytes, status: int) -> None:
    server = start(workers=0)
    with Client(server, get(line=b"GET " + target + b" HTTP/1.1") * 3) as client:
        assert [client.answer()[0] for _ in range(3)] == [status] * 3


def test_what_follows_a_request_at_work_waits_for_its_answer(start: Start, site: Site) -> None:
    with Client(start(), get(line=b"GET /held HTTP/1.1")) as client:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        client.send(get() * 3)
        client.socket.shutdown(socket.SHUT_WR)
        site.let_go.set()
        assert client.answer()[2] == b"held"
        assert [client.answer()[0] for _ in range(3)] == [200] * 3
        assert client.rest() == b""


def test_at_the_limit_the_oldest_idle_connection_gives_way(start: Start, site: Site) -> None:
    server = start(HttpLimits(stop_seconds=2, idle_seconds=inf, header_seconds=inf), max_connections=8)
    with contextlib.ExitStack() as stack:

        def connect(data: bytes) -> Client:
            return stack.enter_context(Client(server, data))

        held = connect(get(line=b"GET /held HTTP/1.1"))
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        half_sent = connect(b"GET / HT")
        first, second = connect(get()), connect(get())
        assert (first.answer()[0], second.answer()[0]) == (200, 200)
        first.send(get())
        assert first.answer()[0] == 200
        for gone in (second, first, half_sent):
            assert connect(get()).answer()[0] == 200
            if gone is not half_sent:
                assert gone.rest() == b""
        site.let_go.set()
        assert held.answer()[2] == b"held"


def test_at_the_limit_a_new_client_waits_while_all_others_are_at_work(start: Start, site: Site) -> None:
    server = start(max_connections=1)
    with Client(server, get(line=b"GET /held HTTP/1.1")) as held:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        with Client(server, get()) as late:
            wait_until(lambda: server._accept_again_at < inf)
            assert server.connections == 1
            site.let_go.set()
            assert held.answer()[2] == b"held"
            assert late.answer()[0] == 200


def test_a_stop_finishes_what_runs_and_closes_what_is_idle(start: Start, site: Site) -> None:
    server = start()
    with Client(server, get()) as idle, Client(server, get(line=b"GET /held HTTP/1.1")) as held:
        assert idle.answer()[0] == 200
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        server.stop()
        assert idle.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            Client(server)
        site.let_go.set()
        assert held.answer()[1]["connection"] == "close"
        assert held.rest() == b""


def test_the_last_answer_arrives_whole_though_more_was_sent_than_is_read(start: Start, site: Site) -> None:
    with Client(start(), get(b"Connection: close", line=b"GET /held-big HTTP/1.1")) as client:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        client.send(b"\r\n")
        site.let_go.set()
        assert client.answer()[2] == BIG
        assert client.rest() == b""


def test_an_answer_is_noted_though_its_client_has_left(start: Start, site: Site) -> None:
    noted: list[object] = []
    server = start(observe=lambda answers: noted.extend((r.method, r.pattern, a.status) for r, a, _ in answers))
    with Client(server, get(line=b"GET /held HTTP/1.1")) as client:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    site.let_go.set()
    wait_until(lambda: noted == [("GET", "/held", 200)])


def test_nothing_follows_an_answer_after_which_the_client_wanted_to_close(start: Start) -> None:
    with Client(start()) as client:
        for _ in range(2):
            client.send(get())
            assert client.answer()[0] == 200
        client.send(get(b"Connection: close") * 2)
        assert client.answer()[1]["connection"] == "close"
        assert client.rest() == b""


@pytest.mark.parametrize("begun", ["GET /held", "GET /big", "POST /register"])
def test_a_stop_does_not_wait_for_ever(site: Site, begun: str) -> None:
    server = server_of(site.router, limits=HttpLimits(stop_seconds=0.5))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    unfinished = get(*[b"Content-Length: 9"] * begun.startswith("POST"), line=f"{begun} HTTP/1.1".encode())
    with Client(server, unfinished), Client(server, get()[:-1]), Client(server, get()) as last:
        assert last.answer()[0] == 200
        server.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_a_stop_leaves_time_for_a_request_and_an_answer_under_way(start: Start) -> None:
    server = start(HttpLimits(stop_seconds=PATIENCE_SECONDS, linger_seconds=0))
    with (
        Client(server, get(line=b"GET /big HTTP/1.1")) as reading,
        Client(server, post(b"Content-Length: 4", body=b"bo")) as sending,
        Client(server, get()[:-1]) as asking,
    ):
        reading.receive(1)
        wait_until_all_is_read(server)
        server.stop()
        sending.send(b"dy")
        assert sending.answer()[2] == b"body"
        asking.send(get()[-1:])
        assert asking.answer()[0] == 200
        assert reading.answer()[2] == BIG
        assert (asking.rest(), sending.rest(), reading.rest()) == (b"", b"", b"")


def test_one_request_alone_is_refused_since_the_loop_serves_all_clients(site: Site) -> None:
    with server_of(site.router) as server:
        assert isinstance(server, ThreadingHTTPServer)
        with pytest.raises(RuntimeError, match="serve_forever"):
            server.handle_request()


def test_a_shutdown_returns_when_serving_has_ended(site: Site) -> None:
    server = server_of(site.router, limits=HttpLimits(stop_seconds=PATIENCE_SECONDS))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    with Client(server, get(line=b"GET /held HTTP/1.1")) as held:
        assert site.entered.acquire(timeout=PATIENCE_SECONDS)
        stopper = threading.Thread(target=server.shutdown)
        stopper.start()
        stopper.join(0.05)
        assert stopper.is_alive()
        site.let_go.set()
        stopper.join(PATIENCE_SECONDS)
        assert not stopper.is_alive()
        assert held.answer()[2] == b"held"
        assert held.rest() == b""
    thread.join(PATIENCE_SECONDS)


def test_one_client_that_cannot_be_served_ends_no_other(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start()
    with Client(server, get()) as other:
        assert other.answer()[0] == 200
        monkeypatch.setattr("cardbeat.web.server.ClientConnection", None)
        with Client(server, get()) as client:
            assert client.rest() == b""
        monkeypatch.undo()
        other.send(get())
        assert other.answer()[0] == 200


def test_a_stop_before_serving_is_not_lost(site: Site) -> None:
    server = server_of(site.router)
    server.stop()
    server.serve_forever()


def test_the_forwarded_client_counts_from_a_trusted_proxy_only(start: Start) -> None:
    forwarded = get(b"X-Forwarded-For: 203.0.113.9")
    with Client(start(), forwarded) as client:
        assert json.loads(client.answer()[2]) == {"client": "127.0.0.1"}
    with Client(start(trusted_proxies=[ip_network("127.0.0.0/8")]), forwarded) as client:
        assert json.loads(client.answer()[2]) == {"client": "203.0.113.9"}


def test_every_request_is_logged_without_its_secrets(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cardbeat.access")
    secret = b"sk_" + b"a" * 40
    server = start()
    stream = get(line=b"GET /checks/" + secret + b"?key=" + secret + b" HTTP/1.1") + get(
        line=b"GET /no/" + secret + b"\xe2\x80\xa8 HTTP/1.1"
    )
    with Client(server, stream + b"\x16") as client:
        ids = [client.answer()[1]["x-request-id"] for _ in range(3)]
    wait_until(lambda: len("\n".join(caplog.messages).splitlines()) >= 3)
    lines = "\n".join(caplog.messages).splitlines()
    assert [line.split()[-1] for line in lines] == ids
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GET /checks/\{id\}\? 200 22 \d+\.\dms 127.0.0.1 - \S+", lines[0]
    )
    assert "aaaaaaaa" not in caplog.text
    assert caplog.text.isascii()


def test_answers_are_observed(start: Start) -> None:
    seen: list[tuple[str, str | None, int]] = []
    server = start(observe=lambda answers: seen.extend((r.method, r.pattern, a.status) for r, a, _ in answers))
    with Client(server, get(line=b"GET /checks/7 HTTP/1.1") + get(line=b"GET /no HTTP/1.1") + b"\n") as client:
        assert [client.answer()[0] for _ in range(3)] == [200, 404, 400]
    wait_until(lambda: len(seen) == 3)
    assert seen == [("GET", "/checks/{id}", 200), ("GET", None, 404), ("-", None, 400)]


def test_a_port_in_use_and_a_wrong_host_are_told_in_one_line(start: Start) -> None:
    port = start().server_address[1]
    with pytest.raises(StartupError, match=f"port {port} on 127.0.0.1 is in use"):
        Listener("127.0.0.1", port)
    with pytest.raises(StartupError, match=r"not an address of this machine"):
        Listener("192.0.2.1", 0)
    with pytest.raises(StartupError, match="is not known"):
        Listener("no such host", 0)


def test_an_ipv6_host_is_served(site: Site) -> None:
    server = server_of(site.router, "::1")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        assert re.fullmatch(r"http://\[::1\]:\d+", server.url)
        with Client(server, get()) as client:
            assert json.loads(client.answer()[2]) == {"client": "::1"}
    finally:
        server.stop()
        thread.join(PATIENCE_SECONDS)


ACTIVATED = """
import os, sys
from cardbeat.web.message import Response
from cardbeat.web.router import Route, Router
from tests.http.sockets import server_of
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
server_of(Router([Route("GET", "/healthz", lambda _: Response(200, b"activated"))]), "192.0.2.1", 1).serve_forever()
"""


@PASSED_SOCKETS
def test_a_socket_held_by_systemd_is_taken_and_outlives_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        descriptor = listener.fileno()
        for _ in range(2):
            client = socket.create_connection(listener.getsockname(), timeout=PATIENCE_SECONDS)
            client.sendall(get(b"Connection: close"))
            command = [sys.executable, "-c", ACTIVATED, str(descriptor)]
            with client, subprocess.Popen(command, pass_fds=[descriptor]) as process:
                answer = client.makefile("rb").read()
                process.terminate()
            assert answer.endswith(b"activated")


@PASSED_SOCKETS
@pytest.mark.parametrize("kind", ["closed", "datagram", "bound only", "a client's", "a file's path"])
def test_a_socket_that_does_not_listen_on_a_port_is_not_taken_from_systemd(kind: str, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        if kind == "datagram":
            passed = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        elif kind == "a client's":
            passed = stack.enter_context(socket.create_connection(server.getsockname()))
        elif kind == "a file's path":
            passed = stack.enter_context(socket.socket(socket.AF_UNIX))
            # A relative path, because macOS allows 103 bytes.
            with contextlib.chdir(tmp_path):
                passed.bind("socket")
            passed.listen()
        else:
            passed = stack.enter_context(socket.socket())
            passed.bind(("127.0.0.1", 0))
        script = ACTIVATED.replace("os.environ", "os.close(3)\nos.environ") if kind == "closed" else ACTIVATED
        command = [sys.executable, "-c", script, str(passed.fileno())]
        done = subprocess.run(command, pass_fds=[passed.fileno()], capture_output=True, check=False, timeout=60)
    assert b"StartupError: the socket that systemd passes must listen on a port" in done.stderr


def test_a_family_that_the_host_lacks_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", lacking)
    with pytest.raises(StartupError, match="can't listen on ::1, port 0: Address family not supported"):
        Listener("::1", 0)


FEW_DESCRIPTORS = """
import resource, sys
from cardbeat.web.message import Response
from cardbeat.web.router import Route, Router
from tests.http.sockets import server_of
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
ok = lambda _: Response(200, b"ok")
server = server_of(Router([Route("GET", "/healthz", ok, in_loop=True)]), max_connections=int(sys.argv[1]))
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@LIMITS
@pytest.mark.parametrize("max_connections", [20, 1000])
def test_when_descriptors_run_out_the_newest_clients_are_served(max_connections: int) -> None:
    command = [sys.executable, "-c", FEW_DESCRIPTORS, str(max_connections)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process, contextlib.ExitStack() as stack:
        stack.callback(process.terminate)
        assert process.stdout
        address = ("127.0.0.1", int(process.stdout.readline()))
        for _ in range(100):
            stack.enter_context(socket.create_connection(address, timeout=PATIENCE_SECONDS))
        for _ in range(3):
            with socket.create_connection(address, timeout=PATIENCE_SECONDS) as client:
                client.sendall(get(b"Connection: close"))
                assert client.makefile("rb").read().endswith(b"ok")
