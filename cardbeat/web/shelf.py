"""Bodies laid out where the kernel can send them from without copying them each time."""

import os
import weakref
from functools import lru_cache
from socket import MSG_MORE, socket
from typing import Final

SHELVED: Final = 16
"""Each takes a descriptor."""


class Shelved:
    """A body once more, in a file that has no name. It is closed when nobody holds it any more."""

    __slots__ = ("__weakref__", "_descriptor", "_length")

    def __init__(self, descriptor: int, length: int) -> None:
        self._descriptor = descriptor
        self._length = length
        # Unlike `__del__`, this comes before the interpreter takes its modules apart at the end.
        weakref.finalize(self, os.close, descriptor)

    def fill(self, body: bytes) -> bool:
        """Whether all of it found room."""
        return os.write(self._descriptor, body) == self._length

    def send(self, client: socket, head: bytes | memoryview) -> int:
        """Send a head and the body, as far as the kernel takes them at once; returns how many bytes that was."""
        sent = client.send(head, MSG_MORE)
        if sent < len(head):
            return sent
        try:
            return sent + os.sendfile(client.fileno(), self._descriptor, 0, self._length)
        except OSError:
            # Whatever is wrong: the rest goes the usual way, and fails there if it must.
            return sent


@lru_cache(SHELVED)
def shelved(body: bytes) -> Shelved | None:
    """The body where the kernel can send it from, or None where that can't be."""
    try:
        shelf = Shelved(os.memfd_create("cardbeat"), len(body))
        return shelf if shelf.fill(body) else None
    except (AttributeError, OSError):
        return None
