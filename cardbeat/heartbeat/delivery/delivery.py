"""Delivery of the stored alerts: one thread reads, plans and records; many, the couriers, post.

Of all processes with the same database only the holder of the lease delivers, so no alert is sent twice at once. A
lock file as lease ends with its process, also after a crash. A row as lease also ends when its holder can't renew it:
the holder then forgets its state.
"""

import logging
import threading
import time
from collections import Counter

from cardbeat.clock import Clock
from cardbeat.concurrency import threads
from cardbeat.heartbeat.delivery.allowance import Allowance
from cardbeat.heartbeat.delivery.courier import Courier
from cardbeat.heartbeat.delivery.couriers import TROUBLE_SECONDS, Couriers, log_trouble
from cardbeat.heartbeat.delivery.dispatcher import POLL_SECONDS, Dispatcher
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.outbox.pending import PendingAlerts
from cardbeat.host.descriptors import shares

log = logging.getLogger(__name__)

GROUP_COMMIT_SECONDS = 0.01
"""Pause before results are recorded, so that several share a commit."""
ABANDONED_SECONDS = 0.25
"""Time for the thread to end after a stop that did not wait for all posts."""


class Delivery:
    """Delivers until `stop`. `elapsed` is a clock that only goes forward."""

    def __init__(
        self,
        alerts: Alerts,
        courier: Courier,
        clock: Clock,
        elapsed: Clock = time.monotonic,
        *,
        poll_seconds: float = POLL_SECONDS,
        trouble_seconds: float = TROUBLE_SECONDS,
    ) -> None:
        self._alerts = alerts
        self._courier = courier
        self._clock = clock
        self._elapsed = elapsed
        self._poll_seconds = poll_seconds
        self._trouble_seconds = trouble_seconds
        # Written by the thread that delivers; any thread may read it.
        self._totals: Counter[str] = Counter(delivered=0, retried=0, failed=0)
        # Read and written by that thread, the couriers and callers, under this condition's lock only.
        self._changed = threading.Condition()
        self._stopping = False
        self._abandoned = False
        # What was counted counts once, also after this process was without the lease for a time.
        self._allowance = Allowance(elapsed)
        self._dispatcher = self._new_dispatcher()
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)

    def start(self) -> None:
        """Begin to deliver. Raises `StartupError` if the lease can't be used or there is no thread."""
        self._lease = self._alerts.database.lease()
        threads.start(self._thread)

    def wake(self) -> None:
        """Note that new alerts, or another webhook URL of a check that has some, are committed."""
        self._dispatcher.wake()

    def begin_stop(self) -> None:
        """Begin no more posts; the thread ends after the running ones. The next start sends what is left."""
        with self._changed:
            self._stopping = True
            self._dispatcher.couriers.stop()
            self._changed.notify()

    def stop(self, seconds: float) -> bool:
        """Begin no more posts, and wait at most `seconds` for the results of the running ones to be recorded.

        False if the thread has not ended, because it waits for the database.
        """
        self.begin_stop()
        if not self._thread.is_alive():
            return True
        self._thread.join(seconds)
        with self._changed:
            self._abandoned = True
            self._changed.notify()
        return threads.has_ended(self._thread, ABANDONED_SECONDS)

    def totals(self) -> dict[str, int]:
        """Attempts since the start by their result: delivered, retried, failed."""
        return dict(self._totals)

    def oldest_due_seconds(self) -> float:
        """Seconds that the oldest due alert has waited, its post included; 0 if none is due. Raises `Unavailable`."""
        due_at = PendingAlerts(self._alerts.database).first_due_at()
        return 0.0 if due_at is None else max(0.0, self._clock() - due_at)

    def _new_dispatcher(self) -> Dispatcher:
        allowance = self._allowance
        couriers = Couriers(self._courier, self._changed, shares().couriers, self._may_post, allowance=allowance)
        totals, clock, elapsed = self._totals, self._clock, self._elapsed
        return Dispatcher(self._alerts, couriers, totals, clock, elapsed, poll_seconds=self._poll_seconds)

    def _may_post(self) -> bool:
        return self._lease.held()

    def _run(self) -> None:
        """Deliver until a stop. No error ends this thread: it is logged, and the next round follows."""
        pause_seconds: float | None = 0.0
        while self._wait(pause_seconds):
            began = self._elapsed()
            try:
                pause_seconds = self._work()
            except Exception as error:
                log_trouble(error)
                # Counted from the start of the work, because the lease goes on running out while the database hangs.
                pause_seconds = max(0.0, began + self._trouble_seconds - self._elapsed())
        if not self._dispatcher.couriers.posting():
            # A post that still runs keeps the lease until the process ends.
            self._lease.release()

    def _wait(self, seconds: float | None) -> bool:
        """Sleep for `seconds`, or until there is something to do if None; False at the end of delivery."""
        with self._changed:
            if seconds is None:
                until_due = max(0.0, self._dispatcher.due_at() - self._elapsed())
                self._changed.wait_for(lambda: self._dispatcher.has_news() or self._has_ended(), until_due)
            else:
                self._changed.wait_for(self._has_ended, seconds)
            return not self._has_ended()

    def _work(self) -> float | None:
        """Go one round if this process holds the lease; returns the argument of the next `_wait`."""
        if not self._lease.take():
            self._begin_again()
            return self._poll_seconds
        time.sleep(GROUP_COMMIT_SECONDS)
        if self._dispatcher.is_of_this_server():
            self._dispatcher.go_round()
        else:
            self._dispatcher.record()
            self._begin_again()
        return None

    def _begin_again(self) -> None:
        """Forget all state: another process delivers, or `Database.server` has changed.

        Running posts end by themselves, and their results are not recorded.
        """
        with self._changed:
            self._dispatcher.couriers.stop()
            self._dispatcher = self._new_dispatcher()
            if self._stopping:
                self._dispatcher.couriers.stop()

    def _has_ended(self) -> bool:
        return self._abandoned or self._dispatcher.couriers.finished()
