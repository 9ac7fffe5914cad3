"""Bugs put back into the product, each of which the simulation must find within a simulated month.

Each is the smallest change that brings its bug about. The options of a world are those under which it shows soonest.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from cardbeat.errors import Refusal
from cardbeat.heartbeat import pings, sweep, tidy
from cardbeat.heartbeat.alerts import delivery, message, outbox, recording
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


def no_guard_in_the_sweep() -> None:
    """A check that is overdue is marked again."""
    disk.REWRITTEN.append(
        ("CASE WHEN status = 'on_time' THEN", "CASE WHEN 1 THEN")
    )
    disk.REWRITTEN.append(
        ("WHERE status = 'on_time' AND seq IN", "WHERE seq IN")
    )


def alert_outside_the_transaction() -> None:
    """The change of status is committed first, and then its alert."""
    record = recording.record
    begin = sweep.Sweep.__init__
    databases = []

    def later(
        connection: sqlite3.Connection, kind: str, checks: Any, now: int
    ) -> None:
        if kind == message.TEST:
            record(connection, kind, checks, now)
        else:
            # As a ping, because the writer can't wait for itself.
            databases[-1].write_ping(record_all, (kind, checks, now), "")

    def keep(self: Any, database: Any, *others: Any, **options: Any) -> None:
        databases.append(database)
        begin(self, database, *others, **options)

    def record_all(
        connection: sqlite3.Connection, items: list[Any]
    ) -> list[None]:
        return [record(connection, *values) for values in items]

    recording.record = later
    sweep.Sweep.__init__ = keep  # type: ignore[method-assign]


def alerts_out_of_order() -> None:
    """Of the alerts that wait for a check the newest is sent first."""
    disk.REWRITTEN.append(
        ("SELECT min(seq) FROM alerts", "SELECT max(seq) FROM alerts")
    )


def revocation_half_done() -> None:
    """What a crash leaves of a revoked key is not taken up again."""

    def finish(self: Any) -> None:
        with contextlib.suppress(Refusal):
            self.remove_revoked()

    def wake(self: Any) -> None:
        threading.Thread(target=finish, name="tidy", args=(self,)).start()

    tidy.Tidy.start = lambda self: None  # type: ignore[method-assign]
    tidy.Tidy.wake = wake  # type: ignore[method-assign]


def revoked_key_still_heard() -> None:
    """A check takes what its job signals until the removal of its revoked key comes to it."""
    pings._HAS_KEY = "1"


def wake_up_lost() -> None:
    """The deliverer is not told of new alerts, and finds them at its next poll."""
    delivery.Delivery.wake = lambda self: None  # type: ignore[method-assign]


def revocation_in_one_transaction() -> None:
    """A key goes with all its checks and alerts at once, and everybody's pings wait for it."""

    def revoke(self: Any, key_id: str) -> Any:
        sql = "DELETE FROM keys WHERE id = ?"
        return self._database.write(
            lambda connection: connection.execute(sql, (key_id,)).rowcount > 0
        )

    store.Keys.revoke = revoke  # type: ignore[method-assign]


def move_waits() -> None:
    """A changed webhook URL gets what waits a day later."""
    disk.REWRITTEN.append(
        (
            "IS NULL THEN NULL ELSE ? END",
            "IS NULL THEN NULL ELSE ? + 86400 END",
        )
    )


def gone_from_the_url_before() -> None:
    """A 410 from the URL that a check had ends an alert for the one that it has."""
    outbox._as_stored = lambda result, *_: result


def taken_back_too_soon() -> None:
    """An outage is taken back though only one alert waits before it."""
    recording.WAITING_ALERTS = 2  # type: ignore[misc]


def outage_counted_twice() -> None:
    """An outage that was taken back counts for two."""
    disk.REWRITTEN.append(
        ("SET outages = outages + 1", "SET outages = outages + 2")
    )


def test_behind_a_failing_alert() -> None:
    """A test alert waits for the alerts before it."""
    waiting = recording._waiting

    def all_of_them(transaction: Any, check_ids: Any, is_test: bool) -> Any:
        outages = waiting(transaction, check_ids, False)
        return (
            outages | waiting(transaction, check_ids, True)
            if is_test
            else outages
        )

    recording._waiting = all_of_them


def outage_waits_after_a_test() -> None:
    """An outage waits for its retry though a test was delivered since."""
    disk.REWRITTEN.append(
        (
            "next_attempt_at IS NOT NULL AND check_id IN",
            "next_attempt_at < 0 AND check_id IN",
        )
    )


