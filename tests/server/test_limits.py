"""How much all clients, and one client, may hold: connections, bytes, descriptors."""

import contextlib
import socket
import subprocess
import sys
from ipaddress import ip_network
from math import inf

import pytest

from cardbeat.config import HttpLimits
from tests.kit.lists import times
from tests.kit.support import wait_until
from tests.kit.systems import LIMITS
from tests.server.malformed import get, post
from tests.server.sockets import (
    BIG,
    PATIENCE_SECONDS,
    Client,
    ask,
    wait_until_all_is_read,
)

HOLDING = HttpLimits(held_bytes=200_000, stop_seconds=2)
PATIENT = HttpLimits(stop_seconds=2, idle_seconds=inf, header_seconds=inf)


def hold(length=0):
    return get(
        b"Content-Length: %d" % length, line=b"POST /held HTTP/1.1"
    ) + bytes(length)


def part_of_body(sent):
    return post(b"Content-Length: 60000", body=bytes(sent))


def test_at_the_limit_the_connection_that_has_waited_longest_gives_way(
    serve, site, connect
):
    server = serve(
        PATIENT,
        max_connections=8,
        trusted_proxies=[ip_network("127.0.0.1")],
    )
    held = connect(server, hold())
    assert site.is_entered()
    half_sent = connect(server, b"GET / HT")
    wait_until_all_is_read(server)
    first, second, *others = times(6, connect, server, get())
    assert {*map(Client.status, (first, second, *others))} == {200}
    for client in (first, *others):
        client.send(get())
        assert client.status() == 200
    for gone in (half_sent, second, first):
        assert connect(server, get()).answer()[0] == 200
        assert gone.is_closed()
    site.let_go.set()
    assert held.status() == 200


def test_at_the_limit_a_new_client_waits_while_all_others_are_at_work(
    serve, site, connect
):
    server = serve(
        max_connections=1, trusted_proxies=[ip_network("127.0.0.1")]
    )
    held = connect(server, hold())
    assert site.is_entered()
    late = connect(server, get())
    late.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        late.answer()
    late.socket.settimeout(PATIENCE_SECONDS)
    site.let_go.set()
    assert held.status() == 200
    held.socket.close()
    assert late.status() == 200


def test_a_network_has_a_quarter_of_all_connections_but_a_trusted_proxy_all(
    serve, site, connect
):
    for proxies, most in (([], 2), ([ip_network("127.0.0.1")], 8)):
        server = serve(
            PATIENT, max_connections=8, trusted_proxies=proxies
        )
        *_, newest = times(8, connect, server, get())
        other = connect(server, get(), address="127.0.0.2")
        assert other.status() == 200
        assert newest.status() == 200
        assert len(server.connections) <= most + 1
        other.send(get())
        assert other.status() == 200


def test_a_network_whose_connections_are_all_at_work_gets_no_more(
    serve, site, connect
):
    server = serve(max_connections=8)
    held = times(2, connect, server, hold())
    for _ in held:
        assert site.is_entered()
    assert connect(server, get()).is_closed()
    assert connect(server, get(), address="127.0.0.2").answer()[0] == 200
    site.let_go.set()
    assert [*map(Client.status, held)] == [200, 200]


def nothing_is_held(server):
    """Whether all the budget can be used again."""
    before = server.connections_shed
    for _ in range(20):
        with Client(server, part_of_body(59_999)) as client:
            wait_until_all_is_read(server)
            client.send(b"x")
            assert client.status() == 200
    return server.connections_shed == before


def test_past_the_budget_the_oldest_unfinished_bodies_give_way(
    serve, connect, caplog
):
    server = serve(HOLDING)
    clients = []
    for _ in range(6):
        clients.append(connect(server, part_of_body(50_000)))
        wait_until_all_is_read(server)
    assert server.connections_shed >= 2
    assert [line.startswith("closed ") for line in caplog.messages] == [
        True
    ]
    for client in clients[-2:]:
        client.send(bytes(10_000) + get())
        assert client.body() == bytes(60_000)
        assert client.status() == 200
    assert clients[0].is_closed()
    for client in clients:
        client.socket.close()
    wait_until(lambda: len(server.connections) == 0)
    assert nothing_is_held(server)


def test_past_the_budget_answers_that_are_not_taken_give_way(
    serve, connect
):
    server = serve(HOLDING)
    slow = connect(server, ask("/big"), receive_bytes=4096)
    wait_until(lambda: server.connections_shed)
    with contextlib.suppress(ConnectionResetError):
        assert len(slow.rest()) < len(BIG)


def test_requests_that_wait_for_a_thread_give_way_too_and_are_not_done(
    serve, site, connect
):
    server = serve(HOLDING, threads=1)
    first = connect(server, hold(60_000))
    assert site.is_entered()
    others = times(6, connect, server, hold(60_000))
    wait_until(lambda: server.connections_shed >= 3)
    site.let_go.set()
    answered = 0
    for client in (first, *others):
        with contextlib.suppress(EOFError, ConnectionResetError):
            assert client.body() == bytes(60_000)
            answered += 1
    assert 0 < answered < 7
    wait_until(lambda: site.served <= answered + 1)


FEW_DESCRIPTORS = """
import resource
from cardbeat.web.message import Response
from cardbeat.web.router import Route, Router
from tests.server.sockets import server_of
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
ok = lambda _: Response(200, b"ok")
server = server_of(Router([Route("GET", "/healthz", ok, in_loop=True)]))
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@LIMITS
def test_when_descriptors_run_out_the_newest_clients_are_served():
    process = subprocess.Popen(
        [sys.executable, "-c", FEW_DESCRIPTORS], stdout=subprocess.PIPE
    )
    with process, contextlib.ExitStack() as stack:
        stack.callback(process.terminate)
        address = ("127.0.0.1", int(process.stdout.readline()))
        for _ in range(100):
            stack.enter_context(
                socket.create_connection(
                    address, timeout=PATIENCE_SECONDS
                )
            )
        for _ in range(3):
            with socket.create_connection(
                address, timeout=PATIENCE_SECONDS
            ) as client:
                client.sendall(get(b"Connection: close"))
                assert client.makefile("rb").read().endswith(b"ok")
