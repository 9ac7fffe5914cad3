"""The bytes of one connection in, its requests out: strict, and without a socket (CONTRACT 1)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_to_bytes

from cardbeat.config import HttpLimits
from cardbeat.errors import Refusal
from cardbeat.web.message import Request

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"})
"""What HTTP defines, less CONNECT, which only a proxy could serve; others are 501."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_LINE = re.compile(rb"(" + _TOKEN + rb") ([!-\"$-~\x80-\xff]++) HTTP/1\.([01])\r\n")
_HEAD = re.compile(_LINE.pattern + rb"((?:" + _TOKEN + rb":[\t -~\x80-\xff]*+\r\n)*+)\r\n")
_HOST = re.compile(r"(?:[A-Za-z0-9._~%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_ABSOLUTE = re.compile(r"(?i:https?)://([^/?]*)(.*)", re.DOTALL)

_FAULTS: Final = (
    (re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]"), "bad_byte", "Send no control characters in a request's head."),
    (re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)"), "bad_line_end", "End every line of a request's head with CR LF."),
)
_BAD_LINE: Final = (
    "bad_request_line",
    "Start a request with a method, a target and HTTP/1.1 or HTTP/1.0, one space between them.",
)
_BAD_HEADER: Final = ("bad_header", "Write each header on one line as a name, a colon and a value, no space before.")
_REMEMBERED_HEADS: Final = 128
_REMEMBERED_BYTES: Final = 1024
_SINGLE: Final = frozenset({"host", "content-length"})


IgnoresBody = Callable[[str, str], bool]
"""Whether requests of a method to a path may have any body, of which nothing is kept."""


@dataclass(frozen=True, slots=True)
class Head:
    """The request line and the header lines of a request, and what they say of its framing."""

    method: str
    target: str
    path: str
    query: str
    headers: Mapping[str, str]
    body_bytes: int
    ignored_bytes: int
    """Of a body that nobody wants."""
    keep_alive: bool
    expects_continue: bool


def read_head(head: bytes, limits: HttpLimits, ignores_body: IgnoresBody) -> Head:
    """Reads a head, up to and with its empty line. Raises `Refusal` where it breaks a rule of the contract."""
    match = _HEAD.match(head)
    if match is None:
        _check_part(head, 0, limits)
        raise Refusal(400, *_BAD_HEADER)
    _check_size(match.start(4) - 2, len(match[4]), limits)
    method_bytes, target_bytes, minor, block = match.groups()
    if block.count(b"\n") > limits.header_count:
        raise Refusal(431, "too_many_headers", f"Send at most {limits.header_count} headers.")
    headers = _read_headers(block)
    _check_host(headers.get("host"))
    body_bytes = _body_bytes(headers)
    expects_continue = _expects_continue(headers.get("expect")) and minor == b"1"
    method = method_bytes.decode("ascii")
    if method not in METHODS:
        raise Refusal(501, "unknown_method", "Use one of the methods GET, HEAD, POST, PATCH and DELETE.")
    target = target_bytes.decode("latin-1")
    path, query = split_target(method, target)
    ignored_bytes = 0
    if body_bytes and ignores_body(method, path):
        body_bytes, ignored_bytes = 0, body_bytes
    if body_bytes > limits.body_bytes:
        raise Refusal(413, "body_too_large", f"Send at most {limits.body_bytes} bytes of body.")
    return Head(
        method,
        target,
        path,
        query,
        MappingProxyType(headers),
        body_bytes,
        ignored_bytes,
        keep_alive=_keeps_alive(headers.get("connection", ""), minor),
        expects_continue=expects_continue,
    )


def _read_headers(block: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in block.decode("latin-1").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if name not in headers:
            headers[name] = value
        elif name in _SINGLE:
            raise Refusal(400, "duplicate_header", f"Send the header {name.title()} once.")
        else:
            headers[name] += ", " + value
    return headers


def _keeps_alive(connection: str, minor: bytes) -> bool:
    options = {option.strip().lower() for option in connection.split(",")}
    return "close" not in options and ("keep-alive" in options or minor == b"1")


def _check_host(host: str | None) -> None:
    if host is None:
        raise Refusal(400, "missing_host", "Send the header Host.")
    if not _HOST.fullmatch(host):
        raise Refusal(400, "bad_host", "Send a host name or address, with or without a port, in the header Host.")


def _body_bytes(headers: Mapping[str, str]) -> int:
    length = headers.get("content-length")
    if "transfer-encoding" in headers:
        if length is not None:
            raise Refusal(400, "bad_framing", "Send Content-Length without Transfer-Encoding.")
        raise Refusal(501, "transfer_encoding", "Send the body with Content-Length; no Transfer-Encoding works here.")
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit()):
        raise Refusal(400, "bad_content_length", "Send Content-Length as plain digits.")
    length = length.lstrip("0") or "0"
    # Past eighteen digits the number itself is the attack; such a body is too large anyway.
    return int(length) if len(length) < 19 else 10**18


def _expects_continue(expect: str | None) -> bool:
    if expect is not None and expect.lower() != "100-continue":
        raise Refusal(417, "expectation_failed", "Send no Expect header other than 100-continue.")
    return expect is not None


def _check_part(part: bytes, checked: int, limits: HttpLimits) -> None:
    """Refuse the beginning of a head that no further byte can mend; its first `checked` bytes have been tried."""
    for fault, code, sentence in _FAULTS:
        if fault.search(part, max(0, checked - 1)):
            raise Refusal(400, code, sentence)
    line, end, fields = part.partition(b"\r\n")
    _check_size(len(line.rstrip(b"\r")), len(fields.rstrip(b"\r\n")), limits)
    if end and checked < len(line + end) and not _LINE.match(part):
        raise Refusal(400, *_BAD_LINE)


def _check_size(line_bytes: int, fields_bytes: int, limits: HttpLimits) -> None:
    if line_bytes > limits.request_line_bytes:
        raise Refusal(414, "target_too_long", f"Send at most {limits.request_line_bytes} bytes of request line.")
    if fields_bytes > limits.header_bytes:
        raise Refusal(431, "headers_too_large", f"Send at most {limits.header_bytes} bytes of headers.")


class Heads:
    """Reads heads for all connections, and remembers the short ones: clients repeat themselves."""

    def __init__(self, limits: HttpLimits, ignores_body: IgnoresBody = lambda _method, _path: False) -> None:
        self.limits = limits
        self._ignores_body = ignores_body
        self.remembered: dict[bytes, Head] = {}
        """By their bytes."""

    def read(self, head: bytes) -> Head:
        """Raises `Refusal` as `read_head`."""
        known = self.remembered.get(head)
        if known:
            return known
        read = read_head(head, self.limits, self._ignores_body)
        if len(head) <= _REMEMBERED_BYTES:
            if len(self.remembered) >= _REMEMBERED_HEADS:
                self.remembered.clear()
            self.remembered[head] = read
        return read


class Reader:
    """Cuts what arrives on one connection into requests. After a `Refusal` it can't be read any further."""

    __slots__ = ("_buffer", "_checked", "_head", "_heads", "_ignored_bytes", "expects_continue", "keep_alive", "whole")

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._buffer = b""
        self._checked = 0
        self._head: Head | None = None
        self._ignored_bytes = 0
        self.keep_alive = False
        """Whether the client lets the connection live on after the newest request."""
        self.expects_continue = False
        """Whether the client waits for `100 Continue` before it sends the body."""
        self.whole = b""
        """All bytes of the newest request, if it came alone, without a body and not for the first time; else none."""

    @property
    def has_part(self) -> bool:
        """Whether a request has begun and is not whole."""
        return bool(self._buffer) or self._head is not None

    @property
    def in_body(self) -> bool:
        """Whether a request's head is read and its body is not."""
        return self._head is not None

    def feed(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data

    def next(self) -> Request | None:
        """The next request once it is whole, else None. Raises `Refusal` as soon as it can't become one."""
        if not self._buffer:
            return None
        head = self._head or self._begin()
        if head is None or self._drop_ignored() or len(self._buffer) < head.body_bytes:
            return None
        request = Request(head.method, head.target, head.path, head.query, head.headers)
        if head.body_bytes:
            request.body = self._buffer[: head.body_bytes]
            self._buffer = self._buffer[head.body_bytes :]
        self._head = None
        self.expects_continue = False
        return request

    def _drop_ignored(self) -> int:
        """Drop what has come of a body that nobody wants; the number of bytes that are still to come."""
        if self._ignored_bytes:
            dropped = self._buffer[: self._ignored_bytes]
            self._buffer = self._buffer[len(dropped) :]
            self._ignored_bytes -= len(dropped)
        return self._ignored_bytes

    def _begin(self) -> Head | None:
        buffer = self._buffer
        # What has come is most often one head and no more, and one that has come before.
        head = self._heads.remembered.get(buffer)
        if head:
            self._buffer = b""
            self.whole = b"" if head.body_bytes or head.ignored_bytes else buffer
        else:
            self.whole = b""
            # Some clients end a body with a line end that its length does not count (RFC 9112, 2.2).
            while buffer.startswith(b"\r\n"):
                buffer = self._buffer = buffer[2:]
            end = buffer.find(b"\r\n\r\n", max(0, self._checked - 3)) + 4
            if end < 4:
                _check_part(buffer, self._checked, self._heads.limits)
                self._checked = len(buffer)
                return None
            head = self._heads.read(buffer[:end])
            self._buffer = buffer[end:]
        self._checked = 0
        self._head = head
        self._ignored_bytes = head.ignored_bytes
        self.keep_alive = head.keep_alive
        self.expects_continue = head.expects_continue
        return head


def split_target(method: str, target: str) -> tuple[str, str]:
    """The path, its percent-encoding undone, and the query of a request target. Raises `Refusal` 400."""
    if not target.startswith("/"):
        target = _origin_form(method, target)
    path, _, query = target.partition("?")
    if "%" in path or not path.isascii():
        path = unquote_to_bytes(path.encode("latin-1")).decode("utf-8", "replace")
    return path, query


def _origin_form(method: str, target: str) -> str:
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute and _HOST.fullmatch(absolute[1]):
        return absolute[2] if absolute[2].startswith("/") else "/" + absolute[2]
    if target == "*" and method == "OPTIONS":
        return target
    raise Refusal(400, "bad_target", "Send a request target that starts with a slash.")
