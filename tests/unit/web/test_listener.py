"""The listening socket."""

import socket
import subprocess
import sys

from cardbeat.web.listener import Listener, passed_socket
from tests.systems import PASSED_SOCKETS

ACTIVATED_FOR_ANOTHER = """
import os, sys
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


def test_there_is_none_where_systemd_passes_none() -> None:
    assert passed_socket() is None


def test_no_piece_of_an_answer_waits_for_the_acknowledgement_of_the_one_before() -> None:
    listener = Listener("127.0.0.1", 0)
    with socket.create_connection(listener.address[:2]):
        listener.socket.setblocking(True)
        accepted, _ = listener.socket.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    listener.close()
