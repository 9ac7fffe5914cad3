"""The access log: one line for each request, without secrets."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Final

from cardbeat.clock import utc_text
from cardbeat.log import Kind, cut
from cardbeat.web.message import Answered, Request, Response

log = logging.getLogger("cardbeat.access")

ACCESS: Final = Kind(20_000, "%d requests have no line: stderr is too slow")
SLOW_SECONDS: Final = 1.0
_SHOWN_MS: Final = tuple(f"{tenths / 10:.1f}ms" for tenths in range(1000))
"""The durations below 100 ms as text: looking one up is faster than formatting it."""


def _log_at_once(_kind: Kind, lines: Sequence[str]) -> None:
    log.info("%s", "\n".join(lines))


_text_of = lru_cache(maxsize=1)(utc_text)


class AccessLog:
    """Logs answers, except those with status 200 of the routes in `quiet_patterns`. `put` must not wait."""

    def __init__(
        self, put: Callable[[Kind, Sequence[str]], None] = _log_at_once, quiet_patterns: Collection[str] = ()
    ) -> None:
        self._put = put
        self._quiet_patterns = quiet_patterns

    def note(self, answers: Sequence[Answered]) -> None:
        """Log answers that were sent just now."""
        if self._quiet_patterns:
            answers = [answered for answered in answers if not self._is_quiet(*answered)]
        if answers:
            now = _text_of(int(time.time()))
            self._put(ACCESS, [f"{now} {access_line(*answered)}" for answered in answers])

    def _is_quiet(self, request: Request, response: Response, _seconds: float) -> bool:
        return response.status == 200 and request.pattern in self._quiet_patterns


def access_line(request: Request, response: Response, seconds: float) -> str:
    """`GET /ping/{id} 200 71 1.3ms 127.0.0.1 - 5f0c-2a`, and `slow` at the end if it took more than 1 s."""
    tenths = int(seconds * 10_000 + 0.5)
    return (
        f"{request.method} {request.pattern or _shown_path(request)}{'?' if '?' in request.target else ''}"
        f" {response.status} {len(response.body)}"
        f" {_SHOWN_MS[tenths] if tenths < len(_SHOWN_MS) else f'{seconds * 1000:.1f}ms'}"
        f" {request.client} {response.headers.get('X-Cache', '-')} {request.id}"
        f"{' slow' if seconds > SLOW_SECONDS else ''}"
    )


def _shown_path(request: Request) -> str:
    """A path without a route. Long segments are cut: they may be secrets."""
    path = request.target[:200].partition("?")[0]
    shown = "/".join(cut(segment) for segment in path.split("/"))
    return shown.encode("ascii", "backslashreplace").decode()
