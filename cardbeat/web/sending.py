"""An answer on its way out: head and body together, as far as the kernel takes them."""

import socket

from cardbeat.system import MORE_FOLLOWS, send_together, sendfile
from cardbeat.web.message import FileBody

COPIED_BYTES = 16 * 1024
"""Up to this size it is cheaper to join head and body than to hand both over."""


def send(client: socket.socket, head: bytes, body: bytes | FileBody) -> memoryview | None:
    """Send what the kernel takes now; returns what it did not take, if anything.

    Raises `OSError` for a client that is gone and for a file that is shorter than it was.
    """
    try:
        sent = _send_now(client, head, body)
    except BlockingIOError:
        sent = 0
    if sent == len(head) + (len(body) if isinstance(body, bytes) else body.length):
        return None
    # The rest of a file is read: a slow client must not hold a descriptor, which is dearer than the bytes.
    data = body if isinstance(body, bytes) else body.read()
    # A large body is not copied: it may be one that many clients are sent.
    return memoryview(data)[sent - len(head) :] if sent >= len(head) else memoryview(head + data)[sent:]


def _send_now(client: socket.socket, head: bytes, body: bytes | FileBody) -> int:
    if isinstance(body, bytes):
        return client.send(head + body) if len(body) < COPIED_BYTES else send_together(client, (head, body))
    if sendfile is None:
        return send_together(client, (head, body.read()))
    sent = client.send(head, MORE_FOLLOWS)
    if sent == len(head):
        try:
            return sent + sendfile(client.fileno(), body.descriptor, 0, body.length)
        except OSError:
            # Whatever is wrong: the rest goes another way, and fails there if it must.
            return sent
    return sent
