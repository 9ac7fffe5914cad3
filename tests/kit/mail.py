"""Alerts whose posts are under the test's control, and whose clocks only the test moves."""

import json
import threading
from urllib.parse import urlsplit

from cardbeat.clock import utc_text
from cardbeat.heartbeat.alerts.limits import Postponed
from cardbeat.heartbeat.alerts.message import TEST, Outcome
from cardbeat.heartbeat.transitions import record
from tests.kit.heart import Heart, new_delivery
from tests.kit.lists import each
from tests.kit.support import FakeClock, wait_until

DELIVERED = Outcome(204)
FAILED = Outcome(500, "The receiver answered 500.")
SILENT = Outcome(None, "There was no complete answer within 10 seconds.")


class Mail:
    """`outcomes` is what the next posts meet; after them all are delivered.

    A post to a host in `hung`, or any while `held` is set, waits; one to a host in `silent` takes 10 s. `addresses`
    has those of hosts.
    """

    def __init__(self, database, clock, heart=None):
        self.database = database
        self.clock = clock
        self.heart = heart or Heart(database, clock)
        self.outbox = self.heart.alerts
        self.outcomes = []
        self.posted = []
        self.running = 0
        self.most_running = 0
        self.lock = threading.Lock()
        self.hung = set()
        self.silent = set()
        self.addresses = {}
        self.held = threading.Event()
        self.elapsed = FakeClock(1000)
        self.delivery = self.another()

    def another(self, poll_seconds=0.01, trouble_seconds=0.05, **options):
        """A delivery as of a second process, or as after a restart."""
        pauses = {
            "poll_seconds": poll_seconds,
            "trouble_seconds": trouble_seconds,
        }
        options = {"tiers": self.heart.tiers, **pauses, **options}
        return new_delivery(
            self.outbox, self.clock, self.post, self.elapsed, **options
        )

    def post(self, url, headers, body, attempt):
        host = urlsplit(url).hostname
        if not attempt.enter(self.addresses.get(host, host)):
            raise Postponed
        with self.lock:
            self.posted.append((url, headers, body))
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            outcome = self.outcomes.pop(0) if self.outcomes else DELIVERED
        try:
            wait_until(
                lambda: not self.held.is_set() and host not in self.hung,
                60,
            )
        finally:
            with self.lock:
                self.running -= 1
        if isinstance(outcome, Exception):
            raise outcome
        if host in self.silent:
            self.elapsed.advance(10)
            return SILENT
        return outcome

    def test(self, check, count=1):
        """Store test alerts of a check."""
        now = int(self.clock())
        for _ in range(count):
            self.database.write(
                lambda transaction: record(
                    transaction, TEST, [check], now
                )
            )
        self.delivery.wake()

    def fail(self, check):
        self.heart.fail(check)
        self.delivery.wake()

    def ping(self, check):
        self.heart.ping(check)
        self.delivery.wake()

    def flap(self, check, times=1):
        """Let a check turn overdue and recover so often."""
        for _ in range(times):
            self.fail(check)
            self.ping(check)

    def pass_time(self, seconds):
        self.clock.advance(seconds)
        self.elapsed.advance(seconds)
        self.delivery.wake()

    def settled(self, count):
        """Wait until that many attempts are recorded."""
        wait_until(lambda: sum(self.delivery.totals().values()) >= count)

    def states(self, check):
        """Oldest first."""
        return each(reversed(self.outbox.newest(check.id)), "state")

    def in_text(self, seconds):
        return utc_text(self.clock() + seconds)

    @property
    def ids(self):
        return [headers["webhook-id"] for _, headers, _ in self.posted]

    @property
    def hosts(self):
        return [urlsplit(url).hostname for url, _, _ in self.posted]

    @property
    def told(self):
        """The bodies of all posts."""
        return [json.loads(body) for _, _, body in self.posted]

    @property
    def types(self):
        return each(self.told, "type")
