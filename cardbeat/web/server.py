"""The HTTP server: its socket, its start and its stop. `loop` says how it serves, `connection` how one client."""

import contextlib
import errno
import logging
import socket
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from socketserver import TCPServer
from typing import Any, Final

from cardbeat.config import HttpLimits, Network
from cardbeat.errors import StartupError, Unavailable
from cardbeat.later import Workers
from cardbeat.system import claim_port
from cardbeat.web.connection import Connection
from cardbeat.web.forwarded import peer_of
from cardbeat.web.listener import BACKLOG, bind_failure, connection_limit, passed_socket, resolve
from cardbeat.web.loop import READ, Loop
from cardbeat.web.phases import Phases
from cardbeat.web.router import Exchange, Router

log = logging.getLogger(__name__)

ACCEPT_AT_ONCE: Final = 64
ACCEPT_PAUSE_SECONDS: Final = 0.1
NEW_CLIENT_SECONDS: Final = 0.25
"""What a stop leaves a client to send its first byte in."""
TICK_SECONDS: Final = 0.25
"""How far past its deadline a connection may live."""
SWITCH_SECONDS: Final = 0.0005
"""How long a thread that computes may keep the interpreter from the others."""

SHED: Final = "closed %d connections that held most: more than %d MiB were held for all clients together"


