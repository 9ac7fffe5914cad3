import threading

import pytest

from cardbeat.jobs import Future
from tests.kit.lists import times


def test_a_callback_comes_once_whether_it_was_added_before_or_after():
    told = []
    future = Future()
    future.when_done(lambda: told.append("before"))
    assert told == []
    assert future.is_done is False
    future.set_result(7)
    future.when_done(lambda: told.append("after"))
    assert told == ["before", "after"]
    assert future.result() == 7
    assert future.is_done is True


def test_an_error_is_raised_by_result_and_by_wait():
    future = Future()
    future.set_error(KeyError("x"))
    for ask in (future.result, future.wait):
        with pytest.raises(KeyError):
            ask()


def test_threads_wait_for_a_result_that_another_one_sets():
    future = Future()
    begin = threading.Barrier(9)
    found = []

    def wait():
        begin.wait(60)
        found.append(future.wait())

    threads = times(8, threading.Thread, target=wait)
    for thread in threads:
        thread.start()
    begin.wait(60)
    future.set_result("done")
    for thread in threads:
        thread.join(60)
    assert found == ["done"] * 8
