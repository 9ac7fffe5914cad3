"""Sends an answer through a socket that does not block: as much as the kernel takes at once."""

import socket

from cardbeat.host.system import MORE_FOLLOWS, send_together, sendfile
from cardbeat.web.message import FileBody

COPIED_BYTES = 16 * 1024
"""Smaller bodies are copied behind their head: that is faster than to pass both to the kernel."""


def send(client: socket.socket, head: bytes, body: bytes | FileBody) -> memoryview | None:
    """Send as much of a head and a body as the kernel takes now; returns the rest, None if there is none.

    Raises `OSError` if the client is gone, or if the file of a body has become shorter.
    """
    if isinstance(body, FileBody):
        return _send_file(client, head, body)
    try:
        sent = client.send(head + body) if len(body) < COPIED_BYTES else send_together(client, (head, body))
    except BlockingIOError:
        sent = 0
    if sent == len(head) + len(body):
        return None
    # A large body is not copied: many clients may be sent the same one.
    return memoryview(body)[sent - len(head) :] if sent >= len(head) else memoryview(head + body)[sent:]


def _send_file(client: socket.socket, head: bytes, body: FileBody) -> memoryview | None:
    if sendfile is None:
        return send(client, head, body.read())
    sent = 0
    try:
        sent = client.send(head, MORE_FOLLOWS)
        if sent == len(head):
            sent += sendfile(client.fileno(), body.descriptor, 0, body.length)
        if sent == len(head) + body.length:
            return None
    except OSError:  # The rest is sent below, where the error comes again if it lasts.
        pass
    # The rest of the file is read into memory: a slow client must not hold a descriptor, of which there are few.
    return memoryview(head + body.read())[sent:]


def has_unread(client: socket.socket) -> bool:
    """Whether bytes of the client are in the kernel that were not received yet."""
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
