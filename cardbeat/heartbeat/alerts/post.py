"""Posts a webhook: one request by `urllib.request`, to vetted addresses only.

Follows no redirect and uses no proxy from the environment: both could lead to an address that was
not vetted. The caller ends a post that takes too long, by `Run.connected`.
"""

import base64
import contextlib
import functools
import http.client
import io
import ipaddress
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from cardbeat.heartbeat.alerts.limits import POST_SECONDS, Postponed, Run
from cardbeat.heartbeat.alerts.message import Outcome
from cardbeat.heartbeat.alerts.target import (
    PRIVATE,
    BadTarget,
    IpAddress,
    Target,
    address_name,
    allowed,
    family_of,
    is_own,
    parse,
    refusal_of,
)
from cardbeat.host.descriptors import raise_if_lacking

Trust = Callable[[], ssl.SSLContext]
Lookup = Callable[[str], list[IpAddress]]

ANSWER_BYTES = 64 * 1024
LEAST_BYTES = 64
"""What each read counts for at least: single bytes take a hundred times as long as together."""
ANSWER_LINES = 128
"""Lines that are read: of heads, and between chunks of a body. Each takes CPU."""
HEARD = (
    b"http/",
    b"content-length:",
    b"transfer-encoding:",
    b"connection:",
    b"retry-after:",
)
"""The lines of a head that are parsed: a `Content-Type` of 64 KB costs Python 2 s."""
ADDRESSES_VETTED = 64
ADDRESSES_TRIED = 8
"""Addresses of one name. A name server may give thousands."""

# The same sentence for unknown and internal names: nobody can find out internal names so.
_NOT_PUBLIC = "The host's name leads to no public address."
_NEVER = "The host's name leads to an address that is never requested."
_NO_ADDRESS = "The host's name has no address."
_TOO_LATE = f"There was no complete answer within {POST_SECONDS:g} seconds."


class _ProxyTrouble(Exception):
    """A sentence about the proxy, so that it is not taken for the receiver's."""


