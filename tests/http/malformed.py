"""Malformed requests and the status each is refused with. After each the connection is closed."""

HOST = b"Host: cards.example\r\n"


def get(*headers, line=b"GET /healthz HTTP/1.1", host=HOST):
    return line + b"\r\n" + host + b"".join(header + b"\r\n" for header in headers) + b"\r\n"


def post(*headers, body=b""):
    return get(*headers, line=b"POST /register HTTP/1.1") + body


def chunked(body):
    return post(b"Transfer-Encoding: chunked", body=body)


LINES = (
    b"GET /\r HTTP/1.1",
    b"GET /\0 HTTP/1.1",
    b"GET /\x7f HTTP/1.1",
    b" / HTTP/1.1",
    b"GET  HTTP/1.1",
    b"GET  / HTTP/1.1",
    b"GET /a b HTTP/1.1",
    b"GET\t/ HTTP/1.1",
    b" GET / HTTP/1.1",
    b"GET / HTTP/2.0",
    b"GET / HTTP/1.2",
    b"G(T / HTTP/1.1",
    b"GET /#top HTTP/1.1",
    b"GET healthz HTTP/1.1",
    b"GET * HTTP/1.1",
    b"GET ftp://cards.example/ HTTP/1.1",
    b"GET http:///healthz HTTP/1.1",
    b"GET http://a:b@cards.example/ HTTP/1.1",
)
"""First lines that are refused with 400."""
HEADERS = (
    b"A: b\rC: d",
    b"A: b\r",
    b"A: b\0",
    b"A : b",
    b"A",
    b": b",
    b"Host: other.example",
)
"""Lines after the host that are."""
CHUNKS = (
    b"0x5\r\nabcde\r\n0\r\n\r\n",
    b"+5\r\nabcde\r\n0\r\n\r\n",
    b" 5\r\nabcde\r\n0\r\n\r\n",
    b"5 \r\nabcde\r\n0\r\n\r\n",
    b"\r\nabcde\r\n0\r\n\r\n",
    b";a\r\n",
    b"000000005\r\nabcde\r\n0\r\n\r\n",
    b"1000000000000000000\r\nabcde\r\n0\r\n\r\n",
    b"5\nabcde\r\n0\r\n\r\n",
    b"5;a\nabcde\r\n0\r\n\r\n",
    b"5;a\rb\r\nabcde\r\n0\r\n\r\n",
    b"5\r\nabcde\n0\r\n\r\n",
    b"5\r\nabcde0\r\n\r\n",
    b"5\r\nabcdef\r\n0\r\n\r\n",
    b"0\n\n",
    b"0\r\nA\r\n\r\n",
    b"0\r\nA: b\r\n c\r\n\r\n",
)
"""Bodies in chunks that are."""
REFUSED = {
    400: {
        "bare LF after the request line": b"GET / HTTP/1.1\n" + HOST + b"\r\n",
        "bare LF after a header": b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
        "bare LF as the empty line": b"GET / HTTP/1.1\r\n" + HOST + b"\n",
        "only bare LFs": b"GET / HTTP/1.1\nHost: x\n\n",
        "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "no version (HTTP/0.9)": b"GET /\r\n",
        "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "a space before a name": get(b"A: b", b" C: d"),
        "a folded header": get(b"A: b", b" c"),
        "a space before the first header": b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        "no Host": get(host=b""),
        "an empty Host": get(host=b"Host:\r\n"),
        "two names in one Host": get(host=b"Host: a.example, b.example\r\n"),
        "a Host with a path": get(host=b"Host: a.example/b\r\n"),
        "a Host with a bad port": get(host=b"Host: a.example:http\r\n"),
        "two Content-Lengths": post(b"Content-Length: 2", b"Content-Length: 3", body=b"{}x"),
        "Content-Length with a plus": post(b"Content-Length: +2", body=b"{}"),
        "Content-Length with an underscore": post(b"Content-Length: 1_0", body=b"{}"),
        "Content-Length in other digits": post("Content-Length: ²".encode("latin-1"), body=b"{}"),
        "Content-Length of nothing": post(b"Content-Length:", body=b"{}"),
        "Content-Length beside Transfer-Encoding": post(
            b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
        ),
        "Transfer-Encoding with a space before the colon": post(
            b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"
        ),
        "two Transfer-Encodings": post(
            b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked"
        ),
        "Transfer-Encoding in HTTP/1.0": get(
            b"Transfer-Encoding: chunked", line=b"POST /register HTTP/1.0"
        )
        + b"0\r\n\r\n",
        **{ascii(line): get(line=line) for line in LINES},
        **{ascii(header): get(header) for header in HEADERS},
        **{ascii(body): chunked(body) for body in CHUNKS},
    },
    501: {
        "an unknown method": get(line=b"BREW / HTTP/1.1"),
        "CONNECT": get(line=b"CONNECT cards.example:443 HTTP/1.1"),
        "Transfer-Encodings in a list": post(b"Transfer-Encoding: gzip, chunked"),
        "an unknown Transfer-Encoding": post(b"Transfer-Encoding: x"),
    },
    431: {
        "extensions over 16 KiB": chunked(
            b"".join(b"1;%b\r\nx\r\n" % (b"a" * 1000) for _ in range(17))
        ),
        "an extension without end": chunked(b"5;" + b"a" * 17000),
        "trailers over 16 KiB": chunked(b"0\r\n" + b"A: %b\r\n" % (b"b" * 1000) * 17 + b"\r\n"),
        "a header over 16 KiB": get(b"A: " + b"b" * 16384),
        "a header without end": b"GET / HTTP/1.1\r\nA: " + b"b" * 17000,
        "101 headers": get(*[b"A: b"] * 100),
    },
    413: {
        "a chunk over 64 KiB": chunked(b"10001\r\n"),
        "chunks over 64 KiB": chunked(b"fff0\r\n%b\r\n11\r\n" % bytes(65520)),
        "a body over 64 KiB": post(b"Content-Length: 65537"),
        "a body too large, announced": post(b"Content-Length: 65537", b"Expect: 100-continue"),
    },
    417: {
        "another expectation": post(b"Expect: 200-ok", b"Content-Length: 2"),
    },
    414: {
        "a request line over 8 KiB": get(line=b"GET /" + b"a" * 8192 + b" HTTP/1.1"),
        "a request line without end": b"GET /" + b"a" * 9000,
    },
}
"""Requests by the status that each is refused with, and by what is wrong with it."""

MALFORMED: dict[str, tuple[bytes, int]] = {}
for status, requests in REFUSED.items():
    MALFORMED |= {name: (data, status) for name, data in requests.items()}
