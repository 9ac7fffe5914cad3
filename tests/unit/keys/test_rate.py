from cardbeat.keys.rate import FORGOTTEN_AT_ONCE, MAX_NAMES, RateLimit, StrictRateLimit
from tests.support import FakeClock


def test_a_burst_of_the_rate_passes_and_the_next_waits_for_its_share():
    clock = FakeClock(0)
    limit = RateLimit(clock)
    assert [limit.take("a", 30) for _ in range(30)] == [0] * 30
    assert limit.take("a", 30) == 2
    clock.advance(2)
    assert limit.take("a", 30) == 0
    assert limit.take("a", 30) == 2


def test_a_refused_take_costs_nothing():
    clock = FakeClock(0)
    limit = RateLimit(clock)
    waits = [limit.take("a", 1) for _ in range(5)]
    assert waits == [0, 60, 60, 60, 60]


def test_names_do_not_share():
    limit = RateLimit(FakeClock(0))
    assert limit.take("a", 1) == 0
    assert limit.take("b", 1) == 0


def test_used_counts_down_as_the_burst_refills():
    clock = FakeClock(0)
    limit = RateLimit(clock)
    for _ in range(3):
        limit.take("a", 60)
    assert limit.used("a", 60) == 3
    clock.advance(1)
    assert limit.used("a", 60) == 2
    clock.advance(60)
    assert limit.used("a", 60) == 0
    assert limit.used("never", 60) == 0


def test_a_client_that_took_less_than_its_share_is_served_though_the_limit_is_used_up():
    limit = RateLimit(FakeClock(0))
    assert [limit.take("key", 10, "stranger") for _ in range(10)] == [0] * 10
    assert limit.take("key", 10, "stranger") == 6
    assert [limit.take("key", 10, "owner") for _ in range(5)] == [0] * 5
    assert limit.take("key", 10, "owner") > 0
    assert limit.take("key", 10, "stranger") > 0
    assert limit.take("key", 10, "third") == 0
    assert limit.used("key", 10) == 10


def test_clients_without_end_take_at_most_twice_the_limit():
    limit = RateLimit(FakeClock(0))
    taken = [limit.take("key", 10, str(number % 1000)) for number in range(3000)].count(0)
    assert taken == 20
    assert limit.take("other", 10, "1") == 0


def test_a_share_comes_back_when_its_minute_is_over():
    clock = FakeClock(0)
    limit = RateLimit(clock)
    for client in ("a", "b"):
        while not limit.take("key", 4, client):
            pass
    clock.advance(59)
    assert limit.take("key", 4, "b") == 0
    assert limit.take("key", 4, "b") > 0
    clock.advance(1)
    assert [limit.take("key", 4, client) for client in "aab"] == [0, 0, 0]


def test_takes_are_forgotten_where_nobody_is_refused():
    clock = FakeClock(0)
    limit = RateLimit(clock)
    for _ in range(1000):
        clock.advance(0.6)
        assert limit.take("key", 120, "a") == 0
    assert len(limit._takes) == limit._taken["key"]["a"] == 100


def test_to_ask_how_long_to_wait_takes_nothing():
    limit = RateLimit(FakeClock(0))
    assert [limit.wait_seconds("key", 1, "a") for _ in range(3)] == [0, 0, 0]
    assert limit.take("key", 1, "a") == 0
    assert [limit.wait_seconds("key", 1, "a"), limit.wait_seconds("key", 1, "b"), limit.take("key", 1, "b")] == [
        60,
        0,
        0,
    ]


def test_names_are_forgotten_oldest_first():
    limit = RateLimit(FakeClock(0))
    for number in range(MAX_NAMES + 1):
        limit.take(str(number), 1)
    assert limit.take(str(MAX_NAMES), 1) > 0
    assert limit.take("1", 1) > 0
    assert limit.take("0", 1) == 0


def test_the_strict_rate_remembers_only_so_many_names():
    clock = FakeClock(0)
    limit = StrictRateLimit(clock)
    for name in ("a", "b", "a", *range(MAX_NAMES - 1)):
        clock.advance(1e-5)
        assert limit.take({str(name): 2}) == 0
    assert limit.take({"a": 2}) > 0
    assert [limit.take({"b": 2}), limit.take({"b": 2})] == [0, 0]


def test_no_minute_holds_more_than_the_strict_rate():
    clock = FakeClock(0)
    limit = StrictRateLimit(clock)
    taken = []
    for second in range(300):
        clock.now = second
        wait = limit.take({"a": 5})
        if wait == 0:
            taken.append(second)
        else:
            assert second + wait == taken[-5] + 60
    assert taken == [minute + second for minute in range(0, 300, 60) for second in range(5)]


def test_strict_rates_of_names_are_apart_and_end_with_their_minute():
    clock = FakeClock(0)
    limit = StrictRateLimit(clock)
    assert [limit.take({"a": 2}), limit.take({"b": 2})] == [0, 0]
    clock.advance(59)
    assert [limit.take({"a": 2}), limit.take({"a": 2}), limit.take({"b": 2})] == [0, 1, 0]
    clock.advance(1)
    assert [limit.take({"a": 2}), limit.take({"a": 2})] == [0, 59]
    clock.advance(60)
    assert limit.take({"c": 2}) == 0
    assert list(limit._taken) == ["c"]


def test_a_take_of_several_names_is_refused_whole():
    clock = FakeClock(0)
    limit = StrictRateLimit(clock)
    assert limit.take({"a": 1, "wide": 3}) == 0
    clock.advance(10)
    assert [limit.take({"a": 1, "wide": 3}) for _ in range(5)] == [50] * 5
    assert [limit.take({name: 1, "wide": 3}) for name in "bcd"] == [0, 0, 50]
    assert limit.take({"d": 1}) == 0
    clock.advance(50)
    assert limit.wait_seconds({"d": 1, "wide": 3}) == 10
    assert limit.take({"e": 1, "wide": 3}) == 0


def test_to_ask_takes_nothing():
    limit = StrictRateLimit(FakeClock(0))
    assert [limit.wait_seconds({"a": 1}) for _ in range(3)] == [0] * 3
    assert limit.take({"a": 1}) == 0
    assert limit.wait_seconds({"a": 1}) == 60


def test_names_whose_minute_is_over_are_forgotten_a_few_at_a_time():
    clock = FakeClock(0)
    limit = StrictRateLimit(clock)
    for number in range(100):
        limit.take({str(number): 1})
    clock.advance(60)
    sizes = []
    while len(limit._taken) > 1:
        limit.take({"a": 100})
        sizes.append(len(limit._taken))
    assert max(before - after for before, after in zip([100, *sizes], sizes, strict=False)) <= FORGOTTEN_AT_ONCE
