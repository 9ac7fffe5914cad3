"""The listening socket."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cardbeat.errors import StartupError
from cardbeat.web.listener import (
    RECEIVE_BUFFER,
    SEND_BUFFER,
    TAKES_NOTHING_SECONDS,
    Listener,
    passed_socket,
)
from tests.systems import PASSED_SOCKETS

ACTIVATED_FOR_ANOTHER = """
import os, sys
from cardbeat.errors import StartupError
from cardbeat.web.listener import passed_socket
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getppid()))
print(passed_socket())
"""


@PASSED_SOCKETS
def test_a_socket_that_systemd_passed_to_another_process_is_not_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as passed:
        command = [sys.executable, "-c", ACTIVATED_FOR_ANOTHER, str(passed.fileno())]
        done = subprocess.run(command, pass_fds=[passed.fileno()], capture_output=True, check=True, timeout=60)
        assert done.stdout == b"None\n"


def test_of_several_sockets_that_systemd_passes_none_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of the second would wait for ever."""
    for name, value in (("LISTEN_FDS", "2"), ("LISTEN_PID", str(os.getpid()))):
        monkeypatch.setenv(name, value)
    with pytest.raises(StartupError, match=r"passes 2 sockets, .* one ListenStream="):
        passed_socket()


def test_there_is_none_where_systemd_passes_none() -> None:
    assert passed_socket() is None


@pytest.fixture
def accepted() -> Iterator[socket.socket]:
    """The server's end of a connection."""
    listener = Listener("127.0.0.1", 0)
    with contextlib.closing(listener), socket.create_connection(listener.address[:2]):
        listener.socket.setblocking(True)
        with listener.socket.accept()[0] as connection:
            yield connection


def test_no_piece_of_an_answer_waits_for_the_acknowledgement_of_the_one_before(accepted: socket.socket) -> None:
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can drop it")
def test_what_a_client_does_not_take_is_dropped_also_after_the_close(accepted: socket.socket) -> None:
    """It stayed in the kernel for 340 s: 2,000 requests that nobody read took 700 MiB."""
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 1000 * TAKES_NOTHING_SECONDS


@pytest.mark.parametrize(
    ("buffer", "most"), [(socket.SO_RCVBUF, RECEIVE_BUFFER), (socket.SO_SNDBUF, SEND_BUFFER)], ids=["in", "out"]
)
def test_the_kernel_holds_little_for_each_client(accepted: socket.socket, buffer: int, most: int) -> None:
    assert most / 4 <= accepted.getsockopt(socket.SOL_SOCKET, buffer) <= 2 * most


def test_the_kernel_holds_little_for_a_client_that_does_not_read(accepted: socket.socket) -> None:
    accepted.setblocking(False)
    taken = 0
    with contextlib.suppress(BlockingIOError):
        while taken < 16 * SEND_BUFFER:
            taken += accepted.send(bytes(SEND_BUFFER))
    assert 0 < taken < 16 * SEND_BUFFER
