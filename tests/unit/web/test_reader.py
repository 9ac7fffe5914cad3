"""What the request reader takes, what it refuses, and that it never depends on how the bytes arrive."""

import random
import re
from pathlib import Path

import pytest

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.web import reader as reader_module
from cardbeat.web.message import Request
from cardbeat.web.reader import HEADERS, Reader, split_target
from tests.http.fuzz import mangled, read_all
from tests.http.malformed import HOST, MALFORMED, get, post

LIMITS = HttpLimits()


def read_one(data: bytes) -> Request:
    (request,), refusal = read_all([data])
    assert refusal is None
    return request


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused_however_it_arrives(name: str, size: int) -> None:
    data, status = MALFORMED[name]
    requests, refusal = read_all(cut(data, size))
    assert requests == []
    assert refusal
    assert refusal.status == status


@pytest.mark.parametrize("name", MALFORMED)
def test_nothing_malformed_is_hidden_behind_a_good_request(name: str) -> None:
    data, status = MALFORMED[name]
    requests, refusal = read_all([get() + data])
    assert len(requests) == 1
    assert refusal
    assert refusal.status == status


def test_a_request_is_read_whole() -> None:
    request = read_one(
        get(b"Content-Length: 3", b"If-Match: a", b"if-match:\t b ", line=b"POST /checks?limit=1?&a HTTP/1.1") + b"{1}"
    )
    assert (request.method, request.path, request.query) == ("POST", "/checks", "limit=1?&a")
    assert request.target == "/checks?limit=1?&a"
    assert request.body == b"{1}"
    assert request.headers["if-match"] == "a, b"


def test_requests_are_cut_apart_however_they_arrive() -> None:
    stream = post(b"Content-Length: 2", body=b"{}") + get() + b"\r\n" + post(b"Content-Length: 0") + get()
    for size in (1, 2, 3, 7, 50, len(stream)):
        requests, refusal = read_all(cut(stream, size))
        assert refusal is None
        assert [(r.method, r.body) for r in requests] == [("POST", b"{}"), ("GET", b""), ("POST", b""), ("GET", b"")]


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
def test_the_connection_lives_as_the_client_asks(head: bytes, keep_alive: bool) -> None:
    reader = Reader(LIMITS)
    assert reader.next(head)
    assert reader.keep_alive is keep_alive


def test_a_client_that_waits_for_100_is_noticed_once_its_head_is_read() -> None:
    reader = Reader(LIMITS)
    assert reader.next(post(b"Content-Length: 2", b"Expect: 100-Continue")) is None
    assert reader.in_body
    assert reader.expects_continue
    assert reader.next(b"{}")
    assert not reader.expects_continue
    assert not reader.has_part


@pytest.mark.parametrize("size", [1, 9, 1000, 70_000])
def test_a_body_that_nobody_wants_may_have_any_size_and_is_dropped_as_it_comes(size: int) -> None:
    ignored = post(b"Content-Length: 70000", body=get() + b"x" * (70_000 - len(get())))
    other = get(b"Content-Length: 2", line=b"POST / HTTP/1.1") + b"{}"
    reader, requests = Reader(LIMITS, lambda *head: head == ("POST", "/register")), []
    for _ in range(2):
        for piece in cut(ignored + other + get(), size):
            request = reader.next(piece)
            while request:
                requests.append((request.method, request.path, request.body))
                request = reader.next()
            assert len(reader._buffer) < 200
    assert requests == [("POST", "/register", b""), ("POST", "/", b"{}"), ("GET", "/healthz", b"")] * 2
    assert not reader.has_part


def test_what_is_ignored_elsewhere_is_refused_where_it_is_too_large() -> None:
    reader = Reader(LIMITS, lambda *head: head == ("POST", "/register"))
    with pytest.raises(Refusal, match="at most 65536"):
        reader.next(get(b"Content-Length: 70000", line=b"POST /registers HTTP/1.1"))


@pytest.mark.parametrize(
    "data",
    [
        get(host=b"Host: [::1]:8080\r\n"),
        get(host=b"Host: 127.0.0.1\r\n"),
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
)
def test_what_is_allowed_is_read(data: bytes) -> None:
    request = read_one(data)
    assert read_all(cut(data, 7)) == ([request], None)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/", "/", ""),
        ("/a%20b?c%20d", "/a b", "c%20d"),
        ("/%", "/%", ""),
        ("/\xc3\xa4", "/ä", ""),
        ("/\xff%ff", "/\ufffd\ufffd", ""),
        ("/ping/a%00?a%00", "/ping/a\ufffd", "a%00"),
        ("//a/../b", "//a/../b", ""),
        ("http://cards.example/og?title=a", "/og", "title=a"),
        ("HTTPS://[::1]:8080?title=a", "/", "title=a"),
        ("http://cards.example", "/", ""),
    ],
)
def test_a_target_is_split(target: str, path: str, query: str) -> None:
    assert split_target("GET", target) == (path, query)


