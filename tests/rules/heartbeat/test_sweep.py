"""What a sweep marks and alerts, and its thread, which runs on the real monotonic clock."""

import threading

import pytest

from cardbeat.errors import Unavailable
from tests.kit.heart import HOOK, SWEEP_SECONDS, Heart
from tests.kit.lists import each
from tests.kit.postgresql import BOTH_ENGINES, SQLITE
from tests.kit.support import wait_until

pytestmark = BOTH_ENGINES

SECONDS = 0.02
LONG = 60


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def running(heart):
    """Starts sweeps, each in its thread, which end with the test."""
    sweeps = []

    def start(seconds=SECONDS, **options):
        sweep = heart.sweep_every(seconds, **options)
        sweeps.append(sweep)
        sweep.start()
        return sweep

    yield start
    for sweep in sweeps:
        sweep.stop()


def test_a_check_is_overdue_once_its_deadline_has_passed_and_not_before(
    heart,
):
    check = heart.create(period_seconds=60, grace_seconds=5)
    heart.pass_time(65.9)
    assert heart.sweep.sweep_once() == 0
    heart.pass_time(0.1)
    assert heart.sweep.sweep_once() == 1
    # It never ran, and is noticed all the same.
    assert heart.status(check) == "overdue"
    assert heart.read(check).last_ping_at is None
    assert heart.alert_types(check) == ["check.overdue"]


def test_a_recovery_is_told_though_the_webhook_was_set_during_the_outage(
    heart,
):
    check = heart.create(webhook_url=None)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    assert heart.status(check) == "overdue"
    assert heart.alert_types(check) == []
    read = heart.read(check)
    heart.checks.update(read, heart.settings(read, webhook_url=HOOK))
    assert heart.ping(check).recovered
    assert not heart.ping(check).recovered
    assert heart.alert_types(check) == ["check.recovered"]


@SQLITE
def test_the_sweep_reads_only_what_is_due(heart):
    statements = []
    heart.create()
    heart.pass_time(61)
    heart.database.write(
        lambda connection: connection.set_trace_callback(
            statements.append
        )
    )
    heart.sweep.sweep_once()
    heart.database.write(
        lambda connection: connection.set_trace_callback(None)
    )
    due, *_ = [
        text
        for text in statements
        if text.startswith("SELECT seq FROM checks")
    ]
    with heart.database.read() as connection:
        plan = each(
            connection.execute(f"EXPLAIN QUERY PLAN {due}"), "detail"
        )
    assert any(
        "SEARCH checks USING" in step and "INDEX checks_due" in step
        for step in plan
    )
    # In that index there are only the keys that are being removed.
    assert all(
        "INDEX keys_revoked" in step for step in plan if "SCAN" in step
    )


def test_a_sweep_that_finished_within_three_intervals_is_healthy_and_each_is_reported(
    heart,
):
    reports = []
    sweep = heart.sweep_every(
        SWEEP_SECONDS, after=lambda: reports.append(1)
    )
    sweep.sweep_or_look()
    heart.monotonic.advance(180)
    assert sweep.healthy()
    heart.monotonic.advance(1)
    assert not sweep.healthy()
    # One that is left out or stopped has not finished.
    heart.database.pings_refused = True
    sweep.sweep_or_look()
    assert sweep.healthy() is False
    assert len(reports) == 1
    sweep.sweep_or_look()
    assert sweep.healthy() is True
    assert len(reports) == 2
    heart.monotonic.advance(181)
    sweep.stop()
    sweep.sweep_or_look()
    assert sweep.healthy() is False
    assert len(reports) == 2


def test_it_sweeps_at_its_start_and_goes_on(heart, running):
    check, swept = heart.create(), threading.Semaphore(0)
    heart.clock.advance(61)
    running(after=swept.release)
    assert swept.acquire(timeout=LONG)
    assert swept.acquire(timeout=LONG)
    wait_until(lambda: heart.status(check) == "overdue")


@pytest.mark.parametrize(
    "error", [OSError("full"), Unavailable("database_unavailable")]
)
def test_a_failing_sweep_is_one_line_in_the_log_and_the_next_one_works(
    heart, running, caplog, monkeypatch, error
):
    swept = threading.Semaphore(0)

    def write(_work):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(heart.database, "write", write)
        sweep = running(after=swept.release)
        wait_until(lambda: len(caplog.records) > 1)
    assert swept.acquire(timeout=LONG)
    assert caplog.records[0].exc_info is None
    assert caplog.messages[0] == f"sweep failed: {error}"
    assert sweep.last_duration_seconds is not None


def test_it_stops_at_once(heart, running):
    assert running(3600).stop(LONG)
    # So does one that never started.
    assert heart.sweep.stop(LONG)


def test_a_long_sweep_does_not_put_off_those_after_it(heart, running):
    swept = threading.Semaphore(0)
    running(3600, after=lambda: swept.release() or heart.pass_time(3600))
    for _ in range(3):
        assert swept.acquire(timeout=LONG)
