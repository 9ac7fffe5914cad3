"""How many posts keys may cause and addresses may get: a model of hours, without a server."""

import heapq
import itertools
from collections import Counter

import pytest

from cardbeat.heartbeat.delivery import allowance as module
from cardbeat.heartbeat.delivery.allowance import (
    ADDRESS_POSTS,
    ASKS_AN_HOUR,
    HOUR_SECONDS,
    KEY_POSTS,
    MOST_POSTS,
    OWN_POSTS,
    Allowance,
)
from tests.support import FakeClock

ATTACKERS = 10
CHECKS = 100
EVERY_SECONDS = 5
"""A check has an alert this often, or as soon as the last one is told."""


class Model:
    """Checks with alerts that wait for their turns: of their key for a new alert, then at the one address of all."""

    def __init__(self):
        self.clock = FakeClock(0)
        self.allowance = Allowance(self.clock)
        self.posts = []
        """The time and the key of each."""
        self.told = Counter()
        self._events = []
        self._entries = itertools.count()

    def alert(self, at, key, checks, again):
        self._at(at, self._new, key, checks, again)

    def run_until(self, end):
        while self._events and self._events[0][0] <= end:
            at, _, step, arguments = heapq.heappop(self._events)
            self.clock.advance(at - self.clock())
            step(*arguments)
        self.clock.advance(end - self.clock())

    def _at(self, at, step, *arguments):
        heapq.heappush(self._events, (at, next(self._entries), step, arguments))

    def _new(self, *alert):
        key, checks, _ = alert
        turn = self.allowance.of_key(key, 0 if self.allowance.key_has_room(key) else checks)
        self._at(self.clock() + turn.wait_seconds, self._send if turn.is_own else self._new, *alert)

    def _send(self, *alert):
        key, _, _ = alert
        if self.allowance.address_seconds(key, "address"):
            self._at(self.clock() + self.allowance.ask_seconds(key, "address"), self._send, *alert)
        else:
            self.allowance.count_post(key, "address")
            self._post(*alert)

    def _post(self, key, checks, again):
        self.posts.append((self.clock(), key))
        self.told[key] += 1
        if again:
            self.alert(self.clock() + EVERY_SECONDS, key, checks, again)


def most_within(times, seconds):
    """The most of these times that lie within any span of so many seconds."""
    most, first = 0, 0
    for last, time in enumerate(times):
        while times[first] <= time - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def attacked(keys=ATTACKERS, checks=CHECKS, every_seconds=0):
    """A model of so many keys that alert without end, all at once or each a while after the last."""
    model = Model()
    for key, _ in itertools.product(range(keys), range(checks)):
        model.alert(key * every_seconds, f"attacker-{key}", checks, again=True)
    return model


