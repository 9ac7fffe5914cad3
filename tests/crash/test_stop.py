"""A stop lets posts of alerts finish, and never takes ten seconds."""

import contextlib
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


def test_a_second_signal_ends_the_server_at_once(start):
    server = start()
    with socket.create_connection(("127.0.0.1", server.port)):
        time.sleep(0.3)
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: is_refused(server))
        assert seconds_to_stop(server) < 1.5
        assert server.process.returncode == 0


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
    assert server.stop() == 0
    return time.monotonic() - began