class Sender:
    """Posts webhooks. Safe for any number of threads.

    `proxy` is the URL of `--webhook-proxy`: then names are looked up there, and no limits of
    addresses apply. `trust` makes a TLS context, by default with the host's trusted certificates.
    """

    def __init__(
        self,
        allow_private: bool = False,
        proxy: str | None = None,
        lookup: Lookup | None = None,
        trust: Trust = ssl.create_default_context,
    ) -> None:
        self._allow_private = allow_private
        self._proxy = parse(proxy) if proxy else None
        self._lookup = lookup or system_addresses
        # Slow, because it reads the certificates: tens of milliseconds.
        self.tls = functools.cache(trust)
        # A bare opener: the default one follows redirects and uses proxies from the environment.
        self._opener = urllib.request.OpenerDirector()
        self._opener.add_handler(_Handler(self))
        if self._proxy:
            self._opener.add_handler(_Proxy(self._proxy))

    def post(self, url: str, headers: Mapping[str, str], body: bytes, run: Run) -> Outcome:
        """Make one run. Failures are returned as an outcome.

        Raises `Postponed` if no address may be entered now, and `Unavailable` without descriptors.
        """
        try:
            target = parse(url)
            refusal = refusal_of(target, self._allow_private)
            if refusal is not None:
                raise BadTarget(refusal)
            request = _Request(target.url, body, dict(headers), method="POST")
            request.run = run
            if target.credentials:
                request.add_header("Authorization", _basic(target))
            with self._opener.open(request, timeout=POST_SECONDS) as response:
                return _outcome(response, self._proxy is not None)
        except urllib.error.URLError as error:
            failure = error.reason
        except (OSError, http.client.HTTPException, BadTarget, _ProxyTrouble) as error:
            failure = error
        return Outcome(error=_TOO_LATE if run.is_late else _sentence(failure))

    def connect(self, host: str, port: int, run: Run) -> socket.socket:
        """A connection to the first vetted address that may be entered and accepts it."""
        ends_at = time.monotonic() + POST_SECONDS
        if self._proxy:
            return self._connect_to_proxy(host, port, run)
        addresses = self._vetted(host)
        failure = None
        is_crowded = False
        for tried, address in enumerate(addresses):
            if not run.enter(address_name(address)):
                is_crowded = True
                continue
            try:
                # A silent address must leave time for the addresses after it.
                left = max(0.1, ends_at - time.monotonic())
                connection = socket.socket(family_of(address), socket.SOCK_STREAM)
                seconds = left / (len(addresses) - tried)
                return _connected(connection, (str(address), port), seconds, run)
            except OSError as error:
                raise_if_lacking(error)
                failure = error
        if failure is None or is_crowded:
            raise Postponed
        raise failure

    def _connect_to_proxy(self, host: str, port: int, run: Run) -> socket.socket:
        try:
            address = self._lookup(host)[0]
            connection = socket.socket(family_of(address), socket.SOCK_STREAM)
            return _connected(connection, (str(address), port), POST_SECONDS, run)
        except (OSError, IndexError) as error:
            if isinstance(error, OSError):
                raise_if_lacking(error)
            raise _ProxyTrouble("The proxy of this server could not be reached.") from None

    def _vetted(self, host: str) -> list[IpAddress]:
        """The addresses to try. Raises `BadTarget` if any address of the host is not allowed."""
        try:
            addresses = [ipaddress.ip_address(host)]
            refused = PRIVATE
        except ValueError:
            refused = _NEVER if self._allow_private else _NOT_PUBLIC
            try:
                addresses = self._lookup(host)
            except OSError as error:
                raise_if_lacking(error)
                addresses = []
            if not addresses:
                raise BadTarget(_NO_ADDRESS if self._allow_private else refused) from None
        if not all(allowed(address, self._allow_private) for address in addresses):
            raise BadTarget(refused)
        tried = addresses[:ADDRESSES_TRIED]
        if not self._allow_private and any(map(is_own, tried)):
            raise BadTarget(refused)
        return tried


def system_addresses(host: str) -> list[IpAddress]:
    """The addresses from the system's resolver, in its order of preference. Raises `OSError`."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        # The resolver does not tell that it lacked descriptors.
        is_own(ipaddress.IPv4Address("127.0.0.1"))
        raise
    # A dict keeps the order and drops duplicates.
    addresses = [ipaddress.ip_address(entry[4][0]) for entry in found[:ADDRESSES_VETTED]]
    return list(dict.fromkeys(addresses))


class _Request(urllib.request.Request):
    run: Run


class _Handler(urllib.request.AbstractHTTPHandler):
    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_

    def __init__(self, sender: Sender) -> None:
        super().__init__()
        self._sender = sender

    def http_open(self, request: _Request) -> http.client.HTTPResponse:
        return self._open(_Connection, request)

    def https_open(self, request: _Request) -> http.client.HTTPResponse:
        return self._open(_TlsConnection, request, context=self._sender.tls())

    def _open(
        self, kind: type["_Connection"], request: _Request, **options: Any
    ) -> http.client.HTTPResponse:
        def make(host: str, **named: Any) -> _Connection:
            connection = kind(host, **named)
            connection.sender = self._sender
            connection.run = request.run
            return connection

        return self.do_open(make, request, **options)


class _Proxy(urllib.request.ProxyHandler):
    """Sends all through one proxy. `no_proxy` and the system's settings are not read."""

    def __init__(self, proxy: Target) -> None:
        super().__init__({"http": proxy.netloc, "https": proxy.netloc})
        self._authorization = _basic(proxy) if proxy.credentials else None

    def proxy_open(self, request: Any, proxy: str, type: str) -> None:
        if self._authorization:
            request.add_header("Proxy-Authorization", self._authorization)
        request.set_proxy(proxy, "http")


