"""How many posts keys may cause and addresses may get: a model of hours, without a server."""

import heapq
import itertools
from collections import Counter

import pytest

from cardbeat.heartbeat.delivery import allowance as module
from cardbeat.heartbeat.delivery.allowance import (
    ADDRESS_POSTS,
    ADDRESS_POSTS_AN_HOUR,
    HOUR_SECONDS,
    KEY_POSTS,
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
        turn = self.allowance.of_address(key, "address")
        self._at(self.clock() + turn.wait_seconds, self._post if turn.is_own else self._send, *alert)

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


def attacked():
    model = Model()
    for key, _ in itertools.product(range(ATTACKERS), range(CHECKS)):
        model.alert(0, f"attacker-{key}", CHECKS, again=True)
    return model


def test_in_no_hour_an_address_gets_more_than_its_posts_and_those_that_each_key_has_for_its_own():
    model = attacked()
    model.run_until(6 * HOUR_SECONDS)
    times = [at for at, _ in model.posts]
    own = ATTACKERS * 2 * OWN_POSTS
    assert most_within(times, HOUR_SECONDS) <= ADDRESS_POSTS + ADDRESS_POSTS_AN_HOUR + own
    assert len(times) <= ADDRESS_POSTS + 6 * ADDRESS_POSTS_AN_HOUR + own + 6 * ATTACKERS * OWN_POSTS
    assert len([at for at in times if at > HOUR_SECONDS]) >= 5 * ADDRESS_POSTS_AN_HOUR


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
        assert allowance.of_address("honest", "its own").wait_seconds == 0


def test_beside_ten_attackers_an_honest_key_has_posts_of_its_own_at_the_same_address():
    model = attacked()
    model.run_until(1800)
    for _ in range(OWN_POSTS):
        model.alert(1800, "honest", 1, again=False)
    model.run_until(1800)
    assert model.told["honest"] == OWN_POSTS


def test_no_alert_is_lost_and_one_that_waits_has_a_turn_within_the_hour():
    model = attacked()
    model.run_until(600)
    for _ in range(2 * OWN_POSTS):
        model.alert(600, "honest", 1, again=False)
    model.run_until(600 + 2 * HOUR_SECONDS)
    assert model.told["honest"] == 2 * OWN_POSTS


def test_a_key_with_more_checks_may_cause_twice_as_many_alerts_and_post_them_all_to_one_address():
    allowance = Allowance(FakeClock(0))
    for number in range(2000):
        assert allowance.of_key("large", 0 if allowance.key_has_room("large") else 1000).wait_seconds == 0, number
        assert allowance.of_address("large", "address").wait_seconds == 0, number
    assert allowance.of_key("large", 1000).wait_seconds > 0


def test_a_post_that_asks_too_late_for_an_hour_has_no_turn_of_its_own():
    """Otherwise whoever asks again and again would make all others wait for days."""
    allowance = Allowance(FakeClock(0))
    turns = [allowance.of_key("key") for _ in range(3 * KEY_POSTS)]
    assert turns[-1] == (HOUR_SECONDS, False)
    assert [turn.is_own for turn in turns].count(True) == 2 * KEY_POSTS
    for _ in range(10_000):
        allowance.of_address("stranger", "address")
    assert allowance.of_address("honest", "address") == (0, True)


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
        allowance.of_address(str(number), str(number))
    assert len(allowance._keys._taken) == len(allowance._own._taken) == 100


@pytest.mark.parametrize("posts", [1, OWN_POSTS])
def test_the_posts_of_a_key_that_are_its_own_are_used_before_those_of_all(posts):
    allowance = Allowance(FakeClock(0))
    for key in range(1000):
        for _ in range(posts):
            assert allowance.of_address(str(key), "address").wait_seconds == 0
    assert not allowance._addresses._taken
