"""How many posts keys may cause and addresses may get: a model of hours, without a server."""

import heapq
import itertools
from collections import Counter

import pytest

from cardbeat.heartbeat.delivery import allowance as module
from cardbeat.heartbeat.delivery.allowance import (
    ADDRESS_POSTS,
    ASKS_AN_HOUR,
    GROWN_SECONDS,
    HOUR_SECONDS,
    KEY_POSTS,
    MOST_POSTS,
    NEW_KEY_SHARE,
    OWN_POSTS,
    REMINDER_SECONDS,
    REMINDER_SHARE,
    TEST_SHARE,
    Allowance,
)
from cardbeat.heartbeat.delivery.lanes import CheckQueue
from tests.support import FakeClock

ATTACKERS = 10
CHECKS = 100
EVERY_SECONDS = 5
"""A check has an alert this often, or as soon as the last one is told."""


def queue(key, **kind):
    return CheckQueue(0, key, "host", 0, **kind)


class Model:
    """Checks with alerts that wait for their turns: of their key for a new alert, then at the one address of all."""

    def __init__(self):
        self.clock = FakeClock(0)
        self.allowance = Allowance(self.clock)
        self.posts = []
        """The time and the key of each."""
        self.told = Counter()
        self.longest_waits = Counter()
        """Seconds from an alert to its post, by key."""
        self.queues = {}
        """By key."""
        self._events = []
        self._entries = itertools.count()

    def alert(self, at, key, checks, again):
        self._at(at, self._new, key, checks, again, at)

    def run_until(self, end):
        while self._events and self._events[0][0] <= end:
            at, _, step, arguments = heapq.heappop(self._events)
            self.clock.advance(at - self.clock())
            step(*arguments)
        self.clock.advance(end - self.clock())

    def _at(self, at, step, *arguments):
        heapq.heappush(self._events, (at, next(self._entries), step, arguments))

    def _new(self, *alert):
        key, checks, *_ = alert
        turn = self.allowance.of_key(key, 0 if self.allowance.key_has_room(key, is_reminder=False) else checks)
        self._at(self.clock() + turn.wait_seconds, self._send if turn.is_own else self._new, *alert)

    def _send(self, *alert):
        asks = self.queues.get(alert[0]) or self.queues.setdefault(alert[0], queue(alert[0]))
        if self.allowance.address_seconds(asks, "address"):
            self._at(self.clock() + self.allowance.ask_seconds(asks, "address"), self._send, *alert)
        else:
            self.allowance.count_post(asks, "address")
            self._post(*alert)

    def _post(self, key, checks, again, since):
        self.posts.append((self.clock(), key))
        self.longest_waits[key] = max(self.longest_waits[key], self.clock() - since)
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
    model.run_until(2 * HOUR_SECONDS)
    times = [at for at, _ in model.posts]
    most = min(ADDRESS_POSTS + (keys - 1) * OWN_POSTS, MOST_POSTS)
    assert most_within(times, 1) <= most
    assert most_within(times, HOUR_SECONDS) <= 1.5 * most
    assert len([at for at in times if at > HOUR_SECONDS]) >= ADDRESS_POSTS * 0.35


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
        assert allowance.address_seconds(queue("honest"), "its own") == 0
        allowance.count_post(queue("honest"), "its own")


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


@pytest.mark.parametrize("keys", [10, 100, 150])
def test_no_alert_is_lost_or_waits_for_ever(keys):
    model = attacked(keys, 20)
    model.run_until(600)
    for _ in range(40):
        model.alert(600, "honest", 40, again=False)
    hours = 1
    while model.told["honest"] < 40 and hours < 24:
        hours += 1
        model.run_until(hours * HOUR_SECONDS)
    assert model.told["honest"] == 40


FRESH = {"registered_at": 0}
TESTS = {"is_test": True}


@pytest.mark.parametrize("kind", [FRESH, TESTS, FRESH | TESTS], ids=["new keys", "tests", "tests of new keys"])
def test_beside_a_crowd_of_new_keys_or_of_tests_keys_in_use_are_told_within_a_minute(kind):
    """Every half a minute a fresh key comes, so there is always one that has had no post."""
    model = Model()
    for number in range(370):
        key, at = f"stranger-{number}", max(0, number - 130) * 30
        model.queues[key] = queue(key, **kind)
        for _ in range(5):
            model.alert(at, key, 5, again=True)
    honest = [f"honest-{number}" for number in range(150)]
    for number, key in enumerate(honest):
        for at in range(600 + number, 2 * 3600, 1800):
            model.alert(at, key, 5, again=False)
    model.run_until(2 * HOUR_SECONDS)
    assert [model.told[key] for key in honest] == [4] * len(honest)
    assert max(model.longest_waits[key] for key in honest) <= 60
    assert most_within([at for at, _ in model.posts], 1) <= MOST_POSTS
    assert most_within([at for at, _ in model.posts], HOUR_SECONDS) <= 1.5 * MOST_POSTS


@pytest.mark.parametrize(("kind", "share"), [(FRESH, NEW_KEY_SHARE), (TESTS, TEST_SHARE), ({}, 1)])
def test_new_keys_and_tests_leave_a_part_of_an_address_to_others(kind, share):
    model = Model()
    for number in range(2 * MOST_POSTS):
        model.queues[str(number)] = queue(str(number), **kind)
        model.alert(0, str(number), 1, again=False)
    model.run_until(0)
    assert len(model.posts) == int(share * MOST_POSTS)


