"""The heartbeat without its HTTP side: a database, a key, its checks, a sweep, and clocks that only the test moves."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from cardbeat.config import Tier
from cardbeat.heartbeat.alerts.delivery import Delivery
from cardbeat.heartbeat.alerts.outbox import Outbox, Result
from cardbeat.heartbeat.alerts.post import Sender
from cardbeat.heartbeat.check import CHANGEABLE, Settings
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.pings import Pings
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.keys.store import Keys
from tests.kit.lists import each
from tests.kit.support import FakeClock

HOOK = "https://hooks.example/x"
BASE_URL = "https://beats.example"
SWEEP_SECONDS = 60
FREE_OF_LIMITS = Tier(max_checks=None)


def new_delivery(
    alerts, clock, post=None, elapsed=time.monotonic, **options
):
    """What delivers alerts, not started yet. `post` replaces the sender's, `elapsed` the monotonic clock."""
    sender = Sender(allow_private=True)
    sender.post = post or sender.post
    fence = alerts.database.fence
    return Delivery(
        alerts, lambda: sender, clock, elapsed, fence=fence, **options
    )


class NoFence:
    """Of a node that takes itself for the only one that sweeps."""

    epoch = 0

    def held(self):
        return True

    def confirm(self, transaction):
        pass


class Heart:
    """With a `fence` it is that of one of several machines; without one it sweeps over a server as its only node.

    `sweeping` are options of all its sweeps.
    """

    def __init__(
        self,
        database,
        clock,
        tier=FREE_OF_LIMITS,
        *,
        monotonic=None,
        fence=None,
        **sweeping,
    ):
        self.database = database
        self.clock = clock
        self.monotonic = monotonic or FakeClock(5000)
        # Over a server a service sweeps with a fence alone, and otherwise than over a file.
        self.fence = fence or (NoFence() if database.fence else None)
        self.sweeping = {
            "fence": self.fence,
            "monotonic": self.monotonic,
        } | sweeping
        self.alerts = Outbox(database, BASE_URL)
        self.tiers = {"free": tier}
        self.delivery = new_delivery(self.alerts, clock)
        self.keys = Keys(database, clock, self.tiers)
        self.key = self.keys.issue("ops@example.com").key
        self.checks = Checks(database, clock, self.delivery.wake)
        self.pings = Pings(database, clock, self.delivery.wake)
        self.sweep = self.new_sweep()
        self._names = itertools.count(1)

    def new_sweep(self):
        """A sweep as after a restart of the process."""
        return self.sweep_every(SWEEP_SECONDS)

    def sweep_every(self, seconds, **options):
        return Sweep(
            self.database,
            self.clock,
            self.delivery.wake,
            seconds,
            **self.sweeping | options,
        )

    def create(
        self,
        period_seconds=60,
        grace_seconds=0,
        webhook_url=HOOK,
        repeat_seconds=None,
        key=None,
    ):
        settings = Settings(
            f"check {next(self._names)}",
            period_seconds,
            grace_seconds,
            webhook_url,
            repeat_seconds,
        )
        return self.checks.create(key or self.key, settings)

    @staticmethod
    def settings(check, **changes):
        """What a check is set to, with changes."""
        return Settings(
            **{field: getattr(check, field) for field in CHANGEABLE}
            | changes
        )

    def pass_time(self, seconds):
        """Let time pass with the monitor awake: on both clocks."""
        self.clock.advance(seconds)
        self.monotonic.advance(seconds)

    def ping(self, check):
        """Ping a check, and wait until that is on disk."""
        return self.pings.ping(check.id).wait()

    def fail(self, check):
        """Signal that the job of a check has failed, and wait until that is on disk."""
        return self.pings.fail(check.id).wait()

    def take_all(self, state="delivered", check=None, most=1000):
        """The receivers take what waits (of a check), at most so many, or refuse it for good; returns how many."""
        among = "" if check is None else f"AND check_id = '{check.id}'"
        sql = f"SELECT seq, next_attempt_at FROM alerts WHERE state = 'pending' AND next_attempt_at IS NOT NULL {among}"
        now = int(self.clock())
        for taken in range(most):
            with self.database.read() as connection:
                row = connection.execute(
                    f"{sql} ORDER BY seq LIMIT 1"
                ).fetchone()
            if row is None:
                return taken
            # After the clock was set back, an alert is due only when it is there again.
            due_at = max(now, row["next_attempt_at"])
            (message,) = self.alerts.messages([row["seq"]], due_at)
            self.alerts.store([Result(message, 204, None, state)], due_at)
        return most

    def read(self, check):
        return self.checks.get(self.key.id, check.id)

    def status(self, check):
        return self.read(check).status

    def alert_types(self, check):
        """The types of a check's alerts, oldest first."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT type FROM alerts WHERE check_id = ? ORDER BY seq",
                (check.id,),
            )
            return each(rows, "type")


def at_once(*deeds):
    """The results of deeds that all start at the same moment, in threads; what one raises is its result."""
    start = threading.Barrier(len(deeds))

    def run(deed):
        start.wait(60)
        try:
            return deed()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(deeds)) as pool:
        return list(pool.map(run, deeds))
