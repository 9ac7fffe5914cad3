"""When each check's next alert is due."""

import math

import pytest

from cardbeat.heartbeat.delivery.lanes import CheckQueue
from cardbeat.heartbeat.delivery.schedule import OUTDATED, Schedule

NOW = 1000.0


@pytest.fixture
def schedule():
    return Schedule()


@pytest.fixture
def queue(schedule):
    """Of a check whose alert is due now."""
    queue = new_queue(1)
    schedule.add(queue, NOW)
    return queue


def new_queue(check_seq, **options):
    return CheckQueue(check_seq, "key", "a.example", 10, **options)


def due(schedule, now=NOW):
    return [queue.check_seq for queue in schedule.take_due(now)]


def test_queues_are_due_in_the_order_of_their_times(schedule):
    for check_seq, wait in ((1, 5), (2, 3), (3, 8)):
        schedule.add(new_queue(check_seq), NOW + wait)
    assert schedule.next_due_at() == NOW + 3
    assert due(schedule, NOW + 2) == []
    assert due(schedule, NOW + 5) == [2, 1]
    assert schedule.next_due_at() == NOW + 8


def test_with_nothing_that_waits_nothing_is_ever_due(schedule, queue):
    assert due(schedule) == [1]
    assert schedule.next_due_at() == math.inf
    assert due(schedule, NOW + 10**9) == []


def test_a_queue_is_known_until_it_is_forgotten(schedule, queue):
    assert schedule.knows(1, is_test=False)
    schedule.take_due(NOW)
    assert schedule.knows(1, is_test=False)
    schedule.forget(queue)
    assert not schedule.knows(1, is_test=False)


def test_the_tests_of_a_check_are_a_queue_of_their_own(schedule, queue):
    assert not schedule.knows(1, is_test=True)
    schedule.add(new_queue(1, is_test=True), NOW)
    assert due(schedule) == [1, 1]
    schedule.forget(queue)
    assert schedule.knows(1, is_test=True)


def test_a_queue_that_waits_is_replaced_and_never_due(schedule):
    old, new = new_queue(1), new_queue(1)
    schedule.add(old, NOW + 30)
    schedule.replace(1)
    assert not schedule.knows(1, is_test=False)
    schedule.add(new, NOW)
    assert schedule.take_due(NOW + 60) == [new]
    assert old.is_replaced


def test_a_queue_in_line_for_a_courier_is_replaced_and_marked(schedule, queue):
    schedule.take_due(NOW)
    schedule.replace(1)
    assert queue.is_replaced
    assert not schedule.knows(1, is_test=False)


def test_a_queue_that_a_post_runs_for_is_left_to_its_end(schedule, queue):
    schedule.take_due(NOW)
    queue.is_taken = True
    schedule.replace(1)
    assert not queue.is_replaced
    assert schedule.knows(1, is_test=False)


def test_the_tests_are_replaced_too(schedule, queue):
    tests = new_queue(1, is_test=True)
    schedule.add(tests, NOW + 5)
    schedule.replace(1)
    assert (queue.is_replaced, tests.is_replaced) == (True, True)


def test_to_replace_what_is_not_known_is_nothing(schedule):
    schedule.replace(7)
    assert schedule.next_due_at() == math.inf


def test_replaced_queues_do_not_pile_up(schedule):
    for moment in range(5 * OUTDATED):
        schedule.add(new_queue(1), NOW + moment)
        schedule.replace(1)
    assert len(schedule._waiting) <= OUTDATED + 1
    schedule.add(new_queue(1), NOW)
    assert due(schedule, NOW + 10**6) == [1]
