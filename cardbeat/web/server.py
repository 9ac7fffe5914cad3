"""The HTTP server: its listening socket, its start and its stop. `loop` tells how a request is served."""

import errno
import logging
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from typing import Any, Final

from cardbeat.config import HttpLimits
from cardbeat.host.descriptors import shares
from cardbeat.host.system import end_handshakes
from cardbeat.web.connection import ClientConnection
from cardbeat.web.exchange import Exchange
from cardbeat.web.forwarded import peer_of
from cardbeat.web.listener import BACKLOG, Listener
from cardbeat.web.loop import READ, Loop
from cardbeat.web.phases import Phases

log = logging.getLogger(__name__)

ACCEPT_AT_ONCE: Final = 64
"""Most clients accepted in one iteration of the loop."""
ACCEPT_PAUSE_SECONDS: Final = 0.1
ANSWER_SECONDS: Final = 1.0
"""In its last second a stop waits for answers only, not for new requests."""
TICK_SECONDS: Final = 0.25
"""A connection lives at most this long past its deadline."""
SWITCH_SECONDS: Final = 0.0005
"""The interpreter's switch interval: a thread that computes gives up the interpreter's lock after this time."""

SHED: Final = "closed %d connections that held most: more than %d MiB were held for all clients together"
WAITS: Final = (
    "stopping: waiting up to %.1f s for clients that have connected and not asked (%d); a second signal ends this wait"
)


