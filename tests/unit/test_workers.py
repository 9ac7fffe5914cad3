"""The worker threads: how many there are, and whose turn it is."""

import threading

import pytest

from cardbeat.workers import Workers

PATIENCE_SECONDS = 10


def test_no_more_threads_are_started_than_jobs_wait_nor_than_the_limit() -> None:
    workers, release, running = Workers(limit=3, computing=3), threading.Event(), threading.Semaphore(0)
    before = threading.active_count()

    def job() -> None:
        running.release()
        release.wait(PATIENCE_SECONDS)

    for number in range(5):
        workers.submit("a", job)
        assert threading.active_count() - before <= min(number + 1, 3)
    for _ in range(3):
        assert running.acquire(timeout=PATIENCE_SECONDS)
    assert not running.acquire(blocking=False)
    release.set()
    for _ in range(2):
        assert running.acquire(timeout=PATIENCE_SECONDS)
    workers.stop()


def test_a_job_is_done_by_another_thread_where_none_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, done = Workers(limit=3, computing=3), threading.Semaphore(0)
    held = threading.Event()
    workers.submit("a", lambda: held.wait(PATIENCE_SECONDS))

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    workers.submit("a", done.release)
    held.set()
    assert done.acquire(timeout=PATIENCE_SECONDS)
    workers.stop()


def test_a_job_is_done_where_it_is_submitted_if_there_is_no_thread_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, done = Workers(limit=3, computing=3), threading.Semaphore(0)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    workers.submit("a", done.release)
    assert done.acquire(blocking=False)
    monkeypatch.undo()
    workers.submit("a", done.release)
    assert done.acquire(timeout=PATIENCE_SECONDS)
    workers.stop()


def test_what_comes_of_a_job_is_told() -> None:
    workers = Workers(limit=1)
    assert workers.submit("a", lambda: 1).wait() == 1
    with pytest.raises(ZeroDivisionError):
        workers.submit("a", lambda: 1 / 0).wait()
    workers.stop()
