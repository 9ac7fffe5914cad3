"""What a sweep marks and alerts, and its thread, which runs on the real monotonic clock."""

import threading
import time

import pytest

from cardbeat.errors import Unavailable
from cardbeat.heartbeat.sweep import Sweep
from tests.heart import HOOK, Heart
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import wait_until

SECONDS = 0.02
LONG = 10


pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def running(heart):
    """Starts sweeps, each in its thread, which end with the test."""
    sweeps = []

    def start(**options):
        sweep = heart.sweep_every(SECONDS, **options)
        sweeps.append(sweep)
        sweep.start()
        return sweep

    yield start
    for sweep in sweeps:
        sweep.stop()


def test_a_check_is_overdue_once_its_deadline_has_passed_and_not_before(heart):
    check = heart.create(period_seconds=60, grace_seconds=5)
    heart.pass_time(65.9)
    assert heart.sweep.sweep_once() == 0
    heart.pass_time(0.1)
    assert heart.sweep.sweep_once() == 1
    assert heart.status(check) == "overdue"


def test_a_check_that_never_ran_is_noticed(heart):
    check = heart.create(period_seconds=60)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    assert heart.read(check).last_ping_at is None
    assert heart.alert_types(check) == ["check.overdue"]


def test_an_overdue_check_is_alerted_once_and_again_in_its_next_outage(heart):
    check = heart.create()
    for _ in range(2):
        heart.pass_time(61)
        assert [heart.sweep.sweep_once() for _ in range(3)] == [1, 0, 0]
        assert heart.ping(check).recovered
        assert not heart.ping(check).recovered
    assert heart.alert_types(check) == ["check.overdue", "check.recovered"] * 2


def test_a_recovery_is_told_though_the_webhook_was_set_during_the_outage(heart):
    check = heart.create(webhook_url=None)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    read = heart.read(check)
    heart.checks.update(read, heart.settings(read, webhook_url=HOOK)).wait()
    assert heart.ping(check).recovered
    assert heart.alert_types(check) == ["check.recovered"]
    assert not heart.ping(check).recovered
    assert heart.alert_types(check) == ["check.recovered"]


def test_only_a_ping_turns_a_check_back(heart):
    check = heart.create()
    heart.pass_time(61)
    heart.sweep.sweep_once()
    read = heart.read(check)
    longer = heart.checks.update(read, heart.settings(read, period_seconds=10_000)).wait()
    heart.sweep.sweep_once()
    assert (longer.status, heart.status(check)) == ("overdue", "overdue")
    assert longer.deadline_at == check.created_at + 10_000


def test_a_patch_that_moves_the_deadline_into_the_past_is_swept(heart):
    check = heart.create(period_seconds=1000)
    heart.pass_time(100)
    heart.checks.update(check, heart.settings(check, period_seconds=50)).wait()
    assert heart.sweep.sweep_once() == 1


def test_a_check_without_webhook_turns_overdue_and_back_without_alerts(heart):
    check = heart.create(webhook_url=None)
    heart.pass_time(61)
    assert heart.sweep.sweep_once() == 1
    assert heart.ping(check).recovered
    assert heart.alert_types(check) == []


def test_more_checks_than_a_step_holds_are_all_turned(database, clock):
    heart = Heart(database, clock, batch=4)
    checks = [heart.create() for _ in range(12)]
    heart.pass_time(61)
    assert heart.sweep.sweep_once() == 12
    assert all(heart.alert_types(check) == ["check.overdue"] for check in checks)


@SQLITE
def test_the_sweep_reads_only_what_is_due(heart):
    statements = []
    heart.database.write(lambda connection: connection.set_trace_callback(statements.append))
    heart.create()
    heart.pass_time(61)
    heart.sweep.sweep_once()
    heart.database.write(lambda connection: connection.set_trace_callback(None))
    # A trigger's statements are traced as the one that fired it.
    (statement,) = {text for text in statements if text.startswith("UPDATE checks SET status = 'overdue'")}
    with heart.database.read() as connection:
        plan = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert "SEARCH checks USING INDEX checks_due (<expr><?)" in plan
    # In that index there are only the keys that are being removed.
    assert all("INDEX keys_revoked" in step for step in plan if "SCAN" in step)


