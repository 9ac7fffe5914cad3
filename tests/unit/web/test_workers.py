"""The worker threads: how many there are, and whose turn it is."""

import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest

from cardbeat.concurrency.later import (
    AT_A_STRETCH_SECONDS,
    GIVES_WAY_TIMES,
    LOOK_SECONDS,
    WAITING_EACH,
    Later,
    Precedence,
    Workers,
)
from cardbeat.errors import Unavailable
from tests.support import wait_until

PATIENCE_SECONDS = 10


def test_no_more_threads_are_started_than_jobs_wait_nor_than_the_limit() -> None:
    workers, release, running = Workers(limit=3, running_each=3), threading.Event(), threading.Semaphore(0)
    before = threading.active_count()

    def job() -> None:
        running.release()
        release.wait(PATIENCE_SECONDS)

    for number in range(5):
        workers.submit(job, "a")
        assert threading.active_count() - before <= min(number + 1, 3)
    for _ in range(3):
        assert running.acquire(timeout=PATIENCE_SECONDS)
    assert not running.acquire(blocking=False)
    release.set()
    for _ in range(2):
        assert running.acquire(timeout=PATIENCE_SECONDS)
    workers.stop()


def test_a_job_is_done_by_another_thread_where_none_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, done = Workers(limit=3, running_each=3), threading.Semaphore(0)
    held = threading.Event()
    workers.submit(lambda: held.wait(PATIENCE_SECONDS), "a")

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    workers.submit(done.release, "a")
    held.set()
    assert done.acquire(timeout=PATIENCE_SECONDS)
    workers.stop()


def test_a_job_is_done_where_it_is_submitted_if_there_is_no_thread_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, done = Workers(limit=3, running_each=3), threading.Semaphore(0)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    workers.submit(done.release, "a")
    assert done.acquire(blocking=False)
    monkeypatch.undo()
    workers.submit(done.release, "a")
    assert done.acquire(timeout=PATIENCE_SECONDS)
    workers.stop()


def test_what_comes_of_a_job_is_told() -> None:
    workers = Workers(limit=1)
    assert workers.submit(lambda: 1, "a").wait() == 1
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 / 0, "a").wait()
    workers.stop()


