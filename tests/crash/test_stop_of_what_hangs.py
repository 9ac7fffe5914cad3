"""A stop ends within ten seconds, with status 0, though a receiver, a look-up or a lock hangs."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tests.artifact import ROOT, Running, clean_environment, free_port
from tests.crash.client import ask, checks_key, new_check
from tests.receiver import Receiver, hang
from tests.support import wait_until

fcntl = pytest.importorskip("fcntl")

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

THREADS = """
start, names = threading.Thread.start, ("alerts-courier", "webhook-resolver", "report")

def refuse(thread):
    if thread.name in names:
        raise RuntimeError("can't start new thread")
    start(thread)

threading.Thread.start = refuse
"""


@pytest.fixture
def launch(tmp_path):
    """Starts a server with a fault; whatever still runs at the end is ended."""
    running = []

    def launch_one(name, fault):
        folder = tmp_path / name
        folder.mkdir()
        port, log = free_port(), folder / "log"
        command = [sys.executable, "-c", CHILD.format(fault=fault), "serve", "--port", str(port), "--data", "data"]
        options = ["--allow-private-webhooks", "--sweep-seconds", "0.2"]
        environment = clean_environment() | {"PYTHONPATH": str(ROOT)}
        with log.open("wb") as sink:
            process = subprocess.Popen([*command, *options], cwd=folder, stderr=sink, env=environment)
        running.append(process)
        server = Running(process, port, log)
        wait_until(server.serves)
        return server

    yield launch_one
    for process in running:
        process.kill()
        process.wait()


def test_a_stop_ends_in_time_though_something_hangs(launch):
    with contextlib.ExitStack() as stack:
        receiver = stack.enter_context(Receiver(hang))
        faults = {
            "writer.lock": ("", lambda server: hold_lock(stack, server)),
            "a receiver": ("", lambda server: post_to(server, receiver.url)),
            "a look-up": (LOOK_UPS, lambda server: post_to(server, "http://hangs.example/")),
            "no threads": (THREADS, lambda server: post_to(server, receiver.url)),
            "a client": ("", lambda server: keep_sending(stack, server)),
        }
        servers = {name: launch(name.replace(" ", "-"), fault) for name, (fault, _) in faults.items()}
        for name, (_, trouble) in faults.items():
            trouble(servers[name])
        time.sleep(1)  # the sweeps and posts that are to hang have begun
        assert {name: found for name, found in stops_of(servers).items() if found != "in time"} == {}


def stops_of(servers):
    began = {}
    for name, server in servers.items():
        server.process.send_signal(signal.SIGTERM)
        began[name] = time.monotonic()
    found = {}
    while len(found) < len(servers):
        for name in servers.keys() - found.keys():
            seconds, status = time.monotonic() - began[name], servers[name].process.poll()
            if status is not None or seconds > 20:
                is_good = status == 0 and seconds < 10
                found[name] = "in time" if is_good else (status, seconds, servers[name].log.read_text()[-500:])
        time.sleep(0.01)
    return found


def hold_lock(stack, server):
    """As another process that is suspended while it writes; meanwhile pings come, before the stop and in it."""
    key = checks_key(server)
    check = new_check(server, key, period_seconds=1)
    lock = stack.enter_context((server.log.parent / "data" / "writer.lock").open("rb+"))
    fcntl.flock(lock, fcntl.LOCK_EX)
    for number in range(100):
        timer = threading.Timer(number / 10, ping, (server, check["id"]))
        stack.callback(timer.cancel)
        timer.start()


def ping(server, check_id):
    with contextlib.suppress(OSError):
        ask(server, "GET", f"/ping/{check_id}")


def post_to(server, url):
    key = checks_key(server)
    path = f"/checks/{new_check(server, key, webhook_url=url)['id']}"
    assert ask(server, "POST", f"{path}/test-alert", key=key).status == 202


def keep_sending(stack, server):
    client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))

    def send():
        with contextlib.suppress(OSError):
            client.sendall(b"POST /ping/x HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n")
            while True:
                client.sendall(b"x")
                time.sleep(0.05)

    threading.Thread(target=send, daemon=True).start()
