import threading

from cardbeat.jobs import Workers
from tests.kit.support import wait_until


def test_a_job_that_fails_is_logged_and_its_thread_goes_on(caplog):
    workers = Workers("worker", 2, running_each=2)
    for _ in range(8):
        workers.submit("a", lambda: 1 / 0)
    done = threading.Event()
    workers.submit("a", done.set)
    assert done.wait(60)
    wait_until(lambda: caplog.text.count("ZeroDivisionError") >= 8)
    workers.stop()


def test_a_stop_lets_jobs_that_wait_be_done_and_the_threads_end():
    workers = Workers("of a stop", 2, running_each=1)
    done = []
    for number in range(20):
        workers.submit("a", lambda number=number: done.append(number))
    workers.stop()
    wait_until(
        lambda: (
            not any(
                "of a stop" in thread.name
                for thread in threading.enumerate()
            )
        )
    )
    assert done == list(range(20))
