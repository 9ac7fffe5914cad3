"""What the request reader takes, what it refuses, and that it never depends on how the bytes arrive."""

import random
import re
from pathlib import Path

import pytest

import cardbeat
from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.web.reader import HEADERS, Reader, split_target
from tests.kit.lists import each
from tests.server.malformed import (
    CODED,
    HOST,
    MALFORMED,
    chunked,
    get,
    post,
)

LIMITS = HttpLimits()
IGNORED = b"/ignored"


class Stream:
    """Reads requests as a connection does. Bodies of the path `/ignored` are dropped."""

    def __init__(self):
        self.reader = Reader(LIMITS)
        self.requests = []
        self.most_held = 0
        self._request = None

    def add(self, data):
        """Note the requests that are complete with these bytes. Raises `Refusal`."""
        self.reader.add(data)
        while (request := self._next()) is not None:
            self.requests.append(request)
        self.most_held = max(self.most_held, self.reader.held_bytes)

    def _next(self):
        reader = self.reader
        if self._request is None:
            self._request = reader.read_head()
            if self._request is None:
                return None
            if self._request.path == IGNORED.decode():
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
    """The requests in a stream, and the status of what was refused in the end."""
    stream = Stream()
    try:
        for piece in pieces:
            stream.add(piece)
    except Refusal as refusal:
        return stream.requests, refusal.status
    return stream.requests, None


def read_one(data):
    """The request, which is the same in pieces."""
    (request,), status = read_all([data])
    assert status is None
    assert read_all(cut(data, 7)) == ([request], None)
    return request


def cut(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


def test_a_malformed_request_is_refused_however_it_arrives_and_also_behind_a_good_one():
    for data, status in MALFORMED:
        assert read_all([data]) == ([], status), data[:80]
        assert read_all(cut(data, 1)) == ([], status), data[:80]
        requests, refused = read_all([get() + data])
        assert (len(requests), refused) == (1, status), data[:80]


def test_a_request_is_read_whole():
    sent = (b"Content-Length: 3", b"If-Match: a", b"if-match:\t b ")
    request = read_one(
        get(*sent, line=b"POST /checks?limit=1?&a HTTP/1.1") + b"{1}"
    )
    assert request.method == "POST"
    assert request.path == "/checks"
    assert request.query == "limit=1?&a"
    assert request.target == "/checks?limit=1?&a"
    assert request.body == b"{1}"
    assert request.headers["if-match"] == "a, b"


CHUNKED = {
    b"5\r\nabcde\r\n0\r\n\r\n": b"abcde",
    b"0\r\n\r\n": b"",
    b"1\r\na\r\n0003\r\nbcd\r\n1\r\ne\r\n000\r\n\r\n": b"abcde",
    b"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n": b"0123456789" * 2,
    b'5;a=b;c="d e"\r\nabcde\r\n0;x\r\n\r\n': b"abcde",
    b"5\r\nabcde\r\n0\r\nETag: x\r\nContent-Length: 9\r\n\r\n": b"abcde",
    b"c\r\n0\r\n\r\nGET / \r\r\n0\r\n\r\n": b"0\r\n\r\nGET / \r",
    b"10000\r\n%b\r\n0\r\n\r\n" % bytes(65536): bytes(65536),
    b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n": b"x" * 5000,
}


def test_requests_are_cut_apart_however_they_arrive():
    stream = (
        get()
        + b"\r\n" * 8000
        + post(b"Content-Length: 2", body=b"{}")
        + get()
    )
    stream += post(b"Content-Length: 0")
    stream += b"".join(map(chunked, CHUNKED)) + get()
    for size in (1, 2, 7, 50, len(stream)):
        requests, status = read_all(cut(stream, size))
        bodies = each(requests, "body")
        assert bodies == [b"", b"{}", b"", b"", *CHUNKED.values(), b""]
        assert status is None


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        (get(), True),
        (get(b"Connection: close"), False),
        (get(b"Connection: Keep-Alive, Close"), False),
        (get(b"Connection: upgrade"), True),
        (get(line=b"GET / HTTP/1.0"), False),
        (get(b"Connection: keep-alive", line=b"GET / HTTP/1.0"), True),
    ],
)
def test_the_connection_lives_as_the_client_asks(head, keep_alive):
    stream = Stream()
    stream.add(head)
    assert stream.reader.keep_alive is keep_alive


@pytest.mark.parametrize(
    ("header", "size"),
    [(b"Content-Length: 70000", None), (CODED, b"11170")],
)
def test_an_ignored_body_may_have_any_size_and_is_dropped_as_it_comes(
    header, size
):
    body = get() + b"x" * (70_000 - len(get()))
    if size:
        body = size + b"\r\n" + body + b"\r\n0\r\n\r\n"
    data = (
        post(header, body=body, path=IGNORED)
        + post(b"Content-Length: 2", body=b"{}")
    ) * 2
    for pieces in (1, 9, 1000):
        stream = Stream()
        for piece in cut(data, pieces):
            stream.add(piece)
        assert (
            each(stream.requests, "body")
            == [
                b"",
                b"{}",
            ]
            * 2
        )
        assert stream.most_held < 400
        assert not stream.reader.has_part


