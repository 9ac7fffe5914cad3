"""Streams of requests, most of them damaged: for the reader's tests and the long fuzzing run."""

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.web.reader import Reader
from tests.http.malformed import MALFORMED, chunked, get, post

LIMITS = HttpLimits()
_GOOD = (
    get(),
    get(b"Connection: keep-alive", b"A: \xff\tb", line=b"GET http://x/og?title=%&a=\xc3 HTTP/1.0"),
    post(b"Content-Length: 5", body=b"{...}"),
    post(b"Content-Length: 7", b"Expect: 100-continue", body=b"\r\n\r\n\0GE"),
    get(b"Content-Length: 9", line=b"POST /ignored HTTP/1.1") + b"GET / HTT",
    chunked(b"5;a=b\r\n{...}\r\n0\r\nA: b\r\n\r\n"),
    get(b"Transfer-Encoding: chunked", line=b"POST /ignored HTTP/1.1") + b"4\r\nGET \r\n00\r\n\r\n",
)
_BAD = tuple(data[:2000] for data, _ in MALFORMED.values())
_LINES = (
    b"",
    b"\r\n",
    b"0\r\n",
    b"Host: x",
    b"GET / HTTP/1.1",
    b"Content-Length: 3",
    b"Transfer-Encoding: chunked",
)
_SPLINTERS = (
    *(b"\n|\r|\0| |\t|:|\x85|\xff|HTTP/1.1".split(b"|")),
    *(line + b"\r\n" for line in _LINES),
)


def mangled(chance):
    """One to four requests, most of them good, with up to four places cut, doubled or spliced."""
    kinds = chance.choices((_GOOD, _BAD), (5, 1), k=chance.randint(1, 4))
    stream = b"".join(map(chance.choice, kinds))
    for _ in range(chance.randint(0, 4)):
        at, end = sorted((chance.randint(0, len(stream)), chance.randint(0, len(stream))))
        end = min(end, at + chance.randint(0, 20))
        new = chance.choice(
            (b"", stream[at:end] * 2, chance.choice(_SPLINTERS), chance.randbytes(2))
        )
        stream = stream[:at] + new + stream[end:]
    return stream


class Stream:
    """Reads requests as a connection does. Bodies of the path `/ignored` are dropped."""

    def __init__(self):
        self.reader = Reader(LIMITS)
        self.requests = []
        self._request = None

    def add(self, data):
        """The requests that are complete with these bytes. Raises `Refusal`."""
        self.reader.add(data)
        before = len(self.requests)
        while (request := self._next()) is not None:
            self.requests.append(request)
        return self.requests[before:]

    def _next(self):
        reader = self.reader
        if self._request is None:
            self._request = reader.read_head()
            if self._request is None:
                return None
            if self._request.path == "/ignored":
                reader.ignore_body()
        if reader.is_too_large:
            raise Refusal("body_too_large", most=LIMITS.body_bytes)
        body = reader.read_body()
        while body is None and reader.can_go_on:
            body = reader.read_body()
        if body is None:
            return None
        request = self._request
        self._request = None
        request.body = body
        return request


def read_all(pieces):
    """The requests in a stream, and what was refused in the end."""
    stream = Stream()
    try:
        for piece in pieces:
            stream.add(piece)
    except Refusal as refusal:
        return stream.requests, refusal
    return stream.requests, None
