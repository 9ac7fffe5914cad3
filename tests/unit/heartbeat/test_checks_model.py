"""Any sequence of what can happen to checks, against a reference simple enough to be seen right."""

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from cardbeat.heartbeat.outbox import alerts
from cardbeat.heartbeat.pings import Signal
from tests.heart import HOOK, SWEEP_SECONDS, Heart
from tests.postgresql import BOTH_ENGINES
from tests.support import FakeClock

REPEATS = st.sampled_from([None, 300, 400, 1000])
OVERDUE, REMINDER, RECOVERED = "check.overdue", "check.reminder", "check.recovered"


@dataclass
class Model:
    """What a check must look like, by the rules of the documentation."""

    period: int
    grace: int
    repeat: int | None
    clock_from: int
    updated_at: int
    pings: int = 0
    version: int = 1
    overdue: bool = False
    has_failed: bool = False
    snoozed_until: int = 0
    remind_at: int | None = None
    last_ping_at: int = 0
    overdue_at: int = 0
    alerts: list[str] = field(default_factory=list)
    waiting: int = 0
    """How many of the newest alerts wait."""

    @property
    def deadline(self):
        return self.clock_from + self.period + self.grace

    def tell(self, alert_type):
        """The first reminder of those that wait is the only one that does, and gives way."""
        if alert_type != OVERDUE:
            self.drop_reminder()
        if alert_type != REMINDER or not self.waiting:
            self.alerts.append(alert_type)
            self.waiting += 1

    def drop_reminder(self):
        if self.waiting and self.alerts[-1] == REMINDER:
            self.alerts.pop()
            self.waiting -= 1

    def turn_overdue(self, now):
        self.overdue, self.overdue_at = True, now
        self.start_reminders(now)
        self.tell(OVERDUE)

    def start_reminders(self, since):
        self.remind_at = since + self.repeat if self.overdue and self.repeat else None

    def is_snoozed(self, now):
        """The end of a snooze is where the clock starts, `snoozed_until` unless the clock was set back."""
        return now < self.clock_from <= self.snoozed_until

    def change(self, now):
        self.version, self.updated_at = self.version + 1, now

    def put_off(self, seconds, now, returns, shown):
        """Move what had moved back with the clock on again, up to where it was."""
        before, left = now - seconds, self.snoozed_until - self.clock_from
        is_older = returns and shown <= now and before < self.updated_at <= now < self.snoozed_until
        if left > 0 and (is_older or before < self.clock_from != self.last_ping_at):
            moved = left if is_older else min(seconds, left)
            self.clock_from += moved
            self.remind_at = self.remind_at and self.remind_at + moved
        if returns and before < (self.remind_at or 0) <= now:
            self.remind_at = min(self.remind_at + seconds, now + self.repeat)

    def credit(self, seconds, now, window, returns, shown):
        """Move what was stored before the clock was set, up to `window` seconds ago; `returns` if it was wrong then.

        `shown` is what it showed before it was last set back.
        """

        def is_new(moment):
            return now - window - 1 <= moment <= now

        before = now - seconds
        if seconds >= 0:
            self.put_off(seconds, now, returns, shown)
            if not self.overdue and self.clock_from < now:
                self.clock_from = min(self.clock_from + seconds, now)
            return
        is_changed = is_new(self.updated_at)
        is_of_new_snooze = is_changed and self.clock_from == self.snoozed_until > now
        is_snoozed = self.is_snoozed(before)
        if not (self.overdue or is_snoozed or is_new(self.clock_from) or is_of_new_snooze):
            # A ping since then outlasts a snooze that was over before it.
            is_pinged = self.clock_from > now and is_new(self.last_ping_at)
            self.clock_from = max(self.clock_from + seconds, self.last_ping_at if is_pinged else 0)
        if returns and self.snoozed_until > now >= self.updated_at:
            self.clock_from = self.snoozed_until
            self.start_reminders(self.snoozed_until)
            return
        # Another change than a snooze leaves the clock as it was.
        if not (is_changed and self.clock_from == self.snoozed_until):
            if is_snoozed:
                self.clock_from += seconds
            elif self.snoozed_until > now:
                self.snoozed_until += seconds
        if (self.remind_at or 0) > now + (self.repeat or 0) and not is_changed and not is_new(self.overdue_at):
            self.remind_at += seconds

    def sweep(self, now):
        if not self.overdue and self.deadline < now:
            self.turn_overdue(now)
        elif self.overdue and self.remind_at is not None and self.remind_at < now:
            while self.remind_at <= now:
                self.remind_at += self.repeat
            self.tell(REMINDER)


