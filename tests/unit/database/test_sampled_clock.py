"""A server's clock as two machines know it whose own clocks have nothing to do with each other."""

import pytest

from cardbeat.database.postgresql.sampled_clock import SampledClock
from tests.support import FakeClock

LATENCY_SECONDS = 0.3


@pytest.fixture
def server(clock):
    return clock


def asking(server, monotonic):
    """Asks over a network that is as slow in both directions."""

    def ask():
        monotonic.advance(LATENCY_SECONDS)
        answer = server()
        monotonic.advance(LATENCY_SECONDS)
        server.advance(LATENCY_SECONDS)
        return answer

    return ask


def sampled(server, monotonic):
    return SampledClock(asking(server, monotonic), monotonic)


def test_machines_that_share_a_server_agree_on_the_time(server):
    near, far = FakeClock(5000), FakeClock(90_000)
    clocks = sampled(server, near), sampled(server, far)
    near.advance(2 * LATENCY_SECONDS)
    for seconds in (0, 3600):
        for clock in (server, near, far):
            clock.advance(seconds)
        assert max(abs(clock() - server()) for clock in clocks) < LATENCY_SECONDS + 0.001


def test_a_server_that_was_set_is_seen_with_the_next_sample(server):
    monotonic = FakeClock(5000)
    clock = sampled(server, monotonic)
    server.advance(3600)
    clock.sample(asking(server, monotonic))
    assert clock() == pytest.approx(server())


@pytest.mark.parametrize("pauses", [(0, 60), (60, 0)])
def test_what_was_heard_over_a_suspension_counts_less_than_any_other_answer(server, pauses):
    monotonic = FakeClock(5000)
    asked = iter(pauses)

    def ask():
        answer, pause = server(), next(asked)
        for one in (server, monotonic):
            one.advance(pause)
        return answer

    clock = SampledClock(ask, monotonic)
    clock.sample(ask)
    assert clock() == pytest.approx(server())


def test_slow_answers_are_enough_to_see_that_the_machine_slept(server):
    monotonic = FakeClock(5000)
    clock = sampled(server, monotonic)
    server.advance(3600)

    def slow():
        for one in (server, monotonic):
            one.advance(1.2)
        return server()

    clock.sample(slow)
    assert clock() == pytest.approx(server(), abs=1.2)
