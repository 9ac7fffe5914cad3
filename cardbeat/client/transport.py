"""Sends one request to a server that is not trusted: its answer has a deadline and a limit of bytes.

Follows no redirect, because the key must not be sent to another host. Uses a proxy of the environment for https alone:
there it can read neither the key nor the answer.
"""

import http.client
import io
import ipaddress
import ssl
import time
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cardbeat.bounded_socket import BoundedTlsSocket

TIMEOUT_SECONDS = 30
"""For the connection, and again for the whole answer however it trickles."""
ANSWER_BYTES = 16 * 2**20
"""Of an answer with its head. A page of the longest checks has 9 MB."""


class Answer(NamedTuple):
    """Any answer, also a redirect or an error."""

    status: int
    body: bytes
    retry_after: str | None
    location: str | None


def answer_to(request: urllib.request.Request) -> Answer:
    """The answer. Raises `urllib.error.URLError` if the request was not sent, else `OSError`, `ValueError` or
    `http.client.HTTPException`.
    """
    # A bare opener: the default one follows redirects, reads files and uses any proxy from the environment.
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(_proxies(request.full_url)), _BareHandler()):
        opener.add_handler(handler)
    with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
        # With a number, because http.client would make room for as many bytes as the answer announces.
        body = answer.read(ANSWER_BYTES)
        return Answer(answer.status, body, answer.headers.get("Retry-After"), answer.headers.get("Location"))


def _proxies(url: str) -> dict[str, str]:
    parts, proxies = urlsplit(url), urllib.request.getproxies()
    if parts.scheme == "https" and "https" in proxies and not _is_loopback(parts.hostname or ""):
        return {"https": proxies["https"]}
    return {}


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Source(io.RawIOBase):
    """Reads a connection until a deadline, and at most `ANSWER_BYTES`."""

    def __init__(self, connection: Any, raw: Any) -> None:
        self._connection = connection
        self._raw = raw
        self._room = ANSWER_BYTES
        self._ends = time.monotonic() + TIMEOUT_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        if self._room == 0:
            raise http.client.HTTPException(f"its answer is longer than {ANSWER_BYTES // 2**20} MiB")
        self._connection.settimeout(left)
        count: int = self._raw.readinto(memoryview(buffer)[: self._room])
        self._room -= count
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _BoundedResponse(http.client.HTTPResponse):
    def __init__(self, sock: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(_Source(sock, self.fp.detach()))


class _BoundedConnection(http.client.HTTPConnection):
    response_class = _BoundedResponse


class _BoundedTlsConnection(_BoundedConnection):
    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        """Connect, through a proxy if there is one, and shake hands with the server itself."""
        super().connect()
        host = self._tunnel_host or self.host  # type: ignore[attr-defined]
        context, ends = ssl.create_default_context(), time.monotonic() + TIMEOUT_SECONDS
        self.sock = BoundedTlsSocket.over(self.sock, context, host, ends, ANSWER_BYTES)


class _BareHandler(urllib.request.AbstractHTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_BoundedConnection, request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_BoundedTlsConnection, request)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_
