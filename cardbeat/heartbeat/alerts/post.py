"""Posts a webhook: one request by `urllib.request`, to vetted addresses only.

Follows no redirect and uses no proxy from the environment: both could lead to an address that was
not vetted. The caller ends a post that takes too long, by `Run.connected`. Of the answer only the
head is read, up to `ANSWER_BYTES`.
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
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from cardbeat.heartbeat.alerts.limits import POST_SECONDS, Postponed, Run
from cardbeat.heartbeat.alerts.message import Outcome
from cardbeat.heartbeat.alerts.target import (
    BadTarget,
    IpAddress,
    Target,
    address_name,
    may_enter,
    parse,
    require_allowed,
)

ANSWER_BYTES = 64 * 1024
ANSWER_LINES = 128
"""Bytes and lines of heads that are read. Each line takes CPU."""
HEARD = b"retry-after:"
"""The header that is parsed: a `Content-Type` of 64 KB costs Python 2 s."""
_INFORMATIONAL = re.compile(rb"\S+ +1(?!01)\d\d\b")
"""Any but 101, which changes the protocol, so it is the last one."""
ADDRESSES_VETTED = 64
ADDRESSES_TRIED = 8
"""Addresses of one name. A name server may give thousands."""

# The same sentence for unknown and internal names: nobody can find out internal names so.
_NOT_PUBLIC = "The host's name leads to no public address."
_NEVER = "The host's name leads to an address that is never requested."
_NO_ADDRESS = "The host's name has no address."
_NO_PROXY = "The proxy of this server could not be reached."
_TOO_LATE = (
    f"There was no complete answer within {POST_SECONDS:g} seconds."
)


class _Request(urllib.request.Request):
    run: Run


class Sender(urllib.request.AbstractHTTPHandler):
    """Posts webhooks, and opens their requests. Safe for any number of threads.

    `proxy` is the URL of `--webhook-proxy`: then names are looked up there, and no limits of
    addresses apply. `trust` makes a TLS context, by default with the host's trusted certificates.
    """

    http_request = https_request = (
        urllib.request.AbstractHTTPHandler.do_request_
    )

    def __init__(
        self,
        allow_private: bool = False,
        proxy: str | None = None,
        lookup: Callable[[str], list[IpAddress]] | None = None,
        trust: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        super().__init__()
        self._allow_private = allow_private
        self._proxy = parse(proxy) if proxy else None
        self._lookup = lookup or system_addresses
        # Slow, because it reads the certificates: tens of milliseconds.
        self._tls = functools.cache(trust)
        # A bare opener: the default one follows redirects and uses proxies from the environment.
        self._opener = urllib.request.OpenerDirector()
        self._opener.add_handler(self)

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, run: Run
    ) -> Outcome:
        """Make one attempt. Failures are returned as an outcome.

        Raises `Postponed` if no address may be entered now.
        """
        failure: object
        try:
            target = parse(url)
            require_allowed(target, self._allow_private)
            request = _Request(
                target.url, body, dict(headers), method="POST"
            )
            request.run = run
            if target.credentials:
                request.add_header("Authorization", _basic(target))
            if self._proxy:
                # `set_proxy` makes the proxy the request's host.
                request.add_unredirected_header("Host", target.netloc)
                request.set_proxy(self._proxy.netloc, "http")
                if self._proxy.credentials:
                    own = _basic(self._proxy)
                    request.add_header("Proxy-Authorization", own)
            with self._opener.open(
                request, timeout=POST_SECONDS
            ) as response:
                return self._outcome(
                    response.status, response.retry_after
                )
        except urllib.error.URLError as error:
            failure = error.reason
        except (OSError, http.client.HTTPException, BadTarget) as error:
            failure = error
        return Outcome(
            error=_TOO_LATE if run.is_late else _sentence(failure)
        )

    def _outcome(self, status: int, retry_after: str | None) -> Outcome:
        if 200 <= status < 300:
            return Outcome(status)
        who = "receiver"
        if (
            self._proxy
            and status == http.HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
        ):
            who = "proxy of this server"
        hint = (
            "; redirects are not followed" if 300 <= status < 400 else ""
        )
        error = f"The {who} answered {status}{hint}."
        return Outcome(status, error, retry_after)

    def http_open(self, request: _Request) -> http.client.HTTPResponse:
        return self._opened(_Connection, request)

    def https_open(self, request: _Request) -> http.client.HTTPResponse:
        return self._opened(_TlsConnection, request, context=self._tls())

    def _opened(
        self, kind: "type[_Connection]", request: _Request, **options: Any
    ) -> http.client.HTTPResponse:
        def made(host: str, **named: Any) -> _Connection:
            connection = kind(host, **named)
            # `HTTPConnection.connect` calls it.
            connection._create_connection = functools.partial(
                self._connect, request.run
            )
            return connection

        return self.do_open(made, request, **options)

    def _connect(
        self, run: Run, place: tuple[str, int], *_: object
    ) -> socket.socket:
        """A connection to the proxy, or to a vetted address: the first that accepts it."""
        addresses = self._addresses(place[0])
        failure: OSError | None = None
        is_crowded = False
        for address in addresses:
            if not run.enter(
                None if self._proxy else address_name(address)
            ):
                is_crowded = True
                continue
            try:
                # A silent address must leave time for the addresses after it.
                connection = socket.create_connection(
                    (str(address), place[1]),
                    POST_SECONDS / len(addresses),
                )
                connection.settimeout(POST_SECONDS)
                run.connected(connection)
                return connection
            except OSError as error:
                failure = error
        if is_crowded:
            raise Postponed
        raise (
            failure
            if failure and not self._proxy
            else BadTarget(_NO_PROXY)
        )

    def _addresses(self, host: str) -> list[IpAddress]:
        """The addresses to try. Raises `BadTarget` if any address of a receiver is not allowed."""
        addresses: list[IpAddress] = []
        try:
            addresses = [ipaddress.ip_address(host)]
        except ValueError:
            with contextlib.suppress(OSError):
                addresses = self._lookup(host)
        if not self._proxy:
            if not addresses and self._allow_private:
                raise BadTarget(_NO_ADDRESS)
            may_enter_all = all(
                may_enter(address, self._allow_private)
                for address in addresses
            )
            if not addresses or not may_enter_all:
                refused = _NEVER if self._allow_private else _NOT_PUBLIC
                raise BadTarget(refused)
        return addresses[:ADDRESSES_TRIED]


def system_addresses(host: str) -> list[IpAddress]:
    """The addresses from the system's resolver, in its order of preference. Raises `OSError`."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # A dict keeps the order and drops duplicates.
    addresses = [
        ipaddress.ip_address(entry[4][0])
        for entry in found[:ADDRESSES_VETTED]
    ]
    return list(dict.fromkeys(addresses))