@pytest.mark.parametrize("keys", [1, 10, 40, 500])
@pytest.mark.parametrize("every_seconds", [0, 2])
def test_an_address_gets_at_most_its_posts_at_once_and_half_as_many_more_in_any_hour(keys, every_seconds):
    model = attacked(keys, 1000 // keys if keys > 10 else CHECKS, every_seconds)
    model.run_until(3 * HOUR_SECONDS)
    times = [at for at, _ in model.posts]
    most = min(ADDRESS_POSTS + (keys - 1) * OWN_POSTS, MOST_POSTS)
    assert most_within(times, 1) <= most
    assert most_within(times, HOUR_SECONDS) <= 1.5 * most
    assert len([at for at in times if at > HOUR_SECONDS]) >= ADDRESS_POSTS * 0.75


def test_in_no_hour_a_key_causes_more_than_its_bucket_and_what_follows():
    clock = FakeClock(0)
    allowance, times = Allowance(clock), []
    for _ in range(3 * 3600):
        turn = allowance.of_key("key", 100)
        if turn.is_own:
            times.append(clock() + turn.wait_seconds)
        clock.advance(1)
    assert times == sorted(times)
    assert times[KEY_POSTS - 1] < KEY_POSTS + 1
    assert most_within(times, HOUR_SECONDS) <= 2 * KEY_POSTS


def test_an_honest_key_with_100_checks_is_told_at_once_of_their_failure_and_recovery_at_a_receiver_of_its_own():
    allowance = Allowance(FakeClock(0))
    for _ in range(2 * CHECKS):
        assert allowance.of_key("honest").wait_seconds == 0
        assert allowance.address_seconds("honest", "its own") == 0
        allowance.count_post("honest", "its own")


@pytest.mark.parametrize("keys", [6, 10, 30])
@pytest.mark.parametrize("every_seconds", [0, 2])
@pytest.mark.parametrize("at", [61, 1800, 3 * HOUR_SECONDS])
def test_beside_attackers_an_honest_key_with_40_checks_is_told_of_all_at_once(keys, every_seconds, at):
    model = attacked(keys, every_seconds=every_seconds)
    model.run_until(at)
    for _ in range(40):
        model.alert(at, "honest", 40, again=False)
    model.run_until(at)
    assert model.told["honest"] == 40


def test_beside_100_attackers_an_honest_key_has_some_posts_at_once():
    model = attacked(100, 20)
    model.run_until(1800)
    for _ in range(40):
        model.alert(1800, "honest", 40, again=False)
    model.run_until(1800)
    assert model.told["honest"] >= 5


@pytest.mark.parametrize("keys", [10, 100, 300])
def test_no_alert_is_lost_or_waits_for_ever(keys):
    model = attacked(keys, 20)
    model.run_until(600)
    for _ in range(40):
        model.alert(600, "honest", 40, again=False)
    model.run_until(24 * HOUR_SECONDS)
    assert model.told["honest"] == 40


def test_a_key_with_more_checks_may_cause_twice_as_many_alerts_and_post_them_all_to_one_address():
    allowance = Allowance(FakeClock(0))
    for number in range(2000):
        assert allowance.of_key("large", 0 if allowance.key_has_room("large") else 1000).wait_seconds == 0, number
        assert allowance.address_seconds("large", "address", is_granted=True) == 0, number
        allowance.count_post("large", "address", is_granted=True)
    assert allowance.of_key("large", 1000).wait_seconds > 0
    assert allowance.address_seconds("stranger", "address") == 0


def test_a_key_with_a_tier_from_the_operator_does_not_wait_for_strangers():
    allowance = Allowance(FakeClock(0))
    for number in range(MOST_POSTS):
        allowance.count_post(f"stranger-{number}", "address")
    assert allowance.address_seconds("another", "address") > 0
    for number in range(ADDRESS_POSTS):
        assert allowance.address_seconds("granted", "address", is_granted=True) == 0, number
        allowance.count_post("granted", "address", is_granted=True)
    assert allowance.address_seconds("granted", "address", is_granted=True) > 0


def test_a_post_that_asks_too_late_for_an_hour_has_no_turn_of_its_own():
    """Otherwise whoever asks again and again would make all others wait for days."""
    allowance = Allowance(FakeClock(0))
    turns = [allowance.of_key("key") for _ in range(3 * KEY_POSTS)]
    assert turns[-1] == (HOUR_SECONDS, False)
    assert [turn.is_own for turn in turns].count(True) == 2 * KEY_POSTS
    asks = [allowance.ask_seconds("stranger", "address") for _ in range(10_000)]
    assert (max(asks), sum(seconds < HOUR_SECONDS for seconds in asks)) == (HOUR_SECONDS, ASKS_AN_HOUR)
    assert allowance.address_seconds("honest", "address") == 0


def test_what_was_taken_comes_back_within_an_hour():
    clock = FakeClock(0)
    allowance = Allowance(clock)
    for _ in range(KEY_POSTS):
        allowance.of_key("key")
    assert not allowance.key_has_room("key")
    clock.advance(HOUR_SECONDS / KEY_POSTS)
    assert allowance.key_has_room("key")
    clock.advance(HOUR_SECONDS)
    assert [allowance.of_key("key").wait_seconds for _ in range(KEY_POSTS)] == [0] * KEY_POSTS


def test_only_so_many_names_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 100)
    allowance = Allowance(FakeClock(0))
    for number in range(200):
        allowance.of_key(str(number))
        allowance.count_post(str(number), str(number))
    assert len(allowance._keys._taken) == len(allowance._own._levels) == 100
