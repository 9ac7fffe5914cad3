"""The loop: how other threads reach it, and its pollers: Linux's own, and what stands in for it elsewhere."""

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from cardbeat.web.loop import AT_ONCE, READ, SECONDS_AT_ONCE, WRITE, Loop, Poller, make_poller
from tests.support import FakeClock, wait_until


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(0)


@pytest.fixture
def loop(clock: FakeClock) -> Iterator[Loop]:
    loop = Loop(clock)
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
        loop.run_once(10)
        assert len(taken) > before


def test_a_call_is_made_in_the_loop_s_thread(loop: Loop) -> None:
    seen = []
    caller = threading.Thread(target=lambda: loop.call_soon(lambda: seen.append(threading.current_thread())))
    caller.start()
    loop.run_once(10)
    caller.join()
    assert seen == [threading.current_thread()]


def test_waking_a_loop_that_has_ended_is_no_error() -> None:
    loop = Loop()
    loop.close()
    loop.call_soon(lambda: None)


def test_the_date_is_that_of_the_iteration(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardbeat.web.loop.time.time", lambda: 784111777.9)
    loop.run_once(0)
    assert loop.date == "Sun, 06 Nov 1994 08:49:37 GMT"


def test_calls_that_bring_about_others_leave_the_sockets_their_turn(loop: Loop) -> None:
    taken = []

    def call() -> None:
        taken.append(1)
        if len(taken) < 9:
            loop.call_soon(call)

    loop.call_soon(call)
    loop.run_once(10)
    assert len(taken) == 1
    loop.run_once(10)
    assert len(taken) == 2


def test_of_many_calls_a_few_are_made_in_an_iteration_and_one_for_each_network_in_turn(loop: Loop) -> None:
    made: list[str] = []
    for _ in range(10 * AT_ONCE):
        loop.call_soon(partial(made.append, "crowd"), "192.0.2.1")
    loop.run_once(10)
    assert made == ["crowd"] * AT_ONCE
    assert loop.is_behind
    loop.call_soon(partial(made.append, "other"), "192.0.2.2")
    loop.call_soon(partial(made.append, "first"))
    made.clear()
    loop.run_once(10)
    assert made == ["first", "other", *["crowd"] * (AT_ONCE - 1)]
    while loop.is_behind:
        loop.run_once(10)
    assert made.count("crowd") == 9 * AT_ONCE


def test_calls_that_take_long_leave_the_sockets_their_turn_sooner(loop: Loop, clock: FakeClock) -> None:
    made: list[str] = []

    def slow() -> None:
        made.append("slow")
        clock.advance(0.4 * SECONDS_AT_ONCE)

    for _ in range(2 * AT_ONCE):
        loop.call_soon(partial(slow), "192.0.2.1")
    loop.run_once(10)
    assert len(made) == 3


def test_many_sockets_that_are_ready_have_their_calls_in_turns_too(loop: Loop) -> None:
    made: list[int] = []
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(2 * AT_ONCE)]
        for number, (near, far) in enumerate(pairs):
            stack.enter_context(near)
            stack.enter_context(far)
            # A call that reads nothing: its socket stays ready, and waits for its turn once.
            loop.watch(near, READ, partial(made.append, number), "192.0.2.1")
            far.send(b"x")
        for _ in range(4):
            loop.run_once(10)
    assert sorted(Counter(made).values()) == [2] * len(pairs)


def test_one_that_asks_for_a_turn_in_its_turn_leaves_the_sockets_theirs(loop: Loop) -> None:
    made = 0

    def call() -> None:
        nonlocal made
        made += 1
        loop.call_in_turn(call, "192.0.2.1")

    loop.call_in_turn(call, "192.0.2.1")
    loop.run_once(None)
    assert made == AT_ONCE


@pytest.fixture(params=["epoll", "kqueue, poll or select"])
def poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Poller]:
    if request.param != "epoll":
        monkeypatch.setattr("cardbeat.host.system.epoll", lambda: None)
    poller = make_poller()
    # Windows does not wait for no socket at all; a loop always has one.
    with socket.socket(type=socket.SOCK_DGRAM) as quiet:
        quiet.bind(("127.0.0.1", 0))
        poller.watch(quiet.fileno(), READ, TURN)
        yield poller
        poller.close()


def test_what_is_ready_is_called_until_it_is_forgotten(poller: Poller) -> None:
    near, far = socket.socketpair()
    with near, far:
        poller.watch(near.fileno(), READ, TURN)
        assert poller.ready(0) == []
        far.send(b"x")
        assert poller.ready(None) == [TURN]
        poller.watch(near.fileno(), WRITE, TURN)
        assert poller.ready(None) == [TURN]
        for _ in range(2):
            poller.watch(near.fileno(), 0, TURN)
            assert poller.ready(0) == []


def test_a_client_that_has_left_makes_its_socket_ready(poller: Poller) -> None:
    near, far = socket.socketpair()
    with near:
        poller.watch(near.fileno(), READ, TURN)
        far.close()
        assert poller.ready(None) == [TURN]


def test_waiting_ends_in_time(poller: Poller) -> None:
    started = time.monotonic()
    assert poller.ready(0.05) == []
    assert 0.04 <= time.monotonic() - started < 5


def never() -> None:
    raise AssertionError("a poller calls nothing itself")


TURN = never, "192.0.2.1"


def test_it_goes_first_from_when_it_is_woken_until_it_waits_again(loop: Loop) -> None:
    seen = []
    loop.call_soon(lambda: seen.append(loop.precedence.has_work))
    assert loop.precedence.has_work
    loop.run_once(10)
    assert seen == [True]
    listener = threading.Thread(target=loop.run_once, args=(10,))
    listener.start()
    wait_until(lambda: not loop.precedence.has_work)
    loop.wake()
    listener.join()
