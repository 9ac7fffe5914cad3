import contextlib
import sqlite3
import threading
from unittest.mock import Mock

import pytest

from cardbeat.database import monitor
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.credit import lost_seconds
from cardbeat.heartbeat.pings import Signal
from tests.heart import DATABASE_ERRORS, HOOK, SWEEP_SECONDS, Heart, allow, refuse
from tests.postgresql import BOTH_ENGINES, POSTGRESQL

HOUR = 3600


pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    # A credit to five checks takes several steps.
    return Heart(database, clock, batch=2)


def beat(heart, sweep=None):
    """What the sweep's thread does in each round."""
    sweep = sweep or heart.sweep
    return sweep.sweep_once(sweep.credit.give_due(threading.Event()))


@pytest.mark.parametrize(
    ("gap", "listened", "lost"),
    [
        (0, None, 0),
        (120, None, 0),
        (121, None, 121),
        (-120, None, 0),
        (-3600, None, -3600),
        (60, 60, 0),
        (62, 60, 0),
        (58, 60, 0),
        (63, 60, 3),
        (57, 60, -3),
        (3660, 60, 3600),
        (-3540, 60, -3600),
        (3600, 3600, 3600),
        (121, 121, 121),
    ],
)
def test_what_was_lost(gap, listened, lost):
    assert lost_seconds(gap, listened, 2 * SWEEP_SECONDS) == lost


def test_an_outage_is_credited_to_the_checks_that_were_on_time(heart):
    on_time, overdue = heart.create(HOUR), heart.create(1)
    heart.pass_time(10)
    beat(heart)
    heart.clock.advance(2 * HOUR)
    assert beat(heart, heart.new_sweep()) == 0
    assert heart.read(on_time).deadline_at == on_time.deadline_at + 2 * HOUR
    assert heart.read(overdue).deadline_at == overdue.deadline_at


@pytest.mark.parametrize(("down", "credited"), [(2 * SWEEP_SECONDS, 0), (2 * SWEEP_SECONDS + 1, 2 * SWEEP_SECONDS + 1)])
def test_an_outage_after_an_orderly_stop_counts_from_there(heart, down, credited):
    check = heart.create(HOUR)
    beat(heart)
    heart.pass_time(50)
    heart.sweep.stop()
    heart.pass_time(down)
    beat(heart, heart.new_sweep())
    assert heart.read(check).deadline_at == check.deadline_at + credited


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_clock_that_was_set_before_an_orderly_stop_is_settled_after_it(heart, jump):
    check = heart.create(4 * HOUR)
    beat(heart)
    heart.pass_time(10)
    heart.clock.advance(jump)
    heart.sweep.stop()
    heart.pass_time(10)
    beat(heart, heart.new_sweep())
    assert heart.read(check).deadline_at == check.deadline_at + jump


def test_a_stop_before_the_first_sweep_notes_nothing(heart):
    check = heart.create(HOUR)
    beat(heart)
    heart.pass_time(50)
    heart.new_sweep().stop()
    heart.pass_time(2 * SWEEP_SECONDS)
    beat(heart, heart.new_sweep())
    assert heart.read(check).deadline_at == check.deadline_at + 50 + 2 * SWEEP_SECONDS


