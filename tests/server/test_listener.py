"""The listening socket, whose options its clients' sockets inherit."""

import contextlib
import socket
import sys

from cardbeat.web.server import SEND_BUFFER, listen


def test_the_kernel_holds_little_for_a_client_that_does_not_read_and_not_for_long():
    """Else it stays in the kernel for 340 s: 2,000 requests whose answers are not read take 700 MiB."""
    with (
        contextlib.closing(listen("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        listener.setblocking(True)
        with listener.accept()[0] as accepted:
            level = socket.IPPROTO_TCP
            # No piece of an answer waits for the receipt of the one before.
            assert accepted.getsockopt(level, socket.TCP_NODELAY)
            if sys.platform == "linux":
                drop = socket.TCP_USER_TIMEOUT
                assert accepted.getsockopt(level, drop) == 60_000
            accepted.setblocking(False)
            taken = 0
            with contextlib.suppress(BlockingIOError):
                while taken < 16 * SEND_BUFFER:
                    taken += accepted.send(bytes(SEND_BUFFER))
            assert 0 < taken < 16 * SEND_BUFFER
