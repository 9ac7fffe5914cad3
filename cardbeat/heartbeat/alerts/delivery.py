"""Delivery of the stored alerts: one thread picks what is due, others post it.

Of all processes with the same database only the holder of the lease picks, so no alert is sent
twice at once. Nothing is remembered but the posts that run, results until they are
stored, and what limits posts (`limits`).
"""

import logging
import math
import random
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cardbeat.clock import Clock
from cardbeat.config import TIERS, Tier
from cardbeat.database import Lease, Transaction
from cardbeat.errors import Refusal
from cardbeat.heartbeat.alerts.limits import (
    SENDERS,
    Limits,
    Postponed,
    Run,
)
from cardbeat.heartbeat.alerts.message import (
    Outcome,
    request_for,
    signed_headers,
)
from cardbeat.heartbeat.alerts.outbox import (
    Due,
    Message,
    Outbox,
    Queue,
    Result,
)
from cardbeat.heartbeat.alerts.retries import verdict
from cardbeat.jobs import has_ended, start_thread

if TYPE_CHECKING:
    from cardbeat.heartbeat.alerts.post import Sender

log = logging.getLogger(__name__)

RUN = 8
"""Most alerts of one key to one host that a sender takes at once."""
RUN_SECONDS = 0.5
"""A sender begins no further alert of its run after this time."""
CANDIDATES = 64
"""Due alerts of a queue that one read finds, beside those that are being posted."""
RETRIED = {"pending": "retried"}
TURNS = 10_000
"""Most queues of which something is remembered; then all are forgotten."""
POLL_SECONDS = 1.0
"""Interval of looking for due alerts, and at the lease."""
PAUSE_SECONDS = 0.01
"""Shortest pause between two rounds: so results share a commit."""
PICK_SECONDS = 0.05
"""Longest time of beginning posts, until results are stored and new alerts are looked for."""
SCANS = 10
"""A pause lasts as many times as long as the look for queues took: with an old snapshot open,
PostgreSQL reads past the entries of all that was delivered since. It lasts at most
`TROUBLE_SECONDS`: the process may have been suspended while it looked."""
REPAIR_SECONDS = 600.0
"""Interval of looking for alerts that wait and have no time."""
TROUBLE_SECONDS = 5.0
"""Pause after the database could not be used, or after a defect."""
_BROKEN = "The alert could not be sent; the server's log says why."


