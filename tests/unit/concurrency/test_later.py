"""Results that come later, settled once and told to everyone who asked."""

import threading
import weakref

import pytest

from cardbeat.concurrency.later import Droppable, Job, Later


def at_the_same_moment(*deeds):
    """Run deeds in threads that begin together, and return when all are done."""
    start = threading.Barrier(len(deeds))

    def run(deed):
        start.wait(10)
        deed()

    threads = [threading.Thread(target=run, args=(deed,)) for deed in deeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def settled(value):
    later = Later()
    later.settle(lambda: value)
    return later


def failing(error):
    def outcome():
        raise error

    return outcome


def test_a_callback_added_before_is_called_when_it_is_settled():
    later, seen = Later(), []
    later.then(lambda it: seen.append(it.result()))
    assert seen == []
    later.settle(lambda: "done")
    assert seen == ["done"]


def test_a_callback_added_after_is_called_at_once_and_in_this_thread():
    threads = []
    settled("done").then(lambda _: threads.append(threading.current_thread()))
    assert threads == [threading.current_thread()]


def test_callbacks_are_called_in_the_order_in_which_they_came():
    later, seen = Later(), []
    for number in range(3):
        later.then(lambda it, number=number: seen.append((number, it.result())))
    later.settle(lambda: "done")
    assert seen == [(0, "done"), (1, "done"), (2, "done")]


def test_each_callback_is_called_once_though_it_comes_at_the_moment_of_settling():
    for _ in range(200):
        later, seen = Later(), []
        callers = [lambda later=later, seen=seen: later.then(lambda it: seen.append(it.result()))] * 3
        at_the_same_moment(lambda later=later: later.settle(lambda: "done"), *callers)
        assert seen == ["done"] * 3


def test_whoever_waits_gets_the_result_whether_it_came_before_or_comes_after():
    for _ in range(200):
        later, seen = Later(), []
        waiters = [lambda later=later, seen=seen: seen.append(later.wait())] * 3
        at_the_same_moment(*waiters, lambda later=later: later.settle(lambda: "done"))
        assert seen == ["done"] * 3
        assert later.wait() == "done"


def test_a_failure_is_raised_to_everyone_who_asks():
    later = Later()
    later.settle(failing(ZeroDivisionError("no")))
    for ask in (later.result, later.wait):
        with pytest.raises(ZeroDivisionError, match="no"):
            ask()


def test_asking_too_early_is_an_error():
    with pytest.raises(RuntimeError, match="not settled"):
        Later().result()


def test_work_settles_with_what_it_returns_or_raises():
    good, bad = Job(lambda: 7), Job(lambda: 1 / 0)
    good.do()
    bad.do()
    assert good.result() == 7
    with pytest.raises(ZeroDivisionError):
        bad.result()


def test_a_changed_result_comes_with_the_result():
    later = Later()
    doubled = later.map(lambda value: 2 * value)
    later.settle(lambda: 21)
    assert doubled.result() == 42
    assert settled(4).map(lambda value: value + 1).map(str).wait() == "5"


def test_what_the_change_raises_is_raised_to_who_takes_the_result_and_not_to_who_settles():
    later = Later()
    changed = later.map(lambda value: value / 0)
    later.settle(lambda: 1)
    assert later.result() == 1
    with pytest.raises(ZeroDivisionError):
        changed.result()


def test_a_failure_passes_through_a_change_untouched():
    later, changes = Later(), []
    changed = later.map(changes.append)
    later.settle(failing(KeyError("gone")))
    with pytest.raises(KeyError):
        changed.wait()
    assert changes == []


def test_a_change_runs_in_the_thread_that_takes_the_result():
    later, threads = Later(), []
    changed = later.map(lambda _: threads.append(threading.current_thread()))
    at_the_same_moment(lambda: later.settle(lambda: None))
    changed.result()
    assert threads == [threading.current_thread()]


class Kept:
    """What a change holds, such as a request."""

    def change(self, value):
        return value + 1


def test_a_job_that_waits_for_a_result_which_may_be_dropped_is_cancelled_and_nothing_of_it_is_kept():
    later, kept, seen = Later(), Kept(), []
    job, other = (Job(lambda: Droppable(later, kept.change)) for _ in range(2))
    for each in (job, other):
        each.do()
        each.then(seen.append)
    gone, kept = weakref.ref(kept), None
    assert job.may_be_cancelled
    assert job.cancel(KeyError("cancelled"))
    assert seen == [job]
    later.settle(lambda: 1)
    assert (seen, other.result()) == ([job, other], 2)
    with pytest.raises(KeyError, match="cancelled"):
        job.result()
    del each, other, seen[:]
    assert gone() is None


def test_a_job_at_work_and_one_that_waits_for_a_write_are_not_cancelled():
    later, seen = Later(), []
    writes, works = Job(lambda: later), Job(lambda: seen.append((works.may_be_cancelled, works.cancel(KeyError()))))
    writes.do()
    works.do()
    assert seen == [(False, False)]
    assert not writes.may_be_cancelled
    assert not writes.cancel(KeyError())
    later.settle(lambda: "written")
    assert writes.result() == "written"
