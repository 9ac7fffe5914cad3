"""The worker threads: how many there are, and whose turn it is."""

import threading
import weakref
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest

from cardbeat.errors import Unavailable
from cardbeat.later import WAITING_EACH, Later, Workers
from cardbeat.precedence import Precedence
from tests.support import wait_until

PATIENCE_SECONDS = 10


def test_no_more_threads_are_started_than_jobs_wait_nor_than_the_limit() -> None:
    workers, release, running = Workers(limit=3, running_each=3), threading.Event(), threading.Semaphore(0)
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
    workers, done = Workers(limit=3, running_each=3), threading.Semaphore(0)
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
    workers, done = Workers(limit=3, running_each=3), threading.Semaphore(0)

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
    jobs = [workers.submit("a", lambda: good), workers.submit("a", lambda: bad)]
    assert workers.submit("a", lambda: "done").wait() == "done"
    assert not any(job.is_settled or job.cancel(KeyError()) for job in jobs)
    good.succeed("there")
    bad.fail(KeyError("gone"))
    assert jobs[0].wait() == "there"
    with pytest.raises(KeyError):
        jobs[1].wait()
    workers.stop()


def test_the_names_have_their_turns(held: Held) -> None:
    workers, done = Workers(limit=1), []
    workers.submit("a", held)
    assert held.begun.acquire(timeout=PATIENCE_SECONDS)
    jobs = [workers.submit(name, partial(done.append, name)) for name in "aaabb"]
    held.let_go.set()
    for job in jobs:
        job.wait()
    # What was held has cost so much that all others go first.
    assert "".join(done) == "bbaaa"
    workers.stop()


def test_so_many_wait_for_a_name_and_one_of_them_runs(held: Held) -> None:
    workers = Workers(limit=2)
    jobs = [workers.submit("a", held)]
    assert held.begun.acquire(timeout=PATIENCE_SECONDS)
    jobs += [workers.submit("a", held) for _ in range(WAITING_EACH)]
    with pytest.raises(Unavailable) as refused:
        workers.submit("a", held)
    assert (refused.value.code, refused.value.headers) == ("busy", {"Retry-After": "1"})
    assert workers.submit("b", lambda: "done").wait() == "done"
    assert not held.begun.acquire(blocking=False)
    held.let_go.set()
    for job in jobs:
        job.wait()
    workers.stop()


def test_work_is_given_up_before_it_begins_and_not_after(held: Held) -> None:
    workers = Workers(limit=1)
    begun = workers.submit("a", held)
    assert held.begun.acquire(timeout=PATIENCE_SECONDS)
    done: list[int] = []
    given_up = workers.submit("a", lambda: done.append(1))
    assert given_up.cancel(KeyError("given up"))
    assert not begun.cancel(KeyError("too late"))
    with pytest.raises(KeyError, match="given up"):
        given_up.wait()
    held.let_go.set()
    begun.wait()
    assert workers.submit("a", lambda: "next").wait() == "next"
    assert done == []
    workers.stop()


def test_what_is_queued_is_done_before_a_stop_ends_the_threads(held: Held) -> None:
    before = set(threading.enumerate())
    workers = Workers(limit=2)
    workers.submit("a", held)
    assert held.begun.acquire(timeout=PATIENCE_SECONDS)
    queued = [workers.submit(name, lambda: "done") for name in "aabb"]
    workers.stop()
    held.let_go.set()
    assert [job.wait() for job in queued] == ["done"] * 4
    wait_until(lambda: not any(thread.name == "worker" for thread in set(threading.enumerate()) - before))


def test_an_answer_is_let_go_of_when_it_was_taken() -> None:
    """A thread that waits for its next job must not hold what came of the last."""

    class Large:
        pass

    workers = Workers(limit=1)
    job = workers.submit("a", Large)
    kept = weakref.ref(job.wait())
    del job
    wait_until(lambda: kept() is None)
    workers.stop()


def test_turns_are_weighed_by_what_the_time_of_a_job_costs() -> None:
    costs = {"a": 5.0, "b": 1.0}
    order: list[str] = []
    workers = Workers(limit=1, cost=lambda _: costs[order[-1]] if order else 0)
    begin = threading.Event()
    done = [workers.submit("first", lambda: begin.wait(PATIENCE_SECONDS))]
    done += [workers.submit(name, partial(order.append, name)) for name in "aabbbbbb"]
    begin.set()
    for job in done:
        job.wait()
    assert "".join(order) == "abbbbbab"
    workers.stop()


class Watched(Precedence):
    """Notes in `order` that somebody gives way, and has them wait for `gone` even if nothing is to be done."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self.order = order
        self.until: list[float] = []
        self.gone = threading.Event()

    def give_way(self, until: float) -> None:
        self.order.append("gives way")
        self.until.append(until)
        assert self.gone.wait(PATIENCE_SECONDS)


@pytest.fixture
def at_every_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short a job is, its thread gives way after it."""
    monkeypatch.setattr("cardbeat.later.AT_A_STRETCH_SECONDS", 0.0)


@pytest.mark.usefixtures("at_every_job")
def test_however_many_jobs_wait_one_who_goes_first_waits_for_no_more_than_the_one_that_runs() -> None:
    workers, order = Workers(limit=1), list[str]()
    first = Watched(order)
    workers.give_way_to(first)
    release = threading.Event()
    workers.submit("busy", lambda: release.wait(PATIENCE_SECONDS))
    jobs = [workers.submit("busy", lambda: order.append("job")) for _ in range(50)]
    release.set()
    wait_until(lambda: order)
    assert order == ["gives way"]
    first.gone.set()
    jobs[-1].wait()
    assert order[:100] == ["gives way", "job"] * 50


@pytest.mark.usefixtures("at_every_job")
def test_while_a_thread_gives_way_no_other_goes_on_with_the_same_name() -> None:
    workers, order = Workers(limit=2), list[str]()
    first = Watched(order)
    workers.give_way_to(first)
    workers.submit("busy", lambda: order.append("busy 1")).wait()
    wait_until(lambda: len(order) == 2)
    waits = workers.submit("busy", lambda: order.append("busy 2"))
    workers.submit("other", lambda: order.append("other")).wait()
    assert not waits.is_settled
    first.gone.set()
    waits.wait()
    assert order.index("other") < order.index("busy 2")


def test_short_jobs_run_at_a_stretch_and_are_followed_by_three_times_as_long_a_pause_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers, first, now = Workers(limit=1), Watched([]), [100.0]
    first.gone.set()
    workers.give_way_to(first)
    monkeypatch.setattr("cardbeat.later.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("cardbeat.later.AT_A_STRETCH_SECONDS", 0.5)

    def work() -> None:
        now[0] += 0.25

    # After every second job at 0.25 s each, for as long again as three times those 0.5 s.
    for until in ([], [102.0], [102.0], [102.0, 102.5]):
        workers.submit("a", work).wait()
        # Its thread is done with one job before it begins the next, which nobody else can.
        workers.submit("a", lambda: None).wait()
        assert first.until == until
