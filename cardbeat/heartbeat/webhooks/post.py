"""Posts a webhook: one request, to vetted addresses only, with one deadline for all of it.

Follows no redirect and uses no proxy from the environment, because both could lead to an address that was not vetted.
"""

import functools
import http.client
import io
import ipaddress
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from cardbeat.bounded_socket import BoundedSocket, BoundedTlsSocket, seconds_left
from cardbeat.concurrency.fair_lock import FairLock
from cardbeat.heartbeat.outbox.alert import Outcome
from cardbeat.heartbeat.webhooks.permit import LONG_SECONDS, Late, Permit, Postponed
from cardbeat.heartbeat.webhooks.resolver import Resolver, family_of, is_own
from cardbeat.heartbeat.webhooks.target import PRIVATE, BadTarget, IpAddress, address_name, allowed, parse, refusal_of
from cardbeat.host.descriptors import raise_if_lacking

Trust = Callable[[], ssl.SSLContext]

ANSWER_BYTES = 64 * 1024
ANSWER_LINES = 128
"""Lines that are read: of heads, also of informational answers, and between chunks of a body. Each takes CPU."""
CIPHERS, CURVE = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:!SHA1", "prime256v1"
"""Of TLS 1.2, and the one curve. Where a receiver may ask for large numbers, a handshake takes 0.15 to 0.9 s of CPU,
which no deadline ends; with numbers in its certificates 10 s. TLS 1.3 hides these from us until they are decoded, so it
is only for keys whose tier the operator chose."""
HEARD = (b"http/", b"content-length:", b"transfer-encoding:", b"connection:", b"retry-after:")
"""The lines of a head that are read: Python parses a `Content-Type` of 64 KB for 2 s."""
ADDRESSES = 8
"""Addresses of one name that are tried."""

# The same sentence for unknown names and internal names: so an attacker can't find out internal names.
_NOT_PUBLIC = "The host's name leads to no public address."
_NEVER = "The host's name leads to a reserved address, which is never requested."
_NO_ADDRESS = "The host's name has no address."
_ONLY_NEWER = "The receiver wants TLS 1.3, which is only for keys in another tier than `free`."
_TOO_LATE = f"There was no complete answer within {LONG_SECONDS:g} seconds."


class Sender:
    """Posts webhooks. Safe for any number of threads.

    `trust` makes a TLS context, by default one with the system's trusted certificates.
    """

    def __init__(
        self, allow_private: bool = False, resolver: Resolver | None = None, trust: Trust = ssl.create_default_context
    ) -> None:
        self._allow_private = allow_private
        self._resolver = resolver or Resolver()
        self.tls = functools.cache(functools.partial(_context, trust))
        # A bare opener: the default one follows redirects, reads files and uses proxies from the environment.
        self._opener = urllib.request.OpenerDirector()
        self._opener.add_handler(_Handler(self))
        self.computing = FairLock()
        """Held for each step of a handshake, by key: where hundreds shake hands, the rest of the server has a core."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, permit: Permit) -> Outcome:
        """Make one attempt of at most `permit.seconds`. Failures are returned as an outcome.

        Raises `Postponed` if all addresses are at their limit, `Late` if a brief attempt took too long, `Unavailable`.
        """
        outcome = self._outcome(url, headers, body, permit)
        if outcome.error == _TOO_LATE and permit.is_brief:
            raise Late
        return outcome

    def _outcome(self, url: str, headers: Mapping[str, str], body: bytes, permit: Permit) -> Outcome:
        try:
            target = parse(url)
            refusal = refusal_of(target, self._allow_private)
            if refusal is not None:
                raise BadTarget(refusal)
            request = _Request(target.url, headers, body, permit)
            with self._opener.open(request, timeout=permit.seconds) as response:
                return _outcome(response)
        except urllib.error.URLError as error:
            return Outcome(error=_sentence(error.reason))
        except (OSError, http.client.HTTPException, BadTarget) as error:
            return Outcome(error=_sentence(error))

    def connect(self, host: str, port: int, permit: Permit) -> BoundedSocket:
        """A connection to the first vetted address that the permit allows and that accepts it."""
        began = time.monotonic()
        addresses = self._vetted(host, began + permit.seconds, permit.key)
        # The address that the attempt waited for comes first.
        addresses.sort(key=lambda address: address_name(address) != permit.address)
        failure, is_crowded = None, False
        for tried, address in enumerate(addresses):
            if not permit.enter(address_name(address)):
                is_crowded = True
                continue
            # `enter` may shorten the permit. A silent address must leave time for the addresses after it.
            deadline = began + permit.seconds
            seconds = seconds_left(deadline) / (len(addresses) - tried)
            try:
                return _connected(address, port, deadline, seconds)
            except OSError as error:
                raise_if_lacking(error)
                failure = error
        is_late = permit.is_brief and isinstance(failure, TimeoutError)
        if failure is None or (is_crowded and not is_late):
            raise Postponed
        raise failure

    def _vetted(self, host: str, deadline: float, key: str) -> list[IpAddress]:
        """The addresses of a host to try. Raises `BadTarget` if any of its addresses is not allowed."""
        try:
            addresses, refused = [ipaddress.ip_address(host)], PRIVATE
        except ValueError:
            addresses, refused = self._looked_up(host, deadline, key), _NEVER if self._allow_private else _NOT_PUBLIC
        tried = addresses[:ADDRESSES]
        is_allowed = all(allowed(address, self._allow_private) for address in addresses)
        if not is_allowed or (not self._allow_private and any(map(is_own, tried))):
            raise BadTarget(refused)
        return tried

    def _looked_up(self, host: str, deadline: float, key: str) -> list[IpAddress]:
        try:
            return self._resolver.addresses(host, seconds_left(deadline), key)
        except socket.gaierror:
            raise BadTarget(_NO_ADDRESS if self._allow_private else _NOT_PUBLIC) from None


class _Handler(urllib.request.AbstractHTTPHandler):
    def __init__(self, sender: Sender) -> None:
        super().__init__()
        self._sender = sender

    def http_open(self, request: "_Request") -> http.client.HTTPResponse:
        kind = _TlsConnection if request.type == "https" else _Connection
        return self.do_open(kind, request, sender=self._sender, permit=request.permit)  # type: ignore[arg-type]

    https_open = http_open
    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_


class _Request(urllib.request.Request):
    def __init__(self, url: str, headers: Mapping[str, str], body: bytes, permit: Permit) -> None:
        super().__init__(url, body, dict(headers), method="POST")
        self.permit = permit


class _Lines(io.BufferedReader):
    """Bytes of an answer, of which at most `ANSWER_LINES` lines can be read. Of headers only those `HEARD` are."""

    _left = ANSWER_LINES

    def readline(self, size: int | None = -1) -> bytes:
        while True:
            self._left -= 1
            line = super().readline(size)
            # A CR also ends a line for who parses it: in 64 KB of them are 20,000 headers, which take 25 ms of CPU.
            if self._left < 0 or b"\r" in line.removesuffix(b"\r\n"):
                raise http.client.HTTPException("its answer has too many lines")
            # Others are the end of the head, and the lengths of chunks.
            is_header = line.startswith((b" ", b"\t")) or b":" in line
            if not is_header or line.lower().startswith(HEARD):
                return line


class _Response(http.client.HTTPResponse):
    """The final answer. Skips informational answers such as 102 and 103; http.client itself skips only 100."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.fp = _Lines(self.fp.detach())

    def begin(self) -> None:
        super().begin()
        while self.status < 200 and self.status != http.HTTPStatus.SWITCHING_PROTOCOLS:
            # http.client reads the next answer only if there are no headers yet.
            self.headers = None  # type: ignore[assignment]
            super().begin()


