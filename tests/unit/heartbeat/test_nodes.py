"""Several nodes over one database: one at a time sweeps, credits and delivers, and what it does not hold it lets be."""

import sqlite3
import threading

import pytest

from cardbeat.database import monitor
from cardbeat.database.postgresql.row_lease import TERM_SECONDS
from cardbeat.errors import LeaseLost
from cardbeat.heartbeat import sweep as sweep_module
from cardbeat.heartbeat.credit import REFUSED
from tests.heart import DATABASE_ERRORS, SWEEP_SECONDS, allow, refuse
from tests.nodes import Nodes, flush
from tests.postgresql import BOTH_ENGINES
from tests.support import wait_until

pytestmark = BOTH_ENGINES

HOUR = 3600


@pytest.fixture
def nodes(open_again, clock):
    return Nodes(open_again, clock, batch=2)


def beat(heart, sweep=None):
    """What the sweep's thread does in each round while its process has the lease."""
    sweep = sweep or heart.sweep
    return sweep.sweep_once(sweep.credit.give_due(threading.Event()))


def hand_over(giver, taker):
    giver.fence.release()
    flush(giver)
    # Who had it before and was not asked meanwhile is told first that another one had it.
    assert taker.fence.take() or taker.fence.take()


def noted(heart):
    with heart.database.read() as connection:
        return monitor.values(connection)


def test_machines_whose_clocks_are_apart_credit_each_other_nothing(nodes, caplog):
    check = nodes.first.create(HOUR)
    giver, taker = nodes.first, nodes.second
    assert giver.fence.take()
    for _ in range(6):
        for _ in range(3):
            beat(giver)
            nodes.pass_time(20)
            assert giver.fence.take()
        hand_over(giver, taker)
        giver, taker = taker, giver
    assert nodes.first.read(check) == check
    assert "the deadlines of checks" not in caplog.text


def test_an_outage_of_all_nodes_is_credited_once(nodes):
    check = nodes.first.create(HOUR)
    nodes.first.fence.take()
    beat(nodes.first)
    nodes.pass_time(2 * HOUR)
    for _ in range(2):
        assert nodes.second.fence.take()
        assert beat(nodes.second) == 0
        nodes.pass_time(SWEEP_SECONDS)
    hand_over(nodes.second, nodes.first)
    assert beat(nodes.first) == 0
    assert nodes.first.read(check).deadline_at == check.deadline_at + 2 * HOUR


