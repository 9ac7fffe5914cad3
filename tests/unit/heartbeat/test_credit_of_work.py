"""Slow work of the monitor is not silence, and silence in the middle of its work is credited all the same."""

import threading

import pytest

from cardbeat.errors import Unavailable
from cardbeat.heartbeat.credit import LOOK_SECONDS
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES

HOUR = 3600
SWEEP_SECONDS = 5


class Process:
    """One that sweeps in rounds as its thread does, on clocks that only the test moves, over a disk that may be slow.

    `commit_seconds` is how long each of its commits takes; `in_write` is called in every write, before its commit,
    with the number of the write, from 1.
    """

    def __init__(self, heart, sweep_seconds=SWEEP_SECONDS, commit_seconds=0):
        self.heart = heart
        self.sweep_seconds = sweep_seconds
        self.commit_seconds = commit_seconds
        self.in_write = lambda number: None
        self.writes = 0
        self.sweep = heart.sweep_every(sweep_seconds, database=self, monotonic=heart.monotonic)

    def __getattr__(self, name):
        """It is the database of its sweep."""
        return getattr(self.heart.database, name)

    def write_later(self, work):
        def slow(connection):
            self.writes += 1
            result = work(connection)
            self.in_write(self.writes)
            self.work(self.commit_seconds)
            return result

        return self.heart.database.write_later(slow)

    def work(self, seconds):
        """Let time pass in which this process is awake."""
        for _ in range(int(seconds / LOOK_SECONDS)):
            self.heart.pass_time(LOOK_SECONDS)
            self.sweep.credit.look()

    def beat(self):
        started = self.heart.monotonic()
        try:
            return self.sweep.sweep_once(self.sweep.credit.give_due(threading.Event()))
        finally:
            self.heart.pass_time(max(0, started + self.sweep_seconds - self.heart.monotonic()))


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock, batch=2)


def moved(heart, checks):
    """By how many seconds the deadlines of checks have moved since they were created."""
    return {heart.read(check).deadline_at - check.deadline_at for check in checks}


def once(number, deed):
    return lambda write: deed() if write == number else None


@pytest.mark.parametrize(("sweep_seconds", "commit_seconds"), [(5, 3), (1, 3), (1, 30), (60, 200)])
def test_slow_commits_excuse_nobody(heart, sweep_seconds, commit_seconds):
    process = Process(heart, sweep_seconds, commit_seconds)
    process.beat()
    check, steady = heart.create(5), heart.create(1000 * HOUR)
    due = check.deadline_at
    while heart.status(check) == "on_time":
        process.beat()
        assert heart.clock.now <= due + 3 * sweep_seconds + 5 * commit_seconds
    for _ in range(3):
        process.beat()
    assert moved(heart, [steady]) == {0}


def test_a_sweep_that_takes_longer_than_an_outage_is_none(heart, caplog):
    process = Process(heart, commit_seconds=3)
    process.beat()
    due, steady = [heart.create(1) for _ in range(20)], heart.create(HOUR)
    began = heart.clock.now
    while any(heart.status(check) == "on_time" for check in due):
        process.beat()
    assert heart.clock.now - began > 2 * SWEEP_SECONDS
    for _ in range(3):
        process.beat()
    assert moved(heart, [steady]) == {0}
    assert "no ping could be taken" not in caplog.text


def test_a_credit_that_takes_longer_than_an_outage_is_given_once(heart):
    checks = [heart.create(HOUR) for _ in range(20)]
    Process(heart).beat()
    heart.clock.advance(2 * HOUR)
    process = Process(heart, commit_seconds=3)
    for _ in range(3):
        process.beat()
    [seconds] = moved(heart, checks)
    assert 2 * HOUR <= seconds <= 2 * HOUR + SWEEP_SECONDS


@pytest.mark.parametrize("write", range(1, 8))
def test_a_pause_in_the_middle_of_a_sweep_is_credited(heart, write):
    process = Process(heart)
    process.beat()
    due, steady = [heart.create(3) for _ in range(9)], [heart.create(HOUR), heart.create(2 * HOUR)]
    heart.pass_time(4)
    process.writes = 0
    process.in_write = once(write, lambda: heart.pass_time(2 * HOUR))
    for _ in range(9):
        process.beat()
    assert [heart.status(check) for check in due] == ["overdue"] * 9
    [seconds] = moved(heart, steady)
    assert 2 * HOUR <= seconds <= 2 * HOUR + 2 * SWEEP_SECONDS