def failure_lost() -> None:
    """A failure is noted, and the check stays on time."""
    disk.REWRITTEN.append(
        ("WHERE status = 'on_time' AND id IN", "WHERE 0 AND id IN")
    )


def reminder_after_the_recovery() -> None:
    """A reminder that waits stays when the check recovers or is snoozed."""
    dropped = "type = 'check.reminder' AND check_id IN"
    disk.REWRITTEN.append((dropped, dropped.replace("reminder", "other")))


def snooze_forgotten_at_a_restart() -> None:
    """What is snoozed is known to the process alone."""
    start = sweep.Sweep.start
    sql = "UPDATE checks SET snoozed_until = NULL, clock_from = coalesce(last_ping_at, created_at)"

    def forget(self: Any) -> None:
        # A start may meet a fault of the disk, which is no part of the bug.
        with contextlib.suppress(Refusal):
            self._database.write(
                lambda connection: connection.execute(
                    f"{sql} WHERE snoozed_until > updated_at"
                )
            )
        start(self)

    sweep.Sweep.start = forget  # type: ignore[method-assign]


def two_alerts_for_one_outage() -> None:
    """A job that fails while its check is overdue begins another outage."""
    usual = "UPDATE checks SET failed_at = ?"
    disk.REWRITTEN.append((usual, f"{usual}, status = 'on_time'"))


def no_credit() -> None:
    """No deadline moves after an outage of the monitor."""
    sweep._CREDIT = sweep._CREDIT.replace("clock_from + :gap", "clock_from")


def credit_given_twice() -> None:
    """All clocks move by twice the outage."""
    sweep._CREDIT = sweep._CREDIT.replace(
        "clock_from + :gap", "clock_from + 2 * :gap"
    )


def commits_not_synced() -> None:
    """What is acknowledged is not on disk yet, and a power cut loses it."""
    disk.REWRITTEN.append(("synchronous = FULL", "synchronous = NORMAL"))


def asked_to_try_sooner() -> None:
    """A receiver's `Retry-After` takes the place of the plan's wait, also where it is shorter."""
    verdict = delivery.verdict

    def as_asked(outcome: Any, attempts: int, now: float, *others: Any) -> Any:
        judged = verdict(outcome, attempts, now, *others)
        if judged.state != "pending" or outcome.retry_after is None:
            return judged
        return judged._replace(
            next_attempt_at=int(now) + int(outcome.retry_after)
        )

    delivery.verdict = as_asked


PLANTS = {
    "guard": Plant(
        no_guard_in_the_sweep, HOURLY, ("told twice", "follows another")
    ),
    "transaction": Plant(
        alert_outside_the_transaction, HOURLY, ("has no alert",)
    ),
    "order": Plant(
        alerts_out_of_order,
        FLAPPING,
        ("before an earlier one", "an alert waits"),
    ),
    "revocation": Plant(
        revocation_half_done, REVOKED, ("is not removed", "an alert waits")
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
    "move": Plant(move_waits, MOVING, ("an alert waits", "is put off")),
    "gone": Plant(
        gone_from_the_url_before,
        {**HOURLY, "moved_meanwhile": 0.2},
        ("for no reason", "an alert waits"),
    ),
    "taken-back": Plant(
        taken_back_too_soon, FLAPPING, ("an alert is lost", "another status")
    ),
    "count": Plant(outage_counted_twice, FLAPPING, ("outages are told",)),
    "fail": Plant(failure_lost, HOURLY, ("a failure is lost",)),
    "reminder": Plant(
        reminder_after_the_recovery,
        HOURLY,
        ("does not give way", "after the recovery", "goes out"),
    ),
    "snooze": Plant(
        snooze_forgotten_at_a_restart,
        HOURLY,
        ("is forgotten", "of a snoozed check"),
    ),
    "twice": Plant(
        two_alerts_for_one_outage, HOURLY, ("told twice", "follows another")
    ),
    "credit": Plant(no_credit, HOURLY, ("credited",)),
    "credit-twice": Plant(credit_given_twice, HOURLY, ("credited",)),
    "synced": Plant(
        commits_not_synced,
        HOURLY,
        ("is lost", "is due", "took", "too early", "is not recorded"),
    ),
    "asked": Plant(asked_to_try_sooner, HOURLY, ("too early",)),
    "repaired": Plant(
        outage_waits_after_a_test,
        {**HOURLY, "poll_seconds": 1},
        ("an alert waits",),
    ),
    "test": Plant(
        test_behind_a_failing_alert, HOURLY, ("an alert waits", "check.test")
    ),
}
