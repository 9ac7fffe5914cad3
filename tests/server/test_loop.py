"""The loop: how other threads reach it, and what it calls in which order."""

import socket
import threading
import time

import pytest

from cardbeat.web.loop import READ, Loop
from tests.kit.support import FakeClock


@pytest.fixture
def loop():
    loop = Loop(FakeClock(0))
    yield loop
    loop.close()


def test_no_call_is_lost_though_the_loop_takes_others_at_that_moment(
    loop,
):
    """A lost wake would let a call wait for the next one, and the last for ever."""
    rounds = 300
    threads = 4
    taken = []

    def call():
        for _ in range(rounds):
            loop.call_soon(
                lambda: taken.append(threading.current_thread())
            )

    for _ in range(threads):
        threading.Thread(target=call).start()
    while len(taken) < rounds * threads:
        began = time.monotonic()
        loop.run_once(10)
        assert time.monotonic() - began < 10
    assert set(taken) == {threading.current_thread()}


def test_waking_a_loop_that_has_ended_is_no_error():
    loop = Loop()
    loop.close()
    loop.call_soon(lambda: None)


def test_calls_that_bring_about_others_leave_the_sockets_their_turn(loop):
    called = []
    reading, writing = socket.socketpair()

    def call_again():
        called.append("call")
        loop.call_next(call_again)

    loop.watch(reading, 0, READ, lambda: called.append(reading.recv(1)))
    writing.send(b"ab")
    loop.call_next(call_again)
    loop.run_once(10)
    loop.run_once(10)
    assert called == [b"a", "call", b"b", "call"]
    reading.close()
    writing.close()
