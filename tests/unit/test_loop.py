"""The loop: how other threads reach it."""

import threading
from collections.abc import Iterator

import pytest

from cardbeat.web.loop import Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def test_no_call_is_lost_though_the_loop_takes_them_meanwhile(loop: Loop) -> None:
    rounds, threads, taken = 300, 4, []

    def call() -> None:
        for _ in range(rounds):
            loop.call_soon(lambda: taken.append(1))

    for _ in range(threads):
        threading.Thread(target=call).start()
    while len(taken) < rounds * threads:
        before = len(taken)
        loop.turn(10)
        assert len(taken) > before


def test_a_call_is_made_in_the_loop_s_thread(loop: Loop) -> None:
    seen = []
    caller = threading.Thread(target=lambda: loop.call_soon(lambda: seen.append(threading.current_thread())))
    caller.start()
    loop.turn(10)
    caller.join()
    assert seen == [threading.current_thread()]


def test_waking_a_loop_that_has_ended_is_no_error() -> None:
    loop = Loop()
    loop.close()
    loop.call_soon(lambda: None)


def test_the_date_is_that_of_the_turn(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardbeat.web.loop.time.time", lambda: 784111777.9)
    loop.turn(0)
    assert loop.date == "Sun, 06 Nov 1994 08:49:37 GMT"


def test_calls_that_bring_about_others_leave_the_sockets_their_turn(loop: Loop) -> None:
    taken = []

    def call() -> None:
        taken.append(1)
        if len(taken) < 9:
            loop.call_soon(call)

    loop.call_soon(call)
    loop.turn(10)
    assert len(taken) == 1
    loop.turn(10)
    assert len(taken) == 2
