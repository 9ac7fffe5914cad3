"""A rate per minute: a burst at once, then one after the other, for several names together."""

import random

from cardbeat.keys.rate import RateLimit
from tests.kit.heart import at_once
from tests.kit.lists import times
from tests.kit.support import FakeClock


def test_a_burst_passes_and_the_next_waits_for_its_share():
    clock = FakeClock(0)
    limit = RateLimit(clock)
    assert times(32, limit.take, {"a": 30}) == [0] * 30 + [2, 2]
    clock.advance(2)
    assert limit.take({"a": 30}) == 0
    assert limit.take({"a": 30}) == 2


def test_several_names_are_taken_together_or_not_at_all():
    limit = RateLimit(FakeClock(0))
    assert times(5, limit.take, {"a": 1, "wide": 3}) == [
        0,
        60,
        60,
        60,
        60,
    ]
    assert [limit.take({name: 1, "wide": 3}) for name in "bcd"] == [
        0,
        0,
        20,
    ]
    assert limit.take({"d": 1}) == 0
    assert limit.take({}) == 0


def test_what_is_used_goes_down_as_the_burst_comes_back():
    clock = FakeClock(0)
    limit = RateLimit(clock)
    used = []
    for _ in range(3):
        limit.take({"a": 60})
    for seconds in (0, 1, 0.5, 0.5, 60):
        clock.advance(seconds)
        used.append(limit.used("a", 60))
    assert used == [3, 2, 2, 1, 0]
    assert limit.used("never", 60) == 0


def test_no_time_holds_more_than_a_burst_and_the_rate_and_a_wait_is_exact():
    luck = random.Random(5)
    for per_minute in (1, 7, 30, 120):
        clock = FakeClock(luck.uniform(0, 1e6))
        limit = RateLimit(clock)
        taken = []
        for _ in range(1000):
            clock.advance(
                luck.choice((0, 0.01, 40 / per_minute, 90))
                * luck.random()
            )
            wait = limit.take({"a": per_minute})
            if wait:
                clock.advance(wait - 1e-3)
                assert limit.take({"a": per_minute}) > 0
                clock.advance(1e-3)
                assert limit.take({"a": per_minute}) == 0
            taken.append(clock.now)
        assert limit.used("a", per_minute) <= per_minute
        for first, began in enumerate(taken):
            for last in range(
                first, min(first + 2 * per_minute, len(taken))
            ):
                seconds = taken[last] - began
                assert (
                    last - first + 1
                    <= per_minute * (1 + seconds / 60) + 1e-3
                )


def test_threads_share_a_limit():
    limit = RateLimit(FakeClock(0))
    waits = at_once(*[lambda: times(50, limit.take, {"a": 100})] * 8)
    assert sum(each.count(0) for each in waits) == 100


def test_the_name_unused_for_longest_is_forgotten():
    limit = RateLimit(FakeClock(0), most_names=3)
    for name in ("a", "b", "c", "a", "d"):
        limit.take({name: 2})
    used = {name: limit.used(name, 2) for name in "abcd"}
    assert used == {"a": 2, "b": 0, "c": 1, "d": 1}
