"""Webhook receivers at every address of 127.0.0.0/8, in a process of their own that counts what they get.

One socket listens on all addresses of the loopback interface alone. A path that begins with `/silent` never gets an
answer, one that begins with `/chatty` thousands of informational ones, any other one 204. On a second port, no
connection is ever completed.
"""

import contextlib
import multiprocessing
import os
import selectors
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import NamedTuple

SO_BINDTODEVICE = getattr(socket, "SO_BINDTODEVICE", 25)
ANSWER = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
CHATTY = b"HTTP/1.1 102 x\r\n\r\n" * 3600


class Counts(NamedTuple):
    most_at_once: int
    """Connections that were open at the same time to one address."""
    taken: int
    """Posts that were answered."""
    taken_bytes: int
    """Of these posts, with their heads."""


@dataclass
class Receivers:
    """The ports of a running process, and its counts so far."""

    port: int
    unreachable_port: int
    _pipe: Connection

    def counts(self) -> Counts:
        self._pipe.send(None)
        return self._pipe.recv()


@contextlib.contextmanager
def receiving() -> Iterator[Receivers]:
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs,), daemon=True)
    process.start()
    try:
        yield Receivers(*pipe.recv(), pipe)
    finally:
        process.kill()
        process.join()


def _run(pipe: Connection) -> None:
    os.nice(5)
    listener, unreachable = _listen(backlog=4096), _listen(backlog=0)
    fillers = [_begin_connecting(unreachable.getsockname()[1]) for _ in range(3)]
    pipe.send((listener.getsockname()[1], unreachable.getsockname()[1]))
    _Loop(listener, pipe).run()
    del fillers


def _listen(backlog: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, b"lo")
    listener.bind(("0.0.0.0", 0))
    listener.listen(backlog)
    return listener


def _begin_connecting(port: int) -> socket.socket:
    """Occupies the queue of a socket that accepts nothing: what comes after it is never completed."""
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", port))
    return client


@dataclass(eq=False)
class _Post:
    """One connection, and what came over it."""

    socket: socket.socket
    data: bytearray = field(default_factory=bytearray)

    @property
    def is_silent(self) -> bool:
        return self.data.startswith(b"POST /silent")

    def is_whole(self) -> bool:
        head, blank, body = self.data.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return bool(blank) and len(body) >= int(length or 0)

    def is_over(self) -> bool:
        """Whether the sender has closed the connection, which may not have been noticed yet."""
        try:
            return not self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


class _Loop:
    def __init__(self, listener: socket.socket, pipe: Connection) -> None:
        self._listener = listener
        self._pipe = pipe
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(pipe, selectors.EVENT_READ, self._tell)
        self._open: dict[str, set[_Post]] = {}
        self._counts = Counts(0, 0, 0)

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if isinstance(key.data, _Post):
                    self._read(key.data)
                else:
                    key.data()

    def _tell(self) -> None:
        self._pipe.recv()
        self._pipe.send(self._counts)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        client.setblocking(False)
        post = _Post(client)
        at_address = self._open.setdefault(client.getsockname()[0], set())
        at_address -= {other for other in at_address if other.is_over()}
        at_address.add(post)
        self._counts = self._counts._replace(most_at_once=max(self._counts.most_at_once, len(at_address)))
        self._selector.register(client, selectors.EVENT_READ, post)

    def _read(self, post: _Post) -> None:
        try:
            data = post.socket.recv(1 << 20)
        except OSError:
            data = b""
        post.data += data
        if not data:
            self._close(post)
        elif not post.is_silent and post.is_whole():
            self._take(post)

    def _take(self, post: _Post) -> None:
        taken, taken_bytes = self._counts.taken + 1, self._counts.taken_bytes + len(post.data)
        self._counts = self._counts._replace(taken=taken, taken_bytes=taken_bytes)
        with contextlib.suppress(OSError):
            post.socket.sendall(CHATTY if post.data.startswith(b"POST /chatty") else ANSWER)
        self._close(post)

    def _close(self, post: _Post) -> None:
        self._open[post.socket.getsockname()[0]].discard(post)
        self._selector.unregister(post.socket)
        post.socket.close()
