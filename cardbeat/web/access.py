"""The access log: one line a request, with no secret in it."""

import logging
import threading
from collections import deque
from typing import Final

from cardbeat.web.message import Request, Response

log = logging.getLogger("cardbeat.access")

SLOW_SECONDS: Final = 1.0
_BATCH_SECONDS: Final = 0.1
_QUEUED_LINES: Final = 20_000
_SHOWN_SEGMENT: Final = 12


class AccessLog:
    """Takes note of answers at once and writes them from a thread of its own.

    A full pipe behind stderr then holds up nobody: past 20,000 waiting lines the oldest are dropped, and counted.
    """

    def __init__(self) -> None:
        self._entries: deque[tuple[Request, int, int, str, float]] = deque(maxlen=_QUEUED_LINES)
        self._dropped = 0
        self._some = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, patience_seconds: float = 1) -> None:
        """Write what is waiting, if stderr takes it in time."""
        self._stopped.set()
        self._some.set()
        self._thread.join(patience_seconds)

    def note(self, request: Request, response: Response, seconds: float) -> None:
        if len(self._entries) == _QUEUED_LINES:
            self._dropped += 1
        cache = response.headers.get("X-Cache", "-")
        self._entries.append((request, response.status, len(response.body), cache, seconds))
        if not self._some.is_set():
            self._some.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._some.wait()
            self._stopped.wait(_BATCH_SECONDS)
            self._some.clear()
            self._write()

    def _write(self) -> None:
        while self._entries:
            log.info("%s", access_line(*self._entries.popleft()))
        if self._dropped:
            log.warning("%d lines of the access log were dropped: stderr is too slow", self._dropped)
            self._dropped = 0


def access_line(request: Request, status: int, body_bytes: int, cache: str, seconds: float) -> str:
    """`GET /ping/{id} 200 71 1.3ms 127.0.0.1 - 5f0c-2a`, with `slow` at the end past a second."""
    slow = " slow" if seconds > SLOW_SECONDS else ""
    where = f"{request.method} {shown_path(request)}"
    return f"{where} {status} {body_bytes} {seconds * 1000:.1f}ms {request.client} {cache} {request.id}{slow}"


def shown_path(request: Request) -> str:
    """The route's pattern, or the path with what may be a secret cut; of a query, that there is one."""
    path, mark, _ = request.target.partition("?")
    shown = request.pattern or "/".join(_cut(segment) for segment in path[:200].split("/"))
    return (shown + mark).encode("ascii", "backslashreplace").decode()


def _cut(segment: str) -> str:
    return segment if len(segment) <= _SHOWN_SEGMENT else segment[:4] + "..."
