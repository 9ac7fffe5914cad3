"""A response as the bytes that go to the client; no socket."""

from functools import lru_cache
from http import HTTPStatus
from typing import Final

from cardbeat.web.message import NO_STORE, Response

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_NO_LENGTH: Final = (204, 304)
"""Answers without a body, whose length would be taken for that of another answer (RFC 9110, 8.6)."""


def response_head(response: Response, request_id: str, date: str, keep_alive: bool) -> bytes:
    """All of an answer that goes before its body. Raises `ValueError` for a header that would break the framing."""
    length = b"" if response.status in _NO_LENGTH else b"Content-Length: %d\r\n" % len(response.body)
    first = _first_lines(response.status, date, keep_alive)
    return b"%s%sX-Request-Id: %s\r\n%s\r\n" % (
        first,
        _block(tuple(response.headers.items())),
        request_id.encode("ascii"),
        length,
    )


@lru_cache(64)
def _first_lines(status: int, date: str, keep_alive: bool) -> bytes:
    connection = "keep-alive" if keep_alive else "close"
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nDate: {date}\r\nConnection: {connection}\r\n".encode()


@lru_cache(512)
def _block(headers: tuple[tuple[str, str], ...]) -> bytes:
    """The header lines of an answer, and what every answer says."""
    lines = {"Cache-Control": NO_STORE, "X-Content-Type-Options": "nosniff", **dict(headers)}
    block = "\r\n".join(map(": ".join, lines.items()))
    if not block.count("\n") == block.count("\r") == len(lines) - 1:
        raise ValueError("a header of the response holds a line end")
    return block.encode("latin-1", "replace") + b"\r\n"
