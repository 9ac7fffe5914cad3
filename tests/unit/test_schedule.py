"""When each check's next alert is due."""

import math

import pytest

from cardbeat.heartbeat.lanes import CheckQueue
from cardbeat.heartbeat.schedule import Schedule

NOW = 1000.0


@pytest.fixture
def schedule():
    return Schedule()


@pytest.fixture
def queue(schedule):
    """A check with two alerts, the first of them due now."""
    queue = CheckQueue(1, "key", "a.example", [10, 11])
    schedule.add(queue, NOW)
    return queue


def due(schedule, now=NOW):
    return [queue.check_seq for queue in schedule.take_due(now)]


def test_queues_are_due_in_the_order_of_their_times(schedule):
    for check_seq, wait in ((1, 5), (2, 3), (3, 8)):
        schedule.add(CheckQueue(check_seq, "key", "a.example", [check_seq]), NOW + wait)
    assert schedule.next_due_at() == NOW + 3
    assert due(schedule, NOW + 2) == []
    assert due(schedule, NOW + 5) == [2, 1]
    assert schedule.next_due_at() == NOW + 8


def test_with_nothing_that_waits_nothing_is_ever_due(schedule, queue):
    assert due(schedule) == [1]
    assert schedule.next_due_at() == math.inf
    assert due(schedule, NOW + 10**9) == []


def test_an_alert_goes_behind_those_of_its_check_and_needs_a_queue(schedule, queue):
    assert schedule.append(1, 12)
    assert not schedule.append(2, 13)
    assert queue.alerts == [10, 11, 12]


def test_after_a_failure_the_same_alert_waits(schedule, queue):
    schedule.take_due(NOW)
    schedule.resume(queue, 30, None, NOW)
    assert (schedule.next_due_at(), queue.alerts) == (NOW + 30, [10, 11])


def test_after_a_finished_alert_the_next_is_due_at_once(schedule, queue):
    schedule.take_due(NOW)
    schedule.resume(queue, None, None, NOW + 1)
    assert (due(schedule, NOW + 1), queue.alerts) == ([1], [11])


def test_a_queue_without_alerts_is_forgotten(schedule, queue):
    for _ in range(2):
        schedule.take_due(NOW)
        schedule.resume(queue, None, None, NOW)
    assert schedule.next_due_at() == math.inf
    assert not schedule.append(1, 12)


def test_a_queue_found_to_have_another_host_goes_on_there(schedule, queue):
    schedule.take_due(NOW)
    schedule.resume(queue, 0, "b.example", NOW)
    assert (due(schedule), queue.host) == ([1], "b.example")


def test_a_move_of_a_waiting_queue_makes_it_due_once_and_now(schedule, queue):
    schedule.take_due(NOW)
    schedule.resume(queue, 30, None, NOW)
    schedule.move(1, "b.example", NOW + 1)
    assert (due(schedule, NOW + 1), queue.host) == ([1], "b.example")
    schedule.resume(queue, 100, None, NOW + 1)
    assert due(schedule, NOW + 60) == []
    assert due(schedule, NOW + 101) == [1]


def test_a_move_of_a_queue_that_is_due_changes_nothing_as_its_courier_reads_the_url(schedule, queue):
    schedule.take_due(NOW)
    schedule.move(1, "b.example", NOW + 1)
    assert (due(schedule, NOW + 1), queue.host) == ([], "a.example")
    schedule.resume(queue, 30, None, NOW + 2)
    assert schedule.next_due_at() == NOW + 32


def test_the_tests_of_a_check_are_a_queue_of_their_own(schedule, queue):
    schedule.take_due(NOW)
    schedule.resume(queue, 30, None, NOW)
    assert not schedule.append(1, 12, is_test=True)
    schedule.add(CheckQueue(1, "key", "a.example", [12], is_test=True), NOW)
    (tests,) = schedule.take_due(NOW)
    assert schedule.append(1, 13, is_test=True)
    assert (tests.alerts, queue.alerts) == ([12, 13], [10, 11])
    schedule.resume(tests, None, None, NOW)
    schedule.move(1, "b.example", NOW)
    assert [moved.host for moved in schedule.take_due(NOW)] == ["b.example", "b.example"]


def test_a_move_of_a_check_without_alerts_is_nothing(schedule):
    schedule.move(7, "b.example", NOW)
    assert schedule.next_due_at() == math.inf