@pytest.mark.parametrize("write", range(1, 8))
def test_a_pause_in_the_middle_of_a_credit_is_credited_too(heart, write):
    checks = [heart.create(HOUR) for _ in range(9)]
    Process(heart).beat()
    heart.clock.advance(2 * HOUR)
    process = Process(heart)
    process.in_write = once(write, lambda: heart.pass_time(3 * HOUR))
    for _ in range(3):
        assert process.beat() == 0
    [seconds] = moved(heart, checks)
    assert 5 * HOUR <= seconds <= 5 * HOUR + 2 * SWEEP_SECONDS


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
@pytest.mark.parametrize("write", range(1, 8))
def test_a_clock_set_in_the_middle_of_a_sweep_takes_the_deadlines_with_it(heart, jump, write):
    process = Process(heart)
    process.beat()
    due, steady = [heart.create(3) for _ in range(9)], heart.create(3 * HOUR)
    heart.pass_time(4)
    process.writes = 0
    process.in_write = once(write, lambda: heart.clock.advance(jump))
    for _ in range(9):
        process.beat()
    assert [heart.status(check) for check in due] == ["overdue"] * 9
    assert moved(heart, [steady]) == {jump}


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_clock_set_in_the_middle_of_slow_work_moves_the_deadlines_by_that_alone(heart, jump):
    process = Process(heart, commit_seconds=30)
    process.beat()
    steady = heart.create(3 * HOUR)
    process.writes = 0
    process.in_write = once(1, lambda: heart.clock.advance(jump))
    for _ in range(4):
        process.beat()
    assert moved(heart, [steady]) == {jump}


@pytest.mark.parametrize("write", range(1, 8))
def test_a_crash_in_the_middle_of_slow_work_loses_no_outage_and_credits_none_twice(heart, write):
    class Crash(BaseException):
        pass

    def crash():
        raise Crash

    checks = [heart.create(HOUR) for _ in range(9)]
    Process(heart).beat()
    heart.clock.advance(2 * HOUR)
    crashing = Process(heart, commit_seconds=3)
    crashing.in_write = once(write, crash)
    try:
        crashing.beat()
    except Crash:
        heart.clock.advance(3 * HOUR)
    else:
        pytest.fail("it did not write so often")
    process = Process(heart, commit_seconds=3)
    for _ in range(3):
        assert process.beat() == 0
    [seconds] = moved(heart, checks)
    assert 5 * HOUR <= seconds <= 5 * HOUR + 2 * SWEEP_SECONDS


def test_one_process_sweeps_on_while_another_is_suspended_in_a_sweep(heart):
    suspended, awake = Process(heart), Process(heart)
    suspended.beat()
    awake.beat()
    steady, due = heart.create(HOUR), [heart.create(3) for _ in range(5)]
    heart.pass_time(4)

    moment = suspended.sweep.credit.give_due(threading.Event())
    for _ in range(100):
        awake.beat()
    suspended.sweep.sweep_once(moment)
    suspended.beat()
    assert [heart.status(check) for check in due] == ["overdue"] * 5
    assert moved(heart, [steady]) == {0}


@pytest.mark.parametrize("tries_seconds", [0, 4, 60])
def test_an_hour_without_writes_is_credited_though_the_process_was_awake(heart, tries_seconds):
    """As on a full disk: the pings of that hour were refused, each try to write failing after some seconds."""
    process = Process(heart)
    process.beat()
    check = heart.create(HOUR // 2)
    began = heart.clock.now

    def refuse(_number):
        process.work(tries_seconds)
        raise Unavailable("database_unavailable", "The database can't be used now; try again soon.")

    process.in_write = refuse
    while heart.clock.now < began + HOUR:
        with pytest.raises(Unavailable):
            process.beat()
    process.in_write = lambda number: None
    failed_seconds = heart.clock.now - began
    for _ in range(3):
        assert process.beat() == 0
    [seconds] = moved(heart, [check])
    assert failed_seconds <= seconds <= failed_seconds + 2 * SWEEP_SECONDS


def test_what_a_credit_waits_for_behind_other_writes_is_not_silence(heart):
    """As the removal of a large key: somebody else's writes take long, and the sweep's own wait behind them."""
    process = Process(heart)
    process.beat()
    steady = heart.create(HOUR)
    written = process.write_later

    def behind_others(work):
        process.work(20)
        return written(work)

    process.write_later = behind_others
    for _ in range(3):
        process.beat()
    assert moved(heart, [steady]) == {0}


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_jump_that_another_process_has_credited_is_not_credited_by_one_that_waited_for_it(heart, jump):
    steady = heart.create(3 * HOUR)
    process, other = Process(heart), Process(heart)
    process.beat()
    other.beat()
    heart.clock.advance(jump)

    def note_slowly(transaction):
        process.sweep.credit.note(transaction)
        other.work(3)

    heart.database.write(note_slowly)
    other.beat()
    process.beat()
    assert moved(heart, [steady]) == {jump}


def test_a_ping_after_the_clock_was_set_back_counts_though_a_sweep_waited_for_its_turn(heart):
    check = heart.create(1000)
    process = Process(heart)
    process.beat()
    heart.clock.advance(-HOUR)
    process.work(2)
    heart.ping(check)
    pinged_at = heart.clock.now
    process.work(2)
    process.beat()
    assert heart.read(check).deadline_at == pinged_at + 1000