class _Lines(io.BufferedReader):
    """An answer, of which at most `ANSWER_LINES` lines can be read. Of headers only `HEARD` are."""

    _lines = 0

    def readline(self, size: int | None = -1) -> bytes:
        while True:
            line = super().readline(size)
            if not line and not self._lines:
                return line
            self._lines += 1
            # A CR also ends a line for the parser: in 64 KB are 20,000 headers, 25 ms of CPU.
            is_line = line.endswith(b"\n") and b"\r" not in line.removesuffix(b"\r\n")
            if not is_line or self._lines > ANSWER_LINES:
                raise http.client.HTTPException("its answer is cut off or has too many lines")
            # Other lines are the end of the head, and the lengths of chunks.
            is_header = line.startswith((b" ", b"\t")) or b":" in line
            if not is_header or line.lower().startswith(HEARD):
                return line


class _Bounded(io.RawIOBase):
    """The first `ANSWER_BYTES` of a connection's bytes."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._left = ANSWER_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._left <= 0:
            raise http.client.HTTPException("its answer is too long")
        count: int = self._raw.readinto(memoryview(buffer)[: self._left]) or 0
        self._left -= max(count, LEAST_BYTES)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """The final answer. Skips 102, 103 and others; http.client itself skips only 100."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.fp = _Lines(_Bounded(self.fp.detach()))

    def begin(self) -> None:
        super().begin()
        while self.status < 200 and self.status != http.HTTPStatus.SWITCHING_PROTOCOLS:
            # http.client reads the next answer only if there are no headers yet.
            self.headers = None  # type: ignore[assignment]
            super().begin()


class _Connection(http.client.HTTPConnection):
    response_class = _Response
    sender: Sender
    run: Run

    def connect(self) -> None:
        self.sock = self.sender.connect(self.host, self.port, self.run)
        if self._tunnel_host:  # type: ignore[attr-defined]
            try:
                self._tunnel()  # type: ignore[attr-defined]
            except (OSError, http.client.HTTPException) as error:
                status = re.search(r"failed: (\d{3}) ", f"{error} ")
                answered = f"answered {status[1]}" if status else "gave no valid answer"
                raise _ProxyTrouble(f"The proxy of this server {answered}.") from None


class _TlsConnection(http.client.HTTPSConnection, _Connection):
    """Its `connect` calls that of `_Connection`, and then shakes hands."""


def _connected(
    connection: socket.socket, place: tuple[str, int], seconds: float, run: Run
) -> socket.socket:
    try:
        connection.settimeout(seconds)
        connection.connect(place)
        connection.settimeout(POST_SECONDS)
        # Head and body are two writes: else the second waits for the acknowledgement of the first.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        run.connected(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _basic(target: Target) -> str:
    return f"Basic {base64.b64encode(target.credentials.encode()).decode('ascii')}"


def _outcome(response: http.client.HTTPResponse, has_proxy: bool) -> Outcome:
    status = response.status
    # The status has arrived, and the body is not used.
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        response.read(ANSWER_BYTES)
    if 200 <= status < 300:
        return Outcome(status)
    hint = "; redirects are not followed." if 300 <= status < 400 else "."
    who = "receiver"
    if has_proxy and status == http.HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        who = "proxy of this server"
    error = f"The {who} answered {status}{hint}"
    return Outcome(status, error, response.headers.get("Retry-After"))


_ERROR_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, _TOO_LATE),
    (ConnectionRefusedError, "The connection was refused."),
    (http.client.RemoteDisconnected, "The connection was closed without an answer."),
    (ConnectionError, "The connection was reset."),
    (http.client.HTTPException, "The answer was not valid HTTP."),
    (ssl.SSLCertVerificationError, "The receiver's certificate is not valid or not trusted."),
    (ssl.SSLError, "The receiver does not speak TLS as expected."),
)


def _sentence(reason: object) -> str:
    """A sentence for the history. It names no address, so it tells nothing about this network."""
    if isinstance(reason, BadTarget | _ProxyTrouble):
        return str(reason)
    for kind, sentence in _ERROR_SENTENCES:
        if isinstance(reason, kind):
            return sentence
    return "The connection failed."
