"""Sends one request to a server that is not trusted: its answer has a deadline and a limit of bytes.

Follows no redirect, because the key must not be sent to another host. Uses a proxy of the environment for https alone:
there it can read neither the key nor the answer.
"""

import http.client
import ipaddress
import ssl
import time
import urllib.request
from typing import NamedTuple
from urllib.parse import urlsplit

from cardbeat.bounded_socket import BoundedSocket, BoundedTlsSocket

TIMEOUT_SECONDS = 30
"""For the connection, and again for all that follows, however it trickles."""
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


class _BoundedConnection(http.client.HTTPConnection):
    """Bounded once it is connected. The proxy that may stand between is the user's own."""

    sock: BoundedSocket

    def connect(self) -> None:
        super().connect()
        self.sock = BoundedSocket.over(self.sock, time.monotonic() + TIMEOUT_SECONDS, ANSWER_BYTES)


class _BoundedTlsConnection(_BoundedConnection):
    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        host = self._tunnel_host or self.host  # type: ignore[attr-defined]
        self.sock = BoundedTlsSocket.secured(self.sock, ssl.create_default_context(), host)


class _BareHandler(urllib.request.AbstractHTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_BoundedConnection, request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_BoundedTlsConnection, request)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_
