"""Who goes first: threads that compute give way to one that serves all."""

import threading
import time
from types import SimpleNamespace

import pytest

from cardbeat import precedence as module
from cardbeat.precedence import Precedence

PATIENCE_SECONDS = 10


def test_nobody_waits_while_there_is_no_work(monkeypatch) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda _: 1 / 0)
    Precedence().give_way(time.monotonic() + PATIENCE_SECONDS)


def test_all_who_give_way_go_on_once_the_work_has_ended() -> None:
    precedence = Precedence()
    precedence.has_work = True
    until = time.monotonic() + PATIENCE_SECONDS
    threads = [threading.Thread(target=precedence.give_way, args=(until,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert all(thread.is_alive() for thread in threads)
    precedence.has_work = False
    for thread in threads:
        thread.join()
    assert time.monotonic() < until


def test_nobody_gives_way_for_longer_than_was_asked(monkeypatch) -> None:
    precedence, slept = Precedence(), []
    precedence.has_work = True
    clock = SimpleNamespace(monotonic=lambda: 100.0 + sum(slept), sleep=slept.append)
    monkeypatch.setattr(module, "time", clock)
    precedence.give_way(100.0)
    precedence.give_way(99.0)
    assert slept == []
    precedence.give_way(100.0 + 2.5 * module.LOOK_SECONDS)
    assert sum(slept) == pytest.approx(2.5 * module.LOOK_SECONDS)
