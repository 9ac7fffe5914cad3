"""What a host has beside Python: certificates, Pillow, and a service manager."""

import os
import signal
import socket
import subprocess
import sys

import PIL
import pytest

from cardbeat.errors import StartupError
from cardbeat.host import surroundings
from tests.kit.artifact import ROOT, clean_environment
from tests.kit.lists import times
from tests.kit.systems import WINDOWS

SOCKETS = pytest.mark.skipif(
    WINDOWS, reason="Windows has no such sockets"
)
ABSTRACT = pytest.param(
    "abstract",
    marks=pytest.mark.skipif(
        sys.platform != "linux", reason="Linux alone has them"
    ),
)


@pytest.mark.parametrize(
    ("file", "names", "trusted"),
    [
        (ROOT / "tests" / "kit" / "receiver.pem", None, True),
        ("none", ["0123abcd.0"], True),
        ("none", ["README", "java", "0123abcd"], False),
        ("none", [], False),
        ("none", None, False),
    ],
)
def test_certificate_authorities_are_found_in_a_file_or_a_folder(
    monkeypatch, tmp_path, file, names, trusted
):
    folder = tmp_path / "certs"
    if names is not None:
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    assert surroundings.trusts_some() is trusted


@pytest.mark.parametrize("broken", ["PIL", "PIL._imagingft"])
def test_a_pillow_that_is_missing_or_broken_is_told_with_what_helps(
    monkeypatch, broken
):
    monkeypatch.setitem(sys.modules, broken, None)
    if broken != "PIL":
        monkeypatch.delattr(broken, raising=False)
    told = r"^Pillow is missing or broken .*; install the system's package .*, run: pip install Pillow"
    with pytest.raises(StartupError, match=told):
        surroundings.require_pillow()


def test_the_oldest_pillow_that_is_taken_is_that_of_debian_12(
    monkeypatch,
):
    for version in (PIL.__version__, "9.4.0", "9.10.0.dev0"):
        monkeypatch.setattr(PIL, "__version__", version)
        surroundings.require_pillow()
    for version in ("9.3.0", "8.9"):
        monkeypatch.setattr(PIL, "__version__", version)
        with pytest.raises(
            StartupError,
            match=f"Pillow {version} is too old, cardbeat needs 9.4 or newer; ",
        ):
            surroundings.require_pillow()


@pytest.fixture
def manager(request, tmp_path, monkeypatch):
    """The socket of a service manager, whose name is in the environment: the path of a file, or an abstract name."""
    path = str(tmp_path / "notify")
    name = f"@{path}" if request.param == "abstract" else path
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name.replace("@", "\0"))
        receiver.settimeout(30)
        yield receiver


@SOCKETS
@pytest.mark.parametrize("manager", ["file", ABSTRACT], indirect=True)
def test_a_server_says_when_it_is_ready_alive_and_stopping(
    manager, tmp_path
):
    asked = {
        "NOTIFY_SOCKET": os.environ["NOTIFY_SOCKET"],
        "WATCHDOG_USEC": "200000",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "cardbeat", "--port", "0"]
    environment = clean_environment() | asked
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    ) as server:
        assert times(3, manager.recv, 100) == [
            b"READY=1",
            b"WATCHDOG=1",
            b"WATCHDOG=1",
        ]
        server.send_signal(signal.SIGTERM)
        while (told := manager.recv(100)) == b"WATCHDOG=1":
            pass
        assert told == b"STOPPING=1"
    assert server.returncode == 0


@SOCKETS
@pytest.mark.parametrize("manager", ["file"], indirect=True)
def test_a_manager_that_does_not_listen_or_is_not_there_holds_nothing_up(
    manager, monkeypatch
):
    for _ in range(2_000):
        surroundings.tell_manager("WATCHDOG=1")
    assert manager.recv(100) == b"WATCHDOG=1"
    for name in ("/nowhere/notify", "@nobody listens", "x" * 300):
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        surroundings.tell_manager("READY=1")


@pytest.mark.parametrize(
    ("limit", "seconds"), [("300000000", 150), ("", None)]
)
def test_signs_of_life_come_twice_in_the_time_that_is_asked_for(
    monkeypatch, limit, seconds
):
    monkeypatch.setenv("WATCHDOG_USEC", limit)
    assert surroundings.seconds_between_signs() == seconds
