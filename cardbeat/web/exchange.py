"""From a request to its answer, without a socket: who answers it, in which thread, and what follows the answer."""

import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from itertools import count
from math import inf
from typing import Final

from cardbeat.concurrency.later import Later, Workers, served
from cardbeat.config import Network
from cardbeat.errors import Refusal, Unavailable
from cardbeat.web.access import AccessLog
from cardbeat.web.forwarded import Peer, client_address, network_of
from cardbeat.web.message import Answered, Request, Response, header_lines
from cardbeat.web.router import Answer, Guard, Route, Router

log = logging.getLogger(__name__)

JUDGED_SECONDS: Final = 0.05
"""Longest time between the look-up of a request's key and its handler; after it the key is looked up again."""

Found = Answer | Route
"""What a request leads to: its answer, or the route that answers it when its body has come."""


class Exchange:
    """Gives requests to their routes, and passes the answers of an iteration to the access log and to `observe`.

    `soon` holds work for a worker thread, to be started after the next answers. Only the loop's thread uses this class.
    """

    def __init__(
        self,
        router: Router,
        workers: Workers,
        trusted_proxies: Sequence[Network] = (),
        *,
        access_log: AccessLog | None = None,
        observe: Callable[[Sequence[Answered]], None] = lambda _: None,
        soon: list[Callable[[], None]] | None = None,
    ) -> None:
        self.router = router
        self.trusted_proxies = trusted_proxies
        self._access_log = access_log or AccessLog()
        self._observe = observe
        self._workers = workers
        self._ids = map(f"{secrets.token_hex(4)}-{{:x}}".format, count(1))
        self.answered: list[Answered] = []
        """Sent since the last call of `tell`."""
        self._soon = [] if soon is None else soon
        self._date = ""
        self._starts: dict[tuple[int, bool], bytes] = {}
        """The first lines of the answers with that date, by status and by whether the connection is kept open."""

    def identify(self, request: Request, received_at: float, peer: Peer) -> None:
        """Set a request's time, id and client: `peer`, or the client that a trusted proxy names."""
        request.received_at = received_at
        request.id = next(self._ids)
        if peer.is_trusted:
            request.client = client_address(peer.address, request.headers, self.trusted_proxies)
            request.network = network_of(request.client)
        else:
            request.client, request.network, _ = peer

    def serve(
        self, request: Request, route: Route | None = None, *, is_whole: bool = True
    ) -> Found | Later[Route] | Later[Answer]:
        """The answer to a request, now or later; without its body (`is_whole` False) its route, or a refusal.

        Pass `route` for a request that an earlier call has accepted: its key is not looked up again.
        """
        judged_at = -inf
        try:
            if route is None:
                route, judged_at = self.router.find(request), request.received_at
                if route.guard is not None:
                    request.key = route.guard.find(request, self._soon.append)
                    if request.key is None:
                        payers = request.payers(route.guard.name_of(request))
                        return self._workers.submit(partial(_look_up, route, route.guard, request), *payers)
            if not is_whole:
                return route
            if route.in_loop:
                return route.handler(request)
            payers = request.payers(None if request.key is None else request.key.queue)
            return self._workers.submit(partial(_handled, route, request, judged_at, payers), *payers)
        except Exception as error:
            return answer_to_error(request, error)

    def head_of(self, request: Request, response: Response, date: str, *, keep_alive: bool) -> tuple[bytes, Response]:
        """The bytes before an answer's body, and the answer: a 500 in place of one that can't be written."""
        if not response.lines:
            try:
                response.lines = header_lines(response)
            except Exception as error:
                response = answer_to_error(request, error)
                response.lines = header_lines(response)
        if date != self._date:
            self._date, self._starts = date, {}
        start = self._starts.get((response.status, keep_alive))
        if start is None:
            start = self._starts[response.status, keep_alive] = _start(response.status, date, keep_alive)
        return start + request.id.encode() + b"\r\n" + response.lines, response

    def tell(self) -> None:
        """Log and count the answers of an iteration together, which is faster than one by one. Then start `soon`."""
        self._access_log.note(self.answered)
        self._observe(self.answered)
        self.answered.clear()
        while self._soon:
            # If too many wait, this work is left out: it is asked for again.
            with contextlib.suppress(Unavailable):
                self._workers.submit(self._soon.pop(), "")

    def stop(self) -> None:
        """Let the worker threads end when their requests are answered."""
        self._workers.stop()


def answer_to_error(request: Request, error: Exception) -> Response:
    """The answer to a request that failed: that of a refusal, or 500 for any other error, which is logged."""
    if not isinstance(error, Refusal):
        log.error("request %s failed", request.id, exc_info=error)
        error = Refusal("internal_error")
    # The frames hold the request, and those of all that wait for the same card.
    error.__traceback__ = None
    return Response.refusal(error)


def _handled(route: Route, request: Request, judged_at: float, payers: tuple[str, ...]) -> Answer:
    """The handler's answer. The key is looked up again if the request has waited: it may have been revoked."""
    if route.guard is not None and time.monotonic() - judged_at > JUDGED_SECONDS:
        request.key = route.guard.look_up(request)
    before = served.set(payers)
    try:
        return route.handler(request)
    finally:
        served.reset(before)


def _look_up(route: Route, guard: Guard, request: Request) -> Route:
    request.key = guard.look_up(request)
    return route


def _start(status: int, date: str, keep_alive: bool) -> bytes:
    """The lines with which all answers of a status begin, up to the value of `X-Request-Id`."""
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Date: {date}",
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
        "X-Request-Id: ",
    )
    return "\r\n".join(lines).encode()
