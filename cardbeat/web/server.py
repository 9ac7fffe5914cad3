"""The HTTP server: accepts clients, limits them, and stops. `loop` has the theory of operation."""

import errno
import logging
import secrets
import socket
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from math import ceil, inf
from typing import Any, Final

from cardbeat.config import HttpLimits, Network
from cardbeat.errors import StartupError
from cardbeat.host.system import (
    claim_port,
    clients_and_senders,
    drop_untaken,
)
from cardbeat.jobs import FairQueue, Job, Workers
from cardbeat.log import Seldom
from cardbeat.web.connection import HEAD, IDLE, NEW, ClientConnection
from cardbeat.web.loop import READ, Loop
from cardbeat.web.message import (
    Answered,
    Request,
    client_address,
    network_of,
    parse_address,
    trusts,
)
from cardbeat.web.reader import Reader
from cardbeat.web.router import Router

BACKLOG: Final = 1024
RECEIVE_BUFFER: Final = 64 * 1024
SEND_BUFFER: Final = 256 * 1024
"""Bytes that the kernel may hold for one client, and as many for itself: else those that don't read
take 4 to 6 MB each. What a slow client has not read of a list of checks must fit, since this
process would keep all of it."""
UNTAKEN_SECONDS: Final = 60
"""What a client takes nothing of for so long is dropped by the kernel."""

log = logging.getLogger(__name__)

THREADS: Final = 4
RUNNING_EACH: Final = 2
"""Threads that answer requests, and how many of them one client may have at once."""
NETWORK_PART: Final = 1 / 4
"""One client's network has at most this part of all connections."""
ACCEPT_AT_ONCE: Final = 64
"""Most clients accepted in one iteration of the loop."""
ANSWERED_AT_ONCE: Final = 64
"""Most requests that are answered after one iteration, one of each client in turn. Those of
thousands of connections of one client would else be answered before that of another."""
TICK_SECONDS: Final = 0.25
"""A connection lives at most this long past its deadline."""
UNCOUNTED_BYTES: Final = 1024
"""Fewer bytes are not counted as held: the connection itself takes as much memory."""
SWITCH_SECONDS: Final = 0.0005
"""The interpreter's switch interval: a thread that computes gives up its lock after this time."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on an address of the host: an IPv4 one if it has any.

    Raises `StartupError` if it can't.
    """
    try:
        # As bytes: for a text Python imports what encodes names of other scripts.
        name = host.encode("ascii")
        found = socket.getaddrinfo(
            name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        raise StartupError(
            f"the host {host!r} is not known; give an address of this machine with --host"
        ) from None
    # `localhost` may give ::1 first, where `curl 127.0.0.1` would be refused.
    family, _, _, _, address = min(
        found, key=lambda one: one[0] != socket.AF_INET
    )
    listener = socket.socket(family)
    try:
        claim_port(listener)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        why = error.strerror
        if error.errno == errno.EADDRINUSE:
            why = "another program uses it; choose another with --port"
        raise StartupError(
            f"can't listen on {host}, port {port}: {why}"
        ) from None
    listener.setblocking(False)
    # Accepted sockets inherit these. The last piece of an answer must not wait for the receipt of
    # the one before.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER
    )
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    drop_untaken(listener, UNTAKEN_SECONDS)
    return listener


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}"


