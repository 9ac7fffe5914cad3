"""The server on a real socket: framing, what a head decides, deadlines, threads, the log."""

import contextlib
import json
import re
import socket
from http.server import ThreadingHTTPServer
from ipaddress import ip_network

import pytest

from cardbeat.config import HttpLimits
from cardbeat.errors import StartupError
from cardbeat.web.message import access_lines
from cardbeat.web.server import listen
from tests.kit.lists import times
from tests.kit.support import wait_until
from tests.server.malformed import CODED, chunked, get, post
from tests.server.sockets import BIG, Client, ask, wait_until_all_is_read

LIMITS = HttpLimits()
BODY = b"x" * 1000


LARGE = 3_000_000
CHUNK = b"%x\r\n%b\r\n0\r\n\r\n"
LENGTH = b"Content-Length: %d"


def to(path, *headers, length=1000):
    """The head of a request with a body."""
    return post(LENGTH % length, *headers, path=path)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", 400),
        (get(line=b"BREW / HTTP/1.1"), 501),
        (chunked(b"10001\r\n"), 413),
    ],
)
def test_a_malformed_request_gets_one_json_answer_and_the_end(
    talk, data, status
):
    client = talk(data + get())
    got, headers, body = client.answer()
    assert got == status
    assert set(json.loads(body)) == {"error", "code"}
    assert headers["connection"] == "close"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-request-id"]
    client.socket.shutdown(socket.SHUT_WR)
    assert client.rest() == b""


def test_an_answer_to_a_body_too_large_survives_the_body(talk):
    client = talk(to(b"/register", length=LARGE))
    client.send(bytes(LARGE))
    client.socket.shutdown(socket.SHUT_WR)
    assert client.status() == 413
    assert client.rest() == b""


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (LENGTH % LARGE, bytes(LARGE)),
        (CODED, CHUNK % (LARGE, bytes(LARGE))),
    ],
)
def test_a_body_that_is_ignored_may_be_large_and_a_request_follows_it(
    talk, header, body
):
    client = talk(post(header, path=b"/beat/7"))
    client.send(body + get())
    assert times(2, client.status) == [200, 200]


def test_pipelined_requests_are_answered_in_order_once_each(talk):
    bodies = [str(i).encode() for i in range(50)]
    stream = b"".join(
        to(b"/register", length=len(body)) + body + get()
        for body in bodies
    )
    client = talk(stream + get(b"Connection: close") * 2)
    for body in bodies:
        assert client.body() == body
        assert client.status() == 200
    assert client.answer()[1]["connection"] == "close"
    assert client.rest() == b""


def test_requests_of_one_client_leave_others_their_turn(
    serve, site, connect
):
    clients = []

    def observe(answered):
        clients.extend(request.client for request, _, _ in answered)

    server = serve(observers=[observe])
    greedy = [connect(server) for _ in range(200)]
    modest = connect(server, address="127.0.0.2")
    connect(server, ask("/held-in-loop"))
    assert site.is_entered()
    for client in greedy:
        client.send(get() * 20)
    modest.send(get())
    site.let_go.set()
    wait_until(lambda: "127.0.0.2" in clients)
    assert clients.index("127.0.0.2") < 100


def test_a_waiting_client_is_told_to_continue_once(talk):
    client = talk(to(b"/register", b"Expect: 100-continue", length=2))
    assert client.status() == 100
    client.send(b"{")
    client.send(b"}" + get())
    assert client.body() == b"{}"
    assert client.status() == 200


def test_head_has_the_headers_of_get_and_no_body(talk):
    client = talk(get(line=b"HEAD /healthz HTTP/1.1") + get())
    _, of_head, _ = client.answer(with_body=False)
    _, of_get, _ = client.answer()
    assert of_head.keys() == of_get.keys()
    assert of_head["content-length"] == of_get["content-length"]


ERRORS = [
    ("/nowhere", 404),
    ("/register", 405),
    ("/broken", 500),
    ("/future?broken", 500),
]


@pytest.mark.parametrize(("path", "status"), ERRORS)
def test_an_error_of_a_route_keeps_the_connection(
    talk, caplog, path, status
):
    client = talk(ask(path) + get())
    got, _, body = client.answer()
    assert got == status
    assert set(json.loads(body)) == {"error", "code"}
    assert b"secret" not in body
    assert ("RuntimeError: secret detail" in caplog.text) == (
        "broken" in path
    )
    assert client.status() == 200


# What a head decides before its body has come.

REFUSED = [(b"/nowhere", 404), (b"/healthz", 405), (b"/mine", 401)]


