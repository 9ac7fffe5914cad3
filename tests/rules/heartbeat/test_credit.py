"""After the monitor was away, or its clock was set: what happened, and where deadlines go."""

import pytest

from cardbeat.database import numbers
from tests.kit.heart import SWEEP_SECONDS, Heart
from tests.kit.lists import times
from tests.kit.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES

HOUR = 3600
YEAR = 365 * 24 * HOUR


@pytest.fixture
def heart(database, clock):
    # Five checks take three batches.
    return Heart(database, clock, marked_at_once=2, moved_at_once=2)


def beat(heart):
    return heart.sweep.sweep_once()


def restart(heart):
    heart.sweep = heart.new_sweep()


def be_away(heart, seconds):
    """Down: only the wall clock goes on, and another process sweeps then."""
    heart.clock.advance(seconds)
    restart(heart)
    return beat(heart)


def be_suspended(heart, seconds):
    """The same process goes on."""
    heart.pass_time(seconds)
    return beat(heart)


def be_set_forward(heart, seconds):
    heart.clock.advance(seconds)
    return beat(heart)


def refuse_pings(heart, seconds):
    """Pings are refused, and in the end the sweep can write again."""
    for _ in range(seconds // SWEEP_SECONDS):
        heart.pass_time(SWEEP_SECONDS)
        heart.database.pings_refused = True
        assert beat(heart) == 0
    heart.pass_time(seconds % SWEEP_SECONDS)
    return beat(heart)


def moved(heart, check):
    return heart.read(check).deadline_at - check.deadline_at


@pytest.mark.parametrize(
    "happens", [be_away, be_suspended, be_set_forward]
)
@pytest.mark.parametrize(
    ("seconds", "by"), [(0, 0), (120, 0), (133, 133), (YEAR, YEAR)]
)
def test_deadlines_move_by_an_outage_of_more_than_two_sweeps(
    heart, happens, seconds, by
):
    checks = times(5, heart.create, HOUR)
    beat(heart)
    assert happens(heart, seconds) == 0
    assert [moved(heart, check) for check in checks] == [by] * 5


@pytest.mark.parametrize(
    ("seconds", "by"), [(120, 0), (150, 150), (HOUR, HOUR)]
)
def test_while_pings_were_refused_no_sweep_counts(heart, seconds, by):
    check = heart.create(HOUR)
    beat(heart)
    assert refuse_pings(heart, seconds) == 0
    assert moved(heart, check) == by


def test_a_long_sweep_is_no_outage(heart):
    marked = times(10, heart.create, 1)
    check = heart.create(HOUR)
    beat(heart)
    heart.pass_time(2)
    write = heart.database.write

    def write_slowly(work):
        heart.pass_time(100)
        return write(work)

    heart.database.write = write_slowly
    assert beat(heart) == len(marked)
    heart.database.write = write
    assert be_suspended(heart, 100) == 0
    assert moved(heart, check) == 0


def begun(heart):
    """Five checks, of which a process has moved two by two hours, and was killed then."""
    checks = times(5, heart.create, HOUR)
    beat(heart)
    heart.clock.advance(2 * HOUR)
    sweep = heart.new_sweep()
    writes = []
    write = heart.database.write

    class Killed(Exception):
        pass

    def write_twice(work):
        if len(writes) == 2:
            raise Killed
        writes.append(work)
        return write(work)

    heart.database.write = write_twice
    with pytest.raises(Killed):
        sweep.sweep_once()
    del heart.database.write
    assert sorted(moved(heart, check) for check in checks) == [
        0,
        0,
        0,
        2 * HOUR,
        2 * HOUR,
    ]
    restart(heart)
    return checks


@pytest.mark.parametrize(
    ("later", "by"), [(10, 0), (3 * HOUR, 3 * HOUR), (-30 * HOUR, None)]
)
def test_a_process_killed_in_the_middle_leaves_the_rest_to_the_next(
    heart, later, by
):
    checks = begun(heart)
    heart.clock.advance(later)
    assert beat(heart) == 0
    if by is None:
        # The clock was set back: it starts now.
        assert {heart.read(check).clock_from for check in checks} == {
            heart.clock.now
        }
    else:
        assert [moved(heart, check) for check in checks] == [
            2 * HOUR + by
        ] * 5
    with heart.database.read() as connection:
        assert list(numbers(connection)) == ["last_sweep_at"]


def test_a_clock_set_back_may_delay_an_alert_by_as_much_and_no_more(
    heart,
):
    check, older = heart.create(1000), heart.create(2 * HOUR)
    heart.pass_time(HOUR)
    heart.ping(check)
    beat(heart)
    heart.pass_time(SWEEP_SECONDS)
    heart.clock.advance(-1800)
    assert beat(heart) == 0
    assert heart.read(check).clock_from == heart.clock.now
    assert moved(heart, older) == 0
    assert be_suspended(heart, 60) == 0
    for _ in range(16):
        heart.pass_time(60)
        beat(heart)
    assert heart.alert_types(check) == ["check.overdue"]


def test_retries_go_back_with_the_clock(heart):
    heart.fail(heart.create())
    beat(heart)
    due_at = int(heart.clock.now) + 600
    sql = "UPDATE alerts SET next_attempt_at = ?"
    heart.database.write(
        lambda transaction: transaction.execute(sql, (due_at,))
    )
    heart.clock.advance(-24 * HOUR)
    beat(heart)
    with heart.database.read() as connection:
        found = connection.execute(
            "SELECT next_attempt_at FROM alerts"
        ).fetchone()[0]
    assert found == due_at - 24 * HOUR