def test_the_older_a_key_the_more_room_it_has():
    allowance = Allowance(FakeClock(0))
    room = {}
    for days in (0, 1, 7, 30, 365, GROWN_SECONDS / 86400, 2 * GROWN_SECONDS / 86400):
        key = queue("key", registered_at=-days * 86400)
        while allowance.address_seconds(key, "address") == 0:
            allowance.count_post(queue(str(len(room))), "address")
            room[days] = room.get(days, 0) + 1
    assert list(room) == [0, 1, 7, 30, 365, GROWN_SECONDS / 86400]
    assert min(room.values()) >= 30
    assert sum(room.values()) == MOST_POSTS


@pytest.mark.parametrize("days", [0, 2, 30, 365])
def test_keys_that_were_registered_for_an_attack_long_ago_delay_no_alert_of_an_older_key(days):
    model = Model()
    for number in range(2 * MOST_POSTS):
        model.queues[str(number)] = queue(str(number), registered_at=-days * 86400)
        model.alert(0, str(number), 1, again=False)
    for number in range(20):
        key = f"honest-{number}"
        model.queues[key] = queue(key, registered_at=-(2 * days + 1) * 86400)
        model.alert(60 * number, key, 1, again=False)
    model.run_until(60 * 20)
    assert [model.told[f"honest-{number}"] for number in range(20)] == [1] * 20
    assert [model.longest_waits[f"honest-{number}"] for number in range(20)] == [0] * 20


def test_a_key_with_more_checks_may_cause_twice_as_many_alerts_and_post_them_all_to_one_address():
    allowance = Allowance(FakeClock(0))
    for number in range(2000):
        assert (
            allowance.of_key("large", 0 if allowance.key_has_room("large", is_reminder=False) else 1000).wait_seconds
            == 0
        ), number
        assert allowance.address_seconds(queue("large", is_granted=True), "address") == 0, number
        allowance.count_post(queue("large", is_granted=True), "address")
    assert allowance.of_key("large", 1000).wait_seconds > 0
    assert allowance.address_seconds(queue("stranger"), "address") == 0


def test_a_key_with_a_tier_from_the_operator_does_not_wait_for_strangers():
    allowance = Allowance(FakeClock(0))
    for number in range(MOST_POSTS):
        allowance.count_post(queue(f"stranger-{number}"), "address")
    assert allowance.address_seconds(queue("another"), "address") > 0
    for number in range(ADDRESS_POSTS):
        assert allowance.address_seconds(queue("granted", is_granted=True), "address") == 0, number
        allowance.count_post(queue("granted", is_granted=True), "address")
    assert allowance.address_seconds(queue("granted", is_granted=True), "address") > 0


def test_a_post_that_asks_too_late_for_an_hour_has_no_turn_of_its_own():
    """Otherwise whoever asks again and again would make all others wait for days."""
    allowance = Allowance(FakeClock(0))
    turns = [allowance.of_key("key") for _ in range(3 * KEY_POSTS)]
    assert turns[-1] == (HOUR_SECONDS, False)
    assert [turn.is_own for turn in turns].count(True) == 2 * KEY_POSTS
    asks = [allowance.ask_seconds(queue("stranger"), "address") for _ in range(10_000)]
    assert (max(asks), sum(seconds < HOUR_SECONDS for seconds in asks)) == (HOUR_SECONDS, ASKS_AN_HOUR)
    assert allowance.address_seconds(queue("honest"), "address") == 0


def test_reminders_leave_half_of_the_room_of_their_key_and_of_an_address_to_outages():
    allowance, reminder = Allowance(FakeClock(0)), queue("key", is_reminder=True)
    turns = [allowance.of_key("key", is_reminder=True) for _ in range(KEY_POSTS)]
    assert turns.count((0, True)) == KEY_POSTS * REMINDER_SHARE
    assert turns[-1] == (REMINDER_SECONDS, False)
    assert [allowance.of_key("key").wait_seconds for _ in range(KEY_POSTS // 2)] == [0] * (KEY_POSTS // 2)

    while not allowance.address_seconds(reminder, "address"):
        allowance.count_post(reminder, "address")
    asks = [allowance.ask_seconds(reminder, "address") for _ in range(2 * ASKS_AN_HOUR)]
    assert set(asks) == {REMINDER_SECONDS}
    for number in range(ADDRESS_POSTS // 2):
        assert not allowance.address_seconds(queue("key"), "address"), number
        allowance.count_post(queue("key"), "address")
    assert allowance.ask_seconds(queue("key"), "address") < 60


def test_reminders_of_a_granted_key_leave_half_of_its_own_room():
    allowance, reminder = Allowance(FakeClock(0)), queue("granted", is_granted=True, is_reminder=True)
    while not allowance.address_seconds(reminder, "address"):
        allowance.count_post(reminder, "address")
    for number in range(ADDRESS_POSTS // 2):
        assert not allowance.address_seconds(queue("granted", is_granted=True), "address"), number
        allowance.count_post(queue("granted", is_granted=True), "address")


def test_what_was_taken_comes_back_within_an_hour():
    clock = FakeClock(0)
    allowance = Allowance(clock)
    for _ in range(KEY_POSTS):
        allowance.of_key("key")
    assert not allowance.key_has_room("key", is_reminder=False)
    clock.advance(HOUR_SECONDS / KEY_POSTS)
    assert allowance.key_has_room("key", is_reminder=False)
    clock.advance(HOUR_SECONDS)
    assert [allowance.of_key("key").wait_seconds for _ in range(KEY_POSTS)] == [0] * KEY_POSTS


def test_only_so_many_names_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 100)
    allowance = Allowance(FakeClock(0))
    for number in range(200):
        allowance.of_key(str(number))
        allowance.count_post(queue(str(number)), str(number))
    assert len(allowance._keys._taken) == len(allowance._own._levels) == 100
