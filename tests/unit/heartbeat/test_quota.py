"""How many test alerts are taken, for a check and for a key."""

import pytest

from cardbeat.config import TESTS_AN_HOUR
from cardbeat.errors import TooMany
from cardbeat.heartbeat.quota import HOUR_SECONDS, WAITING_TESTS
from tests.heart import HOOK, Heart, at_once
from tests.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


def take(heart, check):
    return heart.checks.test_alert(check.api_key_id, check.id).wait()


def take_all(heart):
    """Take a key's tests of an hour, on as few checks as can be; those checks."""
    checks = [heart.create() for _ in range(TESTS_AN_HOUR // WAITING_TESTS)]
    for check in checks:
        for _ in range(WAITING_TESTS):
            take(heart, check)
    return checks


def refused(heart, check):
    """The sentence and the seconds of a refusal."""
    with pytest.raises(TooMany) as refusal:
        take(heart, check)
    return refusal.value.sentence, int(refusal.value.headers["Retry-After"])


def test_five_of_a_check_wait_and_another_check_has_its_own(heart):
    check, other = heart.create(), heart.create()
    for _ in range(5):
        take(heart, check)
    sentence, seconds = refused(heart, check)
    assert "5 test alerts of this check wait" in sentence
    assert seconds > 0
    take(heart, other)


@pytest.mark.parametrize(
    ("next_attempt_in", "told"), [(-100, 10), (0, 10), (9, 10), (30, 30), (600, 600), (3600, 3600), (50_000, 3600)]
)
def test_while_five_wait_it_is_told_when_the_first_of_them_is_tried_again(heart, next_attempt_in, told):
    check = heart.create()
    for _ in range(5):
        take(heart, check)
    due_at = int(heart.clock()) + next_attempt_in
    heart.alerts.store([heart.attempt(1, "pending", 500, "busy", due_at, HOOK, 0)], int(heart.clock()))
    _, seconds = refused(heart, check)
    assert seconds == told


@pytest.mark.parametrize("state", ["delivered", "failed"])
def test_one_that_is_finished_makes_room(heart, state):
    check = heart.create()
    for _ in range(5):
        take(heart, check)
    heart.alerts.store([heart.attempt(1, "pending", 500, "busy", None, HOOK, 0)], int(heart.clock()))
    refused(heart, check)
    heart.alerts.store([heart.attempt(1, state, 500, "busy", None, HOOK, 1)], int(heart.clock()))
    take(heart, check)


def test_real_alerts_that_wait_do_not_count(heart):
    check = heart.create()
    for _ in range(8):
        heart.pass_time(61)
        heart.sweep.sweep_once()
        heart.ping(check)
    take(heart, check)


def test_thirty_are_taken_in_any_hour(heart):
    take_all(heart)
    heart.clock.advance(1000)
    sentence, seconds = refused(heart, heart.create())
    assert "30 test alerts" in sentence
    assert seconds == HOUR_SECONDS - 1000
    heart.clock.advance(seconds - 1)
    refused(heart, heart.create())
    heart.clock.advance(1)
    take_all(heart)
    refused(heart, heart.create())


def test_a_refused_one_is_not_counted(heart):
    check = heart.create()
    for _ in range(WAITING_TESTS):
        take(heart, check)
    for _ in range(TESTS_AN_HOUR):
        refused(heart, check)
    take(heart, heart.create())


def test_another_key_has_its_own(heart):
    take_all(heart)
    heart.key = heart.keys.issue("other@example.com").wait().key
    take_all(heart)


def test_deleting_the_checks_gives_no_more(heart):
    for check in take_all(heart):
        heart.checks.delete(heart.key.id, check.id).wait()
    refused(heart, heart.create())


def test_a_restart_and_a_second_process_give_no_more(heart, clock, open_again):
    take_all(heart)
    other = Heart(open_again(), clock)
    other.key = heart.key
    refused(other, other.create())


def test_at_once_no_more_are_taken(heart):
    checks = [heart.create() for _ in range(20)]
    results = at_once(*([lambda check=check: take(heart, check) for check in checks] * 3))
    assert sum(not isinstance(result, TooMany) for result in results) == TESTS_AN_HOUR


def test_a_clock_that_was_set_back_locks_nobody_out(heart):
    take_all(heart)
    heart.clock.advance(-90_000)
    take_all(heart)


def test_a_key_that_is_gone_leaves_no_count(heart):
    take_all(heart)
    heart.database.write(lambda connection: connection.execute("DELETE FROM keys"))
    with heart.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM tests_taken").fetchone()[0] == 0