class HttpServer(ThreadingHTTPServer):
    """Serves the routes of a router over HTTP/1.1, to the clients that connect to a listener.

    It is a `ThreadingHTTPServer` whose `process_request` hands a *request* to a thread, where the
    base class hands over a connection. A thread for each connection was built and measured beside
    the loop: with 32 connections it serves 0.43 to 0.75 of the stored cards, with 64 to 256
    clients 0.25 to 0.6 of the pings, takes 25 MB more, and holds 512 connections. Each system call
    gives up the interpreter's lock, and where a second core is idle each release is a hand-over
    between cores. So one thread runs a loop that holds all connections, and the requests that may
    have to wait get threads.
    """

    def __init__(
        self,
        listener: socket.socket,
        router: Router,
        loop: Loop,
        limits: HttpLimits,
        *,
        trusted_proxies: Sequence[Network] = (),
        observers: Sequence[Callable[[Sequence[Answered]], object]] = (),
        max_connections: int | None = None,
        threads: int = THREADS,
    ) -> None:
        """`observers` get the answers of each iteration. Raises `StartupError` without threads."""
        self.address_family = listener.family
        # The base class makes a socket of its own, which is not bound. `ClientConnection` takes the
        # handler's place.
        address = listener.getsockname()
        super().__init__(address, BaseHTTPRequestHandler, False)
        self.socket.close()
        self.socket = listener
        self.url = url_of(listener)
        self.router = router
        self.loop = loop
        self.limits = limits
        self.is_stopping = False
        self.waiting: OrderedDict[ClientConnection, None] = OrderedDict()
        """Those that may give way to a new client; the one that has waited longest is first."""
        self.connections_shed = 0
        """Connections closed since the start because too much was held for all together."""
        self._trusted_proxies = trusted_proxies
        self._observers = observers
        self._max_connections = (
            max_connections or clients_and_senders()[0]
        )
        self._max_of_network = ceil(self._max_connections * NETWORK_PART)
        self.connections: set[ClientConnection] = set()
        self._by_network = Counter[str]()
        self._held = 0
        self._holding: OrderedDict[ClientConnection, None] = OrderedDict()
        """Those that hold bytes, of a request or an answer; the oldest is first."""
        self.turns = FairQueue[Job]()
        """What goes on with requests whose heads have come, by client."""
        self._seldom = Seldom(log)
        self._run_id = secrets.token_hex(4)
        self._numbers = count(1)
        self.answered: list[Answered] = []
        """The answers of this iteration, for the log and the metrics."""
        self._check_at = loop.now
        self._is_accepting = False
        self._stop_by = inf
        self._workers = Workers("request", threads, RUNNING_EACH)

    def serve_forever(self, poll_interval: float = TICK_SECONDS) -> None:
        """Serve until `shutdown`, then until all clients have their answers or the time is over."""
        # After each system call this thread waits for the interpreter's lock. A thread that
        # computes gives it up once in this interval; with Python's 5 ms each answer took that long.
        sys.setswitchinterval(SWITCH_SECONDS)
        # The loop's time has stood still since it was made.
        self.loop.run_once(0)
        self._set_accepting(True)
        try:
            while self._stop_by == inf:
                self.loop.run_once(poll_interval)
                self.service_actions()
            self._finish()
        finally:
            self._close_all()
            self.service_actions()
            self.server_close()

    def shutdown(self) -> None:
        """Make `serve_forever` finish what runs and return. Safe in a signal handler.

        Unlike that of the base class it does not wait.
        """
        if self._stop_by == inf:
            self._stop_by = self.loop.elapsed() + self.limits.stop_seconds
            self.loop.wake()

    def server_close(self) -> None:
        """End the threads, and close the listening socket and the loop.

        `serve_forever` does so at its end.
        """
        self._workers.stop()
        self.socket.close()
        self.loop.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand the request of a connection to a thread, in the turn of its client's network."""
        self._workers.submit(client_address, request.work)

    def service_actions(self) -> None:
        """Do what follows an iteration: answer, close what is over its limits, log and count."""
        for _ in range(min(ANSWERED_AT_ONCE, self.turns.count)):
            self._give_turn()
        if self.turns.count:
            self.loop.wake()
        if self._held > self.limits.held_bytes:
            self._seldom.error(
                "closed connections: all clients together held too many bytes"
            )
        while self._held > self.limits.held_bytes:
            # The oldest unfinished transfer.
            next(iter(self._holding)).close()
            self.connections_shed += 1
        if self._check_at <= self.loop.now:
            self._check_at = self.loop.now + TICK_SECONDS
            self._expire()
        if self.answered:
            for observe in self._observers:
                observe(self.answered)
            self.answered.clear()

    # What connections call.

    def identify(self, request: Request, by: ClientConnection) -> None:
        """Set a request's time, id and client: who sent it, or who a trusted proxy names."""
        request.received_at = self.loop.now
        request.id = f"{self._run_id}-{next(self._numbers):x}"
        request.client = by.address
        request.network = by.network
        if by.is_trusted:
            request.client = client_address(
                by.address, request.headers, self._trusted_proxies
            )
            request.network = network_of(request.client)

    def hold(self, connection: ClientConnection, held: int) -> None:
        """Set the number of bytes that are held for a connection; few count as none."""
        if held <= UNCOUNTED_BYTES:
            held = 0
        if held == connection.held:
            return
        self._held += held - connection.held
        connection.held = held
        if held:
            self._holding[connection] = None
        else:
            self._holding.pop(connection, None)

    def forget(self, connection: ClientConnection) -> None:
        """Forget a connection that was closed, and holds nothing."""
        self.connections.discard(connection)
        network = connection.network
        self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]

    def _give_turn(self) -> None:
        taken = self.turns.take()
        if taken:
            taken[1]()

    # Limits of all connections together.

    def _expire(self) -> None:
        """Do for each connection whose time is up what its state says."""
        for connection in list(self.connections):
            if connection.deadline <= self.loop.now:
                connection.expire()
        if not self.is_stopping:
            self._set_accepting(True)

    def _has_room(self, network: str, is_trusted: bool) -> bool:
        """Close a connection if a new one needs its place; False if none may go."""
        if (
            not is_trusted
            and self._by_network[network] >= self._max_of_network
        ):
            return self._give_way(network)
        return (
            len(self.connections) < self._max_connections
            or self._give_way()
        )

    def _give_way(self, network: str | None = None) -> bool:
        """Close the connection, of this network, that has waited longest; False if none waits."""
        for connection in self.waiting:
            if network is None or connection.network == network:
                connection.close()
                return True
        return False

    def _close_all(self, states: Container[str] | None = None) -> None:
        for connection in list(self.connections):
            if states is None or connection.state in states:
                connection.close()

    # Accepting.

    def _set_accepting(self, is_accepting: bool) -> None:
        if is_accepting != self._is_accepting:
            before = 0 if is_accepting else READ
            self.loop.watch(
                self.socket, before, READ - before, self._accept
            )
            self._is_accepting = is_accepting

    def _accept(self) -> None:
        """Accept at most 64 of the clients that wait.

        If it can't, new clients stay in the kernel's queue until the next tick: to try at once uses
        a core.
        """
        for _ in range(ACCEPT_AT_ONCE):
            if (
                len(self.connections) >= self._max_connections
                and not self.waiting
            ):
                self._set_accepting(False)
                return
            try:
                client, address = self.get_request()
            except ConnectionAbortedError:
                continue
            except BlockingIOError:
                return
            except OSError:
                # There are no more descriptors, for example.
                self._set_accepting(False)
                return
            self._welcome(client, address[0])
            # Its network may have no more places until a request has its answer.
            self._give_turn()

    def _welcome(self, client: socket.socket, host: str) -> None:
        """Serve this client from now on, or close it if its network has too many at work."""
        try:
            client.setblocking(False)
            host = host.removeprefix("::ffff:")
            network = network_of(host)
            is_trusted = trusts(
                self._trusted_proxies, parse_address(host)
            )
            if not self._has_room(network, is_trusted):
                return self.shutdown_request(client)
            connection = ClientConnection(
                self,
                client,
                host,
                network,
                is_trusted,
                Reader(self.limits),
            )
            self.connections.add(connection)
            self._by_network[network] += 1
            connection.start()
        except Exception:
            log.exception("a client could not be served")
            self.shutdown_request(client)

    # Stopping.

    def _finish(self) -> None:
        """Accept no more clients, and serve those that are connected until the time is up.

        A client that has connected but not yet sent its request is waited for: `curl --retry` tries
        again where a connection is refused, but not where it is closed without an answer.
        """
        self.is_stopping = True
        # The kernel resets connections that were not accepted.
        self._set_accepting(False)
        for _ in range(1 + BACKLOG // ACCEPT_AT_ONCE):
            self._accept()
        self.socket.close()
        ask_by = self.loop.now + self.limits.unasked_seconds
        # Read the requests that have come already.
        self.loop.run_once(0)
        self._close_all({IDLE})
        while self.connections and self.loop.now < self._stop_by:
            self.loop.run_once(TICK_SECONDS)
            if self.loop.now >= ask_by:
                self._close_all({NEW, HEAD})
            self.service_actions()
