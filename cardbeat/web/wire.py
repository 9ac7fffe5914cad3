"""A response as the bytes that go to the client; no socket."""

from http import HTTPStatus
from typing import Final

from cardbeat.web.message import Response

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}
_NO_LENGTH: Final = (204, 304)
"""Answers without a body, whose length would be taken for that of another answer (RFC 9110, 8.6)."""


def response_head(response: Response, date: str, keep_alive: bool) -> bytes:
    """All of an answer that goes before its body. Raises `ValueError` for a header that would break the framing."""
    lines = [
        _STATUS_LINES[response.status],
        "Date: " + date,
        "Connection: keep-alive" if keep_alive else "Connection: close",
        *map(": ".join, response.headers.items()),
    ]
    if response.status not in _NO_LENGTH:
        lines.append(f"Content-Length: {len(response.body)}")
    head = "\r\n".join(lines)
    if not head.count("\n") == head.count("\r") == len(lines) - 1:
        raise ValueError("a header of the response holds a line end")
    return head.encode("latin-1", "replace") + b"\r\n\r\n"
