"""What the request reader takes, what it refuses, and that it never depends on how the bytes arrive."""

import random
import re
from pathlib import Path

import pytest

from cardbeat.config import HttpLimits
from cardbeat.web import reader as reader_module
from cardbeat.web.reader import HEADERS, Reader, split_target
from tests.http.fuzz import Stream, mangled, read_all
from tests.http.malformed import HOST, MALFORMED, chunked, get, post

LIMITS = HttpLimits()


def read_one(data):
    (request,), refusal = read_all([data])
    assert refusal is None
    return request


def cut(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused_however_it_arrives(name, size):
    data, status = MALFORMED[name]
    requests, refusal = read_all(cut(data, size))
    assert requests == []
    assert refusal
    assert refusal.status == status


@pytest.mark.parametrize("name", MALFORMED)
def test_nothing_malformed_is_hidden_behind_a_good_request(name):
    data, status = MALFORMED[name]
    requests, refusal = read_all([get() + data])
    assert len(requests) == 1
    assert refusal
    assert refusal.status == status


def test_a_request_is_read_whole():
    request = read_one(
        get(
            b"Content-Length: 3",
            b"If-Match: a",
            b"if-match:\t b ",
            line=b"POST /checks?limit=1?&a HTTP/1.1",
        )
        + b"{1}"
    )
    assert (request.method, request.path, request.query) == ("POST", "/checks", "limit=1?&a")
    assert request.target == "/checks?limit=1?&a"
    assert request.body == b"{1}"
    assert request.headers["if-match"] == "a, b"


def test_requests_are_cut_apart_however_they_arrive():
    stream = (
        post(b"Content-Length: 2", body=b"{}")
        + get()
        + b"\r\n"
        + post(b"Content-Length: 0")
        + get()
    )
    for size in (1, 2, 3, 7, 50, len(stream)):
        requests, refusal = read_all(cut(stream, size))
        assert refusal is None
        assert [(r.method, r.body) for r in requests] == [
            ("POST", b"{}"),
            ("GET", b""),
            ("POST", b""),
            ("GET", b""),
        ]


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
    assert stream.add(head)
    assert stream.reader.keep_alive is keep_alive


def test_a_client_that_waits_for_100_is_noticed_once_its_head_is_read():
    stream = Stream()
    assert stream.add(post(b"Content-Length: 2", b"Expect: 100-Continue")) == []
    assert stream.reader.in_body
    assert stream.reader.expects_continue
    assert stream.add(b"{}")
    assert not stream.reader.expects_continue
    assert not stream.reader.has_part


@pytest.mark.parametrize("size", [1, 9, 1000, 70_000])
def test_an_ignored_body_may_have_any_size_and_is_dropped_as_it_comes(size):
    ignored = get(b"Content-Length: 70000", line=b"POST /ignored HTTP/1.1")
    ignored += get() + b"x" * (70_000 - len(get()))
    other = post(b"Content-Length: 2", body=b"{}")
    stream = Stream()
    requests = []
    for piece in cut((ignored + other + get()) * 2, size):
        requests += stream.add(piece)
        assert stream.reader.held_bytes < 400
    bodies = [(request.path, request.body) for request in requests]
    assert bodies == [("/ignored", b""), ("/register", b"{}"), ("/healthz", b"")] * 2
    assert not stream.reader.has_part


@pytest.mark.parametrize(
    "data",
    [
        b"GET /healthz HTTP/1.0\r\n\r\n",
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
def test_what_is_allowed_is_read(data):
    request = read_one(data)
    assert read_all(cut(data, 7)) == ([request], None)


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


def test_mangled_streams_are_read_the_same_in_whatever_pieces_they_come():
    chance = random.Random(5)
    for _ in range(1500):
        stream = mangled(chance)
        cuts = sorted(chance.choices(range(len(stream) + 1), k=4))
        pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        requests, refusal = read_all([stream])
        requests_in_pieces, refusal_in_pieces = read_all(pieces)
        assert requests == requests_in_pieces
        assert (refusal is None) == (refusal_in_pieces is None)


def test_only_the_headers_that_somebody_reads_are_kept_and_by_their_names_in_lower_case():
    sent = (
        b"AUTHORIZATION:  Bearer a ",
        b"Cookie: host: x",
        b"A: b",
        b"X-Forwarded-For:a",
        b"x-forwarded-for: b\t",
    )
    assert read_one(get(*sent, b"Hos: t", b"If-Range:")).headers == {
        "host": "cards.example",
        "authorization": "Bearer a",
        "x-forwarded-for": "a, b",
        "if-range": "",
    }


def test_every_header_that_the_package_reads_is_kept():
    package = Path(reader_module.__file__).parents[1]
    read = set()
    for path in package.rglob("*.py"):
        text = path.read_text()
        read |= set(
            re.findall(r"""(?:request\.headers|\bheaders)(?:\.get\(|\[)"([a-z-]+)\"""", text)
        )
        read |= set(re.findall(r"""\"([a-z-]+)" (?:not )?in (?:request\.)?headers""", text))
        read |= set(re.findall(r"""names_tag\("([a-z-]+)\"""", text))
    assert len(read) > 8
    assert read <= set(HEADERS)


@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_line_ends_before_a_request_are_left_out_however_many_they_are(size):
    requests, refusal = read_all(cut(b"\r\n" * 8000 + get(), size))
    assert (len(requests), refusal) == (1, None)


def test_a_request_holds_its_head_and_what_has_come_of_its_body():
    stream = Stream()
    head = post(b"If-Match: " + b"x" * 8_000, b"Content-Length: 5")
    assert stream.add(head + b"abc") == []
    assert stream.reader.held_bytes == 3
    (request,) = stream.add(b"de")
    assert stream.reader.held_bytes == 0
    assert request.held_bytes == len(head) + 5


CHUNKED = {
    "one chunk": (b"5\r\nabcde\r\n0\r\n\r\n", b"abcde"),
    "none": (b"0\r\n\r\n", b""),
    "several": (b"1\r\na\r\n0003\r\nbcd\r\n1\r\ne\r\n000\r\n\r\n", b"abcde"),
    "sizes in either case": (b"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", b"0123456789" * 2),
    "extensions": (b'5;a=b;c="d e"\r\nabcde\r\n0;x\r\n\r\n', b"abcde"),
    "a trailer": (b"5\r\nabcde\r\n0\r\nETag: x\r\nContent-Length: 9\r\n\r\n", b"abcde"),
    "what looks like an end": (b"c\r\n0\r\n\r\nGET / \r\r\n0\r\n\r\n", b"0\r\n\r\nGET / \r"),
    "64 KiB": (b"10000\r\n%b\r\n0\r\n\r\n" % bytes(65536), bytes(65536)),
    "single bytes": (b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n", b"x" * 5000),
}


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("name", CHUNKED)
def test_a_chunked_body_is_decoded_however_it_arrives(name, size):
    coded, content = CHUNKED[name]
    requests, refusal = read_all(cut(chunked(coded) + get(), size))
    assert refusal is None
    assert [request.body for request in requests] == [content, b""]


def test_a_chunked_body_that_is_ignored_is_dropped_as_it_comes():
    stream = Stream()
    head = get(b"Transfer-Encoding: chunked", line=b"POST /ignored HTTP/1.1")
    assert stream.add(head + b"ffffff\r\n") == []
    for _ in range(0xFFFFFF // 65535):
        assert stream.add(bytes(65535)) == []
        assert stream.reader.held_bytes < 400
    (request,) = stream.add(bytes(0xFFFFFF % 65535) + b"\r\n0\r\n\r\n")
    assert request.body == b""


def test_a_call_decodes_few_of_many_small_chunks():
    reader = Reader(LIMITS)
    reader.add(chunked(b"1\r\nx\r\n" * 2000))
    assert reader.read_head()
    assert reader.read_body() is None
    assert reader.can_go_on
    assert reader.held_bytes > 11_000