def test_a_credited_check_still_turns_overdue_in_the_end(heart):
    check = heart.create(HOUR)
    beat(heart)
    heart.clock.advance(5 * HOUR)
    sweep = heart.new_sweep()
    assert beat(heart, sweep) == 0
    for _ in range(HOUR // SWEEP_SECONDS):
        heart.pass_time(SWEEP_SECONDS)
        assert beat(heart, sweep) == 0
    heart.pass_time(1)
    assert beat(heart, sweep) == 1
    assert heart.alert_types(check) == ["check.overdue"]


def test_a_check_already_late_when_the_monitor_went_down_is_not_excused(heart):
    check = heart.create(HOUR)
    heart.pass_time(10)
    beat(heart)
    late = heart.checks.update(check, heart.settings(check, period_seconds=5)).wait()
    assert late.deadline_at < heart.clock.now
    heart.clock.advance(2 * HOUR)
    assert beat(heart, heart.new_sweep()) == 1


def test_a_short_restart_credits_nothing(heart):
    check = heart.create(HOUR)
    beat(heart)
    heart.clock.advance(2 * SWEEP_SECONDS)
    beat(heart, heart.new_sweep())
    assert heart.read(check) == check


def test_no_clock_is_credited_past_now(heart):
    check = heart.create(HOUR)
    beat(heart)
    heart.clock.advance(50)
    heart.ping(check)
    heart.clock.advance(2 * HOUR)
    beat(heart, heart.new_sweep())
    assert heart.read(check).clock_from == heart.clock.now


def test_a_check_pinged_since_the_restart_is_not_credited(heart):
    pinged, silent = heart.create(HOUR), heart.create(HOUR)
    beat(heart)
    heart.clock.advance(2 * HOUR)
    heart.ping(pinged)
    created = heart.create(HOUR)
    beat(heart, heart.new_sweep())
    assert heart.read(pinged).deadline_at == heart.clock.now + HOUR
    assert heart.read(created) == created
    assert heart.read(silent).deadline_at == silent.deadline_at + 2 * HOUR


def test_a_crash_between_the_steps_of_a_credit_credits_nobody_twice(heart):
    checks = [heart.create(HOUR) for _ in range(7)]
    beat(heart)
    heart.clock.advance(2 * HOUR)
    crashed = heart.new_sweep().credit
    assert heart.database.write(crashed.step)
    heart.clock.advance(10)
    heart.ping(checks[6])
    beat(heart, heart.new_sweep())
    assert {heart.read(check).deadline_at - check.deadline_at for check in checks[:6]} == {2 * HOUR}
    assert heart.read(checks[6]).clock_from == heart.clock.now


def crashed_in_a_credit(heart):
    """Five checks, and the credit of two hours that a process began for them and did not finish."""
    checks = [heart.create(HOUR) for _ in range(5)]
    beat(heart)
    heart.clock.advance(2 * HOUR)
    crashed = heart.new_sweep().credit
    assert not heart.database.write(crashed.note)
    return checks, crashed


def test_a_second_outage_in_the_middle_of_a_credit_is_credited_too(heart):
    checks, crashed = crashed_in_a_credit(heart)
    heart.database.write(crashed.step)
    heart.clock.advance(3 * HOUR)
    beat(heart, heart.new_sweep())
    assert {heart.read(check).deadline_at - check.deadline_at for check in checks} == {5 * HOUR}


@pytest.mark.parametrize("jump", [30 * HOUR, -30 * HOUR])
def test_a_clock_set_in_the_middle_of_a_credit_moves_all_by_both(heart, jump):
    checks, crashed = crashed_in_a_credit(heart)
    heart.clock.advance(jump)
    heart.database.write(crashed.step)
    heart.pass_time(10)
    beat(heart, heart.new_sweep())
    assert {heart.read(check).deadline_at - check.deadline_at for check in checks} == {2 * HOUR + jump}


def test_a_check_that_is_pinged_before_the_clock_is_set_back_gets_no_credit_of_the_outage_before(heart):
    checks, crashed = crashed_in_a_credit(heart)
    heart.database.write(crashed.step)
    heart.pass_time(1)
    heart.ping(checks[4])
    heart.pass_time(1)
    heart.clock.advance(-HOUR)
    beat(heart, heart.new_sweep())
    assert heart.read(checks[4]).clock_from == pytest.approx(heart.clock.now - 1, abs=3)


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_clock_set_right_in_the_middle_of_its_own_credit_leaves_deadlines_where_they_were(heart, jump):
    checks = [heart.create(2 * HOUR) for _ in range(5)]
    for _ in range(30):
        beat(heart)
        heart.pass_time(SWEEP_SECONDS)
    heart.clock.advance(jump)
    heart.database.write(heart.sweep.credit.step)
    heart.clock.advance(-jump)
    beat(heart)
    assert {heart.read(check).deadline_at - check.deadline_at for check in checks} == {0}


def test_jumps_in_the_middle_of_a_credit_are_credited_one_after_the_other(heart):
    checks, crashed = crashed_in_a_credit(heart)
    heart.database.write(crashed.step)
    heart.clock.advance(-HOUR)
    heart.database.write(crashed.step)
    heart.ping(checks[4])
    heart.pass_time(1)
    heart.clock.advance(HOUR)
    heart.database.write(crashed.note)
    assert beat(heart, heart.new_sweep()) == 0
    assert {heart.read(check).deadline_at - check.deadline_at for check in checks[:4]} == {2 * HOUR}
    assert heart.read(checks[4]).clock_from == pytest.approx(heart.clock.now - 1, abs=1)


def test_a_ping_by_a_clock_set_back_in_the_middle_of_a_credit_is_left_alone(heart):
    checks, crashed = crashed_in_a_credit(heart)
    heart.database.write(crashed.step)
    heart.clock.advance(-30 * HOUR)
    heart.database.write(crashed.note)
    heart.ping(checks[4])
    heart.pass_time(1)
    assert beat(heart, heart.new_sweep()) == 0
    assert heart.read(checks[4]).clock_from == heart.clock.now - 1


def test_a_ping_after_the_clock_was_set_back_counts_though_another_process_sees_that_first(heart):
    check = heart.create(60, 30)
    beat(heart)
    heart.pass_time(5)
    heart.clock.advance(-HOUR)
    heart.pass_time(5)
    heart.ping(check)
    heart.pass_time(10)
    assert beat(heart, heart.new_sweep()) == 0
    assert heart.read(check).clock_from == heart.clock.now - 10


def test_a_stop_that_is_noted_after_another_process_has_credited_a_jump_credits_it_no_second_time(heart):
    check = heart.create(4 * HOUR)
    other = heart.new_sweep()
    beat(heart)
    beat(heart, other)
    stopped_at = heart.sweep.credit.moment()
    heart.clock.advance(HOUR)
    heart.pass_time(1)
    beat(heart, other)
    heart.database.write(lambda transaction: heart.sweep.credit.note_stop(transaction, stopped_at))
    for _ in range(2):
        heart.pass_time(SWEEP_SECONDS)
        beat(heart, other)
    assert heart.read(check).deadline_at == check.deadline_at + HOUR


@POSTGRESQL
@pytest.mark.parametrize("code", ["40P01", "08006"])
def test_a_credit_whose_transaction_is_made_again_is_given_all_the_same(heart, monkeypatch, code):
    checks = [heart.create(HOUR) for _ in range(3)]
    beat(heart)
    heart.pass_time(2 * HOUR)
    write_later, undone = heart.database.write_later, []

    def undone_once(work):
        def then_undone(transaction):
            result = work(transaction)
            if not undone:
                undone.append(result)
                transaction.execute(f"DO $$ BEGIN RAISE 'undone' USING ERRCODE = '{code}'; END $$")
            return result

        return write_later(then_undone)

    monkeypatch.setattr(heart.database, "write_later", undone_once)
    assert beat(heart) + beat(heart) == 0
    assert {heart.read(check).deadline_at - check.deadline_at for check in checks} == {2 * HOUR}


def test_two_processes_credit_an_outage_once(heart):
    check = heart.create(HOUR)
    beat(heart)
    heart.clock.advance(2 * HOUR)
    sweeps = [heart.new_sweep(), heart.new_sweep()]
    for sweep in sweeps * 2:
        beat(heart, sweep)
    assert heart.read(check).deadline_at == check.deadline_at + 2 * HOUR


def test_two_processes_credit_a_jump_of_the_clock_once(heart):
    check = heart.create(HOUR)
    sweeps = [heart.new_sweep(), heart.new_sweep()]
    for sweep in sweeps:
        beat(heart, sweep)
        heart.pass_time(20)
    heart.clock.advance(HOUR)
    for sweep in sweeps * 2:
        beat(heart, sweep)
        heart.pass_time(20)
    assert heart.read(check).deadline_at == check.deadline_at + HOUR


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_jump_of_the_clock_alerts_nobody_wrongly_and_loses_nobody(heart, jump):
    check = heart.create(1000)
    beat(heart)
    heart.pass_time(SWEEP_SECONDS)
    heart.clock.advance(jump)
    for _ in range((1000 - SWEEP_SECONDS) // SWEEP_SECONDS):
        assert beat(heart) == 0
        heart.pass_time(SWEEP_SECONDS)
    assert heart.status(check) == "on_time"
    heart.pass_time(SWEEP_SECONDS)
    assert beat(heart) == 1
    assert heart.alert_types(check) == ["check.overdue"]


def snoozed(heart, seconds, **settings):
    check = heart.create(HOUR, **settings)
    return heart.checks.snooze(heart.key.id, check.id, seconds).wait()


def test_a_snooze_lasts_no_longer_because_the_clock_was_set_back(heart):
    check = snoozed(heart, 2 * HOUR)
    beat(heart)
    heart.pass_time(10)
    heart.clock.advance(-30 * HOUR)
    beat(heart)
    moved = heart.read(check)
    assert moved.as_of(heart.clock.now).snoozed_until == moved.clock_from == check.snoozed_until - 30 * HOUR


def there_and_back(heart, jump, is_restarted, checks=()):
    """The clock is wrong for 40 s, in which these checks are pinged, and then right again."""
    beat(heart)
    heart.pass_time(10)
    for seconds in (jump, -jump):
        heart.clock.advance(seconds)
        sweep = heart.new_sweep() if is_restarted else None
        for _ in range(2):
            for check in checks:
                heart.ping(check)
            beat(heart, sweep)
            heart.pass_time(20)


WRONG = pytest.mark.parametrize("jump", [-50 * 365 * 24 * HOUR, -HOUR, -600, 600, HOUR, 24 * HOUR])
RESTARTED = pytest.mark.parametrize("is_restarted", [False, True])


@WRONG
@RESTARTED
def test_a_snooze_ends_when_it_was_to_end_though_the_clock_was_wrong_for_a_time(heart, jump, is_restarted):
    kept = [snoozed(heart, seconds) for seconds in (900, 2 * HOUR, 24 * HOUR)]
    pinged, overdue = [snoozed(heart, 900) for _ in range(2)], heart.create(repeat_seconds=300)
    heart.checks.signal(overdue.id, Signal.FAILURE).wait()
    kept.append(heart.checks.snooze(heart.key.id, overdue.id, 2 * HOUR).wait())
    heart.pass_time(300)
    there_and_back(heart, jump, is_restarted, pinged[:1])
    for check in (*kept, *pinged):
        now = heart.read(check).as_of(heart.clock.now)
        assert now.snoozed_until == now.clock_from == check.snoozed_until
    assert heart.alert_types(overdue) == ["check.overdue"]
    assert heart.checks.signal(kept[0].id, Signal.FAILURE).wait().status == "on_time"


@pytest.mark.parametrize("is_set_right", [False, True])
def test_a_snooze_by_a_clock_that_is_ahead_lasts_no_longer_once_it_is_right(heart, is_set_right):
    beat(heart)
    for _ in range(is_set_right):
        heart.clock.advance(365 * 24 * HOUR)
        beat(heart)
    check = snoozed(heart, 2 * HOUR)
    heart.pass_time(SWEEP_SECONDS)
    heart.clock.advance(-365 * 24 * HOUR)
    beat(heart)
    end = heart.clock.now + 2 * HOUR - SWEEP_SECONDS
    assert heart.read(check).as_of(heart.clock.now).snoozed_until == end
    while heart.clock.now <= end:
        heart.pass_time(SWEEP_SECONDS)
        beat(heart)
    assert heart.read(check).as_of(heart.clock.now).snoozed_until is None
    assert heart.checks.signal(check.id, Signal.FAILURE).wait().status == "overdue"
    heart.ping(check)
    heart.pass_time(SWEEP_SECONDS)
    beat(heart, heart.new_sweep())
    assert heart.read(check).deadline_at == heart.clock.now - SWEEP_SECONDS + HOUR


@RESTARTED
def test_a_change_begins_no_snooze_again_of_a_clock_that_was_ahead(heart, is_restarted):
    over, kept = snoozed(heart, 60), snoozed(heart, 2 * HOUR)
    beat(heart)
    heart.clock.advance(-365 * 24 * HOUR)
    beat(heart)
    heart.pass_time(SWEEP_SECONDS)
    heart.ping(over)
    beat(heart)
    end = heart.read(kept).clock_from
    heart.clock.advance(HOUR)
    for check in (over, kept):
        now = heart.read(check)
        heart.checks.update(now, heart.settings(now, name="other")).wait()
    beat(heart, heart.new_sweep() if is_restarted else None)
    ends = [heart.read(check).as_of(heart.clock.now).snoozed_until for check in (over, kept)]
    assert ends == [None, end + HOUR]


@WRONG
def test_no_reminder_comes_early_because_the_clock_was_wrong_for_a_time(heart, jump):
    check = heart.create(repeat_seconds=600)
    heart.checks.signal(check.id, Signal.FAILURE).wait()
    heart.alerts.store([heart.attempt(1, "delivered", 204, None, None, HOOK, 0)], int(heart.clock()))
    there_and_back(heart, jump, is_restarted=False)
    for reminders in (0, 1):
        assert heart.alert_types(check) == ["check.overdue", *["check.reminder"] * reminders]
        for _ in range(10):
            heart.pass_time(SWEEP_SECONDS)
            beat(heart)


def test_a_downtime_and_a_clock_that_is_set_forward_end_a_snooze_when_it_was_to_end(heart):
    check = snoozed(heart, 10 * HOUR)
    beat(heart)
    heart.clock.advance(2 * HOUR)
    beat(heart, heart.new_sweep())
    heart.clock.advance(2 * HOUR)
    beat(heart)
    assert heart.read(check).snoozed_until == heart.read(check).clock_from == check.snoozed_until


def test_a_downtime_over_the_end_of_a_snooze_is_credited_up_to_now(heart):
    check = snoozed(heart, HOUR)
    beat(heart)
    heart.clock.advance(5 * HOUR)
    beat(heart, heart.new_sweep())
    assert heart.read(check).clock_from == heart.clock.now


def test_a_ping_after_the_clock_was_set_back_counts_though_a_snooze_was_over_before(heart):
    check = snoozed(heart, 60)
    beat(heart)
    for _ in range(2):
        heart.pass_time(SWEEP_SECONDS - 5)
        beat(heart)
    heart.clock.advance(-HOUR // 2)
    heart.pass_time(5)
    heart.ping(check)
    heart.pass_time(5)
    beat(heart)
    assert heart.read(check).clock_from == heart.clock.now - 5
    heart.ping(check)
    assert heart.read(check).deadline_at == heart.clock.now + HOUR


def test_a_snooze_that_was_over_at_a_ping_does_not_begin_again_because_the_clock_is_set_back(heart):
    check = snoozed(heart, 60)
    beat(heart)
    heart.pass_time(61)
    heart.ping(check)
    heart.clock.advance(-HOUR // 2)
    assert heart.checks.signal(check.id, Signal.FAILURE).wait().status == "overdue"


def test_a_change_of_a_check_after_the_clock_was_set_back_begins_no_snooze_again_that_was_over(heart):
    check = snoozed(heart, 60)
    beat(heart)
    for seconds in (61, 10 * SWEEP_SECONDS):
        heart.pass_time(seconds)
        beat(heart)
    before = heart.read(check)
    heart.clock.advance(-30 * HOUR)
    heart.checks.update(before, heart.settings(before, name="other")).wait()
    beat(heart)
    now = heart.read(check)
    assert (now.snoozed_until, now.clock_from) == (before.snoozed_until - 30 * HOUR, before.clock_from - 30 * HOUR)


@pytest.mark.parametrize("jump", [-30 * HOUR, 30 * HOUR])
def test_a_reminder_waits_neither_longer_nor_less_because_the_clock_was_set(heart, jump):
    check = heart.create(HOUR, repeat_seconds=600)
    heart.checks.signal(check.id, Signal.FAILURE).wait()
    heart.alerts.store([heart.attempt(1, "delivered", 204, None, None, HOOK, 0)], int(heart.clock()))
    beat(heart)
    heart.pass_time(10)
    heart.clock.advance(jump)
    beat(heart)
    assert heart.alert_types(check) == ["check.overdue"]
    for _ in range(10):
        heart.pass_time(SWEEP_SECONDS)
        beat(heart)
    assert heart.alert_types(check) == ["check.overdue", "check.reminder"]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_snoozes_and_reminders_that_begin_after_the_clock_was_set_back_stay(heart, is_restarted):
    late, failed, lasting, changed = (heart.create(HOUR, repeat_seconds=8 * HOUR) for _ in range(4))
    heart.checks.signal(changed.id, Signal.FAILURE).wait()
    beat(heart)
    heart.pass_time(10)
    heart.clock.advance(-5 * HOUR)
    heart.pass_time(10)
    heart.checks.signal(failed.id, Signal.FAILURE).wait()
    snoozed = [heart.checks.snooze(heart.key.id, check.id, 8 * HOUR).wait() for check in (late, lasting)]
    heart.ping(lasting)
    read = heart.read(changed)
    heart.checks.update(read, heart.settings(read, repeat_seconds=7 * HOUR)).wait()
    heart.pass_time(10)
    sweep = heart.new_sweep() if is_restarted else None
    for _ in range(7 * HOUR // SWEEP_SECONDS - 1):
        beat(heart, sweep)
        heart.pass_time(SWEEP_SECONDS)
    for check in snoozed:
        now = heart.read(check)
        assert now.snoozed_until == now.clock_from == check.snoozed_until
    for check in (late, failed, lasting, changed):
        assert heart.alert_types(check) == ["check.overdue"] * (check in (failed, changed))
    heart.alerts.store(
        [heart.attempt(seq, "delivered", 204, None, None, HOOK, 0) for seq in (1, 2)], int(heart.clock())
    )
    heart.pass_time(SWEEP_SECONDS)
    beat(heart)
    assert heart.alert_types(changed) == ["check.overdue", "check.reminder"]


def test_a_retry_waits_no_longer_because_the_clock_was_set_back_while_the_server_was_down(heart):
    heart.clock.advance(20 * HOUR)
    check = heart.create(1)
    heart.pass_time(10)
    beat(heart)
    next_at = int(heart.clock()) + 5
    heart.database.write(lambda t: t.execute("UPDATE alerts SET attempts = 1, next_attempt_at = ?", (next_at,)))
    heart.clock.advance(-20 * HOUR)
    beat(heart, heart.new_sweep())
    with heart.database.read() as connection:
        (found,) = connection.execute("SELECT next_attempt_at FROM alerts WHERE check_id = ?", (check.id,)).fetchone()
    assert found == next_at - 20 * HOUR


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_jump_of_the_clock_takes_the_deadlines_with_it(heart, jump):
    check = heart.create(3 * HOUR)
    for _ in range(2 * HOUR // SWEEP_SECONDS):
        heart.pass_time(SWEEP_SECONDS)
        beat(heart)
    heart.clock.advance(jump)
    beat(heart)
    assert heart.read(check).deadline_at == check.deadline_at + jump


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_ping_between_a_jump_and_the_next_sweep_counts_in_full(heart, jump):
    check = heart.create(1000)
    beat(heart)
    heart.clock.advance(jump)
    heart.pass_time(30)
    heart.ping(check)
    heart.pass_time(30)
    beat(heart)
    assert heart.clock.now + 1000 >= heart.read(check).deadline_at >= heart.clock.now - 30 + 1000


def test_a_paused_process_credits_the_pause(heart):
    check = heart.create(1000)
    beat(heart)
    heart.pass_time(HOUR)
    assert beat(heart) == 0
    assert heart.read(check).deadline_at == check.deadline_at + HOUR


def test_small_corrections_of_the_clock_are_left_alone(heart):
    check = heart.create(1000)
    for _ in range(10):
        beat(heart)
        heart.pass_time(SWEEP_SECONDS)
        heart.clock.advance(1)
    assert heart.read(check) == check


def test_sweeps_that_failed_for_long_count_as_an_outage(heart, monkeypatch):
    check, write_later = heart.create(1000), heart.database.write_later
    beat(heart)
    with monkeypatch.context() as patch:
        patch.setattr(heart.database, "write_later", lambda _: write_later(lambda _: 1 / 0))
        for _ in range(3):
            heart.pass_time(SWEEP_SECONDS)
            with pytest.raises(ZeroDivisionError):
                beat(heart)
    beat(heart)
    assert heart.read(check).deadline_at == check.deadline_at + 3 * SWEEP_SECONDS


def test_a_sweep_that_fails_while_pings_are_stored_moves_no_deadline(heart, monkeypatch):
    """Else it would excuse all checks for ever, and the sweep after each credit would look as if it had gone well."""
    check = heart.create(1000)
    beat(heart)
    aged = []
    with monkeypatch.context() as patch:
        patch.setattr(heart.sweep, "_mark_overdue", lambda *_: 1 / 0)
        for _ in range(6):
            heart.pass_time(SWEEP_SECONDS)
            with pytest.raises(ZeroDivisionError):
                beat(heart)
            aged.append(heart.sweep.healthy())
    assert aged == [True, True, True, False, False, False]
    beat(heart)
    assert heart.read(check).deadline_at == check.deadline_at


def test_what_a_database_lost_that_went_back_is_silence_for_the_process_that_goes_on(heart):
    """As where a standby that was behind is the server now, or a backup was put back: the pings since then are lost."""
    if heart.database.fence is None:
        pytest.skip("a file can't be put back under a running server")
    check, other = heart.create(5 * SWEEP_SECONDS), heart.create(HOUR)
    beat(heart)
    tables = {"monitor": "name, value", "checks": "id, clock_from"}
    with heart.database.read() as connection:
        kept = {
            table: connection.execute(f"SELECT {columns} FROM {table}").fetchall() for table, columns in tables.items()
        }
    for _ in range(6):
        heart.pass_time(SWEEP_SECONDS)
        heart.ping(check)
        assert beat(heart) == 0

    def put_back(transaction):
        monitor.note(transaction, **dict(kept["monitor"]))
        for check_id, clock_from in kept["checks"]:
            transaction.execute("UPDATE checks SET clock_from = ? WHERE id = ?", (clock_from, check_id))

    heart.database.write(put_back)
    assert beat(heart) == 0
    assert [heart.read(one).deadline_at - one.deadline_at for one in (check, other)] == [6 * SWEEP_SECONDS] * 2


def ping_and_sweep_fail(heart, check):
    for deed in (lambda: heart.ping(check), lambda: beat(heart)):
        with pytest.raises(DATABASE_ERRORS):
            deed()


def test_while_no_ping_can_be_stored_the_time_is_silence_though_the_moment_could_be(heart):
    checks = [heart.create(1), heart.create(1000)]
    beat(heart)
    refuse(heart.database, "UPDATE ON checks")
    for _ in range(3):
        heart.pass_time(SWEEP_SECONDS)
        ping_and_sweep_fail(heart, checks[0])
    allow(heart.database)
    assert beat(heart) == 0
    assert [heart.read(check).deadline_at - check.deadline_at for check in checks] == [3 * SWEEP_SECONDS] * 2


def test_a_job_that_tells_its_start_is_no_ping_that_was_stored(heart):
    """Telling it only reads: else one job that starts would keep all others from the credit for their lost pings."""
    checks = [heart.create(1), heart.create(1000)]
    beat(heart)
    refuse(heart.database, "UPDATE ON checks")
    for _ in range(3):
        heart.pass_time(SWEEP_SECONDS / 2)
        heart.checks.signal(checks[1].id, Signal.OTHER).wait()
        heart.pass_time(SWEEP_SECONDS / 2)
        heart.checks.signal(checks[1].id, Signal.OTHER).wait()
        ping_and_sweep_fail(heart, checks[0])
    allow(heart.database)
    assert beat(heart) == 0
    assert [heart.read(check).deadline_at - check.deadline_at for check in checks] == [3 * SWEEP_SECONDS] * 2


def test_while_no_ping_can_be_stored_the_time_is_silence_though_no_check_is_late(heart):
    check = heart.create(1000)
    beat(heart)
    refuse(heart.database, "UPDATE ON checks")
    for _ in range(4):
        heart.pass_time(SWEEP_SECONDS)
        ping_and_sweep_fail(heart, check)
    assert not heart.sweep.healthy()
    allow(heart.database)
    beat(heart)
    assert heart.read(check).deadline_at - check.deadline_at == 4 * SWEEP_SECONDS


def test_while_one_of_two_servers_can_store_no_ping_the_time_is_silence_for_both(heart, open_again, clock):
    other, check = Heart(open_again(), clock, monotonic=heart.monotonic), heart.create(1000)
    beat(heart)
    refuse(heart.database, "UPDATE ON checks")
    for _ in range(4):
        heart.pass_time(SWEEP_SECONDS)
        ping_and_sweep_fail(other, check)
        with pytest.raises(DATABASE_ERRORS):
            beat(heart)
    allow(heart.database)
    beat(heart)
    assert heart.read(check).deadline_at - check.deadline_at == 4 * SWEEP_SECONDS


def test_a_server_that_was_suspended_knows_from_another_one_until_when_pings_were_stored(
    heart, open_again, clock, monkeypatch, caplog
):
    other, check = Heart(open_again(), clock, monotonic=heart.monotonic), heart.create(10 * HOUR)
    beat(heart)
    beat(other)
    with monkeypatch.context() as patch:
        patch.setattr(other.checks, "_note_signals", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            other.ping(check)
    for _ in range(30):
        heart.pass_time(SWEEP_SECONDS)
        beat(heart)
    with monkeypatch.context() as patch:
        patch.setattr(other.sweep, "_mark_overdue", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            beat(other)
    assert [beat(one) for one in (other, heart)] == [0, 0]
    assert heart.read(check).deadline_at == check.deadline_at
    assert "the deadlines of checks" not in caplog.text


def test_on_a_disk_that_is_full_the_time_is_silence_though_a_row_can_be_written_in_its_page(heart, monkeypatch):
    check = heart.create(1000)
    beat(heart)
    refuse(heart.database, "INSERT ON monitor", "NEW.name LIKE 'room%'")
    with monkeypatch.context() as patch:
        patch.setattr(heart.checks, "_note_signals", Mock(side_effect=sqlite3.IntegrityError("full")))
        for _ in range(2):
            heart.pass_time(SWEEP_SECONDS)
            ping_and_sweep_fail(heart, check)
    heart.pass_time(SWEEP_SECONDS)
    allow(heart.database)
    beat(heart)
    assert heart.read(check).deadline_at - check.deadline_at == 3 * SWEEP_SECONDS


def test_one_ping_that_was_refused_keeps_no_sweep_from_its_work(heart, trouble):
    check, other = heart.create(1000), heart.create(1000)
    for _ in range(4):
        beat(heart)
        trouble(sweep=False, pings=True)
        with pytest.raises(ZeroDivisionError):
            heart.ping(check)
        trouble(sweep=False, pings=False)
        heart.pass_time(SWEEP_SECONDS)
    beat(heart)
    assert heart.read(other).deadline_at == other.deadline_at
    with heart.database.read() as connection:
        assert not [name for name in monitor.values(connection) if name.startswith("room")]


@pytest.fixture
def trouble(heart, monkeypatch):
    """Sets what fails: the sweep from the first call on, and pings as told."""
    note_signals = heart.checks._note_signals

    def set_trouble(*, sweep, pings):
        monkeypatch.setattr(heart.sweep, "_mark_overdue", lambda *_: 1 / 0) if sweep else monkeypatch.undo()
        monkeypatch.setattr(heart.checks, "_note_signals", (lambda *_: 1 / 0) if pings else note_signals)

    return set_trouble


def failing(heart, check, *, seconds=SWEEP_SECONDS):
    """A sweep's interval in which a ping comes in the middle and the sweep fails."""
    heart.pass_time(seconds / 2)
    with contextlib.suppress(ZeroDivisionError):
        heart.ping(check)
    heart.pass_time(seconds / 2)
    with pytest.raises(ZeroDivisionError):
        beat(heart)


def test_while_pings_are_refused_and_the_sweep_fails_the_time_is_silence(heart, trouble):
    """As where the table of keys is locked: checks can be written, but no ping."""
    check, other = heart.create(1000), heart.create(1000)
    beat(heart)
    trouble(sweep=True, pings=True)
    for _ in range(3):
        failing(heart, check)
    trouble(sweep=False, pings=False)
    # Before the next sweep.
    heart.ping(check)
    trouble(sweep=True, pings=False)
    with pytest.raises(ZeroDivisionError):
        beat(heart)
    trouble(sweep=False, pings=False)
    beat(heart)
    moved = heart.read(other).deadline_at - other.deadline_at
    assert 2 * SWEEP_SECONDS < moved <= 3 * SWEEP_SECONDS


def test_a_few_pings_that_are_refused_among_others_are_no_silence(heart, trouble):
    """As where a page of one check is damaged: the outages of others must not be told late by as much."""
    check, other = heart.create(1000), heart.create(1000)
    beat(heart)
    for _ in range(6):
        trouble(sweep=True, pings=False)
        failing(heart, check)
        trouble(sweep=True, pings=True)
        with pytest.raises(ZeroDivisionError):
            heart.ping(check)
    trouble(sweep=False, pings=False)
    beat(heart)
    assert heart.read(other).deadline_at == other.deadline_at


class SetAtItsSecondLook(threading.Event):
    def is_set(self):
        was_set = super().is_set()
        self.set()
        return was_set


def test_a_stop_in_the_middle_of_a_credit_leaves_the_rest_for_the_next_start(heart):
    checks = [heart.create(HOUR) for _ in range(5)]
    beat(heart)
    heart.clock.advance(2 * HOUR)
    heart.new_sweep().credit.give_due(SetAtItsSecondLook())
    assert heart.read(checks[4]) == checks[4]
    beat(heart, heart.new_sweep())
    assert {heart.read(check).deadline_at - check.deadline_at for check in checks} == {2 * HOUR}


def test_a_stop_before_a_credit_is_finished_begins_no_other(heart):
    checks, _ = crashed_in_a_credit(heart)
    heart.clock.advance(3 * HOUR)
    stopping = threading.Event()
    stopping.set()
    heart.new_sweep().credit.give_due(stopping)
    beat(heart, heart.new_sweep())
    assert {heart.read(check).deadline_at - check.deadline_at for check in checks} == {5 * HOUR}


@pytest.mark.parametrize(
    ("jump", "sentence"),
    [(2 * HOUR, "no ping could be taken for 7200 s, or"), (-2 * HOUR, "the clock was set back by 7200 s: ")],
)
def test_the_log_says_so_in_one_line(heart, caplog, jump, sentence):
    heart.create(HOUR)
    beat(heart)
    heart.clock.advance(jump)
    beat(heart, heart.new_sweep())
    (line,) = told(caplog)
    assert line.startswith(sentence)


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "cardbeat.heartbeat.credit"]


def undone(deed):
    """A write that fails after this deed, so that nothing of it is stored."""

    def work(transaction):
        deed(transaction)
        raise Unavailable("database_unavailable")

    return work


@pytest.mark.parametrize("jump", [2 * HOUR, -2 * HOUR])
def test_the_log_says_so_once_it_is_stored(heart, caplog, jump):
    heart.create(HOUR)
    beat(heart)
    heart.clock.advance(jump)
    credit = heart.sweep.credit
    for deed in (credit.step, credit.note, credit.step):
        with pytest.raises(Unavailable):
            credit._write(undone(deed))
    assert not told(caplog)
    beat(heart)
    assert len(told(caplog)) == 1


@pytest.mark.parametrize("is_stored", [True, False])
def test_the_log_says_so_at_a_stop_once_it_is_stored(heart, caplog, monkeypatch, is_stored):
    beat(heart)
    heart.clock.advance(2 * HOUR)
    if not is_stored:
        note = heart.sweep.credit.note
        monkeypatch.setattr(heart.sweep.credit, "note", lambda transaction, moment: undone(note)(transaction))
    heart.sweep.stop()
    heart.database.write(lambda _: None)
    assert len(told(caplog)) == is_stored


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_clock_set_between_the_settling_and_the_sweep_alerts_nobody_wrongly(heart, jump):
    check = heart.create(period_seconds=600)
    beat(heart)
    heart.pass_time(60)
    moment = heart.sweep.credit.give_due(threading.Event())
    heart.clock.advance(jump)
    heart.ping(check)
    assert heart.sweep.sweep_once(moment) == 0
    turned = []
    for _ in range(12):
        heart.pass_time(SWEEP_SECONDS)
        turned.append(beat(heart))
    assert sum(turned[:10]) == 0
    assert sum(turned) == 1
