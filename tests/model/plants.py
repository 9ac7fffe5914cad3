"""Bugs put back into the product, each of which the simulation must find within a simulated month.

Each is the smallest change that brings its bug about. The options of a world are those under which it shows soonest.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from cardbeat.errors import Refusal
from cardbeat.heartbeat import pings, sweep, tidy, transitions
from cardbeat.heartbeat.alerts import delivery, message, outbox
from cardbeat.keys import store
from tests.model import disk

HOURLY = {
    "sweep_seconds": 300,
    "poll_seconds": 600,
    "checks": 60,
    "sweeps_between_faults": 8,
}
MOVING = {**HOURLY, "poll_seconds": 1, "moved_meanwhile": 0.3}
REVOKED = {
    **HOURLY,
    "poll_seconds": 1,
    "sweeps_between_faults": 24,
    "sweeps_between_revocations": 10,
    "crashed_meanwhile": 0.5,
}
FLAPPING = {"sweep_seconds": 5, "poll_seconds": 1, "checks": 15}
CROWDED = {
    **REVOKED,
    "sweep_seconds": 60,
    "checks": 1600,
    "owners": 1,
    "crashed_meanwhile": 0.0,
}


class Plant(NamedTuple):
    """A bug: what it does to the product, and the options of a world for it."""

    put_back: Callable[[], None]
    options: dict[str, Any]
    shows: tuple[str, ...]
    """Parts of the sentences that tell of it; by another violation it is not found."""


def rewritten(*pairs):
    """Put others in the place of these parts of the product's statements."""
    return lambda: disk.REWRITTEN.extend(pairs)


def alert_outside_the_transaction():
    """The change of status is committed first, and then its alert."""
    record = transitions.record
    begin = sweep.Sweep.__init__
    databases = []

    def later(connection, kind, checks, now):
        if kind == message.TEST:
            record(connection, kind, checks, now)
        else:
            # As a ping, because the writer can't wait for itself.
            databases[-1].write_ping(record_all, (kind, checks, now), "")

    def keep(self, database, *others, **options):
        databases.append(database)
        begin(self, database, *others, **options)

    def record_all(connection, items):
        return [record(connection, *values) for values in items]

    transitions.record = later
    sweep.Sweep.__init__ = keep


def revocation_half_done():
    """What a crash leaves of a revoked key is not taken up again."""

    def finish(self):
        with contextlib.suppress(Refusal):
            self.remove_revoked()

    def wake(self):
        threading.Thread(target=finish, name="tidy", args=(self,)).start()

    tidy.Tidy.start = lambda self: None
    tidy.Tidy.wake = wake


def revoked_key_still_heard():
    """A check takes what its job signals until the removal of its revoked key comes to it."""
    pings._HAS_KEY = "1"


def wake_up_lost():
    """The deliverer is not told of new alerts, and finds them at its next poll."""
    delivery.Delivery.wake = lambda self: None


def revocation_in_one_transaction():
    """A key goes with all its checks and alerts at once, and everybody's pings wait for it."""

    def revoke(self, key_id):
        sql = "DELETE FROM keys WHERE id = ?"
        return self._database.write(
            lambda connection: (
                connection.execute(sql, (key_id,)).rowcount > 0
            )
        )

    store.Keys.revoke = revoke


def gone_from_the_url_before():
    """A 410 from the URL that a check had ends an alert for the one that it has."""
    store = outbox.Outbox.store

    def store_at_any_url(self, results, now):
        with self.database.read() as connection:
            sql = "SELECT id, webhook_url FROM checks"
            urls = dict(connection.execute(sql).fetchall())
        for number, result in enumerate(results):
            url = urls.get(result.message.alert["check_id"])
            message = result.message._replace(webhook_url=url)
            results[number] = result._replace(message=message)
        return store(self, results, now)

    outbox.Outbox.store = store_at_any_url


def taken_back_too_soon():
    """An outage is taken back though only one alert waits before it."""
    transitions.WAITING_ALERTS = 2


def test_behind_a_failing_alert():
    """A test alert waits for the alerts before it."""
    waiting = transitions._waiting

    def all_of_them(transaction, check_ids, is_test):
        outages = waiting(transaction, check_ids, False)
        return (
            outages | waiting(transaction, check_ids, True)
            if is_test
            else outages
        )

    transitions._waiting = all_of_them


def snooze_forgotten_at_a_restart():
    """What is snoozed is known to the process alone."""
    start = sweep.Sweep.start
    sql = "UPDATE checks SET snoozed_until = NULL, clock_from = coalesce(last_ping_at, created_at)"

    def forget(self):
        # A start may meet a fault of the disk, which is no part of the bug.
        with contextlib.suppress(Refusal):
            self._database.write(
                lambda connection: connection.execute(
                    f"{sql} WHERE snoozed_until > updated_at"
                )
            )
        start(self)

    sweep.Sweep.start = forget