class Beating(RuleBasedStateMachine):
    checks = Bundle("checks")

    def __init__(self, database):
        super().__init__()
        self.clock = FakeClock()
        database.write(empty)
        self.heart = Heart(database, self.clock)
        self.models = {}
        self.heart.sweep.sweep_once()
        self.swept_at = self.clock.now
        self.set_forward, self.set_back_from = range(0), 0

    @rule(target=checks, period=st.integers(1, 200), grace=st.integers(0, 100), repeat=REPEATS)
    def create(self, period, grace, repeat):
        check = self.heart.create(period, grace, repeat_seconds=repeat)
        self.models[check.id] = Model(period, grace, repeat, self.clock.now, self.clock.now)
        return check

    @rule(check=checks)
    def ping(self, check):
        model = self.models[check.id]
        assert self.heart.ping(check).recovered == model.overdue
        if model.overdue:
            model.tell(RECOVERED)
        model.overdue, model.remind_at, model.has_failed = False, None, False
        model.last_ping_at = self.clock.now
        if not model.is_snoozed(self.clock.now):
            model.clock_from = self.clock.now
        model.pings += 1

    @rule(check=checks)
    def fail(self, check):
        model, now = self.models[check.id], self.clock.now
        self.heart.checks.signal(check.id, Signal.FAILURE).wait()
        if not model.overdue and not model.is_snoozed(now):
            model.turn_overdue(now)
        model.has_failed = True

    @rule(check=checks, seconds=st.integers(60, 3000))
    def snooze(self, check, seconds):
        self.put_snooze(check, seconds)

    @rule(check=checks)
    def end_snooze(self, check):
        if self.models[check.id].is_snoozed(self.clock.now):
            self.put_snooze(check, 0)
        else:
            assert self.heart.checks.snooze(self.heart.key.id, check.id, 0).wait() == self.heart.read(check)

    def put_snooze(self, check, seconds):
        model, now = self.models[check.id], self.clock.now
        assert self.heart.checks.snooze(self.heart.key.id, check.id, seconds).wait() == self.heart.read(check)
        model.snoozed_until = model.clock_from = now + seconds
        model.change(now)
        model.drop_reminder()
        model.start_reminders(now + seconds)

    @rule(check=checks, period=st.integers(1, 200), grace=st.integers(0, 100), repeat=REPEATS)
    def patch(self, check, period, grace, repeat):
        read = self.heart.read(check)
        changed = self.heart.settings(read, period_seconds=period, grace_seconds=grace, repeat_seconds=repeat)
        assert self.heart.checks.update(read, changed).wait() == self.heart.read(check)
        model = self.models[check.id]
        model.period, model.grace = period, grace
        model.change(self.clock.now)
        if repeat != model.repeat:
            model.repeat = repeat
            model.drop_reminder()
            now = self.clock.now
            model.start_reminders(model.clock_from if model.is_snoozed(now) else now)

    @rule(check=checks, most=st.sampled_from([1, 100, 100]))
    def deliver(self, check, most):
        """The receiver takes so many of the alerts that wait."""
        with self.heart.database.read() as connection:
            sql = "SELECT seq FROM alerts WHERE check_id = ? AND state = 'pending' ORDER BY seq LIMIT ?"
            waiting = [row["seq"] for row in connection.execute(sql, (check.id, most))]
        taken = [self.heart.attempt(seq, "delivered", 204, None, None, HOOK, 0) for seq in waiting]
        if taken:
            self.heart.alerts.store(taken, int(self.heart.clock()))
        self.models[check.id].waiting -= len(taken)

    @rule(check=consumes(checks))
    def delete(self, check):
        self.heart.checks.delete(self.heart.key.id, check.id).wait()
        del self.models[check.id]

    @rule(seconds=st.integers(1, SWEEP_SECONDS))
    def wait_and_sweep(self, seconds):
        self.heart.pass_time(seconds)
        self.beat(lost=0)

    @rule(minutes=st.integers(5, 20))
    def sweep_for_minutes(self, minutes):
        for _ in range(minutes):
            self.wait_and_sweep(SWEEP_SECONDS)

    @rule(seconds=st.integers(0, 50))
    def wait(self, seconds):
        """Less than a sweep's interval, so that the next sweep still finds the monitor listening."""
        if self.clock.now + seconds - self.swept_at <= SWEEP_SECONDS:
            self.heart.pass_time(seconds)

    @rule(seconds=st.integers(2 * SWEEP_SECONDS + 1, 5000))
    def restart_after_an_outage(self, seconds):
        self.clock.advance(seconds)
        self.heart.sweep = self.heart.new_sweep()
        self.beat(lost=self.clock.now - self.swept_at)

    @rule()
    def restart_at_once(self):
        self.heart.sweep = self.heart.new_sweep()
        self.beat(lost=0)

    @rule(seconds=st.integers(3, 5000))
    def set_the_clock_forward(self, seconds):
        self.clock.advance(seconds)
        self.beat(lost=seconds, has_jumped=True)

    @rule(seconds=st.integers(3, 100_000))
    def set_the_clock_back(self, seconds):
        listened = self.clock.now - self.swept_at
        self.clock.advance(-seconds)
        self.beat(lost=-seconds, window=listened)

    @rule(seconds=st.integers(3, 100_000), check=checks, act=st.sampled_from(["ping", "fail", "snooze", "patch"]))
    def act_before_it_is_seen_that_the_clock_was_set_back(self, seconds, check, act):
        listened = self.clock.now - self.swept_at
        self.clock.advance(-seconds)
        acts = {
            "snooze": partial(self.snooze, seconds=600),
            "patch": partial(self.patch, period=9, grace=9, repeat=700),
        }
        acts.get(act, getattr(self, act))(check=check)
        self.beat(lost=-seconds, window=listened)

    def beat(self, lost, window=0, has_jumped=False):
        """A round of the sweep, by the model and by the code."""
        now = self.clock.now
        returns = has_jumped or now - lost < self.set_back_from if lost >= 0 else now in self.set_forward
        if lost > 0:
            self.set_forward = range(now - lost, now)
        elif lost:
            self.set_back_from = now - lost
        for model in self.models.values():
            model.credit(lost, now, window, returns, self.set_back_from)
            model.sweep(self.clock.now)
        self.heart.sweep.credit.give_due(threading.Event())
        self.heart.sweep.sweep_once()
        self.swept_at = self.clock.now

    @invariant()
    def rows_and_models_agree(self):
        rows, _ = self.heart.checks.page(self.heart.key.id, 1000, None)
        assert [check.id for check in rows] == list(self.models)
        for check in rows:
            model = self.models[check.id]
            assert stored(check.as_of(self.clock.now)) == expected(model, self.clock.now)
            assert self.heart.alert_types(check) == model.alerts

    @invariant()
    def totals_and_models_agree(self):
        overdue = sum(model.overdue for model in self.models.values())
        assert self.heart.checks.totals() == {"on_time": len(self.models) - overdue, "overdue": overdue}
        assert self.heart.checks.usage(self.heart.key.id)[0] == len(self.models)