@pytest.mark.parametrize(
    "data",
    [
        b"GET /healthz HTTP/1.0\r\n\r\n",
        get(host=b"Host: [::1]:8080\r\n"),
        get(host=b"hOsT:a_b.example:\r\n"),
        get(b"A:", b"B: \xff\xfe", b"C: a\tb"),
        get(*[b"A: b"] * 99),
        get(line=b"GET /" + b"a" * (8192 - 14) + b" HTTP/1.1"),
        get(b"A: " + b"b" * (16384 - len(HOST) - 5)),
        post(b"Content-Length: 65536", body=b"x" * 65536),
        post(b"Content-Length: 0000002", body=b"{}"),
        post(b"Content-Length: " + b"0" * 30),
        get(line=b"OPTIONS * HTTP/1.1"),
        get(line=b'GET /og?title=100%&a=\xff"<>[]|^`{} HTTP/1.1'),
    ],
    ids=lambda data: repr(data[:40]),
)
def test_what_is_allowed_is_read(data):
    assert read_one(data)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/", "/", ""),
        ("/a%20b?c%20d", "/a%20b", "c%20d"),
        ("//a/../b", "//a/../b", ""),
        ("http://cards.example/og?title=a", "/og", "title=a"),
        ("HTTPS://[::1]:8080?title=a", "/", "title=a"),
        ("http://cards.example", "/", ""),
    ],
)
def test_a_target_is_split(target, path, query):
    assert split_target("GET", target) == (path, query)


GOOD = (
    get(),
    get(
        b"Connection: keep-alive",
        b"A: \xff\tb",
        line=b"GET http://x/og?title=%&a=\xc3 HTTP/1.0",
    ),
    post(b"Content-Length: 5", body=b"{...}"),
    post(
        b"Content-Length: 7",
        b"Expect: 100-continue",
        body=b"\r\n\r\n\0GE",
    ),
    post(b"Content-Length: 9", path=IGNORED, body=b"GET / HTT"),
    chunked(b"5;a=b\r\n{...}\r\n0\r\nA: b\r\n\r\n"),
    chunked(b"4\r\nGET \r\n00\r\n\r\n", IGNORED),
)
BAD = [data[:2000] for data, _ in MALFORMED]
SPLINTERS = (
    *b"\n|\r|\0| |\t|:|\x85|HTTP/1.1|0\r\n|\r\n\r\n".split(b"|"),
    HOST,
    CODED + b"\r\n",
)


def mangled(chance):
    """One to four requests, most of them good, with up to four places cut, doubled or spliced."""
    stream = b"".join(
        map(
            chance.choice,
            chance.choices((GOOD, BAD), (5, 1), k=chance.randint(1, 4)),
        )
    )
    for _ in range(chance.randint(0, 4)):
        at = chance.randint(0, len(stream))
        end = at + chance.randint(0, 20)
        splices = (
            b"",
            stream[at:end] * 2,
            chance.choice(SPLINTERS),
            chance.randbytes(2),
        )
        stream = stream[:at] + chance.choice(splices) + stream[end:]
    return stream


def test_mangled_streams_are_read_the_same_in_whatever_pieces_they_come():
    chance = random.Random(5)
    for _ in range(1500):
        stream = mangled(chance)
        cuts = sorted(chance.choices(range(len(stream) + 1), k=4))
        pieces = [
            stream[a:b]
            for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        ]
        whole, refused = read_all([stream])
        assert read_all(pieces)[0] == whole
        assert (read_all(pieces)[1] is None) == (refused is None)


def test_only_the_headers_that_somebody_reads_are_kept_and_by_their_names_in_lower_case():
    sent = (
        b"AUTHORIZATION:  Bearer a ",
        b"Cookie: host: x",
        b"X-Forwarded-For:a",
        b"Hos: t",
    )
    assert read_one(
        get(*sent, b"x-forwarded-for: b\t", b"If-Range:")
    ).headers == {
        "host": "cards.example",
        "authorization": "Bearer a",
        "x-forwarded-for": "a, b",
        "if-range": "",
    }


def test_every_header_that_the_package_reads_is_kept():
    text = "\n".join(
        path.read_text()
        for path in Path(cardbeat.__file__).parent.rglob("*.py")
    )
    found = re.findall(
        r'\b(?:request\.)?headers(?:\.get\(|\[)"([a-z-]+)"|"([a-z-]+)" (?:not )?in (?:request\.)?headers'
        r'|names_tag\("([a-z-]+)"',
        text,
    )
    names = {name for match in found for name in match if name}
    assert len(names) > 8
    assert names <= {*HEADERS}


def test_a_call_decodes_few_of_many_small_chunks():
    reader = Reader(LIMITS)
    reader.add(chunked(b"1\r\nx\r\n" * 2000))
    assert reader.read_head()
    assert reader.read_body() is None
    assert reader.can_go_on
    assert reader.held_bytes > 11_000
