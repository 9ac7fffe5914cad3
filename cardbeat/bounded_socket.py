"""Sockets for talking to servers that are not trusted: one deadline for all, and at most so many bytes read."""

import http.client
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self, TypeVar

T = TypeVar("T")
Turn = Callable[[], AbstractContextManager[None]]

TLS_BYTES = 16 * 1024
"""Of a handshake with its certificates, each of which takes CPU, and then of tickets. An ordinary one has 5 KB."""
OWN_CURVE = bytes.fromhex("2a8648ce3d01")
"""What a certificate has whose key names no curve, but gives the numbers of its own: the type of their field, as object
identifier 1.2.840.10045.1 (RFC 3279, 2.3.5). To decode one of 413 bytes takes OpenSSL 0.25 s, before it trusts any."""
CERTIFICATES = 10
"""Most that are decoded, which may take 1 ms for each; an ordinary chain has 2 to 4."""
CERTIFICATE = 11
"""The type of the message that has them (RFC 5246, 7.4)."""
HANDSHAKE = 22
"""The type of a record (RFC 5246, 6.2.1)."""
TLS_PART = 8
"""And a part of the application's bytes, for the frames of its records."""
LEAST_BYTES = 64
"""What each read counts for at least: to read single bytes takes a hundred times as long as to read them together."""


class BoundedSocket(socket.socket):
    """After `deadline`, by `time.monotonic`, all raises `TimeoutError`; `room` more bytes may be read.

    What is longer raises `http.client.HTTPException`.
    """

    deadline: float
    room: int

    @classmethod
    def over(cls, plain: socket.socket, deadline: float, room: int) -> Self:
        """Take over a connection."""
        connection = cls(plain.family, plain.type, plain.proto, plain.detach())
        connection.deadline, connection.room = deadline, room
        return connection

    def settle(self) -> None:
        """Let the next call wait no longer than until the deadline."""
        self.settimeout(seconds_left(self.deadline))

    def sendall(self, *arguments: Any) -> None:
        self.settle()
        super().sendall(*arguments)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        self.settle()
        if self.room <= 0:
            raise http.client.HTTPException("its answer is too long")
        count = super().recv_into(buffer, min(nbytes or len(buffer), self.room), flags)
        self.room -= max(count, LEAST_BYTES)
        return count


class BoundedTlsSocket(BoundedSocket):
    """The same over TLS, which runs in memory.

    `ssl.SSLSocket` reads what holds nothing for its caller, such as session tickets, for as long as it comes: past any
    timeout, and without an end.
    """

    _tls: ssl.SSLObject
    _incoming: ssl.MemoryBIO
    _outgoing: ssl.MemoryBIO
    _plain_room: int
    _records: bytearray
    """What came, from the begin of a record that is not complete."""
    _said: bytearray
    """The messages of the handshake that have come and are not examined. Both are dropped after it."""

    @classmethod
    def secured(cls, plain: BoundedSocket, context: ssl.SSLContext, host: str, turn: Turn = nullcontext) -> Self:
        """Take over a connection, and shake hands. Its room is for what TLS carries.

        The other side chooses what each step of that costs; it is made in a `turn`. With TLS 1.2, `ssl.SSLError` is
        raised for a certificate with `OWN_CURVE` and for more than `CERTIFICATES`. TLS 1.3 shows them to OpenSSL alone.
        """
        connection = cls.over(plain, plain.deadline, TLS_BYTES)
        connection._plain_room = plain.room
        try:
            connection._shake_hands(context, host, turn)
        except BaseException:
            connection.close()
            raise
        return connection

    def sendall(self, *arguments: Any) -> None:
        self._run(lambda: self._tls.write(arguments[0]))

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        if self._plain_room <= 0:
            raise http.client.HTTPException("its answer is too long")
        most = min(nbytes or len(buffer), self._plain_room)
        try:
            data = self._run(lambda: self._tls.read(most))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            # Also without TLS's own farewell, which many servers leave out: HTTP tells whether something is missing.
            return 0
        buffer[: len(data)] = data
        self._plain_room -= max(len(data), LEAST_BYTES)
        return len(data)

    def _shake_hands(self, context: ssl.SSLContext, host: str, turn: Turn) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._records, self._said = bytearray(), bytearray()
        self._run(self._tls.do_handshake, turn, self._require_decodable)
        del self._records, self._said
        self.room += self._plain_room + self._plain_room // TLS_PART

    def _require_decodable(self, received: bytearray) -> None:
        """Examine the certificates that have come, before OpenSSL gets them."""
        self._records += received
        while len(self._records) > 5 and len(self._records) >= (end := 5 + int.from_bytes(self._records[3:5], "big")):
            if self._records[0] == HANDSHAKE:
                self._said += self._records[5:end]
            del self._records[:end]
        # OpenSSL decodes a message when all of it has come.
        while len(self._said) >= 4 and len(self._said) >= (end := 4 + int.from_bytes(self._said[1:4], "big")):
            message = bytes(self._said[:end])
            del self._said[:end]
            if OWN_CURVE in message:
                raise ssl.SSLError("a certificate has a curve of its own")
            if message[0] == CERTIFICATE and _count_certificates(message) > CERTIFICATES:
                raise ssl.SSLError("there are too many certificates")

    def _run(
        self, step: Callable[[], T], turn: Turn = nullcontext, examine: Callable[[bytearray], None] = lambda _: None
    ) -> T:
        """Do a step of TLS, which may need more bytes of the other side; then send what it has to say."""
        received = bytearray(16 * 1024)
        while True:
            try:
                with turn():
                    result = step()
            except ssl.SSLWantReadError:
                self._send()
                count = super().recv_into(received)
                if count:
                    data = received[:count]
                    examine(data)
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                self._send()
                return result

    def _send(self) -> None:
        if self._outgoing.pending:
            super().sendall(self._outgoing.read())


def _count_certificates(message: bytes) -> int:
    count, place = 0, 7  # behind the type, the length of the message and that of all certificates
    while place < len(message):
        count, place = count + 1, place + 3 + int.from_bytes(message[place : place + 3], "big")
    return count


def seconds_left(deadline: float) -> float:
    """Seconds until `deadline`. Raises `TimeoutError` if none are left, because a timeout of 0 means non-blocking."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
