"""Any sequence of what can happen to checks, against a reference simple enough to be seen right."""

from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)

from cardbeat.heartbeat.sweep import TAKEOVER_SECONDS
from cardbeat.heartbeat.transitions import WAITING_ALERTS
from tests.kit.heart import SWEEP_SECONDS, Heart
from tests.kit.lists import each
from tests.kit.postgresql import BOTH_ENGINES
from tests.kit.support import FakeClock

REPEATS = st.sampled_from([None, 300, 400, 1000])
OVERDUE, REMINDER, RECOVERED = (
    "check.overdue",
    "check.reminder",
    "check.recovered",
)


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
    failed_at: int | None = None
    snoozed_until: int = 0
    remind_at: int | None = None
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
        if alert_type == RECOVERED and self.waiting >= WAITING_ALERTS:
            # The outage ends untold, and is taken back.
            self.alerts.pop()
            self.waiting -= 1
        elif alert_type != REMINDER or not self.waiting:
            self.alerts.append(alert_type)
            self.waiting += 1

    def drop_reminder(self):
        if self.waiting and self.alerts[-1] == REMINDER:
            self.alerts.pop()
            self.waiting -= 1

    def turn_overdue(self, now):
        self.overdue = True
        self.start_reminders(now)
        self.tell(OVERDUE)

    def start_reminders(self, since):
        self.remind_at = (
            since + self.repeat if self.overdue and self.repeat else None
        )

    def is_snoozed(self, now):
        """The end of a snooze is where the clock starts, `snoozed_until` unless the clock was set back."""
        return now < self.clock_from <= self.snoozed_until

    def change(self, now):
        self.version, self.updated_at = self.version + 1, now

    def credit(self, gap, now):
        """The monitor was away for so long, or its clock was set back."""
        if gap > 0 and not self.overdue and self.clock_from <= now:
            self.clock_from = min(self.clock_from + gap, now)
        if (
            gap < 0
            and not self.overdue
            and self.clock_from > max(now, self.snoozed_until)
        ):
            self.clock_from = now
        if (
            gap < 0
            and self.remind_at is not None
            and self.snoozed_until <= now
        ):
            self.remind_at = min(self.remind_at, now + self.repeat)

    def sweep(self, now):
        if not self.overdue and self.deadline < now:
            self.turn_overdue(now)
        elif (
            self.overdue
            and self.remind_at is not None
            and self.remind_at < now
        ):
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
        takeover = TAKEOVER_SECONDS if self.heart.fence else 0
        self.outage_seconds = SWEEP_SECONDS + max(SWEEP_SECONDS, takeover)

    @rule(
        target=checks,
        period=st.integers(1, 200),
        grace=st.integers(0, 100),
        repeat=REPEATS,
    )
    def create(self, period, grace, repeat):
        check = self.heart.create(period, grace, repeat_seconds=repeat)
        self.models[check.id] = Model(
            period, grace, repeat, self.clock.now, self.clock.now
        )
        return check

    @rule(check=checks)
    def ping(self, check):
        model = self.models[check.id]
        assert self.heart.ping(check).recovered == model.overdue
        if model.overdue:
            model.tell(RECOVERED)
        model.overdue, model.remind_at, model.failed_at = (
            False,
            None,
            None,
        )
        if not model.is_snoozed(self.clock.now):
            model.clock_from = self.clock.now
        model.pings += 1

    @rule(check=checks)
    def fail(self, check):
        model, now = self.models[check.id], self.clock.now
        self.heart.fail(check)
        if not model.overdue and not model.is_snoozed(now):
            model.turn_overdue(now)
        model.failed_at = now

    @rule(check=checks, seconds=st.integers(60, 3000))
    def snooze(self, check, seconds):
        self.put_snooze(check, seconds)

    @rule(check=checks)
    def end_snooze(self, check):
        if self.models[check.id].is_snoozed(self.clock.now):
            self.put_snooze(check, 0)
        else:
            assert self.heart.checks.snooze(
                self.heart.key.id, check.id, 0
            ) == self.heart.read(check)

    def put_snooze(self, check, seconds):
        model, now = self.models[check.id], self.clock.now
        assert self.heart.checks.snooze(
            self.heart.key.id, check.id, seconds
        ) == self.heart.read(check)
        model.snoozed_until = model.clock_from = now + seconds
        model.change(now)
        if seconds:
            model.drop_reminder()
        model.start_reminders(now + seconds)

    @rule(
        check=checks,
        period=st.integers(1, 200),
        grace=st.integers(0, 100),
        repeat=REPEATS,
    )
    def patch(self, check, period, grace, repeat):
        read = self.heart.read(check)
        changed = self.heart.settings(
            read,
            period_seconds=period,
            grace_seconds=grace,
            repeat_seconds=repeat,
        )
        assert self.heart.checks.update(read, changed) == self.heart.read(
            check
        )
        model = self.models[check.id]
        model.period, model.grace = period, grace
        model.change(self.clock.now)
        if repeat != model.repeat:
            model.repeat = repeat
            model.drop_reminder()
            now = self.clock.now
            model.start_reminders(
                model.clock_from if model.is_snoozed(now) else now
            )

    @rule(check=checks, most=st.sampled_from([1, 100, 100]))
    def deliver(self, check, most):
        """The receiver takes so many of the alerts that wait."""
        self.models[check.id].waiting -= self.heart.take_all(
            check=check, most=most
        )

    @rule(check=consumes(checks))
    def delete(self, check):
        self.heart.checks.delete(self.heart.key.id, check.id)
        del self.models[check.id]

    @rule(seconds=st.integers(1, SWEEP_SECONDS))
    def wait_and_sweep(self, seconds):
        self.heart.pass_time(seconds)
        self.beat()

    @rule(minutes=st.integers(5, 20))
    def sweep_for_minutes(self, minutes):
        for _ in range(minutes):
            self.wait_and_sweep(SWEEP_SECONDS)

    @rule(seconds=st.integers(0, 50))
    def wait(self, seconds):
        """Less than a sweep's interval, so that the next sweep still finds the monitor listening."""
        if self.clock.now + seconds - self.swept_at <= SWEEP_SECONDS:
            self.heart.pass_time(seconds)

    @rule(seconds=st.integers(1, 5000))
    def restart_after_a_time(self, seconds):
        self.clock.advance(seconds)
        self.heart.sweep = self.heart.new_sweep()
        self.beat()

    @rule(seconds=st.integers(-100_000, 5000))
    def set_the_clock(self, seconds):
        self.clock.advance(seconds)
        self.beat()

    @rule(seconds=st.integers(3, 100_000), check=checks)
    def set_the_clock_back_and_act(self, seconds, check):
        self.clock.advance(-seconds)
        for act in (
            self.ping,
            self.fail,
            partial(self.snooze, seconds=600),
        ):
            act(check=check)
        self.beat()

    def beat(self):
        """A round of the sweep, by the model and by the code."""
        now = self.clock.now
        gap = now - self.swept_at
        for model in self.models.values():
            if not 0 <= gap <= self.outage_seconds:
                model.credit(gap, now)
            model.sweep(now)
        self.heart.sweep.sweep_once()
        self.swept_at = now

    @invariant()
    def rows_and_models_agree(self):
        rows, _ = self.heart.checks.page(self.heart.key.id, 1000, None)
        assert each(rows, "id") == list(self.models)
        for check in rows:
            model = self.models[check.id]
            shown = check.as_of(self.clock.now)
            wanted = expected(model, self.clock.now)
            assert {
                name: getattr(shown, name) for name in wanted
            } == wanted
            assert self.heart.alert_types(check) == model.alerts

    @invariant()
    def totals_and_models_agree(self):
        overdue = sum(each(self.models.values(), "overdue"))
        assert self.heart.checks.totals() == {
            "on_time": len(self.models) - overdue,
            "overdue": overdue,
        }
        assert self.heart.checks.usage(self.heart.key.id)[0] == len(
            self.models
        )


def expected(model, now):
    """What a check must show."""
    return {
        "status": "overdue" if model.overdue else "on_time",
        "deadline_at": model.deadline,
        "ping_count": model.pings,
        "version": model.version,
        "updated_at": model.updated_at,
        "failed_at": model.failed_at,
        "snoozed_until": model.clock_from
        if model.is_snoozed(now)
        else None,
        "repeat_seconds": model.repeat,
    }


def empty(transaction):
    for table in ("keys", "monitor"):
        transaction.execute(f"DELETE FROM {table}")


@BOTH_ENGINES
@pytest.mark.parametrize(
    "histories", [40, pytest.param(200, marks=pytest.mark.slow)]
)
def test_rows_are_what_the_rules_make_of_them(database, histories):
    run_state_machine_as_test(
        lambda: Beating(database),
        settings=settings(
            max_examples=histories,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
