"""The listening socket, whose options its clients' sockets inherit."""

import contextlib
import socket
import sys

import pytest

from cardbeat.web.server import SEND_BUFFER, listen


@pytest.fixture
def accepted():
    listener = listen("127.0.0.1", 0)
    with (
        contextlib.closing(listener),
        socket.create_connection(listener.getsockname()),
    ):
        listener.setblocking(True)
        with listener.accept()[0] as connection:
            yield connection


def test_no_piece_of_an_answer_waits_for_the_receipt_of_the_one_before(
    accepted,
):
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can drop it")
def test_what_a_client_does_not_take_is_dropped_also_after_the_close(accepted):
    """Else it stays in the kernel for 340 s: 2,000 requests whose answers are not read take 700 MiB."""
    assert (
        accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        == 60_000
    )


def test_the_kernel_holds_little_for_a_client_that_does_not_read(accepted):
    accepted.setblocking(False)
    taken = 0
    with contextlib.suppress(BlockingIOError):
        while taken < 16 * SEND_BUFFER:
            taken += accepted.send(bytes(SEND_BUFFER))
    assert 0 < taken < 16 * SEND_BUFFER
