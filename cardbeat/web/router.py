"""From a request to its answer, without a socket: routes, and what becomes of a handler's refusal or failure."""

import contextlib
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import count
from math import inf
from typing import Final, Protocol

from cardbeat.config import Network
from cardbeat.errors import NotFound, Refusal, Unavailable
from cardbeat.later import Later, Workers
from cardbeat.web.access import AccessLog
from cardbeat.web.forwarded import Peer, client_address, network_of
from cardbeat.web.message import NO_STORE, Answered, Holder, Request, Response
from cardbeat.web.reader import IgnoresBody

log = logging.getLogger(__name__)

JUDGED_SECONDS: Final = 0.05
"""For how long a request may go on with its key as it was found."""

_NO_LENGTH = (204, 304)
"""Answers without a body, whose length would be taken for that of another answer (RFC 9110, 8.6)."""

Answer = Response | Later[Response]

Handler = Callable[[Request], Answer]

WorkSoon = Callable[[Callable[[], None]], None]
"""Takes something that another thread is to do once the next answer is out, which it would hold up before."""


class Guard(Protocol):
    """Tells from a request's head alone whose it is. What it raises refuses the request: `Refusal` 401 or 403."""

    def find(self, request: Request, work_soon: WorkSoon) -> Holder | None:
        """Whose it is, as far as that is known without waiting."""

    def look_up(self, request: Request) -> Holder:
        """Whose it is, however long it takes to find out."""

    def name_of(self, request: Request) -> str | None:
        """The `id` of whose it seems to be, if anybody's: under that name the look-up waits for its turn."""


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. `{name}` in the pattern stands for one path segment, given as `request.params["name"]`.

    The handler answers in a worker thread, unless the route is `in_loop`: then the thread that owns all connections
    calls it. Such a handler must not wait, as the module `loop` has it, and returns a `Later` where its answer takes
    waiting or work of any length. In a worker it may read the disk, but a write is a `Later` there too, as the threads
    are few. With a `guard` it gets requests whose `key` that has found, and no others.
    """

    method: str
    pattern: str
    handler: Handler
    in_loop: bool = False
    ignores_body: bool = False
    """Whether a request may have any body, however large: it is dropped as it comes."""
    guard: Guard | None = None


class Router:
    """Finds the route of a request. GET routes answer HEAD too."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self.routes: list[Route] = []
        self.ignores_body: IgnoresBody
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: dict[str, tuple[re.Pattern[str], dict[str, Route]]] = {}
        self.add(routes)

    def add(self, routes: Iterable[Route]) -> None:
        for route in routes:
            self.routes.append(route)
            methods = self._methods_of(route.pattern)
            methods[route.method] = route
            if route.method == "GET":
                methods.setdefault("HEAD", route)
        self.ignores_body = _ignoring(self.routes)

    def find(self, request: Request) -> Route:
        """The request's route, its pattern and path parameters set. Raises `Refusal` 404 or 405."""
        request.pattern, methods = request.path, self._fixed.get(request.path)
        if methods is None:
            request.pattern, methods = self._match(request)
        route = methods.get(request.method)
        if route is None:
            allowed = ", ".join(methods)
            sentence = f"This path does not take {request.method}; it takes {allowed}."
            raise Refusal(405, "method_not_allowed", sentence, headers={"Allow": allowed})
        return route

    def _match(self, request: Request) -> tuple[str, dict[str, Route]]:
        for pattern, (expression, methods) in self._patterns.items():
            if match := expression.fullmatch(request.path):
                request.params = match.groupdict()
                return pattern, methods
        request.pattern = None
        raise NotFound("There is nothing at this path.")

    def _methods_of(self, pattern: str) -> dict[str, Route]:
        if "{" not in pattern:
            return self._fixed.setdefault(pattern, {})
        expression = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(pattern)))
        return self._patterns.setdefault(pattern, (expression, {}))[1]

    def refuse(self, request: Request, error: Exception) -> Response:
        """The answer to a request that failed: a refusal as it is, anything else as 500, logged with its trace."""
        if not isinstance(error, Refusal):
            log.error("request %s failed", request.id, exc_info=error)
            error = Refusal(500, "internal_error", "Something went wrong here; the operator's log has the details.")
        return Response.refusal(error)


