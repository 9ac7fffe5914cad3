"""A stop ends in time with status 0, whatever hangs, and begins no post that it could not end."""

import contextlib
import http.client
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tests.kit.artifact import ROOT, starter
from tests.kit.client import ask, checks_key, connect, exchange, new_check
from tests.kit.lists import each
from tests.kit.receiver import NO_CONTENT, Receiver, hang
from tests.kit.support import wait_until

fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

STOPPED_SECONDS = 20
"""Ten are promised; the rest is for a busy machine."""
AT_ONCE_SECONDS = 7
"""Less than a stop without a second signal takes."""

CHILD = """
import os, socket, sys, threading, time

def for_ever(*_, **__):
    while True:
        time.sleep(60)

{fault}

from cardbeat.cli import main
sys.exit(main(sys.argv[1:]))
"""

LOOK_UPS = """
look_up = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **more: (for_ever if "hangs" in str(host) else look_up)(host, *rest, **more)
"""


@pytest.fixture
def launch(tmp_path):
    """Starts a server with a fault, in a folder of its own."""
    with contextlib.ExitStack() as stack:

        def launch_one(name, fault):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "server.py").write_text(CHILD.format(fault=fault))
            start = starter(
                sys.executable,
                folder / "server.py",
                folder,
                PYTHONPATH=str(ROOT),
            )
            return stack.enter_context(start)(
                "--allow-private-webhooks", "--sweep-seconds", "0.2"
            )

        yield launch_one


def test_a_stop_ends_in_time_though_something_hangs(launch):
    with Receiver(hang) as receiver, contextlib.ExitStack() as stack:
        faults = {
            "lock": ("", lambda server: hold_lock(stack, server)),
            "receiver": (
                "",
                lambda server: post_to(server, receiver.url),
            ),
            "look-up": (
                LOOK_UPS,
                lambda server: post_to(server, "http://hangs.example/"),
            ),
            "client": ("", lambda server: keep_sending(stack, server)),
        }
        servers = {
            name: launch(name, fault)
            for name, (fault, _) in faults.items()
        }
        for name, (_, trouble) in faults.items():
            trouble(servers[name])
        time.sleep(1)  # the sweeps and posts that are to hang have begun
        require_stops(servers)


def require_stops(servers):
    for server in servers.values():
        server.process.terminate()
    ends = time.monotonic() + STOPPED_SECONDS
    for name, server in servers.items():
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(max(0, ends - time.monotonic()))
        assert server.process.poll() == 0, (
            name,
            server.log.read_text()[-500:],
        )


def hold_lock(stack, server):
    """As another process that is suspended while it writes; pings come before the stop and in it."""
    check = new_check(server, checks_key(server), period_seconds=1)
    lock = stack.enter_context(
        (server.log.parent / "cardbeat-data" / "writer.lock").open("rb+")
    )
    fcntl.flock(lock, fcntl.LOCK_EX)
    for number in range(100):
        timer = threading.Timer(number / 10, ping, (server, check["id"]))
        stack.callback(timer.cancel)
        timer.start()


def ping(server, check_id):
    with contextlib.suppress(OSError, http.client.HTTPException):
        ask(server, "GET", f"/ping/{check_id}")


def post_to(server, url):
    """Order a test alert. Returns the path of its check, and the key."""
    key = checks_key(server)
    path = f"/checks/{new_check(server, key, webhook_url=url)['id']}"
    assert (
        ask(server, "POST", f"{path}/test-alert", key=key).status == 202
    )
    return path, key


def keep_sending(stack, server):
    client = stack.enter_context(
        socket.create_connection(("127.0.0.1", server.port))
    )

    def send():
        with contextlib.suppress(OSError):
            client.sendall(
                b"POST /ping/x HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"
            )
            while True:
                client.sendall(b"x")
                time.sleep(0.05)

    threading.Thread(target=send, daemon=True).start()


def test_a_second_signal_ends_the_server_at_once(start):
    server = start()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(
            b"POST /ping/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"
        )
        time.sleep(0.3)
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: is_refused(server))
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < AT_ONCE_SECONDS


def slow(receiver, connection):
    receiver.read(connection)
    assert receiver.released.wait(60)
    connection.sendall(NO_CONTENT)


def test_no_post_begins_while_a_stop_waits_for_clients(start):
    """It could have no time to end, and would be sent again."""

    with Receiver(slow) as receiver:
        server = start("--allow-private-webhooks")
        path, key = post_to(server, receiver.url)
        wait_until(lambda: receiver.received)
        assert (
            ask(server, "POST", f"{path}/test-alert", key=key).status
            == 202
        )
        clients = [connect(server) for _ in range(100)]
        for client in clients:
            client.connect()
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: is_refused(server))
        receiver.released.set()

        def has_ended():
            time.sleep(0.1)  # so the clients last for the whole stop
            shown = exchange(
                clients.pop(), "GET", f"{path}/alerts", key=key
            ).json["alerts"]
            return each(shown, "state") == ["pending", "delivered"]

        wait_until(has_ended)
        for client in clients:
            client.close()
        assert server.process.wait(60) == 0
        assert len(receiver.received) == 1


def is_refused(server):
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_log_that_is_not_read_holds_up_neither_cards_nor_a_stop(
    start, tmp_path
):
    server = start(stderr=subprocess.PIPE)
    with server.process.stderr as pipe:
        while b" serves http" not in pipe.readline():
            pass
        key = ask(server, "POST", "/register").json["key"]
        for _ in range(fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096) // 50):
            assert ask(server, "GET", "/robots.txt").status == 200
        cards = tmp_path / "cardbeat-data" / "cards"
        shutil.rmtree(cards, ignore_errors=True)
        cards.touch()
        wait_until(lambda: is_full(pipe))
        for title in "abc":
            assert (
                ask(server, "GET", f"/og?title={title}&key={key}").status
                == 200
            )
        server.process.terminate()
        assert server.process.wait(STOPPED_SECONDS) == 0


def is_full(pipe):
    """Whether what waits in it does not grow; what does not fit whole waits for an empty pipe."""
    before = waiting_bytes(pipe)
    time.sleep(0.5)
    return 0 < before == waiting_bytes(pipe)


def waiting_bytes(pipe):
    return int.from_bytes(
        fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder
    )