class Held:
    """Work that says that it has begun and goes on when it is let to."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.let_go = threading.Event()

    def __call__(self) -> None:
        self.begun.release()
        assert self.let_go.wait(PATIENCE_SECONDS)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.let_go.set()


def test_a_job_that_returns_a_later_holds_no_thread_until_that_is_settled() -> None:
    workers, good, bad = Workers(limit=1), Later[str](), Later[str]()
    jobs = [workers.submit(lambda: good, "a"), workers.submit(lambda: bad, "a")]
    assert workers.submit(lambda: "done", "a").wait() == "done"
    assert not any(job.is_settled or job.cancel(KeyError()) for job in jobs)
    good.succeed("there")
    bad.fail(KeyError("gone"))
    assert jobs[0].wait() == "there"
    with pytest.raises(KeyError):
        jobs[1].wait()
    workers.stop()


def test_the_names_have_their_turns(held: Held) -> None:
    workers, done = Workers(limit=1), []
    workers.submit(held, "a")
    assert held.begun.acquire(timeout=PATIENCE_SECONDS)
    jobs = [workers.submit(partial(done.append, name), name) for name in "aaabb"]
    held.let_go.set()
    for job in jobs:
        job.wait()
    # What was held has cost so much that all others go first.
    assert "".join(done) == "bbaaa"
    workers.stop()


def test_so_many_wait_for_a_name_and_one_of_them_runs(held: Held) -> None:
    workers = Workers(limit=2)
    jobs = [workers.submit(held, "a")]
    assert held.begun.acquire(timeout=PATIENCE_SECONDS)
    jobs += [workers.submit(held, "a") for _ in range(WAITING_EACH)]
    with pytest.raises(Unavailable) as refused:
        workers.submit(held, "a")
    assert (refused.value.code, refused.value.headers) == ("busy", {"Retry-After": "1"})
    assert workers.submit(lambda: "done", "b").wait() == "done"
    assert not held.begun.acquire(blocking=False)
    held.let_go.set()
    for job in jobs:
        job.wait()
    workers.stop()


def test_work_is_given_up_before_it_begins_and_not_after(held: Held) -> None:
    workers = Workers(limit=1)
    begun = workers.submit(held, "a")
    assert held.begun.acquire(timeout=PATIENCE_SECONDS)
    done: list[int] = []
    given_up = workers.submit(lambda: done.append(1), "a")
    assert given_up.cancel(KeyError("given up"))
    assert not begun.cancel(KeyError("too late"))
    with pytest.raises(KeyError, match="given up"):
        given_up.wait()
    held.let_go.set()
    begun.wait()
    assert workers.submit(lambda: "next", "a").wait() == "next"
    assert done == []
    workers.stop()


def test_what_is_queued_is_done_before_a_stop_ends_the_threads(held: Held) -> None:
    before = set(threading.enumerate())
    workers = Workers(limit=2)
    workers.submit(held, "a")
    assert held.begun.acquire(timeout=PATIENCE_SECONDS)
    queued = [workers.submit(lambda: "done", name) for name in "aabb"]
    workers.stop()
    held.let_go.set()
    assert [job.wait() for job in queued] == ["done"] * 4
    wait_until(lambda: not any(thread.name == "worker" for thread in set(threading.enumerate()) - before))


def test_an_answer_is_let_go_of_when_it_was_taken() -> None:
    """A thread that waits for its next job must not hold what came of the last."""

    class Large:
        pass

    workers = Workers(limit=1)
    job = workers.submit(Large, "a")
    kept = weakref.ref(job.wait())
    del job
    wait_until(lambda: kept() is None)
    workers.stop()


def test_turns_are_weighed_by_what_the_time_of_a_job_costs() -> None:
    costs = {"a": 5.0, "b": 1.0}
    order: list[str] = []
    workers = Workers(limit=1, cost=lambda _: costs[order[-1]] if order else 0)
    begin = threading.Event()
    done = [workers.submit(lambda: begin.wait(PATIENCE_SECONDS), "first")]
    done += [workers.submit(partial(order.append, name), name) for name in "aabbbbbb"]
    begin.set()
    for job in done:
        job.wait()
    assert "".join(order) == "abbbbbab"
    workers.stop()


def note(order: list[str], job: str) -> None:
    """A job so long that its thread gives way after it."""
    time.sleep(2 * AT_A_STRETCH_SECONDS)
    order.append(job)


class Watched:
    """Notes in `order` that somebody gives way, and has them wait for `gone`."""

    def __init__(self, order: list[str]) -> None:
        self.order = order
        self.gone = threading.Event()

    @property
    def has_work(self) -> bool:
        self.order.append("gives way")
        assert self.gone.wait(PATIENCE_SECONDS)
        return False


def test_however_many_jobs_wait_one_who_goes_first_waits_for_no_more_than_the_one_that_runs() -> None:
    order = list[str]()
    first = Watched(order)
    workers = Workers(limit=1, first=[first])
    release = threading.Event()
    workers.submit(lambda: release.wait(PATIENCE_SECONDS) and time.sleep(2 * AT_A_STRETCH_SECONDS), "busy")
    jobs = [workers.submit(partial(note, order, "job"), "busy") for _ in range(50)]
    release.set()
    wait_until(lambda: order)
    assert order == ["gives way"]
    first.gone.set()
    jobs[-1].wait()
    assert order[:100] == ["gives way", "job"] * 50


def test_while_a_thread_gives_way_no_other_goes_on_with_the_same_name() -> None:
    order = list[str]()
    first = Watched(order)
    workers = Workers(limit=2, first=[first])
    workers.submit(partial(note, order, "busy 1"), "busy").wait()
    wait_until(lambda: len(order) == 2)
    waits = workers.submit(partial(note, order, "busy 2"), "busy")
    workers.submit(lambda: order.append("other"), "other").wait()
    assert not waits.is_settled
    first.gone.set()
    waits.wait()
    assert order.index("other") < order.index("busy 2")


def test_short_jobs_run_at_a_stretch_and_are_followed_by_three_times_as_long_a_pause_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, slept, now = Precedence(), list[float](), [0.0]
    first.has_work = True
    workers = Workers(limit=1, first=[first])

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr("cardbeat.concurrency.later.time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))

    def work() -> None:
        now[0] += AT_A_STRETCH_SECONDS / 2

    for stretches in (0, 1, 1, 2):
        workers.submit(work, "a").wait()
        # Its thread is done with one job before it begins the next, which nobody else can.
        workers.submit(lambda: None, "a").wait()
        assert sum(slept) == pytest.approx(stretches * GIVES_WAY_TIMES * AT_A_STRETCH_SECONDS)
        assert max(slept, default=0) <= LOOK_SECONDS
    workers.stop()


def test_nobody_gives_way_where_there_is_nothing_to_do_and_all_go_on_once_there_is_not() -> None:
    first = Precedence()
    workers = Workers(limit=1, first=[first])
    for has_work in (False, True):
        first.has_work = has_work
        workers.submit(lambda: time.sleep(0.5), "a").wait()
        first.has_work = False
        began = time.monotonic()
        workers.submit(lambda: None, "a").wait()
        assert time.monotonic() - began < GIVES_WAY_TIMES * 0.5