class Server(ThreadingHTTPServer):
    """Serves a router over HTTP/1.1, bound to its address when made. Raises `StartupError` if it can't be.

    The methods of the base class mean what they mean there. What differs is who reads: not a thread for each client,
    which a client could hold, but one loop for all of them, and a few workers that get whole requests only.
    """

    request_queue_size = BACKLOG
    allow_reuse_address = False
    """What that stands for differs by system: see `claim_port`."""

    def __init__(
        self,
        router: Router,
        host: str,
        port: int,
        limits: HttpLimits = HttpLimits(),  # noqa: B008 - it is frozen
        trusted_proxies: Sequence[Network] = (),
        *,
        workers: int = 2,
        max_connections: int | None = None,
    ) -> None:
        self.router = router
        self._limits = limits
        self._max_connections = max_connections or connection_limit()
        self._passed = passed_socket()
        self.address_family, address = resolve(host, port) if self._passed is None else (self._passed.family, None)
        try:
            # The handler's class is never used: a `Connection` handles a client.
            super().__init__(address or (host, port), BaseHTTPRequestHandler)
        except OSError as error:
            raise StartupError(bind_failure(error, host, port)) from None
        self.loop = Loop()
        self.workers = Workers(workers)
        self.workers.give_way_to(self.loop.precedence)
        self._phases = Phases(limits, Connection)
        self.exchange = Exchange(router, self.workers, trusted_proxies)
        # The loop's own: when the deadlines are to be looked at, and clients to be accepted, again.
        self._check_at = self.loop.now
        self._accept_again_at = inf
        self._is_accepting = False
        # Written by `stop`, in any thread, once; read by the loop's.
        self._stop_by = inf
        self._has_ended = threading.Event()

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    @property
    def connections(self) -> int:
        return self._phases.count

    @property
    def connections_shed(self) -> int:
        """How many were closed since the start because too much was held for all clients together."""
        return self._phases.shed

    def server_bind(self) -> None:
        """Bind the socket, or take the one that systemd has bound and passed."""
        if self._passed is None:
            claim_port(self.socket)
            TCPServer.server_bind(self)
        else:
            self.socket.close()
            self.socket = self._passed
            self.server_address = self.socket.getsockname()
        # The base class would ask a name server for it.
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def server_activate(self) -> None:
        if self._passed is None:
            super().server_activate()
        self.socket.setblocking(False)
        # Accepted sockets inherit it: an answer's last piece must not wait for the acknowledgement of the one before.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_request(self) -> tuple[socket.socket, Any]:
        client, address = self.socket.accept()
        client.setblocking(False)
        return client, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client from here on, beside all others."""
        peer = peer_of(client_address[0].removeprefix("::ffff:"), self.exchange.trusted_proxies)
        Connection(request, peer, self.loop, self._phases, self.exchange).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.exception("a client could not be served")

    def service_actions(self) -> None:
        """What is due after an iteration of the loop: the deadlines of clients, and the answers that were given."""
        now = self.loop.now
        if self._phases.held.is_too_much and (shed := self._phases.relieve(now)):
            # Not in this thread, which must not wait for stderr's reader.
            with contextlib.suppress(Unavailable):
                self.workers.submit("", partial(log.warning, SHED, shed, self._limits.held_bytes // 2**20))
        if self._check_at <= now:
            self._check_at = now + TICK_SECONDS
            self._phases.expire(now)
            if self._accept_again_at <= now:
                self._set_accepting(True)
        if self.exchange.answered:
            self.exchange.tell()

    def serve_forever(self, poll_interval: float = TICK_SECONDS) -> None:
        """Serve until `stop`, then until everything running has its answer or the limit for stopping has passed."""
        # After each call into the kernel this thread has to get the interpreter's lock again. A handler that computes
        # in another thread gives it up once in this interval: with the usual 5 ms each answer would take as long.
        sys.setswitchinterval(SWITCH_SECONDS)
        self.exchange.access_log.start()
        self._set_accepting(True)
        try:
            while self._stop_by == inf:
                # With nobody there, no deadline can pass.
                is_idle = not self._phases.count and self._accept_again_at == inf
                self.loop.run_once(None if is_idle else poll_interval)
                if self.exchange.answered or self._check_at <= self.loop.now or self._phases.held.is_too_much:
                    self.service_actions()
            self._finish(poll_interval)
        finally:
            self._phases.close_all()
            self.service_actions()
            self.workers.stop()
            self.exchange.access_log.stop()
            self.server_close()
            self._has_ended.set()

    def stop(self) -> None:
        """Let `serve_forever` finish what runs and return. Safe in any thread and in a signal handler."""
        if self._stop_by == inf:
            self._stop_by = time.monotonic() + self._limits.stop_seconds
            self.loop.wake()

    def shutdown(self) -> None:
        """Stop, and wait until serving has ended: from another thread than the one that serves."""
        self.stop()
        self._has_ended.wait()

    def server_close(self) -> None:
        """Let go of the port and of what serving would have needed, whether it has served or not."""
        super().server_close()
        if hasattr(self, "loop"):
            self.loop.close()

    def _finish(self, poll_interval: float) -> None:
        """Take nobody in any more, and go on until nobody is left to be answered or the time is up."""
        phases = self._phases
        phases.are_ending = True
        self._set_accepting(False)
        if self._passed is None:
            # The kernel would reset those who are connected and not taken in; systemd keeps them for the next start.
            for _ in range(BACKLOG // ACCEPT_AT_ONCE):
                self._accept()
            self._set_accepting(False)
        self.socket.close()
        # Requests that have come are answered; the poller tells of about 1,000 sockets at once.
        for _ in range(1 + phases.count // 1000):
            self.loop.run_once(0)
        # Who has only just connected is about to ask, and a client tries again what is refused, not what is cut off.
        asked_by = min(self.loop.now + NEW_CLIENT_SECONDS, self._stop_by)
        while phases.new.deadlines and self.loop.now < asked_by:
            self.loop.run_once(asked_by - self.loop.now)
        phases.close_all(but_asked=True)
        while phases.count and self.loop.now < self._stop_by:
            self.loop.run_once(poll_interval)
            self.service_actions()
            phases.close_all(but_asked=True)

    def _set_accepting(self, is_accepting: bool) -> None:
        if is_accepting != self._is_accepting:
            self.loop.watch(self.socket, READ if is_accepting else 0, self._accept)
            self._is_accepting = is_accepting
        self._accept_again_at = inf

    def _accept(self) -> None:
        """Take in the clients that wait; at the limit of connections each closes the one that has idled longest."""
        phases = self._phases
        for _ in range(ACCEPT_AT_ONCE):
            is_full = phases.count >= self._max_connections
            if is_full and not phases.can_give_way():
                return self._pause_accepting()
            try:
                client, address = self.get_request()
            except (BlockingIOError, ConnectionAbortedError):
                return None
            except OSError as error:
                if error.errno != errno.EMFILE or not phases.give_way():
                    return self._pause_accepting()
                continue
            if is_full:
                phases.give_way()
            self._welcome(client, address)
        return None

    def _welcome(self, client: socket.socket, address: Any) -> None:
        try:
            self.process_request(client, address)
        except Exception:
            self.handle_error(client, address)
            self.shutdown_request(client)

    def _pause_accepting(self) -> None:
        """Leave new clients in the kernel's queue for a moment: asking again at once would only burn the CPU."""
        self._set_accepting(False)
        self._accept_again_at = self.loop.now + ACCEPT_PAUSE_SECONDS
