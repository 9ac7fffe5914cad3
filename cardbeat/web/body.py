"""The body of a request as it comes: of a known length, or in chunks. Pure.

Chunks (RFC 9112, 7.1) are decoded strictly, because a proxy in front must not find another end of
the body than we do: sizes have 1 to 8 hexadecimal digits, and all lines end with CR LF. Extensions
and trailers are read and ignored.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from cardbeat.errors import Refusal

AT_ONCE: Final = 64
"""Most lines and chunks of one call: 16 KiB can hold 2,700 chunks, which would hold up others."""

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(;[\t -~\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*")


@dataclass(slots=True, kw_only=True)
class Body:
    """A body of a known length. One that `is_ignored` is dropped as it comes."""

    left: int = 0
    """Bytes that have not come: of the body, or of the present chunk."""
    is_ignored: bool = False
    content: bytearray = field(default_factory=bytearray)
    is_complete: bool = False

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Take the begin of `data`; return the rest, and whether more can be done with it now."""
        rest = self._take(data)
        self.is_complete = not self.left
        return rest, False

    def _take(self, data: bytes) -> bytes:
        part = data[: self.left]
        self.left -= len(part)
        if not self.is_ignored:
            self.content += part
        return data[len(part) :]


@dataclass(slots=True, kw_only=True)
class Chunks(Body):
    """A chunked body. `most_bytes` limits its content, unless it is ignored.

    `most_extra` limits its extensions and trailers.
    """

    most_bytes: int
    most_extra: int
    _is_in_chunk: bool = False
    """Whether the next line is the empty one that ends a chunk."""
    _is_in_trailers: bool = False
    _extra: int = 0

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """As that of `Body`. Raises `Refusal` for broken framing and for what is too large."""
        for _ in range(AT_ONCE):
            data = self._take(data)
            line, end, rest = data.partition(b"\r\n")
            if self.left or not end:
                self._require_room(len(data))
                _require(b"\n" not in data)
                return data, False
            self._take_line(line)
            data = rest
            if self.is_complete:
                return data, False
        return data, True

    def _take_line(self, line: bytes) -> None:
        if self._is_in_chunk:
            _require(not line)
            self._is_in_chunk = False
        elif not self._is_in_trailers:
            self._begin_chunk(line)
        elif line:
            _require(_TRAILER.fullmatch(line))
            self._count_extra(len(line))
        else:
            self.is_complete = True

    def _begin_chunk(self, line: bytes) -> None:
        digits, _, _ = line.partition(b";")
        _require(_SIZE.fullmatch(line))
        self._count_extra(len(line) - len(digits))
        size = int(digits, 16)
        if not self.is_ignored and len(self.content) + size > self.most_bytes:
            raise Refusal("body_too_large", most=self.most_bytes)
        self.left = size
        self._is_in_chunk = size > 0
        self._is_in_trailers = size == 0

    def _count_extra(self, count: int) -> None:
        self._require_room(count)
        self._extra += count

    def _require_room(self, count: int) -> None:
        """Refuse a line, also one that is not complete, that is too long."""
        if self._extra + count > self.most_extra:
            raise Refusal("headers_too_large", most=self.most_extra)


def _require(is_valid: object) -> None:
    if not is_valid:
        raise Refusal("bad_chunk")