@pytest.mark.parametrize("length", [len(BODY), LARGE])
@pytest.mark.parametrize(("path", "status"), REFUSED)
def test_a_head_is_refused_before_its_body_whatever_the_length(
    talk, path, status, length
):
    client = talk(to(path, length=length))
    assert client.status() == status


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (to(b"/mine"), BODY),
        (chunked(b"", b"/x"), CHUNK % (len(BODY), BODY)),
    ],
)
def test_a_refused_body_that_has_come_in_part_or_whole_is_left_out(
    talk, head, body
):
    client = talk(head + body + get() + head + body[:7])
    refused, good, again = times(3, client.status)
    assert refused >= 400
    assert good == 200
    assert again == refused
    client.send(body[7:] + get())
    assert client.status() == 200


def test_who_asks_before_sending_a_body_is_refused_for_good(talk):
    """It can't be known whether the body or another request follows."""
    client = talk(to(b"/mine", b"Expect: 100-continue"))
    got, headers, _ = client.answer()
    assert got == 401
    assert headers["connection"] == "close"
    client.socket.shutdown(socket.SHUT_WR)
    assert client.rest() == b""


def test_a_body_that_was_left_out_and_never_comes_gets_no_second_answer(
    talk,
):
    client = talk(
        to(b"/nowhere") + BODY[:10], HttpLimits(body_seconds=0.3)
    )
    assert client.status() == 404
    assert client.rest() == b""


def test_a_key_that_is_revoked_while_its_body_comes_opens_nothing(
    talk, site
):
    head = to(b"/mine", b"Expect: 100-continue", b"Authorization: a")
    client = talk(head)
    assert client.status() == 100
    site.guard.revoked.add("a")
    client.send(BODY + get())
    assert client.status() == 401
    assert client.status() == 200


def test_a_body_too_large_hides_no_key_that_is_unknown(serve, site):
    site.guard.revoked.add("a")
    for name, status in ((b"a", 401), (b"b", 413)):
        with Client(
            serve(), to(b"/mine", b"Authorization: " + name, length=LARGE)
        ) as client:
            assert client.status() == status


# Deadlines.

TRICKLES = [
    (b"GET / HTTP/1.1\r\n", b"A: b\r\n"),
    (to(b"/register"), b"x"),
]


@pytest.mark.parametrize(
    ("begin", "drop"), [*TRICKLES, (chunked(b""), b"1\r\nx\r\n")]
)
def test_a_trickled_request_is_ended_by_its_deadline(
    talk, clock, begin, drop
):
    client = talk(begin, elapsed=clock)
    server = client.server
    for _ in range(10):
        client.send(drop)
        wait_until_all_is_read(server)
        clock.pass_in(server, LIMITS.header_seconds / 10)
    assert client.status() == 408


@pytest.mark.parametrize("data", [b"", get()])
def test_an_idle_connection_is_closed_in_silence(talk, clock, data):
    client = talk(data, elapsed=clock)
    wait_until(lambda: client.server.connections)
    if data:
        assert client.status() == 200
    clock.pass_in(client.server, LIMITS.header_seconds)
    assert client.rest() == b""


def test_an_idle_connection_of_a_trusted_proxy_lives_longer(
    serve, connect, clock
):
    proxies = [ip_network("127.0.0.2")]
    server = serve(elapsed=clock, trusted_proxies=proxies)
    proxy = connect(server, get(), address="127.0.0.2")
    other = connect(server, get())
    assert proxy.status() == other.status() == 200
    clock.pass_in(server, LIMITS.idle_seconds)
    assert other.rest() == b""
    proxy.send(get())
    assert proxy.status() == 200


def test_a_client_that_keeps_its_side_open_after_the_last_answer_is_closed(
    serve, connect, clock
):
    server = serve(elapsed=clock)
    head = get(b"Connection: close", line=b"GET /checks/7 HTTP/1.1")
    client = connect(server, head + get())
    assert client.status() == 200
    clock.pass_in(server, LIMITS.linger_seconds)
    wait_until(lambda: len(server.connections) == 0)


def test_a_client_that_does_not_read_is_cut_off(serve, connect, clock):
    server = serve(elapsed=clock)
    client = connect(server, ask("/big"))
    other = connect(server, get())
    assert other.status() == 200
    client.receive(1)

    def is_cut_off():
        # It may still receive what the system holds: that is progress.
        clock.pass_in(server, LIMITS.write_seconds)
        return len(server.connections) == 0

    wait_until(is_cut_off)
    with contextlib.suppress(ConnectionResetError):
        assert len(client.rest()) < len(BIG)