def test_a_sweep_that_finished_within_three_intervals_is_healthy(heart):
    heart.sweep.sweep_once()
    heart.monotonic.advance(180)
    assert heart.sweep.healthy()
    heart.monotonic.advance(1)
    assert not heart.sweep.healthy()
    heart.sweep.sweep_once()
    assert heart.sweep.healthy()


def test_a_sweep_stopped_in_the_middle_has_not_finished(heart):
    heart.create()
    heart.pass_time(200)
    heart.sweep.stop()
    assert heart.sweep.sweep_once() == 0
    assert not heart.sweep.healthy()


def test_it_sweeps_at_its_start_and_goes_on(heart, running):
    check, swept = heart.create(), threading.Semaphore(0)
    heart.clock.advance(61)
    running(after=swept.release)
    assert swept.acquire(timeout=LONG)
    assert heart.status(check) == "overdue"
    assert swept.acquire(timeout=LONG)


def test_a_failing_sweep_is_logged_and_the_next_one_works(heart, running, caplog, monkeypatch):
    failed, swept = threading.Semaphore(0), threading.Semaphore(0)

    def fail(*_):
        failed.release()
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Sweep, "sweep_once", fail)
        sweep = running(after=swept.release)
        assert failed.acquire(timeout=LONG)
        assert failed.acquire(timeout=LONG)
    assert swept.acquire(timeout=LONG)
    assert "the disk is full" in caplog.text
    assert sweep.last_duration_seconds is not None


def test_a_sweep_without_the_database_is_one_line_in_the_log(heart, caplog, monkeypatch):
    def give_due(_stopping):
        raise Unavailable("database_unavailable")

    monkeypatch.setattr(heart.sweep.credit, "give_due", give_due)
    heart.sweep.start()
    wait_until(lambda: caplog.records)
    heart.sweep.stop()
    (line,) = caplog.records
    assert line.exc_info is None
    assert line.getMessage() == "sweep failed, next try in 60 s: The database can't be used now; try again soon."


def test_a_failing_report_is_logged_and_not_in_the_way(running, caplog):
    called = threading.Semaphore(0)

    def fail():
        called.release()
        raise OSError("nobody there")

    sweep = running(after=fail)
    assert called.acquire(timeout=LONG)
    assert called.acquire(timeout=LONG)
    assert "nobody there" in caplog.text
    assert sweep.last_duration_seconds is not None


def test_it_stops_at_once(heart):
    sweep = heart.sweep_every(3600)
    sweep.start()
    started = time.monotonic()
    sweep.stop()
    assert time.monotonic() - started < LONG


def test_stopping_one_that_never_started_does_nothing(heart):
    heart.sweep.stop()


def test_it_credits_an_outage_before_its_first_sweep(heart, running):
    check, swept = heart.create(3600), threading.Semaphore(0)
    heart.sweep.sweep_once()
    heart.clock.advance(3 * 3600)
    running(after=swept.release)
    assert swept.acquire(timeout=LONG)
    assert heart.read(check).deadline_at == check.deadline_at + 3 * 3600


def test_a_long_sweep_does_not_put_off_those_after_it(heart):
    swept = threading.Semaphore(0)
    sweep = heart.sweep_every(3600, after=lambda: swept.release() or heart.pass_time(3600), monotonic=heart.monotonic)
    sweep.start()
    for _ in range(3):
        assert swept.acquire(timeout=LONG)
    sweep.stop()


def test_a_sweep_that_a_stop_cut_short_is_not_reported(heart):
    reports = []
    sweep = heart.sweep_every(60, after=lambda: reports.append(1))
    sweep.stop()
    sweep.start()
    sweep.stop()
    assert reports == []
