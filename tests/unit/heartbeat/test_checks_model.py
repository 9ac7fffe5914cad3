"""Any sequence of what can happen to checks, against a reference simple enough to be seen right."""

import threading
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from tests.heart import SWEEP_SECONDS, Heart
from tests.postgresql import BOTH_ENGINES
from tests.support import FakeClock


@dataclass
class Model:
    """What a check must look like, by the rules of the README."""

    period: int
    grace: int
    clock_from: int
    pings: int = 0
    version: int = 1
    overdue: bool = False
    alerts: list[str] = field(default_factory=list)

    @property
    def deadline(self):
        return self.clock_from + self.period + self.grace


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

    @rule(target=checks, period=st.integers(1, 200), grace=st.integers(0, 100))
    def create(self, period, grace):
        check = self.heart.create(period, grace)
        self.models[check.id] = Model(period, grace, self.clock.now)
        return check

    @rule(check=checks)
    def ping(self, check):
        model = self.models[check.id]
        assert self.heart.ping(check).recovered == model.overdue
        if model.overdue:
            model.alerts.append("check.recovered")
        model.overdue = False
        model.clock_from = self.clock.now
        model.pings += 1

    @rule(check=checks, period=st.integers(1, 200), grace=st.integers(0, 100))
    def patch(self, check, period, grace):
        read = self.heart.read(check)
        changed = self.heart.settings(read, period_seconds=period, grace_seconds=grace)
        assert self.heart.checks.update(read, changed).wait() == self.heart.read(check)
        model = self.models[check.id]
        model.period, model.grace, model.version = period, grace, model.version + 1

    @rule(check=consumes(checks))
    def delete(self, check):
        self.heart.checks.delete(self.heart.key.id, check.id).wait()
        del self.models[check.id]

    @rule(seconds=st.integers(1, SWEEP_SECONDS))
    def wait_and_sweep(self, seconds):
        self.heart.pass_time(seconds)
        self.beat(lost=0)

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
        self.beat(lost=seconds)

    def beat(self, lost):
        """A round of the sweep, by the model and by the code."""
        for model in self.models.values():
            if not model.overdue:
                model.clock_from = min(model.clock_from + lost, self.clock.now)
                if model.deadline < self.clock.now:
                    model.overdue = True
                    model.alerts.append("check.overdue")
        self.heart.sweep.credit.give_due(threading.Event())
        self.heart.sweep.sweep_once()
        self.swept_at = self.clock.now

    @invariant()
    def rows_and_models_agree(self):
        rows, _ = self.heart.checks.page(self.heart.key.id, 1000, None)
        assert [check.id for check in rows] == list(self.models)
        for check in rows:
            model = self.models[check.id]
            stored = (check.status, check.deadline_at, check.ping_count, check.version)
            assert stored == ("overdue" if model.overdue else "on_time", model.deadline, model.pings, model.version)
            assert self.heart.alert_types(check) == model.alerts

    @invariant()
    def totals_and_models_agree(self):
        overdue = sum(model.overdue for model in self.models.values())
        assert self.heart.checks.totals() == {"on_time": len(self.models) - overdue, "overdue": overdue}
        assert self.heart.checks.count(self.heart.key.id) == len(self.models)


def empty(transaction):
    for table in ("keys", "monitor"):
        transaction.execute(f"DELETE FROM {table}")


@BOTH_ENGINES
def test_rows_are_what_the_rules_make_of_them(database):
    run_state_machine_as_test(
        lambda: Beating(database),
        settings=settings(
            max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
