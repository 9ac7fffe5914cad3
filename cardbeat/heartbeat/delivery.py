"""Sending what the outbox holds: one dispatcher that plans and records, and couriers that post.

Whoever holds the lock file delivers. The system frees the lock with its process, however that ends: the next start
takes everything up at once, and two processes over one database never send the same alert side by side.
"""

import functools
import heapq
import itertools
import logging
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

from cardbeat.clock import Clock
from cardbeat.database_file import open_lock_file
from cardbeat.errors import Refusal
from cardbeat.heartbeat.courier import Courier, Report, host_of
from cardbeat.heartbeat.lanes import COURIERS, Lanes, Line
from cardbeat.heartbeat.outbox import Outbox, Pending
from cardbeat.heartbeat.retries import RETRY_AFTER_SECONDS
from cardbeat.system import descriptor_limit, try_lock

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How soon another process's alerts are seen, or that it has let go of the lock."""
TROUBLE_SECONDS = 5.0
"""Until the next try after the database could not be used."""
GATHER_SECONDS = 0.01
"""Results that come within it of each other share a commit."""
BATCH = 500
"""Results in one write at the most."""
STACK_BYTES = 512 * 1024
"""Hundreds of couriers may wait at once, and a default stack can cost megabytes where huge pages are on."""


class Delivery:
    """Delivers until `stop`. `lock_path` is the lock file, `elapsed` a clock that only goes forward."""

    def __init__(self, outbox: Outbox, courier: Courier, clock: Clock, lock_path: Path, elapsed: Clock) -> None:
        self._outbox = outbox
        self._courier = courier
        self._clock = clock
        self._elapsed = elapsed
        self._lock_path = lock_path
        self._totals: Counter[str] = Counter(delivered=0, retried=0, failed=0)
        # The dispatcher's own: nothing here is touched by another thread.
        self._seen = 0
        self._scan_at = -math.inf
        self._lines: dict[int, Line] = {}
        self._later: list[tuple[float, int, Line]] = []
        self._tickets = itertools.count(1)
        # Shared with the couriers and callers, under this condition's lock.
        self._changed = threading.Condition()
        self._lanes = Lanes(_courier_limit())
        self._reports: deque[Report] = deque()
        self._moved: dict[int, str] = {}
        self._woken = False
        self._stopping = False
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)

    def start(self) -> None:
        """Raises `StartupError` if the lock file can't be used."""
        self._lock_file = open_lock_file(self._lock_path)
        self._thread.start()

    def wake(self) -> None:
        """New alerts are stored."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def move(self, check_seq: int, host: str) -> None:
        """A check's alerts go to another URL, at `host`: the one that waits is due now, and stored so."""
        with self._changed:
            self._moved[check_seq] = host
            self._woken = True
            self._changed.notify()

    def stop(self, seconds: float) -> None:
        """Begin no more posts, and wait for what runs to end and be recorded, at most `seconds`."""
        if not self._thread.is_alive():
            return
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(seconds)
        with self._changed:
            self._abandoned = True
            self._changed.notify()
        self._thread.join()

    def totals(self) -> dict[str, int]:
        """Attempts since the start by what came of them: delivered, retried, failed."""
        return dict(self._totals)

    def _run(self) -> None:
        while not try_lock(self._lock_file) and self._pause(POLL_SECONDS):
            pass
        while self._wait(self._idle_seconds()):
            time.sleep(GATHER_SECONDS)
            try:
                self._turn()
            except Exception as error:
                _log(error)
                self._pause(TROUBLE_SECONDS)
        if not self._lanes.running:
            # Else a post is still on its way, and the lock goes with the process.
            os.close(self._lock_file)

    def _wait(self, seconds: float) -> bool:
        """Sleep until there is something to do; False when this is the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._reports or self._woken or self._ended(), seconds)
            return not self._ended()

    def _pause(self, seconds: float) -> bool:
        """Sleep whatever there is to do; False when this is the end."""
        with self._changed:
            return not self._changed.wait_for(self._ended, seconds)

    def _ended(self) -> bool:
        return self._abandoned or (self._stopping and not self._lanes.running and not self._reports)

    def _idle_seconds(self) -> float:
        due = self._later[0][0] if self._later else math.inf
        return max(0.0, min(due, self._scan_at) - self._elapsed())

    def _turn(self) -> None:
        try:
            self._record()
        finally:
            # On a full disk nothing can be recorded, but what is stored must still go out.
            self._hurry()
            self._scan()
            self._release()
            self._send_out()

    def _record(self) -> None:
        """Store what couriers brought back, then let each line go on."""
        with self._changed:
            reports = list(itertools.islice(self._reports, BATCH))
        attempts = [report.attempt for report in reports if report.attempt is not None]
        if attempts:
            self._outbox.store(attempts)
        # Only now: until it is stored a result must not be lost, nor the line's next alert sent.
        with self._changed:
            for _ in reports:
                self._reports.popleft()
        for report in reports:
            self._go_on(report)
        self._totals.update(_OUTCOMES[attempt.state] for attempt in attempts)

    def _go_on(self, report: Report) -> None:
        line = report.line
        host = report.host if line.moved_to is None else line.moved_to
        if host is not None:
            line.host = host
        if report.wait_seconds is None:
            del line.alerts[0]
        if line.alerts:
            self._plan(line, report.wait_seconds or 0 if line.moved_to is None else 0)
        else:
            del self._lines[line.check_seq]

    def _hurry(self) -> None:
        """Let the lines whose checks have another URL go on at once."""
        with self._changed:
            moved, self._moved = self._moved, {}
            for check_seq, host in moved.items():
                line = self._lines.get(check_seq)
                if line is None:
                    continue
                if line.ticket:
                    line.host = host
                    self._plan(line, 0)
                else:
                    # Under way, perhaps to the URL before.
                    line.moved_to = host

    def _scan(self) -> None:
        """Take up alerts stored since the last time, a page a turn so that sending never waits for a long list."""
        with self._changed:
            woken, self._woken = self._woken, False
        if not woken and self._elapsed() < self._scan_at:
            return
        page = self._outbox.pending_after(self._seen)
        for pending in page:
            self._take_up(pending)
            self._seen = pending.seq
        self._scan_at = self._elapsed() + (0 if page else POLL_SECONDS)

    def _take_up(self, pending: Pending) -> None:
        line = self._lines.get(pending.check_seq)
        if line is not None:
            line.alerts.append(pending.seq)
            return
        line = Line(pending.check_seq, host_of(pending.webhook_url), [pending.seq])
        self._lines[pending.check_seq] = line
        self._plan(line, _wait_seconds(pending, self._clock()))

    def _plan(self, line: Line, wait_seconds: float) -> None:
        line.ticket = next(self._tickets)
        line.moved_to = None
        heapq.heappush(self._later, (self._elapsed() + wait_seconds, line.ticket, line))

    def _release(self) -> None:
        now = self._elapsed()
        with self._changed:
            while self._later and self._later[0][0] <= now:
                _, ticket, line = heapq.heappop(self._later)
                # A line that was planned anew has left its first entry behind.
                if ticket == line.ticket:
                    line.ticket = 0
                    self._lanes.add(line)

    def _send_out(self) -> None:
        while (line := self._take()) is not None:
            try:
                _start_small(functools.partial(self._carry, line))
            except RuntimeError:
                log.warning("no more threads for alerts; going on with those that run")
                self._bring_back(Report(line, wait_seconds=TROUBLE_SECONDS), 0)
                return

    def _take(self) -> Line | None:
        with self._changed:
            line = None if self._stopping else self._lanes.take()
            if line is not None:
                # The URL is read after this.
                line.moved_to = None
            return line

    def _carry(self, first: Line) -> None:
        """A courier's life: it ends when no line is due."""
        line: Line | None = first
        while line is not None:
            began = time.monotonic()
            report = self._attempt(line)
            self._bring_back(report, time.monotonic() - began)
            line = self._take()

    def _bring_back(self, report: Report, seconds: float) -> None:
        answered = report.attempt is not None and report.attempt.status is not None
        with self._changed:
            self._lanes.done(report.line, seconds, answered)
            self._reports.append(report)
            self._changed.notify()

    def _attempt(self, line: Line) -> Report:
        try:
            return self._courier.attempt(line)
        except Exception as error:
            _log(error)
            return Report(line, wait_seconds=TROUBLE_SECONDS)


_OUTCOMES = {"delivered": "delivered", "pending": "retried", "failed": "failed"}


def _wait_seconds(pending: Pending, now: float) -> float:
    """Seconds until a stored alert is due; a clock that was set back meanwhile can't keep it for longer than a day."""
    wait_seconds = pending.next_attempt_at - now if pending.attempts else 0
    # What is stored is rounded up to the next second.
    return wait_seconds if 0 < wait_seconds < RETRY_AFTER_SECONDS + 1 else 0


def _log(error: Exception) -> None:
    """The database logs its own trouble; anything else is a defect to be seen, but must not end all alerts."""
    if not isinstance(error, Refusal):
        log.exception("alerts go on in %g s", TROUBLE_SECONDS)


def _start_small(work: Callable[[], None]) -> None:
    """Start a thread with a small stack. Raises `RuntimeError` when the system has no room for another."""
    usual = threading.stack_size(STACK_BYTES)
    try:
        threading.Thread(target=work, name="alerts-courier", daemon=True).start()
    finally:
        threading.stack_size(usual)


def _courier_limit() -> int:
    """Fewer than usual where descriptors are few: the clients and the database need most of them."""
    return descriptor_limit(4 * COURIERS) // 4
