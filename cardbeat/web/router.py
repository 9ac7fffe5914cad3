"""Routes: which handler answers a request, and in which thread."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cardbeat.concurrency.later import Later
from cardbeat.errors import NotFound, Refusal
from cardbeat.web.message import Holder, Request, Response

Answer = Response | Later[Response]

Handler = Callable[[Request], Answer]

WorkSoon = Callable[[Callable[[], None]], None]
"""Takes work for a worker thread, to be started after the next answers: sooner, it would delay them."""


class Guard(Protocol):
    """Finds the holder of a request's key, or the client without one, from the head alone. Raises `Refusal`."""

    @property
    def refuses(self) -> Collection[int]:
        """The statuses of its refusals."""

    def find(self, request: Request, work_soon: WorkSoon) -> Holder | None:
        """The holder, if it is known without waiting."""

    def look_up(self, request: Request) -> Holder:
        """The holder, read from the database if need be."""

    def name_of(self, request: Request) -> str | None:
        """The id of the last known holder, under which the look-up is queued; None without one."""


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. `{name}` in the pattern stands for one path segment, which is in `request.params["name"]`.

    The handler runs in a worker thread. If the route is `in_loop`, it runs in the loop's thread: then it must not wait
    (see `loop`), and returns a `Later` if the answer takes time. A handler in a worker may read from the disk, but
    returns a `Later` for a write: there are few threads. With a `guard` it gets only requests whose `key` is set.
    """

    method: str
    pattern: str
    handler: Handler
    in_loop: bool = False
    ignores_body: bool = False
    """Whether a body of any size is accepted and dropped."""
    guard: Guard | None = None
    segments: Mapping[str, str] = field(default_factory=dict)
    """Regular expressions for segments of the pattern that may not be any text, by name."""


class Router:
    """Finds the route of a request. A GET route answers HEAD too."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self.routes = tuple(routes)
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: dict[str, tuple[re.Pattern[str], dict[str, Route]]] = {}
        for route in self.routes:
            methods = self._methods_of(route)
            methods[route.method] = route
            if route.method == "GET":
                methods.setdefault("HEAD", route)

    def find(self, request: Request) -> Route:
        """The route of a request, whose `pattern` and `params` are set. Raises `Refusal` 404 or 405."""
        request.pattern, methods = request.path, self._fixed.get(request.path)
        if methods is None:
            request.pattern, methods = self._match(request)
        route = methods.get(request.method)
        if route is None:
            allowed = ", ".join(methods)
            headers = {"Allow": allowed}
            raise Refusal("method_not_allowed", headers=headers, method=request.method, allowed=allowed)
        return route

    def ignores_body(self, method: str, path: str) -> bool:
        """Whether the body of such a request is dropped, however large it is."""
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
        raise NotFound

    def _methods_of(self, route: Route) -> dict[str, Route]:
        if "{" not in route.pattern:
            return self._fixed.setdefault(route.pattern, {})

        def segment(match: re.Match[str]) -> str:
            return f"(?P<{match[1]}>{route.segments.get(match[1], '[^/]+')})"

        expression = re.compile(re.sub(r"\\{(\w+)\\}", segment, re.escape(route.pattern)))
        return self._patterns.setdefault(route.pattern, (expression, {}))[1]
