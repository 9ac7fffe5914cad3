"""Who goes first: threads that compute give way to one that serves all."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cardbeat.precedence import Precedence
from tests.support import wait_until

PATIENCE_SECONDS = 10


@contextmanager
def giving_way(precedence: Precedence) -> Iterator[threading.Thread]:
    """A thread that gives way, from when it waits; it must go on by the end."""
    thread = threading.Thread(target=precedence.give_way, args=(PATIENCE_SECONDS,))
    thread.start()
    wait_until(lambda: precedence._waiting)
    yield thread
    thread.join(PATIENCE_SECONDS / 2)
    assert not thread.is_alive()


def test_nobody_waits_while_there_is_no_work() -> None:
    precedence = Precedence()
    precedence.give_way(PATIENCE_SECONDS)
    precedence.begin()
    precedence.end()
    precedence.give_way(PATIENCE_SECONDS)
    assert not precedence._waiting


def test_all_who_give_way_go_on_once_the_work_has_ended() -> None:
    precedence = Precedence()
    precedence.begin()
    with giving_way(precedence) as first, giving_way(precedence) as second:
        assert first.is_alive()
        assert second.is_alive()
        precedence.end()


def test_nobody_gives_way_for_longer_than_was_asked() -> None:
    precedence = Precedence()
    precedence.begin()
    precedence.give_way(0.001)
    precedence.give_way(0)
    precedence.give_way(-1)
    assert not precedence._waiting
    precedence.end()


def test_no_end_is_missed_though_it_comes_at_any_moment() -> None:
    precedence, rounds = Precedence(), 300
    patient = threading.Thread(target=lambda: [precedence.give_way(PATIENCE_SECONDS) for _ in range(rounds)])
    precedence.begin()
    patient.start()
    for _ in range(rounds):
        precedence.begin()
        precedence.end()
    patient.join(PATIENCE_SECONDS / 2)
    assert not patient.is_alive()
