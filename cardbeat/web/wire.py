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
    if not response.lines:
        response.lines = header_lines(response)
    start = _start(response.status, date, keep_alive)
    return b"".join((start, b"X-Request-Id: ", request_id.encode("ascii"), b"\r\n", response.lines))


@lru_cache(64)
def _start(status: int, date: str, keep_alive: bool) -> bytes:
    connection = "keep-alive" if keep_alive else "close"
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nDate: {date}\r\nConnection: {connection}\r\n".encode()


def header_lines(response: Response) -> bytes:
    """What of the head depends on the response alone, up to and with the empty line."""
    headers = {"Cache-Control": NO_STORE, "X-Content-Type-Options": "nosniff", **response.headers}
    if response.status not in _NO_LENGTH:
        headers["Content-Length"] = str(len(response.body))
    lines = "\r\n".join(map(": ".join, headers.items()))
    if not lines.count("\n") == lines.count("\r") == len(headers) - 1:
        raise ValueError("a header of the response holds a line end")
    return lines.encode("latin-1", "replace") + b"\r\n\r\n"
