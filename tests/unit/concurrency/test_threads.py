"""Background threads, and what the program does where the system grants it no thread, whichever it is."""

import subprocess
import sys
import threading
import time

import pytest

from cardbeat.concurrency import threads
from cardbeat.concurrency.threads import Afterwards, BackgroundThread, DaemonThread
from cardbeat.errors import StartupError, Unavailable
from tests.artifact import ROOT, clean_environment, free_port
from tests.support import FakeClock, wait_until

CHILD = """
import itertools, os, sys, threading

start, numbers, refused = threading.Thread.start, itertools.count(1), []

def refuse(thread):
    if next(numbers) == int(sys.argv[1]):
        refused.append(thread.name)
        raise RuntimeError("can't start new thread")
    start(thread)

threading.Thread.start = refuse
from cardbeat.cli import main
from cardbeat.web.server import HttpServer

HttpServer.serve_forever = lambda server: os.write(1, b"serves without" if refused else b"serves")
sys.exit(main(["serve", "--port", sys.argv[2], "--data", "data"]))
"""
MOST_THREADS = 20


def test_without_any_one_of_its_threads_it_does_not_start_and_says_so_in_one_line(tmp_path):
    named = set()
    for number in range(1, MOST_THREADS):
        child = [sys.executable, "-c", CHILD, str(number), str(free_port())]
        environment = clean_environment() | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            child, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30, check=False
        )
        if done.stdout == "serves":
            assert done.returncode == 0
            break
        if done.stdout == "serves without":
            # That of a line which tells what is slow: nobody needs it.
            assert (done.returncode, number) == (0, 3)
            continue
        assert done.returncode == 2, done.stderr
        [line] = done.stderr.splitlines()
        assert line.startswith("cardbeat: the system grants no thread for ")
        named.add(line.split(";")[0].split()[-1])
    assert named >= {
        "stop-watchdog",
        "log",
        "database-writer",
        "card-store",
        "alerts",
        "sweep",
        "removal",
    }


def test_a_thread_that_starts_is_waited_for_no_longer_than_asked():
    let_go = threading.Event()
    thread = threading.Thread(target=let_go.wait, daemon=True)
    assert threads.has_ended(thread, None)
    threads.start(thread)
    assert not threads.has_ended(thread, 0)
    let_go.set()
    assert threads.has_ended(thread, 10)


def test_a_thread_that_is_not_granted_is_a_matter_for_the_operator(monkeypatch):
    def refuse():
        raise RuntimeError("can't start new thread")

    thread = threading.Thread(name="sweep")
    monkeypatch.setattr(thread, "start", refuse)
    with pytest.raises(StartupError, match="no thread for sweep; raise its limit"):
        threads.start(thread)
    assert threads.has_ended(thread, 0)


@pytest.fixture
def background():
    """Starts background threads, which end with the test."""
    started = []

    def start(work, seconds=None, **options):
        started.append(BackgroundThread("counter", work, seconds, **options))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        assert one.stop(10)


def test_it_works_at_its_start_and_whenever_it_is_woken(background):
    calls = []
    woken = background(lambda: calls.append(1))
    for count in (1, 2, 3):
        wait_until(lambda count=count: len(calls) == count)
        woken.wake()


def test_a_wake_while_it_works_is_not_lost(background):
    entered, let_go = threading.Semaphore(0), threading.Semaphore(0)

    def work():
        entered.release()
        assert let_go.acquire(timeout=10)

    woken = background(work)
    assert entered.acquire(timeout=10)
    woken.wake()
    let_go.release(2)
    assert entered.acquire(timeout=10)


def test_between_the_beginnings_of_two_calls_there_are_its_seconds_or_those_that_a_call_returns(background):
    clock, calls = FakeClock(), []
    background(lambda: calls.append(1) or clock.advance(3600), 3600, monotonic=clock)
    wait_until(lambda: len(calls) > 3)
    returned = []
    background(lambda: returned.append(1) or 0.001, 3600)
    wait_until(lambda: len(returned) > 3)


