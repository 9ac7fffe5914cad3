"""Bugs put back into the product, each of which the simulation must find within a simulated month.

Each is the smallest change that brings its bug about. The options of a world are those under which it shows soonest.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from cardbeat.errors import Refusal
from cardbeat.heartbeat import checks, credit, pings, removal, sweep
from cardbeat.heartbeat.delivery import courier, delivery, dispatcher
from cardbeat.heartbeat.outbox import alert, alerts, attempts
from cardbeat.keys import store
from tests.simulation import disk

HOURLY = {"sweep_seconds": 300, "poll_seconds": 600, "checks": 60, "servers": 1, "sweeps_between_faults": 8}
MOVING = {**HOURLY, "servers": 2, "poll_seconds": 1, "moved_meanwhile": 0.3}
REVOKED = {
    **HOURLY,
    "poll_seconds": 1,
    "sweeps_between_faults": 24,
    "sweeps_between_revocations": 10,
    "crashed_meanwhile": 0.5,
}
JUMPING = {**HOURLY, "sweeps_between_faults": 24, "sweeps_between_jumps": 8}
FLAPPING = {"sweep_seconds": 5, "poll_seconds": 1, "checks": 15}
CROWDED = {**REVOKED, "sweep_seconds": 60, "checks": 1600, "owners": 1, "crashed_meanwhile": 0.0}


class Plant(NamedTuple):
    """A bug: what it does to the product, and the options of a world for it."""

    put_back: Callable[[], None]
    options: dict[str, Any]
    shows: tuple[str, ...]
    """Parts of the sentences that tell of it; by another violation it is not found."""


def no_guard_in_the_sweep() -> None:
    """A check that is overdue is marked again."""
    disk.REWRITTEN.append(("CASE WHEN status = 'on_time' THEN", "CASE WHEN 1 THEN"))


def alert_outside_the_transaction() -> None:
    """The change of status is committed first, and then its alert."""
    record = alerts.Alerts.record

    def later(self: Any, connection: sqlite3.Connection, kind: str, checks: Any, now: int) -> None:
        if kind == alert.TEST:
            record(self, connection, kind, checks, now)
        else:
            self.database.write_later(lambda connection: record(self, connection, kind, checks, now))

    alerts.Alerts.record = later  # type: ignore[method-assign]


def credit_of_slow_work() -> None:
    """What is spent on writing counts as silence."""
    credit.Credit.look = lambda self: None  # type: ignore[method-assign]
    credit.Credit.write = lambda self, work: self._database.write(work)  # type: ignore[method-assign]


def alerts_out_of_order() -> None:
    """Of the alerts that wait for a check the newest is sent first."""
    disk.REWRITTEN.append(("min(alerts.seq", "max(alerts.seq"))


def revocation_half_done() -> None:
    """What a crash leaves of a revoked key is not taken up again."""

    def finish(self: Any) -> None:
        with contextlib.suppress(Refusal):
            self.finish()

    def wake(self: Any) -> None:
        threading.Thread(target=finish, name="removal", args=(self,)).start()

    removal.Removal.start = lambda self: None  # type: ignore[method-assign]
    removal.Removal.wake = wake  # type: ignore[method-assign]


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
        return self._database.write_later(lambda connection: connection.execute(sql, (key_id,)).rowcount > 0)

    store.Keys.revoke = revoke  # type: ignore[method-assign]


def move_not_told() -> None:
    """The process that delivers does not hear of a webhook URL that another one has changed."""
    noted = "INTO moves (check_seq) SELECT seq FROM checks WHERE"
    disk.REWRITTEN.append((noted, f"{noted} 0 AND"))


def gone_from_the_url_before() -> None:
    """A 410 from the URL that a check had ends an alert for the one that it has."""
    attempts._count_moved = lambda *_: set()


def merged_into_what_is_posted() -> None:
    """What is merged into the first alert that waits is lost if that one is on its way."""
    disk.REWRITTEN.append((">= CASE WHEN (SELECT created_at", ">= 0 * CASE WHEN (SELECT created_at"))


def outage_counted_twice() -> None:
    """An alert that was stored as a recovery counts its outage too, which the alert before it has told."""
    disk.REWRITTEN.append(("WHEN 'check.overdue' THEN 1 ELSE 0", "WHEN 'check.reminder' THEN 0 ELSE 1"))


def test_behind_a_failing_alert() -> None:
    """A test alert waits for the alerts before it."""
    disk.REWRITTEN.append(("GROUP BY alerts.check_id, alerts.outage IS NULL", "GROUP BY alerts.check_id"))


def outage_waits_after_a_test() -> None:
    """An outage waits for its retry though a test was delivered since."""
    disk.REWRITTEN.append(("next_attempt_at > ? AND attempts > 0", "next_attempt_at > ? AND 0"))


def failure_lost() -> None:
    """A failure is noted, and the check stays on time."""
    disk.REWRITTEN.append(
        ("remind_at = ? + repeat_seconds WHERE status = 'on_time'", "remind_at = ? + repeat_seconds WHERE 0")
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
        self._database.write_later(lambda connection: connection.execute(f"{sql} WHERE snoozed_until > updated_at"))
        start(self)

    sweep.Sweep.start = forget  # type: ignore[method-assign]


def two_alerts_for_one_outage() -> None:
    """A job that fails while its check is overdue begins another outage."""
    note_failures = checks.note_failures

    def as_if_on_time(*arguments: Any) -> Any:
        return [(check_id, "on_time", deadline_at) for check_id, _, deadline_at in note_failures(*arguments)]

    checks.note_failures = as_if_on_time
    disk.REWRITTEN.append(
        ("remind_at = ? + repeat_seconds WHERE status = 'on_time' AND", "remind_at = ? + repeat_seconds WHERE")
    )


def credit_of_what_was_pinged_since() -> None:
    """Clocks that started after the outage, or after the clock was set, move too."""
    disk.REWRITTEN.append(("clock_from < :before OR", "clock_from <= :now OR"))


def asked_to_try_sooner() -> None:
    """A receiver's `Retry-After` takes the place of the plan's wait, also where it is shorter."""
    verdict = courier.verdict

    def as_asked(outcome: Any, *others: Any) -> Any:
        judged = verdict(outcome, *others)
        is_asked = judged.wait_seconds is not None and outcome.retry_after is not None
        return judged._replace(wait_seconds=float(outcome.retry_after)) if is_asked else judged

    courier.verdict = as_asked


def counted_again_after_a_move() -> None:
    """An alert that waits for its turn is counted again when its check gets another webhook URL."""
    dispatcher.remember = lambda *_: None  # type: ignore[attr-defined]


PLANTS = {
    "guard": Plant(no_guard_in_the_sweep, HOURLY, ("told twice", "follows another")),
    "transaction": Plant(alert_outside_the_transaction, HOURLY, ("has no alert",)),
    "slow-work": Plant(credit_of_slow_work, {**HOURLY, "sweep_seconds": 60}, ("credited", "not marked")),
    "order": Plant(alerts_out_of_order, {**HOURLY, "checks": 30}, ("before an earlier one",)),
    "revocation": Plant(revocation_half_done, REVOKED, ("is not removed",)),
    "heard": Plant(revoked_key_still_heard, REVOKED, ("a deleted check took",)),
    "wake-up": Plant(wake_up_lost, HOURLY, ("an alert waits",)),
    "revoked-at-once": Plant(revocation_in_one_transaction, CROWDED, ("rows at once", " s while nothing was wrong")),
    "move": Plant(move_not_told, MOVING, ("an alert waits",)),
    "gone": Plant(gone_from_the_url_before, {**HOURLY, "moved_meanwhile": 0.2}, ("for no reason", "an alert waits")),
    "merge": Plant(merged_into_what_is_posted, FLAPPING, ("what was posted", "no reason", "another status")),
    "count": Plant(outage_counted_twice, FLAPPING, ("tells 1 outages", "tells 2 outages")),
    "turn": Plant(counted_again_after_a_move, {**FLAPPING, "moved_meanwhile": 0.2}, ("an alert waits",)),
    "fail": Plant(failure_lost, HOURLY, ("a failure is lost",)),
    "reminder": Plant(reminder_after_the_recovery, HOURLY, ("does not give way", "after the recovery", "goes out")),
    "snooze": Plant(snooze_forgotten_at_a_restart, HOURLY, ("is forgotten", "of a snoozed check")),
    "twice": Plant(two_alerts_for_one_outage, HOURLY, ("told twice", "follows another")),
    "credit": Plant(credit_of_what_was_pinged_since, JUMPING, ("credited",)),
    "asked": Plant(asked_to_try_sooner, HOURLY, ("too early",)),
    "repaired": Plant(outage_waits_after_a_test, {**HOURLY, "poll_seconds": 1}, ("an alert waits",)),
    "test": Plant(test_behind_a_failing_alert, HOURLY, ("an alert waits", "check.test")),
}
