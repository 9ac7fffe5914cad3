"""How many test alerts are taken, for a check and for a key."""

import pytest

from cardbeat.config import TESTS_AN_HOUR
from cardbeat.errors import TooMany
from cardbeat.heartbeat.checks import WAITING_TESTS, Checks
from tests.kit.heart import Heart, at_once
from tests.kit.lists import times
from tests.kit.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    heart = Heart(database, clock)
    wake = heart.delivery.wake
    heart.checks = Checks(database, clock, wake, heart.monotonic)
    return heart


def take(heart, check):
    return heart.checks.test_alert(check.api_key_id, check.id)


def take_five(heart):
    check = heart.create()
    for _ in range(WAITING_TESTS):
        take(heart, check)
    return check


def take_all(heart):
    """Take a key's tests of an hour, on as few checks as can be."""
    for _ in range(TESTS_AN_HOUR // WAITING_TESTS):
        take_five(heart)


def refused(heart, check):
    """The sentence and the seconds of a refusal."""
    with pytest.raises(TooMany) as refusal:
        take(heart, check)
    return refusal.value.sentence, int(
        refusal.value.headers["Retry-After"]
    )


def test_five_of_a_check_wait_and_another_check_has_its_own(heart):
    check, other = take_five(heart), heart.create()
    for _ in range(TESTS_AN_HOUR):
        sentence, seconds = refused(heart, check)
    assert "5 test alerts of this check wait" in sentence
    assert seconds == 60
    # A refused one is not counted.
    take(heart, other)
    assert heart.checks.usage(heart.key.id) == (2, 6)


def test_one_that_is_finished_makes_room_and_real_alerts_take_none(heart):
    check = take_five(heart)
    for _ in range(8):
        heart.fail(check)
        heart.ping(check)
    for state in ("delivered", "failed"):
        heart.take_all(state, check, most=1)
        take(heart, check)
    refused(heart, check)


def test_thirty_are_taken_in_an_hour(heart):
    take_all(heart)
    sentence, seconds = refused(heart, heart.create())
    assert "30 test alerts" in sentence
    assert seconds == 3600
    own, heart.key = heart.key, heart.keys.issue("other@example.com").key
    take_all(heart)
    heart.key = own
    heart.monotonic.advance(3599)
    refused(heart, heart.create())
    heart.monotonic.advance(1)
    take_all(heart)


def test_at_once_no_more_are_taken(heart):
    checks = times(20, heart.create)
    results = at_once(
        *(
            [lambda check=check: take(heart, check) for check in checks]
            * 3
        )
    )
    assert (
        sum(not isinstance(result, TooMany) for result in results)
        == TESTS_AN_HOUR
    )
