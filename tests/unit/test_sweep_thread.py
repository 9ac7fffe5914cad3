"""The sweep's own thread, on the real monotonic clock."""

import threading
import time

import pytest

from cardbeat.heartbeat.sweep import Sweep
from tests.heart import Heart

SECONDS = 0.02
LONG = 10


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def running(heart):
    sweeps = []

    def start(**options):
        sweep = heart.sweep_every(SECONDS, **options)
        sweeps.append(sweep)
        sweep.start()
        return sweep

    yield start
    for sweep in sweeps:
        sweep.stop()


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


def test_a_long_sweep_does_not_put_off_those_after_it(heart, monkeypatch):
    waits, lengths = [], [0, 20, 90]
    sweep = heart.sweep_every(60, after=lambda: heart.pass_time(lengths[len(waits)]), monotonic=heart.monotonic)
    monkeypatch.setattr(sweep._stopping, "wait", lambda seconds: waits.append(seconds) or len(waits) == len(lengths))
    sweep._run()
    assert waits == [60, 40, 0]


def test_a_sweep_that_a_stop_cut_short_is_not_reported(heart):
    reports = []
    sweep = heart.sweep_every(60, after=lambda: reports.append(1))
    sweep.stop()
    sweep.start()
    sweep.stop()
    assert reports == []
