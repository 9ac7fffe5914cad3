import threading

import pytest

from cardbeat.jobs import Workers
from tests.kit.support import wait_until


@pytest.fixture
def workers():
    made = Workers("worker", 4, running_each=2)
    yield made
    made.stop()


def test_two_jobs_of_a_client_run_at_once_and_other_clients_beside_them(
    workers,
):
    release = threading.Event()
    running = []
    for number in range(6):
        workers.submit(
            "a",
            lambda number=number: (running.append(number), release.wait(10)),
        )
    wait_until(lambda: len(running) == 2)
    done = threading.Event()
    workers.submit("b", done.set)
    assert done.wait(10)
    assert running == [0, 1]
    release.set()
    wait_until(lambda: sorted(running) == [0, 1, 2, 3, 4, 5])


def test_a_job_that_fails_is_logged_and_its_thread_goes_on(workers, caplog):
    for _ in range(8):
        workers.submit("a", lambda: 1 / 0)
    done = threading.Event()
    workers.submit("a", done.set)
    assert done.wait(10)
    wait_until(lambda: caplog.text.count("ZeroDivisionError") >= 8)


def test_a_stop_lets_jobs_that_wait_be_done_and_the_threads_end():
    workers = Workers("of a stop", 2, running_each=1)
    done = []
    for number in range(20):
        workers.submit("a", lambda number=number: done.append(number))
    workers.stop()
    wait_until(
        lambda: (
            not any(
                "of a stop" in thread.name for thread in threading.enumerate()
            )
        )
    )
    assert done == list(range(20))