class Delivery:
    """Delivers until `stop`. `monotonic` is a clock that only goes forward.

    `sender` gives the `Sender`, which a start does not need.
    `tiers` has the limits of keys. `senders` is the most posts at once. With a `fence` it delivers
    only while this process holds the lease.
    """

    def __init__(
        self,
        outbox: Outbox,
        sender: Callable[[], "Sender"],
        clock: Clock,
        monotonic: Clock = time.monotonic,
        *,
        tiers: Mapping[str, Tier] = TIERS,
        poll_seconds: float = POLL_SECONDS,
        trouble_seconds: float = TROUBLE_SECONDS,
        repair_seconds: float = REPAIR_SECONDS,
        senders: int = SENDERS,
        fence: Lease | None = None,
    ) -> None:
        self._outbox = outbox
        self._fence = fence
        self._sender = sender
        self._clock = clock
        self._monotonic = monotonic
        self._poll_seconds = poll_seconds
        self._trouble_seconds = trouble_seconds
        self._repair_seconds = repair_seconds
        self._stopping = threading.Event()
        # Written by the delivery's thread; any thread may read it.
        self._totals: Counter[str] = Counter(
            delivered=0, retried=0, failed=0
        )
        # Used by the delivery's thread alone.
        self._turns: dict[Queue, float] = {}
        """When the last run of each queue began."""
        self._in_vain: dict[Queue, tuple[set[str], float]] = {}
        """Queues whose due alerts were all for full hosts: these hosts, and until when there is no
        further look while they stay full."""
        self._senders = 0
        """Threads that take runs, each until it is given None."""
        self._pause_seconds = 0.0
        self._repair_at = -math.inf
        self._look_at = -math.inf
        """When the next round begins at the latest."""
        # All below are used under this lock only.
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        self._has_runs = threading.Condition(lock)
        self._runs: deque[Run | None] = deque()
        self._limits = Limits(self._changed, tiers, monotonic, senders)
        self._has_news = False
        self._running: set[Run] = set()
        self._taken: set[str] = set()
        """The checks of alerts that are in a run, or whose result is not stored yet."""
        self._results: list[Result] = []
        self._thread = threading.Thread(
            target=self._deliver, name="alerts", daemon=True
        )

    def start(self) -> None:
        """Begin to deliver. Raises `StartupError` without threads."""
        start_thread(self._thread)

    def wake(self) -> None:
        """Note that alerts became due, or that there is a result."""
        with self._changed:
            # Once is enough: it wakes a thread each time.
            if not self._has_news or self._stopping.is_set():
                self._has_news = True
                self._changed.notify()

    def begin_stop(self) -> None:
        """Begin no more posts. The thread ends after the running ones."""
        self._stopping.set()
        self.wake()

    def stop(self, seconds: float) -> bool:
        """Begin no more posts, and wait at most `seconds` until the running ones are stored.

        False if the thread has not ended, because a post runs or it waits for the database.
        """
        self.begin_stop()
        return has_ended(self._thread, seconds)

    def totals(self) -> dict[str, int]:
        """Attempts since the start by their result: delivered, retried, failed."""
        return dict(self._totals)

    def oldest_due_seconds(self) -> float:
        """Seconds that the oldest due alert has waited; 0 if none is due. Raises `Unavailable`."""
        with self._outbox.database.read() as connection:
            due_at = self._outbox.queues(connection).values()
        return max(0.0, self._clock() - min(due_at, default=math.inf))

    # The delivery's thread.

    def _deliver(self) -> None:
        """Go round until a stop. No error ends this thread: it is logged, and it goes on."""
        while self._wait():
            try:
                self._round()
            except Exception as error:
                _log_trouble(error)
                self._pause_seconds = self._trouble_seconds
                self._look_at = self._monotonic() + self._trouble_seconds
        self._end_senders()
        if self._fence is not None:
            self._fence.release()

    def _wait(self) -> bool:
        """Pause, and then wait until there is something to do. False at the end of delivery."""
        with self._changed:
            # A stop waits for results alone.
            self._changed.wait_for(
                self._stopping.is_set, self._pause_seconds
            )
            late_at = [run.late_at for run in self._running]
            seconds = min([self._look_at, *late_at]) - self._monotonic()
            self._changed.wait_for(
                lambda: self._has_news or self._has_ended(),
                max(0.0, min(self._poll_seconds, seconds)),
            )
            self._has_news = False
            return not self._has_ended()

    def _has_ended(self) -> bool:
        """Whether it was told to stop, and all results are stored."""
        return (
            self._stopping.is_set()
            and not self._running
            and not self._results
        )

    def _round(self) -> None:
        """One round: end late posts, store results, begin other posts."""
        self._pause_seconds = PAUSE_SECONDS
        self._look_at = math.inf
        with self._changed:
            for run in self._running:
                run.end_if_late()
        if self._fence is not None:
            self._fence.take()
        self._store_results()
        if self._stopping.is_set() or not self._has_lease():
            return
        if self._monotonic() >= self._repair_at:
            self._outbox.repair(int(self._clock()))
            self._repair_at = self._monotonic() + self._repair_seconds
        self._pick()

    def _has_lease(self) -> bool:
        """Whether no other process delivers. Nobody else has a file."""
        return self._fence is None or self._fence.held()

    def _store_results(self) -> None:
        results = self._results[:]
        if results:
            for one in self._outbox.store(results, int(self._clock())):
                self._totals[RETRIED.get(one.state, one.state)] += 1
            # Only now: until then no other post of these checks may begin.
            with self._changed:
                del self._results[: len(results)]
                for result in results:
                    self._taken.discard(result.message.alert["check_id"])

    def _pick(self) -> None:
        """Begin all posts that may begin now.

        The queue that was served longest ago is next, so keys take turns, also those with alerts of
        both kinds.
        """
        began = time.monotonic()
        now = self._clock()
        with self._outbox.database.read() as connection:
            found = self._outbox.queues(connection)
            scan_seconds = time.monotonic() - began
            due = [
                queue for queue, due_at in found.items() if due_at <= now
            ]
            due.sort(key=lambda queue: self._turns.get(queue, -math.inf))
            # Some of what is due may not begin yet.
            seconds = POLL_SECONDS
            if not due:
                seconds = min(found.values(), default=math.inf) - now
                self._end_senders()
            self._look_at = self._monotonic() + seconds
            queues = deque(due)
            candidates: dict[Queue, dict[str, list[Due]]] = {}
            # From here: also a look that took longer lets posts begin.
            ends_at = time.monotonic() + PICK_SECONDS
            while queues and time.monotonic() < ends_at:
                queue = queues.popleft()
                if self._begin_one(
                    connection, queue, candidates, int(now)
                ):
                    queues.append(queue)
        if queues:
            self._look_at = -math.inf
        pause = max(SCANS * scan_seconds, time.monotonic() - began)
        self._pause_seconds = min(
            max(PAUSE_SECONDS, pause), self._trouble_seconds
        )

    def _begin_one(
        self,
        connection: Transaction,
        queue: Queue,
        candidates: dict[Queue, dict[str, list[Due]]],
        now: int,
    ) -> bool:
        """Begin a run of the oldest alerts of a queue for one host. False if none may begin."""
        with self._changed:
            if not self._limits.has_room(queue):
                return False
        if queue not in candidates:
            candidates[queue] = self._candidates(connection, queue, now)
        with self._changed:
            for host, due in candidates[queue].items():
                if due and not self._limits.is_full(queue, host):
                    self._begin(Run(self._limits, queue, host, due[:RUN]))
                    del due[:RUN]
                    return True
        # Behind those that were found may be others, for other hosts.
        return bool(candidates.pop(queue))

    def _candidates(
        self, connection: Transaction, queue: Queue, now: int
    ) -> dict[str, list[Due]]:
        """Due alerts of a queue that may be posted, by host, the oldest first.

        Those for hosts that had trouble are among them only if there are no others.
        """
        with self._changed:
            full, troubled, dry = self._limits.excluded(queue)
            least_attempts = int(not self._limits.has_first_posts(queue))
            taken = set(self._taken)
        began = self._monotonic()
        hosts, until = self._in_vain.get(queue, (set(), began))
        if began < until and hosts == set(full):
            return {}
        limits = least_attempts, CANDIDATES + len(taken)
        found: dict[str, list[Due]] = {}
        for excluded in (full + troubled, full):
            for one in self._outbox.due(
                connection, queue, now, excluded, dry, *limits
            ):
                # One of a check at a time: also a reminder that was deleted may still be posted.
                if one.check_id not in taken:
                    taken.add(one.check_id)
                    found.setdefault(one.receiver, []).append(one)
            if found or not troubled:
                break
        if full and not found:
            # It may have read past thousands.
            pause = min(SCANS * (self._monotonic() - began), POLL_SECONDS)
            _forget_too_many(self._in_vain)
            self._in_vain[queue] = set(full), began + pause
        return found

    def _begin(self, run: Run) -> None:
        if self._senders <= len(self._running):
            threading.Thread(
                target=self._serve, name="sender", daemon=True
            ).start()
            self._senders += 1
        self._limits.begin(run)
        self._running.add(run)
        self._taken |= run.check_ids
        self._runs.append(run)
        self._has_runs.notify()
        _forget_too_many(self._turns)
        self._turns[run.queue] = self._monotonic()

    def _end_senders(self) -> None:
        """Let the senders' threads end: to begin one takes CPU, to keep it memory."""
        with self._changed:
            # A thread that is begun beside them would take their None, and its run would wait.
            if not self._running:
                self._runs.extend([None] * self._senders)
                self._has_runs.notify_all()
                self._senders = 0

    # The senders' threads.

    def _serve(self) -> None:
        """Send runs until there is a None instead."""
        while run := self._next_run():
            self._send_all(run)

    def _next_run(self) -> Run | None:
        with self._has_runs:
            self._has_runs.wait_for(lambda: self._runs)
            return self._runs.popleft()

    def _send_all(self, run: Run) -> None:
        try:
            self._send(run)
        except Exception as error:
            _log_trouble(error)
            self._stopping.wait(self._trouble_seconds)
        with self._changed:
            self._limits.count(run, -1)
            self._running.discard(run)
            self._taken -= run.check_ids
            self.wake()

    def _send(self, run: Run) -> None:
        """Post the alerts of a run until one fails. Raises `Unavailable`."""
        ends_at = self._monotonic() + RUN_SECONDS
        for message in self._outbox.messages(
            run.seqs, int(self._clock())
        ):
            if self._stopping.is_set() or not self._has_lease():
                return
            alert = message.alert
            run.is_first = not alert["attempts"]
            began = self._monotonic()
            try:
                outcome = self._attempt(run, message)
            except Postponed:
                return
            finally:
                run.leave_connection()
            told = verdict(
                outcome,
                alert["attempts"] + 1,
                self._clock(),
                alert["created_at"],
                random.random(),  # noqa: S311 - jitter
            )
            result = Result(message, outcome.status, outcome.error, *told)
            with self._changed:
                has_answered = outcome.status is not None
                self._limits.note(
                    run, has_answered, self._monotonic() - began
                )
                run.check_ids.discard(alert["check_id"])
                self._results.append(result)
                self.wake()
            if outcome.error is not None or self._monotonic() >= ends_at:
                return

    def _attempt(self, run: Run, message: Message) -> Outcome:
        alert_id = message.alert["id"]
        try:
            url, body = request_for(message.webhook_url, message.body)
            headers = signed_headers(
                alert_id, int(self._clock()), body, *message.secrets
            )
            return self._sender().post(url, headers, body, run)
        except Postponed:
            raise
        except Exception as error:
            # Without the error's words: they may hold the URL, which may be a secret.
            where = "".join(traceback.format_tb(error.__traceback__))
            said = f"alert {alert_id} could not be sent: {type(error).__name__}"
            log.error("%s\n%s", said, where)
            return Outcome(error=_BROKEN)


def _forget_too_many(remembered: dict[Queue, Any]) -> None:
    if len(remembered) > TURNS:
        remembered.clear()


def _log_trouble(error: Exception) -> None:
    """Log an unexpected error with its trace."""
    # The database logs its own errors.
    if not isinstance(error, Refusal):
        log.exception("alerts go on in %g s", TROUBLE_SECONDS)
