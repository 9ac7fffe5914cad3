"""Turns the bytes of one connection into requests, without a socket.

It is strict, because a proxy in front must not read a head in another way than we do, nor find
another end of a body (RFC 9112, 2.2, 5.1, 6.3, 7.1 and 11.2). Of the headers only those that this
program uses are read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPMethod
from typing import Final

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.web.message import MOST_LISTED, Request

METHODS: Final = frozenset({*HTTPMethod, "QUERY"}) - {"CONNECT"}
"""The methods of HTTP except CONNECT, which is for proxies. Any other is answered by 501."""
HEADERS: Final = (
    "host connection content-length transfer-encoding expect content-type authorization if-match"
    " if-none-match if-range range x-forwarded-for sec-fetch-site"
).split()
"""The headers that this program uses. `Request.headers` holds no others."""
_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_LINE = re.compile(
    rf"({_TCHARS}) ([!-\"$-~\x80-\xff]++) HTTP/1\.([01])\r\n"
)
_FIELDS = re.compile(rf"\n(?:{_TCHARS}:[\t -~\x80-\xff]*+\r\n)*+\r\n")
_USED = re.compile(rf"(?ai)\n({'|'.join(HEADERS)}):[ \t]*+([^\r]*)")
_EMPTY_LINES = re.compile(rb"\A(?:\r\n)++")
_SOUND = re.compile(r"(?:[\t -~\x80-\xff]++|\r\n)*+\r?")
"""The begin of a head without control characters, and whose line ends are whole."""
_LINE_END_FAULT = re.compile(r"(?<!\r)\n|\r(?!\n)")
_HOST = re.compile(
    r"(?:[A-Za-z0-9._~%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?"
)
_AUTHORITY = re.compile(rf"(?i:https?)://{_HOST.pattern}(?=[/?]|\Z)")
"""The begin of an absolute target, which clients send to a proxy."""
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(;[\t -~\x80-\xff]*)?")
_TRAILER = re.compile(rf"{_TCHARS}:[\t -~\x80-\xff]*".encode())
AT_ONCE: Final = 64
"""Most chunks of one call: 16 KiB can hold 2,700, which would hold up others."""
_SINGLE: Final = frozenset(
    {"host", "content-length", "transfer-encoding"}
)
_REMEMBERED: Final = 1024
"""Most bytes of fields that are remembered, and how many such fields are: in all about 2 MB."""


@dataclass(slots=True, eq=False, repr=False)
class Reader:
    """Cuts the bytes of one connection into heads and bodies. After a `Refusal` nothing is read.

    The order of calls: `add` what came; `read_head` until it returns a request; `read_body` until
    it returns the body, which is empty where the request has none; then `read_head` again.
    """

    _limits: HttpLimits
    keep_alive: bool = False
    """Whether the client allows another request after the last one on this connection."""
    expects_continue: bool = False
    """Whether the client waits for `100 Continue` before it sends the body."""
    in_body: bool = False
    """Whether a body has not come completely."""
    can_go_on: bool = False
    """Whether `read_body` can do more with what has come already."""
    _buffer: bytes = b""
    _sound: int = 0
    """The number of bytes at the start of the buffer that hold no end of a head, and no fault."""
    _is_ignored: bool = False
    """Whether the body is dropped."""
    _left: int = 0
    """Bytes that have not come: of the body, or of the present chunk."""
    _content: bytearray = field(default_factory=bytearray)
    _next_line: str = ""
    """The kind of line that follows in a body of chunks; empty for other bodies."""
    _extra: int = 0
    """The bytes of extensions and trailers."""

    @property
    def has_part(self) -> bool:
        """Whether a part of a request or of a dropped body has come, and the rest has not."""
        return bool(self._buffer) or self.in_body

    @property
    def is_too_large(self) -> bool:
        """Whether the head announces a larger body than is allowed."""
        return (
            self._left > self._limits.body_bytes and not self._is_ignored
        )

    @property
    def held_bytes(self) -> int:
        return len(self._buffer) + len(self._content)

    def add(self, data: bytes) -> None:
        self._buffer += data

    def ignore_body(self) -> None:
        """Drop the present body as it comes, however large it is."""
        self._is_ignored = True
        self._content.clear()

    def skip_body(self) -> None:
        """Drop a body whose request has its answer; the next request comes behind it.

        A client that waits for `100 Continue` may send the body or leave it out, and we can't know
        which it did (RFC 9110, 10.1.1). So this is the last request on its connection, as is one
        whose body is too large.
        """
        if self.in_body:
            if self.expects_continue or self.is_too_large:
                self.keep_alive = False
            self.ignore_body()

    def forget(self) -> None:
        """Give up what has come and was not read."""
        self._buffer = b""
        self.in_body = False
        self._content.clear()

    def read_head(self) -> Request | None:
        """The next request without its body, or None until its head is there.

        The rest of a body that is skipped is dropped first. Raises `Refusal` as soon as the bytes
        can't become a valid head.
        """
        if self.in_body and self.read_body() is None:
            return None
        # Some clients end a body with a line end that its length does not count (RFC 9112, 2.2).
        if self._buffer.startswith(b"\r\n"):
            self._buffer = _EMPTY_LINES.sub(b"", self._buffer)
            self._sound = 0
        end = self._buffer.find(b"\r\n\r\n", max(0, self._sound - 3)) + 4
        if end < 4:
            # Refuse what no further bytes can make valid. Each byte is looked at once.
            text = self._buffer.decode("latin-1")
            _check(text, self._sound, self._limits)
            self._sound = len(text) - text.endswith("\r")
            return None
        # One character for each byte.
        request = self._request_of(self._buffer[:end].decode("latin-1"))
        self._buffer = self._buffer[end:]
        self._sound = 0
        return request

    def read_body(self) -> bytes | None:
        """The present body, or None until all of it is there. One that is ignored is empty.

        Raises `Refusal` for broken chunks.
        """
        if not self.in_body:
            return b""
        self._take_body()
        if self.in_body:
            return None
        self.expects_continue = False
        body = bytes(self._content)
        self._content.clear()
        return body

    def _take_body(self) -> None:
        """Take what has come of the body.

        Of chunks, sizes have 1 to 8 hexadecimal digits, and all lines end with CR LF. Extensions
        and trailers are read and left out.
        """
        self.can_go_on = False
        for _ in range(AT_ONCE):
            part = self._buffer[: self._left]
            self._buffer = self._buffer[len(part) :]
            self._left -= len(part)
            if not self._is_ignored:
                self._content += part
            if not self._next_line:
                self.in_body = self._left > 0
                return
            line, end, rest = self._buffer.partition(b"\r\n")
            if self._left or not end:
                self._require_room(len(self._buffer))
                _require(b"\n" not in self._buffer)
                return
            self._take_line(line)
            self._buffer = rest
            if not self.in_body:
                return
        self.can_go_on = True

    def _take_line(self, line: bytes) -> None:
        """Take a line of a body of chunks, without its end."""
        if self._next_line == "size":
            _require(_SIZE.fullmatch(line))
            digits, _, extension = line.partition(b";")
            self._extra += len(extension)
            self._left = int(digits, 16)
            size = len(self._content) + self._left
            if size > self._limits.body_bytes and not self._is_ignored:
                raise Refusal(
                    "body_too_large", most=self._limits.body_bytes
                )
            self._next_line = (
                "end of a chunk" if self._left else "trailer"
            )
        elif self._next_line == "end of a chunk":
            _require(not line)
            self._next_line = "size"
        elif line:
            _require(_TRAILER.fullmatch(line))
            self._extra += len(line)
        else:
            self.in_body = False
        self._require_room()

    def _require_room(self, more: int = 0) -> None:
        """Refuse extensions and trailers that are too long; `more` is an incomplete line."""
        if self._extra + more > self._limits.header_bytes:
            raise Refusal(
                "headers_too_large", most=self._limits.header_bytes
            )

    def _request_of(self, text: str) -> Request:
        """The request of a whole head; notes what that says of the body.

        Raises `Refusal` for a broken rule.
        """
        limits = self._limits
        line = _LINE.match(text)
        # A head shorter than the longest request line allowed is within both limits.
        if line is None or len(text) > limits.request_line_bytes:
            _check(text, 0, limits)
        if line is None:
            raise Refusal("bad_request_line")
        method, target, minor = line.groups()
        lines = text[line.end() - 1 :]
        read = _read_fields if len(lines) > _REMEMBERED else _known_fields
        headers, length, self.keep_alive = read(
            lines, minor, limits.header_count
        )
        if method not in METHODS:
            raise Refusal("unknown_method")
        path, query = split_target(method, target)
        if length != 0:
            self.in_body = True
            self._is_ignored = False
            self._left = length or 0
            self._next_line = "size" if length is None else ""
            self._extra = 0
            # HTTP/1.0 has no answer 100 (RFC 9110, 15.2).
            self.expects_continue = "expect" in headers and minor == "1"
        return Request(
            method, target, path, query, headers, head_bytes=len(text)
        )


def _read_fields(
    lines: str, minor: str, most: int
) -> tuple[Mapping[str, str], int | None, bool]:
    """What the lines below the request line say; `lines` begins with the line end of that.

    It is the headers, the length of the body (0 without one, None for chunks), and whether another
    request may follow. Raises `Refusal` for a broken rule, or more than `most` fields.
    """
    if not _FIELDS.fullmatch(lines):
        _check_sound(lines[1:], 0)
        raise Refusal("bad_header")
    if lines.count("\n") > most + 2:
        raise Refusal("too_many_headers", most=most)
    headers: dict[str, str] = {}
    for name, sent in _USED.findall(lines):
        lower = name.lower()
        value = sent.rstrip(" \t")
        if lower in headers:
            if lower in _SINGLE:
                raise Refusal("duplicate_header", name=lower.title())
            value = f"{headers[lower]}, {value}"
        headers[lower] = value
    host = headers.get("host")
    if host is not None and not _HOST.fullmatch(host):
        raise Refusal("bad_host")
    # HTTP/1.0 has no such header, and simple health checks of load balancers send none.
    if host is None and minor == "1":
        raise Refusal("missing_host")
    if headers.get("expect", "100-continue").lower() != "100-continue":
        raise Refusal("expectation_failed")
    return (
        headers,
        _length_of(headers, minor),
        _keeps_alive(headers.get("connection", ""), minor),
    )


# A client sends the same fields with each request, and reading them is half of all parsing.
_known_fields = lru_cache(_REMEMBERED)(_read_fields)


def _length_of(headers: Mapping[str, str], minor: str) -> int | None:
    """The length of the body, None for chunks."""
    length = headers.get("content-length", "0")
    coding = headers.get("transfer-encoding")
    if coding is not None:
        if "content-length" in headers or minor == "0":
            raise Refusal("bad_framing")
        if coding.lower() != "chunked":
            raise Refusal("transfer_encoding")
        return None
    if not (length.isascii() and length.isdigit()):
        raise Refusal("bad_content_length")
    # Converting millions of digits would take long. A number of 19 digits is too large anyway.
    return int(length.lstrip("0")[:19] or "0")


def _keeps_alive(connection: str, minor: str) -> bool:
    listed = connection.lower().split(",", MOST_LISTED)
    options = {option.strip() for option in listed}
    return "close" not in options and (
        "keep-alive" in options or minor == "1"
    )


def _check(text: str, sound: int, limits: HttpLimits) -> None:
    """Refuse the begin of a head if it has a fault. Its first `sound` bytes have none."""
    _check_sound(text, sound)
    line, end, fields = text.partition("\r\n")
    if len(line.rstrip("\r")) > limits.request_line_bytes:
        raise Refusal("target_too_long", most=limits.request_line_bytes)
    if len(fields.rstrip("\r\n")) > limits.header_bytes:
        raise Refusal("headers_too_large", most=limits.header_bytes)
    if end and not _LINE.match(text):
        raise Refusal("bad_request_line")


def _check_sound(text: str, sound: int) -> None:
    if not _SOUND.fullmatch(text, sound):
        if _LINE_END_FAULT.search(text.removesuffix("\r")):
            raise Refusal("bad_line_end")
        raise Refusal("bad_byte")


def _require(is_valid: object) -> None:
    if not is_valid:
        raise Refusal("bad_chunk")


def split_target(method: str, target: str) -> tuple[str, str]:
    """The path and the query, both as sent, of a request target (RFC 9112, 3.2).

    Raises `Refusal` 400.
    """
    if not target.startswith("/"):
        authority = _AUTHORITY.match(target)
        if authority:
            target = "/" + target[authority.end() :].removeprefix("/")
        elif (method, target) != ("OPTIONS", "*"):
            raise Refusal("bad_target")
    path, _, query = target.partition("?")
    return path, query