class _Connection(http.client.HTTPConnection):
    """The permit's seconds are one deadline for everything from `connect` on."""

    response_class = _Response
    sock: BoundedSocket

    def __init__(self, host: str, *, timeout: float, sender: Sender, permit: Permit) -> None:
        super().__init__(host, timeout=timeout)
        self._sender = sender
        self._permit = permit

    def connect(self) -> None:
        self.sock = self._sender.connect(self.host, self.port, self._permit)


class _TlsConnection(_Connection):
    default_port = http.client.HTTPS_PORT

    def connect(self) -> None:
        super().connect()
        turn = functools.partial(self._sender.computing.held, self._permit.key, self.sock.deadline)
        self.sock = BoundedTlsSocket.secured(self.sock, self._sender.tls(self._permit.is_granted), self.host, turn)


def _context(trust: Trust, is_granted: bool) -> ssl.SSLContext:
    """The TLS context for a key. Slow, because it reads the certificates: tens of milliseconds."""
    context = trust()
    context.set_ciphers(CIPHERS)
    context.set_ecdh_curve(CURVE)
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not is_granted:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def _connected(address: IpAddress, port: int, deadline: float, seconds: float) -> BoundedSocket:
    connection = BoundedSocket(family_of(address), socket.SOCK_STREAM)
    try:
        connection.deadline, connection.room = deadline, ANSWER_BYTES
        connection.settimeout(seconds)
        connection.connect((str(address), port))
        # Head and body are two writes: without TCP_NODELAY the second waits for the acknowledgement of the first.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def _outcome(response: http.client.HTTPResponse) -> Outcome:
    status, retry_after = response.status, response.headers.get("Retry-After")
    try:
        response.read(ANSWER_BYTES)
    except TimeoutError as error:
        return Outcome(status, _sentence(error), retry_after)
    except (OSError, http.client.HTTPException, ValueError):
        # The status has arrived, and the body is not used.
        pass
    if 200 <= status < 300:
        return Outcome(status)
    hint = "; redirects are not followed." if 300 <= status < 400 else "."
    return Outcome(status, f"The receiver answered {status}{hint}", retry_after)


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
    """A sentence for the alert's history. It names no address, so it tells nothing about the internal network."""
    if isinstance(reason, BadTarget):
        return str(reason)
    if getattr(reason, "reason", None) == "TLSV1_ALERT_PROTOCOL_VERSION":
        return _ONLY_NEWER
    return next((sentence for kind, sentence in _ERROR_SENTENCES if isinstance(reason, kind)), "The connection failed.")
