"""A response's bytes into a socket that does not block."""

import socket

from cardbeat.system import send_file, send_together
from cardbeat.web.message import FileBody

COPIED_BYTES = 16 * 1024
"""Up to this size it is cheaper to join head and body than to hand both over."""


def send(client: socket.socket, head: bytes, body: bytes | FileBody) -> memoryview | None:
    """Send what the kernel takes at once; returns what it did not take, if anything.

    Raises `OSError` for a client that is gone and for a file that is shorter than it was.
    """
    try:
        sent = _send(client, head, body)
    except BlockingIOError:
        sent = 0
    if sent == len(head) + len(body):
        return None
    # A file is read for its rest, since a slow client must not hold a descriptor, which is dearer than the bytes.
    rest = body.read() if isinstance(body, FileBody) else body
    return memoryview(head + rest)[sent:]


def _send(client: socket.socket, head: bytes, body: bytes | FileBody) -> int:
    if isinstance(body, FileBody):
        sent = send_file(client, head, body.descriptor, body.length)
        if sent is not None:
            return sent
        body = body.read()
    if len(body) < COPIED_BYTES:
        return client.send(head + body)
    return send_together(client, (head, body))
