"""Posting a webhook: one request that goes to vetted addresses only and ends by its deadline.

No redirect is followed and no proxy of the environment asked: either could lead to an address that was never vetted.
"""

import functools
import http.client
import ipaddress
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, cast

from cardbeat.heartbeat.alert import Outcome
from cardbeat.heartbeat.lanes import LONG_SECONDS
from cardbeat.heartbeat.permit import Permit, Postponed
from cardbeat.heartbeat.resolver import Resolver, family_of, is_own
from cardbeat.heartbeat.target import PRIVATE, BadTarget, IpAddress, address_name, allowed, parse, refusal_of

ANSWER_BYTES = 64 * 1024
ADDRESSES = 8
"""Addresses of one name tried at the most."""

# One sentence for a name that does not exist and for one that leads inside: else anyone could list the internal names.
_NOT_PUBLIC = "The host's name leads to no public address."
_NEVER = "The host's name leads to a reserved address, which is never requested."
_NO_ADDRESS = "The host's name has no address."
_TOO_LATE = f"There was no complete answer within {LONG_SECONDS:g} seconds."


class Sender:
    """Posts webhooks from any number of threads; nothing in it changes after the first use of `tls`.

    `tls`, where given, is used instead of a context with the system's trusted certificates.
    """

    def __init__(
        self,
        allow_private: bool = False,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._resolver = resolver or Resolver()
        self._trust = tls
        # Bare: the default opener would follow redirects, read files and ask the environment for proxies.
        self._opener = urllib.request.OpenerDirector()
        self._opener.add_handler(_Handler(self))

    @functools.cached_property
    def tls(self) -> ssl.SSLContext:
        """Made with the first https URL, because reading the system's certificates takes tens of milliseconds.

        Threads that ask at the same moment may each make one, which is as good as the other.
        """
        context = self._trust or ssl.create_default_context()
        context.sslsocket_class = _TlsSocket
        return context

    def post(self, url: str, headers: Mapping[str, str], body: bytes, permit: Permit) -> Outcome:
        """One attempt, at most `permit.seconds` long whatever the other side does. Every failure is in the outcome.

        Raises `Postponed` where there is no room at the host's addresses, and for a brief one that took too long.
        """
        outcome = self._outcome(url, headers, body, permit)
        if outcome.error == _TOO_LATE and permit.is_brief:
            raise Postponed
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

    def connect(self, host: str, port: int, permit: Permit) -> "_Socket":
        """A connection to the first vetted address of a host that takes one and that the permit lets it enter."""
        began = time.monotonic()
        addresses = self._vetted(host, began + permit.seconds, permit.key)
        # The one that it has waited for comes first.
        addresses.sort(key=lambda address: address_name(address) != permit.address)
        failure, is_crowded = None, False
        for tried, address in enumerate(addresses):
            if not permit.enter(address_name(address)):
                is_crowded = True
                continue
            # To enter may have shortened it, and an address that is silent must leave time for those after it.
            deadline = began + permit.seconds
            seconds = _left(deadline) / (len(addresses) - tried)
            try:
                return _connected(address, port, deadline, seconds)
            except OSError as error:
                failure = error
        if failure is None or is_crowded:
            raise Postponed
        raise failure

    def _vetted(self, host: str, deadline: float, key: str) -> list[IpAddress]:
        """The addresses of a host to try. Raises `BadTarget` if a single one of all must not be requested."""
        try:
            addresses, refused = [ipaddress.ip_address(host)], PRIVATE
        except ValueError:
            addresses, refused = self._looked_up(host, deadline, key), _NEVER if self._allow_private else _NOT_PUBLIC
        if not all(allowed(address, self._allow_private) for address in addresses):
            raise BadTarget(refused)
        if not self._allow_private and any(map(is_own, addresses[:ADDRESSES])):
            raise BadTarget(refused)
        return addresses[:ADDRESSES]

    def _looked_up(self, host: str, deadline: float, key: str) -> list[IpAddress]:
        try:
            return self._resolver.addresses(host, _left(deadline), key)
        except socket.gaierror:
            raise BadTarget(_NO_ADDRESS if self._allow_private else _NOT_PUBLIC) from None


class _Handler(urllib.request.AbstractHTTPHandler):
    def __init__(self, sender: Sender) -> None:
        super().__init__()
        self._sender = sender

    def http_open(self, request: "_Request") -> http.client.HTTPResponse:
        return self._opened(_Connection, request)

    def https_open(self, request: "_Request") -> http.client.HTTPResponse:
        return self._opened(_TlsConnection, request)

    def _opened(self, kind: "type[_Connection]", request: "_Request") -> http.client.HTTPResponse:
        return self.do_open(kind, request, sender=self._sender, permit=request.permit)  # type: ignore[arg-type]

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_


class _Request(urllib.request.Request):
    def __init__(self, url: str, headers: Mapping[str, str], body: bytes, permit: Permit) -> None:
        super().__init__(url, body, dict(headers), method="POST")
        self.permit = permit


class _Response(http.client.HTTPResponse):
    """The final answer: informational ones (102, 103) before it are skipped; http.client itself skips only 100."""

    def begin(self) -> None:
        super().begin()
        while self.status < 200 and self.status != http.HTTPStatus.SWITCHING_PROTOCOLS:
            # Without headers an answer has not begun.
            self.headers = None  # type: ignore[assignment]
            super().begin()


class _Connection(http.client.HTTPConnection):
    """Its permit's seconds are for all that happens from `connect` on, taken together."""

    response_class = _Response

    def __init__(self, host: str, *, timeout: float, sender: Sender, permit: Permit) -> None:
        super().__init__(host, timeout=timeout)
        self._sender = sender
        self._permit = permit

    def connect(self) -> None:
        self.sock = self._connected()

    def _connected(self) -> "_Socket":
        return self._sender.connect(self.host, self.port, self._permit)


class _TlsConnection(_Connection):
    default_port = http.client.HTTPS_PORT

    def _connected(self) -> "_Socket":
        return _secured(super()._connected(), self.host, self._sender.tls)


class _Socket(socket.socket):
    """A socket whose reads and writes end by one deadline, and whose reads end after 64 KiB in all."""

    deadline: float
    room = ANSWER_BYTES

    def sendall(self, *arguments: Any) -> None:
        self.settimeout(_left(self.deadline))
        super().sendall(*arguments)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        self.settimeout(_left(self.deadline))
        if self.room == 0:
            raise http.client.HTTPException("the answer is too long")
        count = super().recv_into(buffer, min(nbytes or len(buffer), self.room), flags)
        self.room -= count
        return count


class _TlsSocket(_Socket, ssl.SSLSocket):  # type: ignore[misc]
    """The same over TLS."""


def _connected(address: IpAddress, port: int, deadline: float, seconds: float) -> _Socket:
    connection = _Socket(family_of(address), socket.SOCK_STREAM)
    try:
        connection.deadline = deadline
        connection.settimeout(seconds)
        connection.connect((str(address), port))
        # Head and body are two writes: without this the second waits for the first's acknowledgement.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def _secured(connection: _Socket, host: str, tls: ssl.SSLContext) -> _TlsSocket:
    try:
        connection.settimeout(_left(connection.deadline))
        secured = cast(_TlsSocket, tls.wrap_socket(connection, server_hostname=host))
    except BaseException:
        connection.close()
        raise
    secured.deadline = connection.deadline
    return secured


def _left(deadline: float) -> float:
    """Seconds until `deadline`. Raises `TimeoutError` when none are left: a timeout of 0 would not wait at all."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _outcome(response: http.client.HTTPResponse) -> Outcome:
    status, retry_after = response.status, response.headers.get("Retry-After")
    try:
        response.read(ANSWER_BYTES)
    except TimeoutError as error:
        return Outcome(status, _sentence(error), retry_after)
    except (OSError, http.client.HTTPException, ValueError):
        # The status has come, and the body is not used.
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
    """What went wrong, for the alert's history: it names no address that the user has not given."""
    if isinstance(reason, BadTarget):
        return str(reason)
    return next((sentence for kind, sentence in _ERROR_SENTENCES if isinstance(reason, kind)), "The connection failed.")