class _Response(http.client.HTTPResponse):
    """An answer of which only the final head is read, and of that only what is `HEARD`."""

    retry_after: str | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        stream = self.fp
        # What is left after a broken head must be open, until it is closed with this object.
        self.fp = io.BufferedReader(io.BytesIO())
        with stream:
            self.fp = io.BufferedReader(io.BytesIO(_final_head(stream)))

    def begin(self) -> None:
        """Parse the head. With the standard one, made for mails, a post takes a tenth more CPU."""
        version, self.status, self.reason = self._read_status()  # type: ignore[attr-defined]
        if not version.startswith("HTTP/1."):
            raise http.client.UnknownProtocol(version)
        self.will_close = True
        # The first one counts.
        _, _, value = self.fp.readline().decode("latin-1").partition(":")
        self.retry_after = value.strip() or None


def _final_head(stream: io.BufferedReader) -> bytes:
    """The head of the final answer, after 102, 103 and other informational ones."""
    head = b""
    left = ANSWER_BYTES
    for _ in range(ANSWER_LINES):
        line = stream.readline(left)
        left -= len(line)
        if not line and left == ANSWER_BYTES:
            return line
        # A CR also ends a line for the parser: in 64 KB are 20,000 headers, 25 ms of CPU.
        if not line.endswith(b"\n") or b"\r" in line.removesuffix(
            b"\r\n"
        ):
            break
        if not line.strip() and not _INFORMATIONAL.match(head):
            return head + line
        if not line.strip():
            head = b""
        elif not head or line.lower().startswith(HEARD):
            head += line
    raise http.client.HTTPException("its answer is cut off or too long")


class _Connection(http.client.HTTPConnection):
    response_class = _Response

    _create_connection: Callable[..., socket.socket]

    def _tunnel(self) -> None:
        try:
            super()._tunnel()  # type: ignore[misc]
        except (OSError, http.client.HTTPException) as error:
            status = re.search(r"failed: (\d{3}) ", f"{error} ")
            answered = (
                f"answered {status[1]}"
                if status
                else "gave no valid answer"
            )
            raise BadTarget(
                f"The proxy of this server {answered}."
            ) from None


class _TlsConnection(_Connection, http.client.HTTPSConnection):
    pass


def _basic(target: Target) -> str:
    return f"Basic {base64.b64encode(target.credentials.encode()).decode('ascii')}"


_ERROR_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, _TOO_LATE),
    (ConnectionRefusedError, "The connection was refused."),
    (
        http.client.RemoteDisconnected,
        "The connection was closed without an answer.",
    ),
    (ConnectionError, "The connection was reset."),
    (http.client.HTTPException, "The answer was not valid HTTP."),
    (
        ssl.SSLCertVerificationError,
        "The receiver's certificate is not valid or not trusted.",
    ),
    (ssl.SSLError, "The receiver does not speak TLS as expected."),
)


def _sentence(failure: object) -> str:
    """A sentence for the history. It names no address, so it tells nothing about this network."""
    if isinstance(failure, BadTarget):
        return str(failure)
    for kind, sentence in _ERROR_SENTENCES:
        if isinstance(failure, kind):
            return sentence
    return "The connection failed."