def stored(check) -> dict[str, Any]:
    return {
        "status": check.status,
        "deadline_at": check.deadline_at,
        "pings": check.ping_count,
        "version": check.version,
        "updated_at": check.updated_at,
        "has_failed": check.failed_at is not None,
        "snoozed_until": check.snoozed_until,
        "repeat": check.repeat_seconds,
    }


def expected(model, now) -> dict[str, Any]:
    return {
        "status": "overdue" if model.overdue else "on_time",
        "deadline_at": model.deadline,
        "pings": model.pings,
        "version": model.version,
        "updated_at": model.updated_at,
        "has_failed": model.has_failed,
        "snoozed_until": model.clock_from if model.is_snoozed(now) else None,
        "repeat": model.repeat,
    }


def empty(transaction):
    for table in ("keys", "monitor"):
        transaction.execute(f"DELETE FROM {table}")


@BOTH_ENGINES
@pytest.mark.parametrize("histories", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_rows_are_what_the_rules_make_of_them(database, monkeypatch, histories):
    # How alerts are merged is tested elsewhere.
    monkeypatch.setattr(alerts, "ALERTS_AN_HOUR", 10**6)
    monkeypatch.setattr(alerts, "WAITING_ALERTS", 10**6)
    run_state_machine_as_test(
        lambda: Beating(database),
        settings=settings(
            max_examples=histories, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