@pytest.mark.parametrize(
    ("error", "has_trace"), [(Unavailable("busy", "Too busy."), False), (OSError("full"), False), (KeyError("x"), True)]
)
def test_what_fails_is_logged_and_tried_again(background, caplog, error, has_trace):
    calls = []

    def fail_once():
        calls.append(1)
        if len(calls) == 1:
            raise error

    background(fail_once, 0.01)
    wait_until(lambda: len(calls) > 2)
    (record,) = caplog.records
    assert record.getMessage().startswith("counter failed, next try in 0.01 s")
    assert str(error) in caplog.text
    assert bool(record.exc_info) == has_trace


def test_a_stop_wakes_it_and_waits_for_what_it_does_at_its_end(background):
    ended = threading.Event()
    sleeping = background(lambda: None, at_end=ended.set)
    assert sleeping.stop(10)
    assert ended.is_set()


def test_a_stop_that_comes_before_it_waits_ends_it(background):
    entered, let_go = threading.Event(), threading.Event()

    def work():
        entered.set()
        assert let_go.wait(10)

    working = background(work)
    assert entered.wait(10)
    assert not working.stop(0)
    let_go.set()
    assert working.stop(10)


def test_one_that_was_never_started_stops_at_once():
    assert BackgroundThread("idle", lambda: None).stop(0)


def test_what_is_called_afterwards_is_called_in_order_also_after_an_error() -> None:
    called, has_ended = [], threading.Event()

    def fail() -> None:
        raise ValueError

    afterwards, began = Afterwards(0.05), time.monotonic()
    afterwards.call(lambda: called.append(1))
    afterwards.call(fail)
    afterwards.call(lambda: called.append(2))
    afterwards.call(has_ended.set)
    assert has_ended.wait(10)
    assert called == [1, 2]
    assert time.monotonic() - began >= 0.05


def test_what_is_called_afterwards_is_called_at_once_where_there_is_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    called = threading.Event()
    afterwards = Afterwards(1000)
    for _ in range(2):
        called.clear()
        afterwards.call(called.set)
        assert called.is_set()


def test_a_thread_that_dies_before_its_first_step_is_an_error_and_not_waited_for(monkeypatch):
    """As one that has no memory for it."""
    monkeypatch.setattr(threads, "BEGIN_SECONDS", 0.05)
    monkeypatch.setattr(threading.Thread, "_bootstrap", lambda _: None)
    with pytest.raises(RuntimeError, match="the thread work has not begun"):
        DaemonThread(lambda: None, "work").start()


def test_a_thread_that_runs_counts_as_started_though_there_was_no_memory_to_wait_for_it(monkeypatch):
    let_go, done = threading.Event(), threading.Event()
    wait = threads._Begin.wait

    def fail(begin, timeout=None):
        wait(begin, timeout)
        assert done.wait(10)
        raise MemoryError

    monkeypatch.setattr(threads._Begin, "wait", fail)
    thread = DaemonThread(lambda: done.set() or let_go.wait(10), "work")
    thread.start()
    let_go.set()
    thread.join(10)
    assert done.is_set()


def test_a_thread_that_begins_too_late_does_nothing(monkeypatch):
    bootstrap, let_go, done, ended = threading.Thread._bootstrap, threading.Event(), [], threading.Event()

    def late(thread):
        assert let_go.wait(10)
        bootstrap(thread)
        ended.set()

    with monkeypatch.context() as patch:
        patch.setattr(threads, "BEGIN_SECONDS", 0.05)
        patch.setattr(threading.Thread, "_bootstrap", late)
        with pytest.raises(RuntimeError):
            DaemonThread(lambda: done.append(1), "work").start()
    let_go.set()
    assert ended.wait(10)
    assert done == []
    in_time = DaemonThread(lambda: done.append(2), "work")
    in_time.start()
    in_time.join(10)
    assert done == [2]
