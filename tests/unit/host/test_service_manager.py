"""What a service manager is told, by a server as systemd starts one."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from cardbeat.host import service_manager
from tests.artifact import ROOT, clean_environment
from tests.systems import WINDOWS

pytestmark = pytest.mark.skipif(WINDOWS, reason="Windows has no such sockets")
ABSTRACT = pytest.param("abstract", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has them"))


@pytest.fixture
def manager(request, tmp_path, monkeypatch):
    """The socket of a service manager, whose name is in the environment: the path of a file, or an abstract name."""
    path = str(tmp_path / "notify")
    name = f"@{path}" if getattr(request, "param", None) == "abstract" else path
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name.replace("@", "\0"))
        receiver.settimeout(30)
        yield receiver


def server(folder, environment, *options):
    command = [sys.executable, "-m", "cardbeat", "--port", "0", *options]
    environment = {**clean_environment(), "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE)


@pytest.mark.parametrize("manager", ["file", ABSTRACT], indirect=True)
def test_a_server_says_when_it_is_ready_alive_and_stopping(manager, tmp_path):
    asked = {"NOTIFY_SOCKET": os.environ["NOTIFY_SOCKET"], "WATCHDOG_USEC": "200000"}
    with server(tmp_path, asked) as process:
        assert manager.recv(100) == b"READY=1"
        assert [manager.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        process.send_signal(signal.SIGTERM)
        told = b"WATCHDOG=1"
        while told == b"WATCHDOG=1":
            told = manager.recv(100)
        assert told == b"STOPPING=1"
    assert process.returncode == 0


def test_signs_of_life_are_for_the_process_that_is_asked_for_them(monkeypatch):
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    for limit, seconds in (("300000000", 150), ("", None), ("x", None), ("-5", None), ("9" * 30, None)):
        monkeypatch.setenv("WATCHDOG_USEC", limit)
        assert service_manager.seconds_between_signs() == seconds
    monkeypatch.setenv("WATCHDOG_USEC", "300000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert service_manager.seconds_between_signs() == 150
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert service_manager.seconds_between_signs() is None


@pytest.mark.parametrize("name", ["/nowhere/notify", "@nobody listens", "vsock:2:1234", "x" * 300, "@" + "x" * 300])
def test_a_manager_that_can_not_be_told_is_no_error(name, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    service_manager.tell("READY=1")


def test_a_manager_that_does_not_listen_holds_nothing_up(manager):
    for _ in range(2_000):
        service_manager.tell("WATCHDOG=1")
    assert manager.recv(100) == b"WATCHDOG=1"


def test_without_a_manager_nothing_is_sent(monkeypatch):
    sent = []
    monkeypatch.setattr(service_manager, "send_datagram", lambda *datagram: sent.append(datagram))
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    service_manager.tell("READY=1")
    assert sent == []
