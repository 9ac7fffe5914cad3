"""The access log: one line a request, with no secret in it."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from cardbeat import threads
from cardbeat.clock import utc_text
from cardbeat.log import cut
from cardbeat.web.message import Answered, Request, Response

log = logging.getLogger("cardbeat.access")

SLOW_SECONDS: Final = 1.0
_BATCH_SECONDS: Final = 0.1
_QUEUED_LINES: Final = 20_000
_SHOWN_MS: Final = tuple(f"{tenths / 10:.1f}ms" for tenths in range(1000))
"""Formatting a number costs more than finding it here."""


class AccessLog:
    """Takes note of answers, and writes the lines from a thread of its own: a full pipe behind stderr holds nobody up.

    Past 20,000 waiting lines new ones are dropped, and counted. What waits goes out as one record of many lines,
    each with its time: a record for each would cost several times as much as the answer itself.
    """

    def __init__(self) -> None:
        self.quiet_patterns: frozenset[str] = frozenset()
        """Of routes whose answers with status 200 are left out. Set before the first answer."""
        # The thread that serves appends, that of this log pops: both are atomic.
        self._lines: deque[str] = deque()
        # Written by the thread that serves only: how many lines were dropped since the start.
        self._dropped = 0
        self._has_lines = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)

    def start(self) -> None:
        """Begin, unless that is done. Raises `StartupError` without a thread."""
        if self._thread.ident is None:
            threads.start(self._thread)

    def stop(self, seconds: float = 0.5) -> None:
        """Write what is waiting, if stderr takes it in this time."""
        self._stopped.set()
        self._has_lines.set()
        threads.has_ended(self._thread, seconds)

    def note(self, answers: Sequence[Answered]) -> None:
        """Take in what was answered."""
        if self.quiet_patterns:
            answers = [answered for answered in answers if not self._is_quiet(*answered)]
        room = max(0, _QUEUED_LINES - len(self._lines))
        self._lines.extend([access_line(*answered) for answered in answers[:room]])
        self._dropped += max(0, len(answers) - room)
        if not self._has_lines.is_set():
            self._has_lines.set()

    def _is_quiet(self, request: Request, response: Response, _seconds: float) -> bool:
        return response.status == 200 and request.pattern in self.quiet_patterns

    def _run(self) -> None:
        stopping, told = False, 0
        while not stopping:
            self._has_lines.wait()
            stopping = self._stopped.wait(_BATCH_SECONDS)
            self._has_lines.clear()
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if dropped := self._dropped - told:
                lines.append(f"{dropped} lines were dropped: stderr is too slow")
                told += dropped
            if lines:
                now = utc_text(time.time())
                log.info("%s %s", now, f"\n{now} ".join(lines))


def access_line(request: Request, response: Response, seconds: float) -> str:
    """`GET /ping/{id} 200 71 1.3ms 127.0.0.1 - 5f0c-2a`, with `slow` at the end past a second."""
    tenths = int(seconds * 10_000 + 0.5)
    return (
        f"{request.method} {request.pattern or _shown_path(request)}{'?' if '?' in request.target else ''}"
        f" {response.status} {len(response.body)}"
        f" {_SHOWN_MS[tenths] if tenths < len(_SHOWN_MS) else f'{seconds * 1000:.1f}ms'}"
        f" {request.client} {response.headers.get('X-Cache', '-')} {request.id}"
        f"{' slow' if seconds > SLOW_SECONDS else ''}"
    )


def _shown_path(request: Request) -> str:
    """A path that is no route's, with what may be a secret cut."""
    path = request.target[:200].partition("?")[0]
    shown = "/".join(cut(segment) for segment in path.split("/"))
    return shown.encode("ascii", "backslashreplace").decode()
