"""A response as the bytes that go to the client; no socket."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from cardbeat.web.message import Response

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_NO_LENGTH: Final = (204, 304)
"""Answers without a body, whose length would be taken for that of another answer (RFC 9110, 8.6)."""


def response_bytes(response: Response, date: str, connection: str, *, with_body: bool) -> bytes:
    """The whole answer, ready for one write. `connection` is the `Connection` header's line, or empty.

    Raises `ValueError` for a header that would break the framing.
    """
    head = [_STATUS_LINES[response.status], "Date: ", date, "\r\n", connection]
    for name, value in response.headers.items():
        head += (name, ": ", value, "\r\n")
    if response.status not in _NO_LENGTH:
        head.append(f"Content-Length: {len(response.body)}\r\n")
    head.append("\r\n")
    text = "".join(head)
    _check_lines(text, response.headers)
    return text.encode("latin-1", "replace") + (response.body if with_body else b"")


def _check_lines(text: str, headers: Mapping[str, str]) -> None:
    if text.count("\n") > len(headers) + 5 or text.count("\r") != text.count("\n") or "\0" in text:
        raise ValueError("a response header holds a line end or NUL")
