"""A stop lets posts of alerts finish, and never takes ten seconds."""

import contextlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.artifact import ROOT, Running, clean_environment, free_port
from tests.crash.client import ask, checks_key, connect, exchange, new_check
from tests.receiver import NO_CONTENT, Receiver, hang
from tests.support import wait_until

fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")


def test_a_post_that_runs_at_a_stop_is_finished_and_not_sent_again(start):
    def slow(receiver, connection):
        receiver.read(connection)
        receiver.released.wait(4)
        connection.sendall(NO_CONTENT)

    with Receiver(slow) as receiver:
        server, path, key = with_a_post_under_way(start, receiver)
        assert seconds_to_stop(server) < 6
        (alert,) = ask(start("--allow-private-webhooks"), "GET", f"{path}/alerts", key=key).json["alerts"]
        assert (alert["state"], alert["attempts"]) == ("delivered", 1)
    assert len(receiver.received) == 1


def test_a_receiver_that_holds_on_does_not_hold_up_a_stop(start):
    with Receiver(hang) as receiver:
        server, _, _ = with_a_post_under_way(start, receiver)
        assert 5 < seconds_to_stop(server) < 10


SIGNALLED_IN_ANOTHER_THREAD = """
import signal, socket, sys, threading, time
from cardbeat.cli import main

def stop():
    while True:
        try:
            socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()
            break
        except OSError:
            time.sleep(0.01)
    while " serves http" not in open("log").read():
        time.sleep(0.01)
    time.sleep(0.5)  # whatever it does to come to a rest, it waits for clients then
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=stop, daemon=True).start()
sys.exit(main(["serve", "--port", sys.argv[1], "--data", "data"]))
"""


def test_a_signal_that_does_not_interrupt_the_wait_for_clients_ends_it(tmp_path):
    """As one that comes just before the wait begins, which no test can hit; this one comes in another thread."""
    command = [sys.executable, "-c", SIGNALLED_IN_ANOTHER_THREAD, str(free_port())]
    with (tmp_path / "log").open("wb") as log:
        environment = clean_environment() | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, stderr=log, timeout=20, check=False)
    assert done.returncode == 0, (tmp_path / "log").read_text()


def test_a_stop_with_nothing_under_way_is_quick(start):
    assert seconds_to_stop(start()) < 2


def test_a_client_that_had_connected_before_a_stop_pings_during_it(start):
    server = start()
    check = new_check(server, key := checks_key(server))
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: is_refused(server))
        client.sendall(f"GET /ping/{check['id']} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert server.process.wait(5) == 0
    assert ask(start(), "GET", f"/checks/{check['id']}", key=key).json["check"]["ping_count"] == 1


def test_a_client_that_has_connected_during_the_start_is_answered_though_a_stop_follows(python, pyz, tmp_path):
    port = free_port()
    with subprocess.Popen([python, pyz, "--port", str(port)], cwd=tmp_path, env=clean_environment()) as process:
        try:
            client = first_client(port)
            process.send_signal(signal.SIGTERM)
            with client:
                client.sendall(b"GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = client.recv(1000)
            assert re.match(rb"HTTP/1\.1 200 OK\r\nDate: [A-Z][a-z]{2}, .* GMT\r\n", answer), answer
            assert process.wait(10) == 0
        finally:
            process.kill()


def first_client(port):
    """A connection to a server that starts, made as soon as its port is open."""
    connected = []

    def connects():
        with contextlib.suppress(ConnectionRefusedError):
            connected.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        return connected

    wait_until(connects)
    return connected[0]


def test_a_second_signal_ends_the_wait_for_a_client_that_sends_nothing(start):
    server = start()
    with socket.create_connection(("127.0.0.1", server.port)):
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: "a second signal ends this wait" in server.log.read_text())
        assert seconds_to_stop(server) < 5


def test_no_post_begins_while_a_stop_waits_for_clients(start):
    """It could have no time to end, and would be sent again."""

    def slow(receiver, connection):
        receiver.read(connection)
        assert receiver.released.wait(30)
        connection.sendall(NO_CONTENT)

    with Receiver(slow) as receiver, contextlib.ExitStack() as stack:
        server, path, key = with_a_post_under_way(start, receiver)
        assert ask(server, "POST", f"{path}/test-alert", key=key).status == 202
        clients = [stack.enter_context(contextlib.closing(connect(server))) for _ in range(100)]
        for client in clients:
            client.connect()
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: is_refused(server))
        receiver.released.set()

        def states():
            shown = exchange(clients.pop(), "GET", f"{path}/alerts", key=key).json["alerts"]
            return [alert["state"] for alert in shown]

        wait_until(lambda: states() == ["pending", "delivered"])
        stack.close()
        assert server.process.wait(15) == 0
        assert len(receiver.received) == 1


def is_refused(server):
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_whoever_holds_up_the_log_holds_up_neither_cards_nor_a_stop(python, pyz, tmp_path):
    port = free_port()
    command = [python, pyz, "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env=clean_environment()) as process:
        try:
            while b" serves http" not in process.stderr.readline():
                pass
            server = Running(process, port, tmp_path / "log")
            key = ask(server, "POST", "/register").json["key"]
            for _ in range(fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096) // 50):
                assert ask(server, "GET", "/robots.txt").status == 200
            cards = tmp_path / "cardbeat-data" / "cards"
            shutil.rmtree(cards, ignore_errors=True)
            cards.touch()
            wait_until(lambda: is_full(process.stderr))
            for title in "abc":
                assert ask(server, "GET", f"/og?title={title}&key={key}").status == 200
            assert seconds_to_stop(server) < 10
        finally:
            process.kill()


def is_full(pipe):
    """Whether what waits in it does not grow, though there is more; what does not fit whole waits for an empty pipe."""
    before = waiting_bytes(pipe)
    time.sleep(0.5)
    return 0 < before == waiting_bytes(pipe)


def waiting_bytes(pipe):
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def with_a_post_under_way(start, receiver):
    server = start("--allow-private-webhooks")
    key = checks_key(server)
    path = f"/checks/{new_check(server, key, webhook_url=receiver.url)['id']}"
    assert ask(server, "POST", f"{path}/test-alert", key=key).status == 202
    wait_until(lambda: receiver.received)
    return server, path, key


def seconds_to_stop(server):
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(15) == 0
    return time.monotonic() - began
