"""From a request to its answer, as all connections of a server share it; no socket."""

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from cardbeat.config import Network
from cardbeat.later import Later
from cardbeat.web.access import AccessLog
from cardbeat.web.forwarded import client_address
from cardbeat.web.message import Answered, Request, Response
from cardbeat.web.router import Router
from cardbeat.web.wire import response_head
from cardbeat.web.workers import Workers

Observer = Callable[[Sequence[Answered]], None]
"""Told of answers, those of a turn of the loop together."""


class Exchange:
    """Gives requests to their routes, and tells the access log and `observe` of the answers.

    Only the loop's thread uses it.
    """

    def __init__(self, router: Router, workers: Workers, trusted_proxies: Sequence[Network]) -> None:
        self.router = router
        self.trusted_proxies = trusted_proxies
        self.access_log = AccessLog()
        self.observe: Observer | None = None
        self._workers = workers
        self._ids = map(f"{secrets.token_hex(4)}-{{:x}}".format, count(1))
        self._answered: list[Answered] = []

    def identify(self, request: Request, received_at: float, peer: str, *, is_trusted: bool) -> None:
        """Note when a request came and from whom: from `peer`, or from the client that a trusted proxy names."""
        request.received_at = received_at
        request.id = next(self._ids)
        request.client = client_address(peer, request.headers, self.trusted_proxies) if is_trusted else peer

    def begin(self, request: Request) -> Response | Later[Response]:
        """The answer to a request, at once or later."""
        try:
            route = self.router.find(request)
            if route.in_loop:
                return route.handler(request)
        except Exception as error:
            return self.router.refuse(request, error)
        return self._workers.submit(partial(self.router.handle, request))

    def finish(self, request: Request, answer: Later[Response]) -> Response:
        """What has become of a later answer."""
        try:
            return answer.result()
        except Exception as error:
            return self.router.refuse(request, error)

    def head_of(self, request: Request, response: Response, date: str, *, keep_alive: bool) -> tuple[bytes, Response]:
        """The head of an answer; also the answer, which is another one if this one can't be written."""
        try:
            return response_head(response, request.id, date, keep_alive), response
        except Exception as error:
            response = self.router.refuse(request, error)
            return response_head(response, request.id, date, keep_alive), response

    def note(self, request: Request, response: Response, seconds: float) -> None:
        """An answer was given; it is told of at the end of the turn."""
        self._answered.append((request, response, seconds))

    def tell(self) -> None:
        """Log and count what was noted, in one go: between two answers it would take several times as long."""
        if self._answered:
            self.access_log.note(self._answered)
            if self.observe:
                self.observe(self._answered)
            self._answered.clear()