@pytest.mark.parametrize("is_pinged", [False, True])
def test_a_node_that_takes_over_and_can_not_sweep_knows_until_when_another_one_did(
    nodes, monkeypatch, is_pinged, caplog
):
    """A ping that it once refused says nothing of the days since: else all deadlines and snoozes moved by these."""
    first, second = nodes.first, nodes.second
    checks = [first.create(HOUR), first.create(30 * 24 * HOUR)]
    first.fence.take()
    for minute in range(60):
        beat(first)
        if minute == 5:
            with monkeypatch.context() as patch:
                patch.setattr(second.checks, "_note_signals", lambda *_: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    second.ping(checks[0])
        if minute % 10 == 9 and is_pinged:
            second.ping(checks[0])
        second.sweep.sweep_or_look()
        nodes.pass_time(SWEEP_SECONDS)
        assert first.fence.take()
    with monkeypatch.context() as patch:
        patch.setattr(second.checks, "_note_signals", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            second.ping(checks[0])
        hand_over(first, second)
        patch.setattr(second.sweep, "_mark_overdue", lambda *_: 1 / 0)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                second.sweep.sweep_once(second.sweep.credit.moment())
            nodes.pass_time(SWEEP_SECONDS)
    before = first.read(checks[1]).deadline_at
    beat(second)
    assert "set back" not in caplog.text
    assert first.read(checks[1]).deadline_at - before == 3 * SWEEP_SECONDS


def test_pings_that_only_another_node_refuses_are_silence_too(nodes):
    """As where a balancer sends all pings to a node that does not sweep, and checks are locked or the disk is full."""
    first, second = nodes.first, nodes.second
    check = first.create(6 * SWEEP_SECONDS)
    first.fence.take()
    beat(first)
    refuse(first.database, "UPDATE ON checks")
    for _ in range(8):
        nodes.pass_time(SWEEP_SECONDS)
        assert first.fence.take()
        with pytest.raises(DATABASE_ERRORS):
            second.ping(check)
        flush(second)
        with pytest.raises(DATABASE_ERRORS):
            beat(first)
        second.sweep.sweep_or_look()
    allow(first.database)
    assert not second.sweep.healthy()
    assert [beat(first) for _ in range(2)] == [0, 0]
    assert first.read(check).deadline_at - check.deadline_at == 8 * SWEEP_SECONDS
    # No further sweep tries a ping.
    assert noted(first)[REFUSED] == 0


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_node_that_takes_over_and_can_not_sweep_knows_until_when_failing_sweeps_were_no_silence(
    nodes, monkeypatch, is_refused, caplog
):
    first, second = nodes.first, nodes.second
    pinged, other = first.create(HOUR), first.create(30 * 24 * HOUR)
    first.fence.take()
    beat(first)
    second.sweep.sweep_or_look()
    with monkeypatch.context() as patch:
        for heart in first, second:
            patch.setattr(heart.sweep, "_mark_overdue", lambda *_: 1 / 0)
        for minute in range(60):
            with pytest.raises(ZeroDivisionError):
                beat(first)
            if minute == 5 and is_refused:
                with monkeypatch.context() as refusing:
                    refusing.setattr(second.checks, "_note_signals", lambda *_: 1 / 0)
                    with pytest.raises(ZeroDivisionError):
                        second.ping(pinged)
            if minute % 10 == 9:
                first.ping(pinged)
                second.ping(pinged)
            second.sweep.sweep_or_look()
            nodes.pass_time(SWEEP_SECONDS)
            assert first.fence.take()
        hand_over(first, second)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                beat(second)
            nodes.pass_time(SWEEP_SECONDS)
    beat(second)
    assert "the deadlines of checks" not in caplog.text
    assert first.read(other).deadline_at == other.deadline_at


@pytest.mark.parametrize("sweep_seconds", [0.5, 5, 60])
def test_the_time_until_another_node_takes_over_is_no_outage(nodes, sweep_seconds):
    check = nodes.first.create(HOUR)
    sweeps = [heart.sweep_every(sweep_seconds, monotonic=heart.monotonic) for heart in nodes]
    nodes.first.fence.take()
    beat(nodes.first, sweeps[0])
    # It is killed just before its next sweep, and the lease was renewed just before that.
    nodes.pass_time(sweep_seconds)
    nodes.first.fence.take()
    while not nodes.second.fence.take():
        nodes.pass_time(1)
    beat(nodes.second, sweeps[1])
    assert nodes.first.read(check).deadline_at == check.deadline_at


@pytest.mark.parametrize(("sweeps_every", "takes_over_every"), [(60, 1), (1, 60)])
def test_nodes_that_sweep_at_other_intervals_are_healthy_and_take_over_without_a_credit(
    nodes, sweeps_every, takes_over_every
):
    check = nodes.first.create(HOUR)
    every = (sweeps_every, takes_over_every)
    first, second = (
        heart.sweep_every(seconds, monotonic=heart.monotonic) for heart, seconds in zip(nodes, every, strict=True)
    )
    nodes.first.fence.take()
    beat(nodes.first, first)
    second.sweep_or_look()
    nodes.pass_time(sweeps_every)
    second.sweep_or_look()
    assert second.healthy()
    nodes.first.fence.take()
    while not nodes.second.fence.take():
        nodes.pass_time(1)
    beat(nodes.second, second)
    assert nodes.first.read(check).deadline_at == check.deadline_at


@pytest.mark.parametrize(
    ("silent", "credited"), [(2 * SWEEP_SECONDS, 0), (2 * SWEEP_SECONDS + 1, 2 * SWEEP_SECONDS + 1)]
)
def test_an_outage_after_which_nobody_took_over_is_longer_than_two_sweeps(nodes, silent, credited):
    check = nodes.first.create(HOUR)
    nodes.first.fence.take()
    beat(nodes.first)
    nodes.pass_time(silent)
    nodes.first.fence.take()
    beat(nodes.first)
    assert nodes.first.read(check).deadline_at == check.deadline_at + credited


def test_a_clock_that_was_set_while_one_node_sweeps_takes_the_deadlines_with_it(nodes):
    check = nodes.first.create(3 * HOUR)
    nodes.first.fence.take()
    beat(nodes.first)
    nodes.pass_time(1)
    nodes.clock.advance(HOUR)
    nodes.first.fence.take()
    beat(nodes.first)
    assert nodes.first.read(check).deadline_at == check.deadline_at + HOUR


def test_a_node_that_was_stopped_past_its_lease_changes_nothing(nodes):
    checks = [nodes.first.create(1) for _ in range(5)]
    nodes.first.fence.take()
    beat(nodes.first)
    nodes.pass_time(4)
    nodes.first.fence.take()
    moment = nodes.first.sweep.credit.give_due(threading.Event())
    nodes.pass_time(HOUR)
    nodes.second.fence.take()
    # What it would do next, in the middle of a sweep, of a credit, and at its stop.
    before = noted(nodes.second)
    with pytest.raises(LeaseLost):
        nodes.first.sweep.sweep_once(moment)
    with pytest.raises(LeaseLost):
        nodes.first.sweep.credit.give_due(threading.Event())
    nodes.first.sweep.stop()
    flush(nodes.first)
    assert noted(nodes.second) == before
    assert [nodes.first.status(check) for check in checks] == ["on_time"] * 5


def test_only_who_has_the_lease_sweeps_and_reports(nodes):
    check = nodes.first.create(1)
    nodes.pass_time(2)
    reports = []
    first, second = (
        heart.sweep_every(60, monotonic=heart.monotonic, after=lambda heart=heart: reports.append(heart))
        for heart in nodes
    )
    nodes.first.fence.take()
    assert second.sweep_or_look() == sweep_module.POLL_SECONDS
    assert nodes.first.status(check) == "on_time"
    assert first.sweep_or_look() == 60
    assert nodes.first.status(check) == "overdue"
    assert reports == [nodes.first]


def test_who_lost_the_lease_in_the_middle_of_a_sweep_does_not_report_it(nodes, monkeypatch):
    reports = []
    sweep = nodes.first.sweep_every(60, monotonic=nodes.first.monotonic, after=lambda: reports.append(1))
    nodes.first.fence.take()
    held = nodes.first.fence.held

    def held_until_now():
        answer = held()
        nodes.pass_time(TERM_SECONDS)
        nodes.second.fence.take()
        return answer

    monkeypatch.setattr(nodes.first.fence, "held", held_until_now)
    assert sweep.sweep_or_look() == sweep_module.POLL_SECONDS
    assert reports == []


def test_who_waits_for_the_lease_sweeps_once_it_has_that_whatever_the_database_said_meanwhile(nodes, monkeypatch):
    sweep = nodes.second.sweep_every(0.01, monotonic=nodes.second.monotonic)
    errors = [sqlite3.ProgrammingError("no such table: monitor")]

    def values(transaction):
        if errors:
            raise errors.pop()
        return {}

    monkeypatch.setattr("cardbeat.heartbeat.sweep.monitor.values", values)
    check = nodes.first.create()
    nodes.pass_time(1000)
    sweep.start()
    wait_until(lambda: not errors)
    monkeypatch.undo()
    nodes.second.fence.take()
    wait_until(lambda: nodes.first.read(check).status == "overdue")
    sweep.stop()


def test_every_node_knows_how_long_ago_a_sweep_was(nodes):
    first, second = (heart.sweep_every(60, monotonic=heart.monotonic) for heart in nodes)
    for _ in range(5):
        nodes.first.fence.take()
        first.sweep_or_look()
        second.sweep_or_look()
        nodes.pass_time(50)
        assert [sweep.age_seconds() for sweep in (first, second)] == [50, 50]
    nodes.pass_time(200)
    second.sweep_or_look()
    assert not second.healthy()
    nodes.second.fence.take()
    second.sweep_or_look()
    assert second.healthy()


def test_a_sweep_is_counted_once_whatever_it_finds(nodes):
    heart = nodes.first
    heart.fence.take()
    for count, due in enumerate((0, 1, 2, 5, 0), start=1):
        checks = [heart.create(1) for _ in range(due)]
        nodes.pass_time(2)
        heart.fence.take()
        assert beat(heart) == due
        assert {heart.status(check) for check in checks} <= {"overdue"}
        assert noted(nodes.second)[sweep_module.SWEEPS] == count


def test_a_sweep_that_a_credit_cuts_short_is_not_counted(nodes):
    heart = nodes.first
    heart.create(HOUR)
    heart.fence.take()
    beat(heart)
    nodes.pass_time(HOUR)
    heart.fence.take()
    # The second time the credit is noted and not given yet.
    for _ in range(2):
        heart.sweep.sweep_once()
        assert noted(heart)[sweep_module.SWEEPS] == 1
    beat(heart)
    assert noted(heart)[sweep_module.SWEEPS] == 2
