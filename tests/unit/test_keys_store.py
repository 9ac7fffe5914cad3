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
from cardbeat.keys.store import CACHE_SECONDS, Key, Keys, hash_of
from tests.support import FakeClock

TIERS = {"free": FREE, "unlimited": UNLIMITED}


@pytest.fixture(autouse=True)
def monotonic(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock by which keys are kept; only waiting moves it."""
    monotonic = FakeClock(0)
    monkeypatch.setattr("cardbeat.keys.store.time", SimpleNamespace(monotonic=monotonic, sleep=monotonic.advance))
    return monotonic


@pytest.fixture
def keys(database: Database, clock: FakeClock) -> Keys:
    return Keys(database, clock, TIERS)


def test_a_key_revoked_while_it_is_read_is_not_kept(
    keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued, read = keys.issue(), database.read

    @contextlib.contextmanager
    def read_before_the_revocation() -> Iterator[Connection]:
        with read() as connection:
            yield connection
        keys.revoke(issued.key.id)

    with monkeypatch.context() as patch:
        patch.setattr(database, "read", read_before_the_revocation)
        assert keys.find(issued.value)
    assert keys.find(issued.value) is None


def test_a_key_that_is_asked_for_often_is_looked_up_again_in_time_by_one(keys: Keys, monotonic: FakeClock) -> None:
    value, renewed = keys.issue().value, []
    digest = hash_of(value)

    def ask(count: int) -> list[bool]:
        return [keys.find_cached(digest, renewed.append) is not None for _ in range(count)]

    assert ask(1) == [False]
    assert keys.find(value)
    assert ask(3) == [True] * 3
    assert renewed == []
    monotonic.advance(CACHE_SECONDS * 0.6)
    assert ask(3) == [True] * 3
    assert renewed == [digest]
    assert keys.find(value)
    monotonic.advance(CACHE_SECONDS * 0.6)
    assert ask(3) == [True] * 3
    assert renewed == [digest] * 2
    monotonic.advance(CACHE_SECONDS * 0.6)
    assert ask(3) == [False] * 3


def test_another_tier_counts_at_once(keys: Keys) -> None:
    issued = keys.issue()
    assert keys.find(issued.value).limits == FREE
    keys.set_tier(issued.key.id, "unlimited")
    assert keys.find(issued.value).limits == UNLIMITED


@pytest.mark.parametrize("change", [Keys.rotate, lambda keys, key: keys.revoke(key.id)])
def test_once_a_key_is_changed_no_other_process_takes_it_as_it_was(
    keys: Keys, database: Database, clock: FakeClock, change: Callable[[Keys, Key], object]
) -> None:
    issued, elsewhere = keys.issue(), Keys(database, clock, TIERS)
    assert elsewhere.find(issued.value)
    change(keys, issued.key)
    assert elsewhere.find_cached(hash_of(issued.value), lambda _: None) is None
    assert elsewhere.find(issued.value) is None


def test_only_so_many_keys_are_kept(
    keys: Keys, database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cardbeat.keys.store._MAX_CACHED", 2)
    issued = [keys.issue() for _ in range(3)]
    assert all(keys.find(each.value) for each in issued)
    another_process = Keys(database, clock, TIERS)
    assert all(another_process.revoke(each.key.id) for each in issued)
    assert sum(keys.find(each.value) is not None for each in issued) <= 2


@pytest.mark.parametrize("change", [["revoke"], ["tier", "unlimited"]])
def test_when_the_command_returns_a_running_server_has_seen_its_change(
    keys: Keys, tmp_path: Path, change: list[str]
) -> None:
    issued = keys.issue()
    before = keys.find(issued.value)
    action, *name = change
    assert cli.main(["keys", action, issued.key.id, *name, "--data", str(tmp_path)]) == 0
    assert keys.find(issued.value) != before
