"""Malformed requests and the status each is refused with. After each the connection is closed."""

HOST = b"Host: cards.example\r\n"


def get(*headers, line=b"GET /healthz HTTP/1.1", host=HOST):
    return b"\r\n".join(
        (
            line,
            host + b"".join(header + b"\r\n" for header in headers),
            b"",
        )
    )


def post(*headers, body=b"", path=b"/register", version=b"1.1"):
    return get(*headers, line=b"POST %b HTTP/%b" % (path, version)) + body


CODED = b"Transfer-Encoding: chunked"


def chunked(body, path=b"/register"):
    return post(CODED, body=body, path=path)


LINES = rb"""
GET /\r HTTP/1.1
GET /\0 HTTP/1.1
GET /\x7f HTTP/1.1
 / HTTP/1.1
GET  HTTP/1.1
GET  / HTTP/1.1
GET /a b HTTP/1.1
GET\t/ HTTP/1.1
 GET / HTTP/1.1
GET / HTTP/2.0
GET / HTTP/1.2
G(T / HTTP/1.1
GET /#top HTTP/1.1
GET healthz HTTP/1.1
GET * HTTP/1.1
GET ftp://cards.example/ HTTP/1.1
GET http:///healthz HTTP/1.1
GET http://a:b@cards.example/ HTTP/1.1
"""
HEADERS = rb"""
A: b\rC: d
A: b\r
A: b\0
A : b
A
: b
 C: d
Host: other.example
"""
"""Lines after the host. A space at the begin would fold the one before."""
HOSTS = rb"""
Host:
Host: a.example, b.example
Host: a.example/b
Host: a.example:http
"""
LENGTHS = rb"""
Content-Length: 2\r\nContent-Length: 3
Content-Length: +2
Content-Length: 1_0
Content-Length: \xb2
Content-Length:
Content-Length: 5\r\nTransfer-Encoding: chunked
Transfer-Encoding : chunked
Transfer-Encoding: identity\r\nTransfer-Encoding: chunked
"""
SIZES = rb"""
0x5
+5
 5
5\x20

;a
000000005
1000000000000000000
5;a\rb
5\nabcde
5;a\nabcde
"""
"""Before the line end of a first chunk."""
CHUNKS = rb"""
5\r\nabcde\n0\r\n\r\n
5\r\nabcde0\r\n\r\n
5\r\nabcdef\r\n0\r\n\r\n
0\n\n
0\r\nA\r\n\r\n
0\r\nA: b\r\n c\r\n\r\n
"""


def lines(text):
    return [
        line.decode("unicode_escape").encode("latin-1")
        for line in text[1:-1].split(b"\n")
    ]


REFUSED = {
    400: [
        b"GET / HTTP/1.1\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS hello
        b"GET /\r\n",  # HTTP/0.9
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        get(host=b""),
        post(CODED, body=b"0\r\n\r\n", version=b"1.0"),
        *[get(line=line) for line in lines(LINES)],
        *[*map(get, lines(HEADERS))],
        *[get(host=host + b"\r\n") for host in lines(HOSTS)],
        *[post(header, body=b"0\r\n\r\n") for header in lines(LENGTHS)],
        *[
            chunked(size + b"\r\nabcde\r\n0\r\n\r\n")
            for size in lines(SIZES)
        ],
        *map(chunked, lines(CHUNKS)),
    ],
    501: [
        get(line=b"BREW / HTTP/1.1"),
        get(line=b"CONNECT cards.example:443 HTTP/1.1"),
        post(b"Transfer-Encoding: gzip, chunked"),
        post(b"Transfer-Encoding: x"),
    ],
    431: [
        chunked(b"1;%b\r\nx\r\n" % (b"a" * 1000) * 17),
        chunked(b"5;" + b"a" * 17000),
        chunked(b"0\r\n" + b"A: %b\r\n" % (b"b" * 1000) * 17 + b"\r\n"),
        get(b"A: " + b"b" * 16384),
        b"GET / HTTP/1.1\r\nA: " + b"b" * 17000,
        get(*[b"A: b"] * 100),
    ],
    413: [
        chunked(b"10001\r\n"),
        chunked(b"fff0\r\n%b\r\n11\r\n" % bytes(65520)),
        post(b"Content-Length: 65537"),
        post(b"Content-Length: 65537", b"Expect: 100-continue"),
    ],
    417: [post(b"Expect: 200-ok", b"Content-Length: 2")],
    414: [
        get(line=b"GET /" + b"a" * 8192 + b" HTTP/1.1"),
        b"GET /" + b"a" * 9000,
    ],
}
MALFORMED = [
    (data, status)
    for status, requests in REFUSED.items()
    for data in requests
]
