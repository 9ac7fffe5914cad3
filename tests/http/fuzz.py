"""Streams of requests, most of them damaged: for the reader's tests and the long fuzzing run."""

from collections.abc import Iterable
from random import Random

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.web.message import Request
from cardbeat.web.reader import Reader
from tests.http.malformed import MALFORMED, get, post

_GOOD = (
    get(),
    get(b"Connection: keep-alive", b"A: \xff\tb", line=b"GET http://x/og?title=%&a=\xc3 HTTP/1.0"),
    post(b"Content-Length: 5", body=b"{...}"),
    post(b"Content-Length: 7", b"Expect: 100-continue", body=b"\r\n\r\n\0GE"),
    get(b"Content-Length: 9", line=b"POST /ignored HTTP/1.1") + b"GET / HTT",
)
_BAD = tuple(data[:2000] for data, _ in MALFORMED.values())
_SPLINTERS = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\x85", b"\xff", b"\r\n\r\n", b"HTTP/1.1", b"0\r\n\r\n"),
    *(b"Host: x\r\n", b"GET / HTTP/1.1\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"),
)


def mangled(chance: Random) -> bytes:
    """One to four requests, most of them good, with up to four places cut, doubled or spliced."""
    kinds = chance.choices((_GOOD, _BAD), (5, 1), k=chance.randint(1, 4))
    stream = b"".join(map(chance.choice, kinds))
    for _ in range(chance.randint(0, 4)):
        at, end = sorted((chance.randint(0, len(stream)), chance.randint(0, len(stream))))
        end = min(end, at + chance.randint(0, 20))
        new = chance.choice((b"", stream[at:end] * 2, chance.choice(_SPLINTERS), chance.randbytes(2)))
        stream = stream[:at] + new + stream[end:]
    return stream


def read_all(pieces: Iterable[bytes]) -> tuple[list[Request], Refusal | None]:
    """The requests that a reader finds in a stream, and what it refused in the end; one path ignores bodies."""
    reader = Reader(HttpLimits(), lambda _method, path: path == "/ignored")
    requests = []
    try:
        for piece in pieces:
            request = reader.next(piece)
            while request:
                requests.append(request)
                request = reader.next()
    except Refusal as refusal:
        return requests, refusal
    return requests, None
