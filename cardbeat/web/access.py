"""The access log: one line for each request, without secrets."""

import time
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from cardbeat.clock import utc_text
from cardbeat.log import cut
from cardbeat.web.message import Answered, Request, Response

SLOW_SECONDS: Final = 1.0
_text_of = lru_cache(maxsize=1)(utc_text)


def access_lines(
    answers: Sequence[Answered], quiet_patterns: Collection[str] = ()
) -> list[str]:
    """The lines of answers that were sent just now.

    There is none for an answer with status 200 of the routes in `quiet_patterns`.
    """
    now = _text_of(int(time.time()))
    lines = []
    for request, response, seconds in answers:
        if response.status != 200 or request.pattern not in quiet_patterns:
            lines.append(f"{now} {access_line(request, response, seconds)}")
    return lines


def access_line(request: Request, response: Response, seconds: float) -> str:
    """`GET /ping/{id} 200 71 1.3ms 127.0.0.1 - 5f0c-2a`, with `slow` at its end from 1 s on."""
    path = request.pattern or _shown_path(request)
    query = "?" if "?" in request.target else ""
    cache = response.headers.get("X-Cache", "-")
    slow = " slow" if seconds > SLOW_SECONDS else ""
    return (
        f"{request.method} {path}{query} {response.status} {len(response.body)}"
        f" {seconds * 1000:.1f}ms {request.client} {cache} {request.id}{slow}"
    )


def _shown_path(request: Request) -> str:
    """A path without a route. Long segments are cut: they may be secrets."""
    path = request.target[:200].partition("?")[0]
    shown = "/".join(cut(segment) for segment in path.split("/"))
    return shown.encode("ascii", "backslashreplace").decode()
