"""The route table, and the one place that turns refusals and failures into answers."""

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cardbeat.errors import NotFound, Refusal
from cardbeat.later import Later
from cardbeat.web.message import Request, Response

log = logging.getLogger(__name__)

Handler = Callable[[Request], Response | Later[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. `{name}` in the pattern stands for one path segment, given as `request.params["name"]`.

    The handler answers in a worker thread, unless the route is `in_loop`: then the thread that owns all connections
    calls it, so it must not wait for a lock, the network or work of any length, and returns a `Later` where the
    answer takes such.
    """

    method: str
    pattern: str
    handler: Handler
    in_loop: bool = False
    ignores_body: bool = False
    """Whether a request may have any body, however large: it is dropped as it comes."""


class Router:
    """Finds the route of a request and answers it. GET routes answer HEAD too."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self.routes: list[Route] = []
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

    def handle(self, request: Request) -> Response:
        """The answer to a request, whatever happens while it is made and however long it takes."""
        try:
            answer = self.find(request).handler(request)
            return answer.wait() if isinstance(answer, Later) else answer
        except Exception as error:
            return self.refuse(request, error)

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

    def ignores_body(self, method: str, path: str) -> bool:
        """Whether there is a route of such requests that ignores their body."""
        try:
            return self.find(Request(method, path, path)).ignores_body
        except Refusal:
            return False

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
