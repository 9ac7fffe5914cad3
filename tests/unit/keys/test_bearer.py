"""The key in a request's head: found at once while it is cached, else looked up; and what the others are told."""

import pytest

from cardbeat.errors import Refusal
from cardbeat.keys.bearer import Bearer, key_of
from cardbeat.keys.key import CARDS, CHECKS
from cardbeat.keys.store import CACHE_SECONDS, Keys
from cardbeat.web.message import Request
from tests.support import FakeClock


def request(authorization: str) -> Request:
    return Request("GET", "/checks", "/checks", headers={"authorization": authorization})


def never(_: object) -> None:
    raise AssertionError("nothing is to be done yet")


def refusal_of(bearer: Bearer, asked: Request) -> tuple[int, str, str]:
    with pytest.raises(Refusal) as refused:
        bearer.look_up(asked)
    return refused.value.status, refused.value.code, refused.value.sentence


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Basic YTpi", "sk_a"])
def test_without_a_key_nothing_is_looked_up(keys: Keys, authorization: str) -> None:
    bearer, asked = Bearer(keys), request(authorization)
    for judge in (lambda: bearer.find(asked, never), lambda: bearer.name_of(asked), lambda: bearer.look_up(asked)):
        with pytest.raises(Refusal) as refused:
            judge()
        assert (refused.value.status, refused.value.code) == (401, "key_missing")
        assert refused.value.headers == {"WWW-Authenticate": "Bearer"}


def test_a_key_is_looked_up_once_and_then_found_at_once(keys: Keys) -> None:
    issued, bearer = keys.issue("a@b").wait(), Bearer(keys, CHECKS)
    asked = request(f"bearer  {issued.value} ")
    assert bearer.find(asked, never) is None
    assert bearer.name_of(asked) is None
    assert bearer.look_up(asked) == issued.key
    assert bearer.find(asked, never) == issued.key


def test_a_key_that_was_seen_before_is_looked_up_under_its_own_name(keys: Keys, monotonic: FakeClock) -> None:
    issued, bearer = keys.issue("a@b").wait(), Bearer(keys)
    asked = request(f"Bearer {issued.value}")
    bearer.look_up(asked)
    monotonic.advance(CACHE_SECONDS)
    assert bearer.find(asked, never) is None
    assert bearer.name_of(asked) == issued.key.id


def test_a_cache_that_is_soon_too_old_is_renewed_by_another_thread(keys: Keys, monotonic: FakeClock) -> None:
    issued, bearer, soon = keys.issue("a@b").wait(), Bearer(keys), []
    asked = request(f"Bearer {issued.value}")
    bearer.look_up(asked)
    monotonic.advance(CACHE_SECONDS * 0.6)
    assert bearer.find(asked, soon.append) == issued.key
    assert soon == [keys.renew]


def test_unknown_keys_and_those_of_another_scope_are_told_why(keys: Keys) -> None:
    cards = request(f"Bearer {keys.issue().wait().value}")
    assert refusal_of(Bearer(keys), request("Bearer sk_unknown"))[:2] == (401, "key_unknown")
    assert refusal_of(Bearer(keys, CHECKS), cards) == (
        403,
        "wrong_scope",
        "This is a cards key; checks take a checks key, which POST /register issues for an e-mail address.",
    )
    assert refusal_of(Bearer(keys, CHECKS, of_cards_key="Not with this one."), cards) == (
        403,
        "wrong_scope",
        "Not with this one.",
    )
    assert Bearer(keys, CARDS).look_up(cards).scope == CARDS
    with pytest.raises(Refusal, match="Not with this one"):
        Bearer(keys, CHECKS, of_cards_key="Not with this one.").find(cards, never)


def test_a_handler_without_a_guard_has_no_key() -> None:
    with pytest.raises(TypeError, match="no guard"):
        key_of(request(""))
