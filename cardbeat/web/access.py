"""The access log: one line for each request, without secrets."""

import logging
import time
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final, Protocol

from cardbeat.clock import utc_text
from cardbeat.log import Kind, cut
from cardbeat.web.message import Answered, Request, Response

log = logging.getLogger("cardbeat.access")

ACCESS: Final = Kind(20_000, "%d requests have no line: stderr is too slow")
REFUSED_EACH: Final = 50
"""Lines in a second about refused requests of one network: a client may send 10,000 in that time."""
REFUSED: Final = Kind(0, f"%d refused requests have no line: their addresses had {REFUSED_EACH} lines each in a second")
SLOW_SECONDS: Final = 1.0
_SHOWN_MS: Final = tuple(f"{tenths / 10:.1f}ms" for tenths in range(1000))
"""The durations below 100 ms as text: looking one up is faster than formatting it."""


class Put(Protocol):
    """Takes lines of a kind, and the number of those that are only counted."""

    def __call__(self, kind: Kind, lines: Sequence[str], more: int = 0) -> None: ...


def _log_at_once(kind: Kind, lines: Sequence[str], more: int = 0) -> None:
    log.info("%s", kind.more % more if more else "\n".join(lines))


_text_of = lru_cache(maxsize=1)(utc_text)


class AccessLog:
    """Logs answers, except those with status 200 of the routes in `quiet_patterns`. `put` must not wait.

    Of one network's refused requests, those with a status from 400 on, it logs `REFUSED_EACH` in a second.
    """

    def __init__(self, put: Put = _log_at_once, quiet_patterns: Collection[str] = ()) -> None:
        self._put = put
        self._quiet_patterns = quiet_patterns
        self._second = 0
        self._refused: Counter[str] = Counter()
        """By network: refused requests in that second."""

    def note(self, answers: Sequence[Answered]) -> None:
        """Log answers that were sent just now."""
        if quiet := self._quiet_patterns:
            answers = [each for each in answers if each[1].status != 200 or each[0].pattern not in quiet]
        if answers:
            second = int(time.time())
            if second != self._second:
                self._second, self._refused = second, Counter()
            now = _text_of(second)
            lines = [
                f"{now} {access_line(request, response, seconds)}"
                for request, response, seconds in answers
                if response.status < 400 or self._has_line(request.network)
            ]
            if lines:
                self._put(ACCESS, lines)
            if len(lines) < len(answers):
                self._put(REFUSED, (), len(answers) - len(lines))

    def _has_line(self, network: str) -> bool:
        """Whether a refused request has a line. Counts it."""
        self._refused[network] += 1
        return self._refused[network] <= REFUSED_EACH


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
