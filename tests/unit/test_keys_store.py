"""Keys kept in memory: never for longer than they are good."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from sqlite3 import Connection
from types import SimpleNamespace

import pytest

from cardbeat import cli
from cardbeat.config import FREE, UNLIMITED
from cardbeat.database import Database
from cardbeat.errors import Refusal
from cardbeat.keys.key import Key
from cardbeat.keys.store import CACHE_SECONDS, CHANGES, Keys, hash_of
from cardbeat.keys.webhook_secrets import WebhookSecrets
from cardbeat.later import Later
from tests.postgresql import BOTH_ENGINES
from tests.support import FakeClock

TIERS = {"free": FREE, "unlimited": UNLIMITED}


pytestmark = BOTH_ENGINES


@pytest.fixture(autouse=True)
def monotonic(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock by which keys are kept; only waiting moves it."""
    monotonic = FakeClock(0)
    monkeypatch.setattr("cardbeat.keys.store.time", SimpleNamespace(monotonic=monotonic))

    def after(seconds: float) -> Later[None]:
        monotonic.advance(seconds)
        done: Later[None] = Later()
        done.succeed(None)
        return done

    monkeypatch.setattr("cardbeat.keys.store.after", after)
    return monotonic


@pytest.fixture
def keys(database: Database, clock: FakeClock) -> Keys:
    return Keys(database, clock, TIERS)


