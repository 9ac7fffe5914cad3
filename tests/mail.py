"""Alerts whose posts are under the test's control, and whose clocks only the test moves."""

import threading

from cardbeat.clock import utc_text
from cardbeat.heartbeat.outbox.alert import TEST, Outcome
from tests.heart import Heart, new_delivery
from tests.support import FakeClock, wait_until

DELIVERED = Outcome(204)
FAILED = Outcome(500, "The receiver answered 500.")


class Mail:
    """`outcomes` is what the next posts meet; after them all are delivered. A post waits while `held` is set."""

    def __init__(self, database, clock):
        self.database = database
        self.clock = clock
        self.heart = Heart(database, clock)
        self.outcomes = []
        self.posted = []
        self.held = threading.Event()
        self.elapsed = FakeClock(1000)
        self.alerts = self.heart.alerts
        self.delivery = self.another()

    def another(self, poll_seconds=0.01, trouble_seconds=0.05):
        """A delivery as of a second process, or as after a restart."""
        pauses = {"poll_seconds": poll_seconds, "trouble_seconds": trouble_seconds}
        return new_delivery(self.alerts, self.clock, self.post, self.elapsed, **pauses)

    def post(self, url, headers, body, _permit):
        self.posted.append((url, headers, body))
        outcome = self.outcomes.pop(0) if self.outcomes else DELIVERED
        wait_until(lambda: not self.held.is_set())
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def record(self, check, *types):
        now = int(self.clock())
        for alert_type in types or (TEST,):
            self.database.write(lambda connection, type=alert_type: self._record(connection, type, check, now))
        self.delivery.wake()

    def _record(self, connection, alert_type, check, now):
        if alert_type == TEST:
            self.alerts.record_test(connection, check, now)
        else:
            connection.execute("UPDATE checks SET outage = ? WHERE id = ?", (check.outage, check.id))
            self.alerts.record(connection, alert_type, [check], now)

    def pass_time(self, seconds):
        self.clock.advance(seconds)
        self.elapsed.advance(seconds)
        self.delivery.wake()

    def settled(self, count):
        """Wait until that many attempts are recorded."""
        wait_until(lambda: sum(self.delivery.totals().values()) >= count)

    def states(self, check):
        """Oldest first."""
        return [alert["state"] for alert in reversed(self.alerts.newest(check.id))]

    def in_text(self, seconds):
        return utc_text(self.clock() + seconds)

    @property
    def ids(self):
        return [headers["webhook-id"] for _, headers, _ in self.posted]