def no_credit():
    """No deadline moves after an outage of the monitor."""
    sweep._CREDIT = sweep._CREDIT.replace(
        "clock_from + :credit_gap", "clock_from"
    )


def credit_given_twice():
    """All clocks move by twice the outage."""
    sweep._CREDIT = sweep._CREDIT.replace(
        "clock_from + :credit_gap", "clock_from + 2 * :credit_gap"
    )


def asked_to_try_sooner():
    """A receiver's `Retry-After` takes the place of the plan's wait, also where it is shorter."""
    verdict = delivery.verdict

    def as_asked(outcome, attempts, now, *others):
        judged = verdict(outcome, attempts, now, *others)
        if judged.next_attempt_at is None or outcome.retry_after is None:
            return judged
        return judged._replace(
            next_attempt_at=int(now) + int(outcome.retry_after)
        )

    delivery.verdict = as_asked


PLANTS = {
    # A check that is overdue is marked again.
    "guard": Plant(
        rewritten(
            ("CASE WHEN status = 'on_time' THEN", "CASE WHEN 1 THEN"),
            ("WHERE status = 'on_time' AND seq IN", "WHERE seq IN"),
        ),
        HOURLY,
        ("told twice", "follows another"),
    ),
    "transaction": Plant(
        alert_outside_the_transaction, HOURLY, ("has no alert",)
    ),
    # Of the alerts that wait for a check the newest is sent first.
    "order": Plant(
        rewritten(
            ("SELECT min(seq) FROM alerts", "SELECT max(seq) FROM alerts")
        ),
        FLAPPING,
        ("before an earlier one", "an alert waits"),
    ),
    "revocation": Plant(
        revocation_half_done,
        REVOKED,
        ("is not removed", "an alert waits"),
    ),
    "heard": Plant(
        revoked_key_still_heard, REVOKED, ("a deleted check took",)
    ),
    "wake-up": Plant(wake_up_lost, HOURLY, ("an alert waits",)),
    "revoked-at-once": Plant(
        revocation_in_one_transaction,
        CROWDED,
        ("rows at once", " s while nothing was wrong"),
    ),
    # A changed webhook URL gets what waits a day later.
    "move": Plant(
        rewritten(
            (
                "IS NULL THEN NULL ELSE ? END",
                "IS NULL THEN NULL ELSE ? + 86400 END",
            )
        ),
        MOVING,
        ("an alert waits", "is put off"),
    ),
    "gone": Plant(
        gone_from_the_url_before,
        {**HOURLY, "moved_meanwhile": 0.2},
        ("for no reason", "an alert waits"),
    ),
    "taken-back": Plant(
        taken_back_too_soon,
        FLAPPING,
        ("an alert is lost", "another status"),
    ),
    # An outage that was taken back counts for two.
    "count": Plant(
        rewritten(
            ("SET outages = outages + 1", "SET outages = outages + 2")
        ),
        FLAPPING,
        ("outages are told",),
    ),
    # A failure is noted, and the check stays on time.
    "fail": Plant(
        rewritten(
            ("WHERE status = 'on_time' AND id IN", "WHERE 0 AND id IN")
        ),
        HOURLY,
        ("a failure is lost",),
    ),
    # A reminder that waits stays when the check recovers or is snoozed.
    "reminder": Plant(
        rewritten(
            (
                "'check.reminder' AND check_id IN",
                "'check.other' AND check_id IN",
            )
        ),
        HOURLY,
        ("does not give way", "after the recovery", "goes out"),
    ),
    "snooze": Plant(
        snooze_forgotten_at_a_restart,
        HOURLY,
        ("is forgotten", "of a snoozed check"),
    ),
    # A job that fails while its check is overdue begins another outage.
    "twice": Plant(
        rewritten(
            (
                "checks SET failed_at = ?",
                "checks SET failed_at = ?, status = 'on_time'",
            )
        ),
        HOURLY,
        ("told twice", "follows another"),
    ),
    "credit": Plant(no_credit, HOURLY, ("credited",)),
    "credit-twice": Plant(credit_given_twice, HOURLY, ("credited",)),
    # What is acknowledged is not on disk yet, and a power cut loses it.
    "synced": Plant(
        rewritten(("synchronous = FULL", "synchronous = NORMAL")),
        HOURLY,
        (
            "is lost",
            "is unknown",
            "is due",
            "took",
            "too early",
            "is not recorded",
            "goes out again",
        ),
    ),
    "asked": Plant(asked_to_try_sooner, HOURLY, ("too early",)),
    # An outage waits for its retry though a test was delivered since.
    "repaired": Plant(
        rewritten(
            (
                "next_attempt_at IS NOT NULL AND check_id IN",
                "next_attempt_at < 0 AND check_id IN",
            )
        ),
        {**HOURLY, "poll_seconds": 1},
        ("an alert waits",),
    ),
    "test": Plant(
        test_behind_a_failing_alert,
        HOURLY,
        ("an alert waits", "check.test"),
    ),
}