def test_a_key_revoked_while_it_is_read_is_not_kept(
    keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued, read = keys.issue().wait(), database.read

    @contextlib.contextmanager
    def read_before_the_revocation() -> Iterator[Connection]:
        with read() as connection:
            yield connection
        keys.revoke(issued.key.id)

    keys.renew()
    with monkeypatch.context() as patch:
        patch.setattr(database, "read", read_before_the_revocation)
        assert keys.find(issued.value)
    assert keys.find(issued.value) is None


def test_the_cache_is_looked_at_anew_in_time_by_one_and_for_all_keys(keys: Keys, monotonic: FakeClock) -> None:
    asked_often, asked_once = keys.issue().wait().value, keys.issue().wait().value
    renewals = []

    def ask(value: str = asked_often, count: int = 3) -> list[bool]:
        return [keys.find_cached(hash_of(value), lambda: renewals.append(1)) is not None for _ in range(count)]

    assert ask() == [False] * 3
    assert keys.find(asked_often)
    assert keys.find(asked_once)
    assert ask() == [True] * 3
    for round_ in range(1, 4):
        monotonic.advance(CACHE_SECONDS * 0.6)
        assert ask() == [True] * 3
        assert len(renewals) == round_
        keys.renew()
    assert ask(asked_once) == [True] * 3
    monotonic.advance(CACHE_SECONDS)
    assert ask() == [False] * 3


def test_a_change_elsewhere_empties_the_cache_when_it_is_renewed(
    keys: Keys, database: Database, clock: FakeClock
) -> None:
    issued, elsewhere = keys.issue().wait(), Keys(database, clock, TIERS)
    assert elsewhere.find(issued.value)
    keys.set_tier(issued.key.id, "unlimited")
    elsewhere.renew()
    assert elsewhere.find_cached(hash_of(issued.value), lambda: None) is None
    assert elsewhere.find(issued.value).limits == UNLIMITED


def test_a_renewal_that_read_before_a_change_makes_nothing_good_for_longer(
    keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued, read = keys.issue().wait(), database.read
    assert keys.find(issued.value)

    @contextlib.contextmanager
    def read_before_the_revocation() -> Iterator[Connection]:
        with read() as connection:
            yield connection
        keys.revoke(issued.key.id)

    with monkeypatch.context() as patch:
        patch.setattr(database, "read", read_before_the_revocation)
        keys.renew()
    assert keys.find_cached(hash_of(issued.value), lambda: None) is None
    assert keys.find(issued.value) is None


def test_a_revoked_key_is_none_whatever_is_asked_of_it_while_its_row_is_there(
    keys: Keys, database: Database, clock: FakeClock
) -> None:
    issued = keys.issue("ops@example.com").wait()
    assert keys.revoke(issued.key.id)
    assert not keys.revoke(issued.key.id)
    assert not keys.set_tier(issued.key.id, "unlimited")
    assert keys.all() == []
    for change in (keys.rotate_later, WebhookSecrets(database, clock).renew):
        with pytest.raises(Refusal) as refused:
            change(issued.key).wait()
        assert refused.value.status == 401


def test_another_tier_counts_at_once(keys: Keys) -> None:
    issued = keys.issue().wait()
    assert keys.find(issued.value).limits == FREE
    keys.set_tier(issued.key.id, "unlimited")
    assert keys.find(issued.value).limits == UNLIMITED


@pytest.mark.parametrize(
    "change", [lambda keys, key: keys.rotate_later(key).wait(), lambda keys, key: keys.revoke(key.id)]
)
def test_once_a_key_is_changed_no_other_process_takes_it_as_it_was(
    keys: Keys, database: Database, clock: FakeClock, change: Callable[[Keys, Key], object]
) -> None:
    issued, elsewhere = keys.issue().wait(), Keys(database, clock, TIERS)
    assert elsewhere.find(issued.value)
    change(keys, issued.key)
    assert elsewhere.find_cached(hash_of(issued.value), lambda: None) is None
    assert elsewhere.find(issued.value) is None


def test_only_so_many_keys_are_kept(
    keys: Keys, database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cardbeat.keys.store._MAX_CACHED", 2)
    issued = [keys.issue().wait() for _ in range(3)]
    assert all(keys.find(each.value) for each in issued)
    another_process = Keys(database, clock, TIERS)
    assert all(another_process.revoke(each.key.id) for each in issued)
    assert sum(keys.find(each.value) is not None for each in issued) <= 2


def is_cached(keys: Keys, value: str) -> bool:
    return keys.last_known(hash_of(value)) is not None


@pytest.mark.parametrize(
    "change", [lambda keys, key: keys.rotate_later(key).wait(), lambda keys, key: keys.set_tier(key.id, "unlimited")]
)
def test_a_change_takes_no_key_but_its_own_out_of_the_cache(
    keys: Keys, monotonic: FakeClock, change: Callable[[Keys, Key], object]
) -> None:
    changed, other = keys.issue("a@b").wait(), keys.issue().wait()
    assert keys.find(changed.value)
    assert keys.find(other.value)
    change(keys, changed.key)
    assert not is_cached(keys, changed.value)
    assert is_cached(keys, other.value)
    monotonic.advance(CACHE_SECONDS)
    keys.renew()
    assert is_cached(keys, other.value)


def test_a_key_that_rotates_itself_in_a_loop_costs_the_others_no_look_up(keys: Keys, monotonic: FakeClock) -> None:
    rotated, other = keys.issue("a@b").wait(), keys.issue().wait().value
    assert keys.find(other)
    for _ in range(20):
        rotated = keys.rotate_later(rotated.key).wait()
        assert keys.find(rotated.value)
        assert is_cached(keys, other)


def test_a_change_behind_one_of_another_process_empties_the_cache(
    keys: Keys, database: Database, clock: FakeClock
) -> None:
    mine, other, elsewhere = keys.issue().wait(), keys.issue().wait(), Keys(database, clock, TIERS)
    assert keys.find(mine.value)
    assert keys.find(other.value)
    elsewhere.revoke(other.key.id)
    keys.set_tier(mine.key.id, "unlimited")
    assert not is_cached(keys, other.value)
    assert keys.find(other.value) is None


def test_a_change_that_fails_empties_the_cache(keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    issued = keys.issue().wait()
    assert keys.find(issued.value)
    with monkeypatch.context() as patch:
        patch.setattr("cardbeat.monitor.increment", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            keys.revoke(issued.key.id)
    assert not is_cached(keys, issued.value)
    assert keys.find(issued.value)


def test_only_keys_that_live_are_counted(keys: Keys) -> None:
    issued = [keys.issue().wait() for _ in range(3)]
    keys.set_tier(issued[0].key.id, "unlimited")
    for each in issued[1:]:
        keys.revoke(each.key.id)
    assert keys.count_by_tier() == {"unlimited": 1}


@pytest.mark.parametrize("change", [["revoke"], ["tier", "unlimited"]])
def test_when_the_command_returns_a_running_server_has_seen_its_change(
    keys: Keys, tmp_path: Path, database_url: str | None, change: list[str]
) -> None:
    issued = keys.issue().wait()
    before = keys.find(issued.value)
    action, *name = change
    place = ["--data", str(tmp_path)] if database_url is None else ["--database", database_url]
    assert cli.main(["keys", action, issued.key.id, *name, *place]) == 0
    assert keys.find(issued.value) != before


def test_a_key_revoked_after_a_standby_that_lacks_changes_took_over_is_let_go_of(
    keys: Keys, database: Database, clock: FakeClock
) -> None:
    issued, elsewhere = [keys.issue().wait() for _ in range(3)], Keys(database, clock, TIERS)
    for each in issued[1:]:
        keys.revoke(each.key.id)
    assert elsewhere.find(issued[0].value)
    database.write(lambda transaction: transaction.execute("UPDATE monitor SET value = 0 WHERE name = ?", (CHANGES,)))
    keys.revoke(issued[0].key.id)
    elsewhere.renew()
    assert elsewhere.find(issued[0].value) is None
