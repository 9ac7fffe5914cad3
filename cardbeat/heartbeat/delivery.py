"""Sending what is stored in `alerts`: a dispatcher thread that reads, plans and records, and couriers that post.

Whoever holds the lease delivers, so that two processes over one database never send the same alert at the same time.
Where the lease is a lock file it ends with its process, however that ends, and the next start takes everything up at
once. Where it is a row, it ends also when its holder can't renew it: what was known then counts no more.
"""

import logging
import threading
import time
from collections import Counter

from cardbeat import threads
from cardbeat.clock import Clock
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.courier import Courier
from cardbeat.heartbeat.couriers import TROUBLE_SECONDS, Couriers, log_trouble
from cardbeat.heartbeat.dispatcher import POLL_SECONDS, Dispatcher
from cardbeat.heartbeat.lanes import COURIERS
from cardbeat.heartbeat.liveness import FAILS, NO_THREADS, Liveness, LivenessLog
from cardbeat.heartbeat.pending import PendingAlerts
from cardbeat.system import descriptor_limit

log = logging.getLogger(__name__)

GROUP_COMMIT_SECONDS = 0.01
"""Results that come within it of each other share a commit."""
ABANDONED_SECONDS = 0.25
"""What the thread has to end in after a stop has waited for posts in vain."""


class Delivery:
    """Delivers until `stop`. `elapsed` is a clock that only goes forward."""

    def __init__(self, alerts: Alerts, courier: Courier, clock: Clock, elapsed: Clock = time.monotonic) -> None:
        self._alerts = alerts
        self._courier = courier
        self._clock = clock
        self._elapsed = elapsed
        # Written by the dispatcher's thread alone; others may read it at any time.
        self._totals: Counter[str] = Counter(delivered=0, retried=0, failed=0)
        # Read and written by that thread, the couriers and callers, under this condition's lock only.
        self._changed = threading.Condition()
        self._stopping = False
        self._abandoned = False
        self._dispatcher = self._new_dispatcher()
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)
        self.liveness = Liveness(alerts.database, elapsed)
        self._liveness_log = LivenessLog(self.liveness, self.oldest_due_seconds)

    def start(self) -> None:
        """Begin to deliver, first of all what an earlier process left. Raises `StartupError` as `lease` does."""
        self._lease = self._alerts.database.lease()
        self.liveness.begin()
        self._liveness_log.start()
        threads.start(self._thread)

    def wake(self) -> None:
        """New alerts, or another webhook URL of a check that has some, are stored and committed."""
        self._dispatcher.wake()

    def stop(self, seconds: float) -> bool:
        """Begin no more posts, and wait at most `seconds` for those that run to end and be recorded.

        What is left is sent after the next start. False where the database keeps the thread even a little longer.
        """
        self._liveness_log.stop()
        if not self._thread.is_alive():
            return True
        with self._changed:
            self._stopping = True
            self._dispatcher.couriers.stop()
            self._changed.notify()
        self._thread.join(seconds)
        with self._changed:
            self._abandoned = True
            self._changed.notify()
        return threads.has_ended(self._thread, ABANDONED_SECONDS)

    def totals(self) -> dict[str, int]:
        """Attempts since the start by what came of them: delivered, retried, failed."""
        return dict(self._totals)

    def oldest_due_seconds(self) -> float:
        """For how long the oldest alert whose time has come waits for its post to end; 0 where none does.

        Raises `Unavailable`.
        """
        due_at = PendingAlerts(self._alerts.database).first_due_at()
        return 0.0 if due_at is None else max(0.0, self._clock() - due_at)

    def _new_dispatcher(self) -> Dispatcher:
        couriers = Couriers(self._courier, self._changed, _courier_limit(), self._may_post)
        return Dispatcher(self._alerts, couriers, self._totals, self._clock, self._elapsed)

    def _may_post(self) -> bool:
        return self._lease.held()

    def _run(self) -> None:
        while self._take_lease():
            while self._go_round():
                pass
        if not self._dispatcher.couriers.posting():
            # Else a post is still on its way: the lease is kept until the process ends.
            self._lease.release()

    def _take_lease(self) -> bool:
        """Wait until this process holds the lease; False when this is the end."""
        wait_seconds = 0.0
        while self._pause(wait_seconds):
            wait_seconds = POLL_SECONDS
            try:
                if self._lease.take():
                    return True
                self.liveness.look_at_other()
            except Exception as error:
                wait_seconds = TROUBLE_SECONDS
                log_trouble(error)
        return False

    def _go_round(self) -> bool:
        """Wait until there is something to do, and do it; False at the end, or when what was known holds no more."""
        began = self._elapsed()
        try:
            if not self._wait():
                return False
            began = self._elapsed()
            if not self._lease.take():
                self._begin_anew()
                return False
            time.sleep(GROUP_COMMIT_SECONDS)
            if not self._dispatcher.is_of_this_server():
                self._dispatcher.record()
                self._begin_anew()
                return False
            self._dispatcher.go_round()
        except Exception as error:
            self.liveness.failed(FAILS)
            log_trouble(error)
            # From when it began: while it waited for the database, a lease may have come near to its end.
            return self._pause(max(0.0, began + TROUBLE_SECONDS - self._elapsed()))
        can_post = self._dispatcher.couriers.can_post()
        self.liveness.worked() if can_post else self.liveness.failed(NO_THREADS)
        return True

    def _begin_anew(self) -> None:
        """Another process delivers, and records, or all is read again: the posts that still run end by themselves."""
        with self._changed:
            self._dispatcher.couriers.stop()
            self._dispatcher = self._new_dispatcher()
            if self._stopping:
                self._dispatcher.couriers.stop()

    def _wait(self) -> bool:
        """Sleep until there is something to do; False when this is the end."""
        seconds = max(0.0, self._dispatcher.due_at() - self._elapsed())
        with self._changed:
            self._changed.wait_for(lambda: self._dispatcher.has_news() or self._ended(), seconds)
            return not self._ended()

    def _pause(self, seconds: float) -> bool:
        """Sleep whatever there is to do; False when this is the end."""
        with self._changed:
            return not self._changed.wait_for(self._ended, seconds)

    def _ended(self) -> bool:
        return self._abandoned or self._dispatcher.couriers.finished()


def _courier_limit() -> int:
    """Fewer than usual where descriptors are few: the clients and the database need most of them."""
    return descriptor_limit(4 * COURIERS) // 4
