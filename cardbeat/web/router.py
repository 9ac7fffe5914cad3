"""Routes: which handler answers a request, and in which thread."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from cardbeat.errors import NotFound, Refusal
from cardbeat.jobs import Future
from cardbeat.web.message import Request, Response, header_lines

log = logging.getLogger(__name__)


class Awaited(NamedTuple):
    """An answer that waits for a future. Once it is done, the loop calls `respond` with its result.

    `respond` must be quick, and may raise `Refusal`.
    """

    future: Future[Any]
    respond: Callable[[Any], Response]

    def answer(self, _request: Request) -> Response:
        """The response, once the future is done. Raises what that does."""
        return self.respond(self.future.result())


Handler = Callable[[Request], "Answer"]

Answer = Response | Awaited | Handler
"""A handler that must not wait may return another one, which a thread calls then."""


class Guard(Protocol):
    """Decides who may call a route. Both methods raise `Refusal` for others."""

    def judge(self, request: Request) -> None:
        """Refuse what the head alone tells. Called in the loop, so it must not wait."""

    def look_up(self, request: Request) -> Any:
        """The key of the request. Called in a thread, right before the handler."""


class Route(NamedTuple):
    """One endpoint. `{name}` in the pattern is one path segment, in `request.params["name"]`.

    The handler runs in a thread and may block. If the route is `in_loop`, it runs in the loop's
    thread: then it must not wait (see `loop`), and returns `Awaited` or a handler for a thread if
    the answer takes time.
    With a `guard` it gets only requests whose `key` is set.
    """

    method: str
    pattern: str
    handler: Handler
    in_loop: bool = False
    ignores_body: bool = False
    """Whether a body of any size is accepted and dropped."""
    guard: Guard | None = None
    segments: Mapping[str, str] = {}
    """Regular expressions for segments of the pattern that may not be any text, by name."""

    def answer(self, request: Request) -> Answer:
        """What the handler returns. Raises what it or the guard raises."""
        if self.guard is not None:
            request.key = self.guard.look_up(request)
        return self.handler(request)


class Router:
    """Finds the route of a request. A GET route answers HEAD too."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self.routes = tuple(routes)
        self._methods: dict[str, dict[str, Route]] = {}
        self._expressions: dict[str, re.Pattern[str]] = {}
        """Those of the patterns with names."""
        for route in self.routes:
            methods = self._methods.setdefault(route.pattern, {})
            methods[route.method] = route
            if route.method == "GET":
                methods.setdefault("HEAD", route)
            if "{" in route.pattern:
                self._expressions[route.pattern] = _expression(route)

    def find(self, request: Request) -> Route:
        """The route of a request, whose `pattern` and `params` are set.

        Raises `Refusal` 404 or 405.
        """
        pattern = request.path
        if pattern not in self._methods or pattern in self._expressions:
            pattern = self._match(request)
        request.pattern = pattern
        methods = self._methods[pattern]
        route = methods.get(request.method)
        if route is None:
            allowed = ", ".join(methods)
            raise Refusal(
                "method_not_allowed",
                headers={"Allow": allowed},
                method=request.method,
                allowed=allowed,
            )
        return route

    def _match(self, request: Request) -> str:
        for pattern, expression in self._expressions.items():
            if match := expression.fullmatch(request.path):
                request.params = match.groupdict()
                return pattern
        raise NotFound


def _expression(route: Route) -> re.Pattern[str]:
    def segment(match: re.Match[str]) -> str:
        return f"(?P<{match[1]}>{route.segments.get(match[1], '[^/]+')})"

    return re.compile(re.sub(r"{(\w+)}", segment, route.pattern))


def answer_of(request: Request, make: Handler) -> Answer:
    """What `make` returns, ready to be sent; if it raises, a refusal."""
    try:
        answer = make(request)
        if isinstance(answer, Response) and not answer.lines:
            answer.lines = header_lines(answer)
    except Exception as error:
        return refusal_of(request, error)
    return answer


def refusal_of(request: Request, error: Exception) -> Response:
    """The answer to a request that failed: that of a refusal, else 500, which is logged."""
    if not isinstance(error, Refusal):
        log.error("request %s failed", request.id, exc_info=error)
        error = Refusal("internal_error")
    # The frames hold the request.
    error.__traceback__ = None
    response = Response.json(error.status, error.body(), error.headers)
    response.lines = header_lines(response)
    return response