Found = Answer | Route
"""What a request leads to: an answer, or the route that will give it once the whole request has come."""

Observer = Callable[[Sequence[Answered]], None]
"""Told of answers, those of one iteration of the loop together."""


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
        self.answered: list[Answered] = []
        """Since they were last told of."""
        self._soon: list[Callable[[], None]] = []
        self.work_soon: WorkSoon = self._soon.append
        self._date = ""
        self._starts: dict[tuple[int, bool], bytes] = {}
        """The first lines of answers of that date, by status and by whether the connection is kept."""

    def identify(self, request: Request, received_at: float, peer: Peer) -> None:
        """Note when a request came and from whom: from `peer`, or from the client that a trusted proxy names."""
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
        """What a request leads to: its route, once the key is known, or the answer that refuses it by its head.

        One that is whole, and whose key is known, leads to its answer, as does one that `route` has let in before.
        """
        judged_at = -inf
        try:
            if route is None:
                route, judged_at = self.router.find(request), request.received_at
                if route.guard is not None:
                    request.key = route.guard.find(request, self.work_soon)
                    if request.key is None:
                        name = route.guard.name_of(request) or request.network
                        return self._workers.submit(name, partial(_look_up, route, route.guard, request))
            if not is_whole:
                return route
            if route.in_loop:
                return route.handler(request)
            name = request.network if request.key is None else request.key.id
            return self._workers.submit(name, partial(_handled, route, request, judged_at))
        except Exception as error:
            return self.router.refuse(request, error)

    def head_of(self, request: Request, response: Response, date: str, *, keep_alive: bool) -> tuple[bytes, Response]:
        """All of an answer that goes before its body; also the answer, another one if this one can't be written."""
        if not response.lines:
            try:
                response.lines = header_lines(response)
            except Exception as error:
                response = self.router.refuse(request, error)
                response.lines = header_lines(response)
        if date != self._date:
            self._date, self._starts = date, {}
        start = self._starts.get((response.status, keep_alive))
        if start is None:
            start = self._starts[response.status, keep_alive] = _start(response.status, date, keep_alive)
        return start + request.id.encode() + b"\r\n" + response.lines, response

    def tell(self) -> None:
        """Log and count what was answered, in one go: between two answers it would take several times as long.

        Then it is time for what other threads are to do soon, which would hold up an answer before.
        """
        self.access_log.note(self.answered)
        if self.observe:
            self.observe(self.answered)
        self.answered.clear()
        while self._soon:
            # So many wait already that one more would do nothing more.
            with contextlib.suppress(Unavailable):
                self._workers.submit("", self._soon.pop())


def header_lines(response: Response) -> bytes:
    """What of an answer's head depends on the response alone, up to and with the empty line.

    Raises `ValueError` for a header that would break out of its line.
    """
    headers = {"Cache-Control": NO_STORE, "X-Content-Type-Options": "nosniff", **response.headers}
    if response.status not in _NO_LENGTH:
        headers["Content-Length"] = str(len(response.body))
    lines = "\r\n".join(map(": ".join, headers.items()))
    if not lines.count("\n") == lines.count("\r") == len(headers) - 1:
        raise ValueError("a header of the response holds a line end")
    return lines.encode("latin-1", "replace") + b"\r\n\r\n"


def _handled(route: Route, request: Request, judged_at: float) -> Answer:
    """The handler's answer. A key may have been revoked while the request waited for its body or its turn."""
    if route.guard is not None and time.monotonic() - judged_at > JUDGED_SECONDS:
        request.key = route.guard.look_up(request)
    return route.handler(request)


def _look_up(route: Route, guard: Guard, request: Request) -> Route:
    request.key = guard.look_up(request)
    return route


def _ignoring(routes: Iterable[Route]) -> IgnoresBody:
    expressions = ["(?!)"]
    for route in routes:
        if route.ignores_body:
            methods = "GET|HEAD" if route.method == "GET" else route.method
            path = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route.pattern))
            expressions.append(f"(?:{methods}) {path}")
    return re.compile("|".join(expressions)).fullmatch


def _start(status: int, date: str, keep_alive: bool) -> bytes:
    """The lines that all answers of a status begin with, up to the value of `X-Request-Id`."""
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Date: {date}",
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
        "X-Request-Id: ",
    )
    return "\r\n".join(lines).encode()
