"""Whether somebody works on alerts: what this process and the others know of it, and what the log says."""

import pytest

from cardbeat import monitor
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.liveness import FAILS, LOCKED_OUT, NOTE_SECONDS, STALLED_SECONDS, Liveness, LivenessLog
from tests.support import FakeClock


@pytest.fixture
def elapsed():
    return FakeClock(1000)


@pytest.fixture
def liveness(database, elapsed):
    return Liveness(database, elapsed)


def noted(database):
    database.write(lambda connection: None)
    with database.read() as connection:
        return monitor.values(connection)


def test_it_is_healthy_until_nobody_has_worked_for_some_minutes(liveness, elapsed):
    elapsed.advance(STALLED_SECONDS)
    assert liveness.healthy()
    elapsed.advance(1)
    assert (liveness.healthy(), liveness.age_seconds()) == (False, STALLED_SECONDS + 1)
    liveness.worked()
    assert (liveness.healthy(), liveness.age_seconds()) == (True, 0)


def test_to_fail_is_not_to_work(liveness, elapsed):
    elapsed.advance(STALLED_SECONDS + 1)
    liveness.failed(FAILS)
    assert (liveness.healthy(), liveness.reason) == (False, FAILS)


def test_working_costs_a_write_now_and_then(liveness, elapsed, database):
    for _ in range(50):
        liveness.worked()
    first = noted(database)
    elapsed.advance(NOTE_SECONDS)
    liveness.worked()
    assert (len(first), sum(noted(database).values()) - sum(first.values())) == (1, 1)


def test_another_process_sees_who_works_by_its_own_clock_alone(liveness, elapsed, database):
    other_elapsed = FakeClock(9_000_000)
    other = Liveness(database, other_elapsed)
    other.look_at_other()
    for _ in range(20):
        other_elapsed.advance(STALLED_SECONDS - 1)
        elapsed.advance(NOTE_SECONDS)
        liveness.worked()
        noted(database)
        other.look_at_other()
        assert other.age_seconds() == 0
    other_elapsed.advance(STALLED_SECONDS + 1)
    other.look_at_other()
    assert (other.healthy(), other.reason) == (False, LOCKED_OUT)


def test_while_the_service_stops_work_is_not_noted_and_goes_on(liveness, database, monkeypatch):
    def refuse(_work):
        raise Unavailable("stopping", "The server is stopping.")

    monkeypatch.setattr(database, "write_later", refuse)
    liveness.worked()
    assert liveness.age_seconds() == 0


def test_a_database_that_can_not_be_read_shows_no_work(liveness, database, elapsed, monkeypatch):
    def refuse():
        raise Unavailable("x", "It can't be read.")

    monkeypatch.setattr(database, "read", refuse)
    elapsed.advance(1)
    liveness.look_at_other()
    assert (liveness.reason, liveness.age_seconds()) == (LOCKED_OUT, 1)


def test_the_log_has_one_line_when_it_begins_and_one_when_it_ends(liveness, elapsed, caplog):
    log = LivenessLog(liveness, lambda: 312.4)
    log.look()
    liveness.failed(FAILS)
    elapsed.advance(STALLED_SECONDS + 1)
    for _ in range(3):
        log.look()
        elapsed.advance(10)
    liveness.worked()
    for _ in range(3):
        log.look()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "ERROR",
            "alerts are held up: reading or storing them fails, for 301 s now; the oldest that is due waits for 312 s",
        ),
        ("WARNING", "alerts go on; for 321 s they were held up"),
    ]


def test_the_log_tells_also_when_the_database_can_not_be_read(liveness, elapsed, caplog):
    def unreadable():
        raise Unavailable("x", "It can't be read.")

    elapsed.advance(STALLED_SECONDS + 1)
    LivenessLog(liveness, unreadable).look()
    assert "the oldest that is due waits for a time that can't be read" in caplog.text