class HttpServer(ThreadingHTTPServer):
    """Serves the routes of an exchange over HTTP/1.1, to the clients that connect to a listener.

    A `ThreadingHTTPServer`, as agreed with the project's owner: its methods mean what they mean there, except that one
    thread runs a loop that reads from and writes to all clients, so no client can hold a thread.
    """

    def __init__(
        self,
        listener: Listener,
        exchange: Exchange,
        loop: Loop,
        limits: HttpLimits = HttpLimits(),  # noqa: B008 - it is frozen
        *,
        max_connections: int | None = None,
    ) -> None:
        self._limits = limits
        self.address_family = listener.socket.family
        # The base class makes a socket of its own, which is not bound. A `ClientConnection` takes the handler's place.
        super().__init__(listener.address, BaseHTTPRequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener.socket
        self._is_passed = listener.is_passed
        self.url = listener.url
        self.loop = loop
        self.exchange = exchange
        self._phases = Phases(limits, ClientConnection, max_connections or shares().clients)
        # The loop's own: when the deadlines are to be looked at, and clients to be accepted, again.
        self._check_at = self.loop.now
        self._accept_again_at = inf
        self._is_accepting = False
        # Written by `stop` and `hurry` in any thread, once each; read in the loop's thread.
        self._stop_by = inf
        self._is_hurried = False
        self._has_ended = threading.Event()

    @property
    def connections(self) -> int:
        return self._phases.count

    @property
    def connections_shed(self) -> int:
        """The connections closed since the start because too much was held for all clients together."""
        return self._phases.shed

    def serve_forever(self, poll_interval: float = TICK_SECONDS) -> None:
        """Serve until `stop`, then until all clients have their answers or the time for the stop is over.

        Looks at deadlines every `poll_interval` seconds while there are connections.
        """
        # After each system call this thread waits for the interpreter's lock. A thread that computes gives it up once
        # in this interval; with Python's 5 ms each answer would take that long.
        sys.setswitchinterval(SWITCH_SECONDS)
        # The loop's time has stood still since it was made.
        self.loop.run_once(0)
        self._set_accepting(True)
        try:
            while self._stop_by == inf:
                # Without connections no deadline can pass.
                is_idle = not self._phases.count and self._accept_again_at == inf
                self.loop.run_once(None if is_idle else poll_interval)
                if self.exchange.answered or self._check_at <= self.loop.now or self._phases.held.is_too_much:
                    self.service_actions()
            self._finish()
        finally:
            self._phases.close(*self._phases.all)
            self.service_actions()
            self.exchange.stop()
            self.server_close()
            self._has_ended.set()

    def stop(self, asked_at: float | None = None) -> None:
        """Make `serve_forever` finish what runs and return. Safe in any thread and in a signal handler.

        The time for the stop runs from `asked_at`, by the loop's clock; by default from now.
        """
        if self._stop_by == inf:
            self._stop_by = (self.loop.elapsed() if asked_at is None else asked_at) + self._limits.stop_seconds
            self.loop.wake()

    def hurry(self) -> None:
        """During a stop, wait no longer for requests that have not come. Safe in any thread and in a signal handler."""
        self._is_hurried = True
        self.loop.wake()

    def handle_request(self) -> None:
        """Raises `RuntimeError`: the loop serves all clients together, so one request can't be handled alone."""
        raise RuntimeError("this server handles requests in serve_forever alone")

    def shutdown(self) -> None:
        """Stop, and wait until serving has ended. Not for the thread that serves."""
        self.stop()
        self._has_ended.wait()

    def server_close(self) -> None:
        """Close the listening socket and the loop. `serve_forever` does so at its end."""
        self.socket.close()
        self.loop.close()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a client. Raises `OSError`."""
        client, address = self.socket.accept()
        client.setblocking(False)
        return client, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Let the loop serve this client from now on, or close it if its network has too many at work."""
        try:
            address, port = client_address[:2]
            peer = peer_of(address.removeprefix("::ffff:"), port, self.exchange.trusted_proxies)
            if self._phases.make_room(peer.network):
                ClientConnection(request, peer, self.loop, self._phases, self.exchange).start()
            else:
                self.shutdown_request(request)
        except Exception:
            self.handle_error(request, client_address)
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.exception("a client could not be served")

    def service_actions(self) -> None:
        """Do what follows an iteration: close connections whose time is up, log and count the answers given."""
        now = self.loop.now
        if self._phases.held.is_too_much and (shed := self._phases.relieve(now)):
            log.warning(SHED, shed, self._limits.held_bytes // 2**20)
        if self._check_at <= now:
            self._check_at = now + TICK_SECONDS
            self._phases.expire(now)
            if self._accept_again_at <= now:
                self._set_accepting(True)
        if self.exchange.answered:
            self.exchange.tell()

    def _finish(self) -> None:
        """Accept no more clients, and serve those that are connected until all have left or the time is up.

        A client that has connected but not yet sent its request is waited for: `curl --retry` tries again where a
        connection is refused, but not where it is closed without an answer.
        """
        phases = self._phases
        phases.are_ending = True
        self._stop_listening()
        ask_by = self._stop_by - ANSWER_SECONDS
        # Read the requests that have come already.
        self.loop.run_once(0)
        while self.loop.is_behind and self.loop.now < ask_by and not self._is_hurried:
            self.loop.run_once(0)
            self.service_actions()
        phases.close(phases.idle)
        if unasked := phases.count_unasked():
            log.info(WAITS, max(0.0, ask_by - self.loop.now), unasked)
        while phases.count and self.loop.now < self._stop_by:
            self.loop.run_once(TICK_SECONDS)
            if self._is_hurried or self.loop.now >= ask_by:
                phases.close(phases.idle, phases.new, phases.header)
            self.service_actions()

    def _stop_listening(self) -> None:
        """Close the listening socket, after accepting the clients in its queue."""
        self._set_accepting(False)
        if not self._is_passed:
            # The kernel resets connections that were not accepted; those of a passed socket wait for the next start.
            end_handshakes(self.socket)
            rounds = 1 + BACKLOG // ACCEPT_AT_ONCE
            while rounds and self._accept():
                rounds -= 1
        self.socket.close()
        self._accept_again_at = inf

    def _set_accepting(self, is_accepting: bool) -> None:
        if is_accepting != self._is_accepting:
            self.loop.watch(self.socket, READ if is_accepting else 0, self._accept)
            self._is_accepting = is_accepting
        self._accept_again_at = inf

    def _accept(self) -> bool:
        """Accept at most 64 of the clients that wait. Returns whether there may be more.

        At the limit of connections, each new client closes another connection: see `Phases.make_room`.
        """
        phases = self._phases
        for _ in range(ACCEPT_AT_ONCE):
            if not phases.has_room:
                return self._pause_accepting()
            try:
                client, address = self.get_request()
            except ConnectionAbortedError:
                continue
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno != errno.EMFILE or not phases.give_way():
                    return self._pause_accepting()
                continue
            self.process_request(client, address)
        return True

    def _pause_accepting(self) -> bool:
        """Leave new clients in the kernel's queue for 0.1 s: to try at once again would use a whole core."""
        self._set_accepting(False)
        self._accept_again_at = self.loop.now + ACCEPT_PAUSE_SECONDS
        return False