def test_mangled_streams_are_read_the_same_in_whatever_pieces_they_come() -> None:
    chance = random.Random(5)
    for _ in range(1500):
        stream = mangled(chance)
        cuts = sorted(chance.choices(range(len(stream) + 1), k=4))
        pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        requests, refusal = read_all([stream])
        requests_in_pieces, refusal_in_pieces = read_all(pieces)
        assert requests == requests_in_pieces
        assert (refusal is None) == (refusal_in_pieces is None)


def test_only_the_headers_that_somebody_reads_are_kept_and_by_their_names_in_lower_case() -> None:
    sent = (b"AUTHORIZATION:  Bearer a ", b"Cookie: host: x", b"A: b", b"X-Forwarded-For:a", b"x-forwarded-for: b\t")
    assert read_one(get(*sent, b"Hos: t", b"If-Range:")).headers == {
        "host": "cards.example",
        "authorization": "Bearer a",
        "x-forwarded-for": "a, b",
        "if-range": "",
    }


def test_every_header_that_the_package_reads_is_kept() -> None:
    package = Path(reader_module.__file__).parents[1]
    read = set()
    for path in package.rglob("*.py"):
        text = path.read_text()
        read |= set(re.findall(r"""(?:request\.headers|\bheaders)(?:\.get\(|\[)"([a-z-]+)\"""", text))
        read |= set(re.findall(r"""\"([a-z-]+)" (?:not )?in (?:request\.)?headers""", text))
        read |= set(re.findall(r"""names_tag\("([a-z-]+)\"""", text))
    assert len(read) > 8
    assert read <= set(HEADERS)


def test_http_1_0_may_leave_the_host_out() -> None:
    assert read_one(b"GET /healthz HTTP/1.0\r\n\r\n").path == "/healthz"


@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_line_ends_before_a_request_are_left_out_however_many_they_are(size: int) -> None:
    requests, refusal = read_all(cut(b"\r\n" * 8000 + get(), size))
    assert (len(requests), refusal) == (1, None)


@pytest.mark.parametrize("path", ["/" + "%" * 8_000, "/x" + "%ff" * 2_000])
def test_a_path_that_is_longer_than_any_route_is_not_decoded(path: str) -> None:
    assert split_target("GET", path + "?a=%41") == (path, "a=%41")


def test_a_part_of_a_head_is_faultless_exactly_if_no_fault_is_found_in_it() -> None:
    chance, seen = random.Random(7), set()
    for _ in range(20_000):
        part = "".join(
            chance.choices("ab\t\x80\r\n\0\x7f", weights=(9, 9, 2, 2, 3, 3, 0.2, 0.2), k=chance.randrange(12))
        )
        begin = chance.randrange(2)
        found = any(fault.search(part, begin) for fault, _ in reader_module._FAULTS)
        # A line end may have begun before the place from which it looks.
        if part[:begin] != "\r":
            assert (reader_module._FAULTLESS.fullmatch(part, begin) is None) == found, part
            seen.add(found)
    assert seen == {True, False}


def test_a_head_counts_as_held_while_its_body_is_awaited() -> None:
    reader = Reader(HttpLimits())
    head = b"POST / HTTP/1.1\r\nHost: x\r\nIf-Match: " + b"x" * 8_000 + b"\r\nContent-Length: 5\r\n\r\n"
    assert reader.next(head) is None
    assert reader.held_bytes >= len(head)
    assert reader.next(b"abcde") is not None
    assert reader.held_bytes == 0


@pytest.mark.parametrize(
    "data", [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n" + b"x" * 8_000, b"G" * 8_000]
)
def test_what_is_forgotten_is_not_kept(data: bytes) -> None:
    """A closed connection may wait for a turn for seconds, with thousands of others."""
    reader = Reader(HttpLimits())
    assert reader.next(data) is None
    assert reader.held_bytes >= 8_000
    reader.forget()
    assert (reader.held_bytes, reader.request) == (0, None)


def test_a_long_host_is_not_kept_for_the_next_request() -> None:
    reader = Reader(HttpLimits())
    for size, kept in (8_000, False), (200, True):
        assert reader.next(b"GET / HTTP/1.1\r\nHost: " + b"x" * size + b"\r\n\r\n") is not None
        assert (reader._host is not None) is kept
