"""Turns the bytes of one connection into requests, without a socket.

It is strict, because a proxy in front must not read a head in another way than we do (RFC 9112, 2.2, 5.1, 6.3 and
11.2). One pattern checks a whole head; then only the headers that this program uses are read.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.web.message import MOST_LISTED, Request

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"})
"""The methods of HTTP except CONNECT, which is for proxies. Any other method is answered by 501."""
HEADERS: Final = (
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "expect",
    "content-type",
    "authorization",
    "if-match",
    "if-none-match",
    "if-range",
    "range",
    "x-forwarded-for",
    "forwarded",
    "sec-fetch-site",
)
"""The headers that this program uses. `Request.headers` holds no others."""
_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_LINE = re.compile(r"(" + _TCHARS + r") ([!-\"$-~\x80-\xff]++) HTTP/1\.([01])\r\n")
_HEAD = re.compile(_LINE.pattern + r"(?:" + _TCHARS + r":[\t -~\x80-\xff]*+\r\n)*+\r\n")
_LINE_ENDS = re.compile(r"(?:\r\n)++")
_LONGEST_PATH, _LONGEST_HOST = 512, 255  # longer than any route; the longest name in DNS
# Most headers are not used. Each branch begins with one plain letter, so that they are skipped fastest.
_BRANCHES = "|".join(
    f"{letter}(?i:{'|'.join(name[1:] for name in HEADERS if name[0] == letter.lower())})"
    for letter in sorted({letter for name in HEADERS for letter in (name[0], name[0].upper())})
)
_READ = re.compile(rf"\n({_BRANCHES}):[ \t]*+([^\r]*)", re.ASCII)
_HOST = re.compile(r"(?:[A-Za-z0-9._~%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_ABSOLUTE = re.compile(r"(?i:https?)://([^/?]*)(.*)", re.DOTALL)

_FAULTLESS = re.compile(r"(?:[\t -~\x80-\xff]++|\r\n)*+\r?")
"""What has none of the `_FAULTS`: it is matched ten times as fast as they are searched."""
_FAULTS: Final = (
    (re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]"), "bad_byte"),
    (re.compile(r"(?<!\r)\n|\r(?!\n|\Z)"), "bad_line_end"),
)
_SINGLE: Final = frozenset({"host", "content-length"})


@dataclass(slots=True, eq=False, repr=False)
class Reader:
    """Cuts the bytes of one connection into requests. After a `Refusal` nothing more can be read."""

    _limits: HttpLimits
    _ignores_body: Callable[[str, str], bool] = lambda *_: False
    _buffer: bytes = b""
    _checked: int = 0
    """The number of bytes at the start of the buffer that hold no end of a head, and no fault."""
    _host: str | None = None
    """The header Host of the last request, which is known to be valid, if it is not long."""
    request: Request | None = None
    """The request whose head is complete and whose body is not."""
    _wanted_bytes: int = 0
    _ignored_bytes: int = 0
    keep_alive: bool = False
    """Whether the client allows another request after the last one on this connection."""
    expects_continue: bool = False
    """Whether the client waits for `100 Continue` before it sends the body."""

    @property
    def has_part(self) -> bool:
        """Whether a part of a request or of a dropped body has come, and the rest has not."""
        return bool(self._buffer) or self.request is not None or self._ignored_bytes > 0

    @property
    def in_body(self) -> bool:
        """Whether a body is being received, also one that is dropped because its request has its answer."""
        return self.request is not None or self._ignored_bytes > 0

    @property
    def held_bytes(self) -> int:
        return len(self._buffer) + (self.request.held_bytes if self.request else 0)

    def skip_body(self) -> None:
        """Drop the rest of a body whose request has its answer already; the next request comes behind it.

        A client that waits for `100 Continue` may send the body or leave it out, and we can't know which it did (RFC
        9110, 10.1.1). So this is the last request on its connection.
        """
        self.keep_alive = self.keep_alive and not self.expects_continue
        self.request = None
        self._ignored_bytes, self._wanted_bytes = self._ignored_bytes or self._wanted_bytes, 0

    def forget(self) -> None:
        """Give up what has come and was not read."""
        self._buffer, self.request = b"", None

    def next(self, data: bytes = b"") -> Request | None:
        """Add `data` to the buffer, and return the next request if it is complete, else None.

        Raises `Refusal` as soon as the bytes can't become a valid request.
        """
        if data:
            self._buffer = self._buffer + data if self._buffer else data
        if self._ignored_bytes and self.request is None:
            self._drop_ignored()
        if not self._buffer:
            return None
        request = self.request or self._read_head()
        if request is None or (self._ignored_bytes and self._drop_ignored()):
            return None
        if self._wanted_bytes:
            if len(self._buffer) < self._wanted_bytes:
                return None
            request.held_bytes += self._wanted_bytes
            request.body = self._buffer[: self._wanted_bytes]
            self._buffer = self._buffer[self._wanted_bytes :]
            self._wanted_bytes = 0
        self.request = None
        self.expects_continue = False
        return request

    def _drop_ignored(self) -> int:
        """Drop the received part of a body that is not used. Returns the number of its bytes still to come."""
        dropped = self._buffer[: self._ignored_bytes]
        self._buffer = self._buffer[len(dropped) :]
        self._ignored_bytes -= len(dropped)
        return self._ignored_bytes

    def _read_head(self) -> Request | None:
        # One character for each byte, so that an index is the same in both.
        text = self._buffer.decode("latin-1")
        # Most often, one whole head has come.
        head = None if self._checked else _HEAD.match(text)
        if head is None:
            head = self._find_head(text)
            if head is None:
                return None
        request = self.request = self._request_of(head)
        self._buffer = self._buffer[head.end() :]
        request.held_bytes = head.end()
        return request

    def _find_head(self, text: str) -> re.Match[str] | None:
        """A head that has come in parts, or None until its end is there. Each byte is checked once."""
        # Some clients end a body with a line end that its length does not count (RFC 9112, 2.2).
        if line_ends := _LINE_ENDS.match(text):
            text, self._buffer = text[line_ends.end() :], self._buffer[line_ends.end() :]
        end = text.find("\r\n\r\n", max(0, self._checked - 3)) + 4
        if end < 4:
            _check_part(text, self._checked, self._limits)
            self._checked = len(text)
            return None
        self._checked = 0
        head = _HEAD.match(text)
        if head is None:
            _check_part(text[:end], 0, self._limits)
            raise Refusal("bad_header")
        return head

    def _request_of(self, head: re.Match[str]) -> Request:
        """The request without its body; sets what the head says of the body. Raises `Refusal` for a broken rule."""
        method, target, minor = head.groups()
        begin, end = head.end(3) + 2, head.end() - 2
        # A head shorter than the longest request line allowed is within both limits.
        if end > self._limits.request_line_bytes:
            _check_size(begin - 2, end - begin, self._limits)
        if head.string.count("\n", begin, end) > self._limits.header_count:
            raise Refusal("too_many_headers", most=self._limits.header_count)
        headers = _read_headers(_READ.findall(head.string, begin - 1, end))
        host = headers.get("host")
        if host is None or host != self._host:
            # HTTP/1.0 has no such header, and simple health checks of load balancers send none (RFC 9112, 3.2).
            if host is None and minor == "1":
                raise Refusal("missing_host")
            if host is not None and not _HOST.fullmatch(host):
                raise Refusal("bad_host")
            self._host = host if len(host or "") <= _LONGEST_HOST else None
        body_bytes = _body_bytes(headers) if "content-length" in headers or "transfer-encoding" in headers else 0
        if "expect" in headers and headers["expect"].lower() != "100-continue":
            raise Refusal("expectation_failed")
        if method not in METHODS:
            raise Refusal("unknown_method")
        path, query = split_target(method, target)
        self._wanted_bytes = self._ignored_bytes = 0
        if body_bytes:
            self._expect_body(body_bytes, is_ignored=self._ignores_body(method, path))
        self.keep_alive = _keeps_alive(headers["connection"], minor) if "connection" in headers else minor == "1"
        self.expects_continue = "expect" in headers and minor == "1"
        return Request(method, target, path, query, headers)

    def _expect_body(self, body_bytes: int, *, is_ignored: bool) -> None:
        if is_ignored:
            self._ignored_bytes = body_bytes
        elif body_bytes > self._limits.body_bytes:
            raise Refusal("body_too_large", most=self._limits.body_bytes)
        else:
            self._wanted_bytes = body_bytes


def _read_headers(read: Iterable[tuple[str, str]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in read:
        lower = name.lower()
        if lower in headers and lower in _SINGLE:
            raise Refusal("duplicate_header", name=lower.title())
        headers[lower] = (f"{headers[lower]}, {value}" if lower in headers else value).rstrip(" \t")
    return headers


def _keeps_alive(connection: str, minor: str) -> bool:
    options = {option.strip() for option in connection.lower().split(",", MOST_LISTED)}
    return "close" not in options and ("keep-alive" in options or minor == "1")


def _body_bytes(headers: Mapping[str, str]) -> int:
    length = headers.get("content-length")
    if "transfer-encoding" in headers:
        raise Refusal("transfer_encoding" if length is None else "bad_framing")
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit()):
        raise Refusal("bad_content_length")
    length = length.lstrip("0") or "0"
    # Converting millions of digits would take long. A number of 19 digits is too large anyway.
    return int(length) if len(length) < 19 else 10**18


def _check_part(part: str, checked: int, limits: HttpLimits) -> None:
    """Refuse the beginning of a head if no further bytes can make it valid. Its first `checked` bytes were checked."""
    begin = max(0, checked - 1)
    for fault, code in () if _FAULTLESS.fullmatch(part, begin) else _FAULTS:
        if fault.search(part, begin):
            raise Refusal(code)
    line, end, fields = part.partition("\r\n")
    _check_size(len(line.rstrip("\r")), len(fields.rstrip("\r\n")), limits)
    if end and checked < len(line + end) and not _LINE.match(part):
        raise Refusal("bad_request_line")


def _check_size(line_bytes: int, fields_bytes: int, limits: HttpLimits) -> None:
    if line_bytes > limits.request_line_bytes:
        raise Refusal("target_too_long", most=limits.request_line_bytes)
    if fields_bytes > limits.header_bytes:
        raise Refusal("headers_too_large", most=limits.header_bytes)


def split_target(method: str, target: str) -> tuple[str, str]:
    """The decoded path, and the query as sent, of a request target (RFC 9112, 3.2). Raises `Refusal` 400.

    In the path, U+FFFD replaces bytes that are not UTF-8, and NUL, which databases refuse. A path that is longer than
    that of any route is left as sent: to decode 8 KB takes milliseconds.
    """
    if not target.startswith("/"):
        target = _origin_form(method, target)
    path, _, query = target.partition("?")
    if len(path) <= _LONGEST_PATH and ("%" in path or not path.isascii()):
        path = unquote_to_bytes(path.encode("latin-1")).decode("utf-8", "replace").replace("\0", "\ufffd")
    return path, query


def _origin_form(method: str, target: str) -> str:
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute and _HOST.fullmatch(absolute[1]):
        return absolute[2] if absolute[2].startswith("/") else "/" + absolute[2]
    if target == "*" and method == "OPTIONS":
        return target
    raise Refusal("bad_target")
