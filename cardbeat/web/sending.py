"""A response's bytes into a socket that does not block."""

import os
import socket

from cardbeat.web.message import FileBody

COPIED_BYTES = 16 * 1024
"""Up to this size it is cheaper to join head and body than to hand both over."""

_HAS_SENDFILE = hasattr(socket, "MSG_MORE") and hasattr(os, "sendfile")
"""Linux. Where it is missing, or works otherwise, a file is read and sent as any other body."""
_HAS_SENDMSG = hasattr(socket.socket, "sendmsg")


def send(client: socket.socket, head: bytes, body: bytes | FileBody) -> memoryview | None:
    """Send what the kernel takes at once; returns what it did not take, if anything.

    Raises `OSError` for a client that is gone and for a file that is shorter than it was.
    """
    if isinstance(body, FileBody):
        if _HAS_SENDFILE:
            return _send_file(client, head, body)
        body = body.read()
    try:
        if len(body) < COPIED_BYTES or not _HAS_SENDMSG:
            sent = client.send(head + body)
        else:
            sent = client.sendmsg((head, body))
    except BlockingIOError:
        sent = 0
    return None if sent == len(head) + len(body) else memoryview(head + body)[sent:]


def _send_file(client: socket.socket, head: bytes, file: FileBody) -> memoryview | None:
    """From the kernel's memory of the file, without a copy in this process unless the client is slow."""
    sent_head = sent_body = 0
    try:
        sent_head = client.send(head, socket.MSG_MORE)
        if sent_head == len(head):
            sent_body = os.sendfile(client.fileno(), file.descriptor, 0, file.length)
    except BlockingIOError:
        pass
    if sent_body == file.length:
        return None
    # A descriptor is dearer than these bytes: a slow client must not hold one.
    return memoryview(head[sent_head:] + file.read(sent_body))