def test_a_client_that_reads_slowly_gets_its_answer_whole(
    serve, connect, clock
):
    server = serve(elapsed=clock)
    client = connect(server, ask("/big") + get(), receive_bytes=65536)
    # The system holds less than three of the eight parts.
    for part in range(1, 9):
        client.receive(part * len(BIG) // 8)
        clock.pass_in(server, LIMITS.write_seconds / 4)
    assert client.body() == BIG
    assert client.status() == 200


# Threads.


def test_quick_routes_answer_while_every_thread_is_held(
    serve, site, connect
):
    server = serve(threads=1)
    held = times(5, connect, server, ask("/held"))
    assert site.is_entered()
    assert connect(server, get()).status() == 200
    site.let_go.set()
    assert [*map(Client.body, held)] == [b"held"] * 5


def test_one_client_leaves_threads_to_others(serve, site, connect):
    server = serve()
    held = times(8, connect, server, ask("/held"))
    assert site.is_entered()
    assert (
        connect(server, ask("/checks/7"), address="127.0.0.2").status()
        == 200
    )
    site.let_go.set()
    assert [*map(Client.body, held)] == [b"held"] * 8


def test_the_answer_of_a_future_needs_no_thread(talk):
    client = talk(ask("/future") * 3, threads=0)
    assert times(3, client.body) == [b"later"] * 3


def test_what_follows_a_request_at_work_waits_for_its_answer(talk, site):
    client = talk(ask("/held"))
    assert site.is_entered()
    client.send(get() * 3)
    client.socket.shutdown(socket.SHUT_WR)
    site.let_go.set()
    assert client.body() == b"held"
    assert times(3, client.status) == [200] * 3
    assert client.rest() == b""


def test_the_last_answer_arrives_whole_though_more_was_sent_than_is_read(
    talk, site
):
    head = get(b"Connection: close", line=b"GET /held-big HTTP/1.1")
    client = talk(head)
    assert site.is_entered()
    client.send(b"\r\n")
    site.let_go.set()
    assert client.body() == BIG
    assert client.rest() == b""


def test_it_is_a_threading_http_server(serve):
    assert isinstance(serve(), ThreadingHTTPServer)


# Who asked, and what is told of it.


def test_the_forwarded_client_counts_from_a_trusted_proxy_only(talk):
    forwarded = get(b"X-Forwarded-For: 2001:db8::9")
    client = talk(forwarded)
    assert json.loads(client.body())["client"] == "127.0.0.1"
    client = talk(forwarded, trusted_proxies=[ip_network("127.0.0.0/8")])
    told = json.loads(client.body())
    assert told == {"client": "2001:db8::9", "network": "2001:db8::/64"}


def test_every_answer_is_logged_and_observed(serve, connect):
    lines = []
    seen = []

    def observe(answers):
        seen.extend(
            (request.method, request.pattern, it.status)
            for request, it, _ in answers
        )

    server = serve(
        observers=[
            lambda answers: lines.extend(access_lines(answers)),
            observe,
        ]
    )
    client = connect(
        server,
        ask("/checks/sk_secret?key=sk_secret") + ask("/no") + b"\n",
    )
    ids = [client.answer()[1]["x-request-id"] for _ in range(3)]
    wait_until(lambda: len(seen) == 3)
    assert seen == [
        ("GET", "/checks/{id}", 200),
        ("GET", None, 404),
        ("-", None, 400),
    ]
    assert [line.split()[-1] for line in lines] == ids
    assert "secret" not in "".join(lines)


# The listening socket.


def test_an_address_that_can_not_be_had_is_told_in_one_line(serve):
    port = serve().server_address[1]
    for host, why in (
        (
            "127.0.0.1",
            f"port {port}: another program uses it; choose another with --port",
        ),
        (
            "192.0.2.1",
            f"can't listen on 192.0.2.1, port {port}: Cannot assign",
        ),
        ("no such host", "is not known"),
    ):
        with pytest.raises(StartupError, match=why):
            listen(host, port)


def test_a_name_with_addresses_of_both_kinds_is_served_on_that_of_ipv4(
    monkeypatch,
):
    found = socket.getaddrinfo("127.0.0.1", 0, type=socket.SOCK_STREAM)
    six = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *_, **__: [six, *found]
    )
    with contextlib.closing(listen("localhost", 0)) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_an_ipv6_host_is_served(serve, connect):
    server = serve(host="::1")
    assert re.fullmatch(r"http://\[::1\]:\d+", server.url)
    client = connect(server, get())
    assert json.loads(client.body())["client"] == "::1"
