"""Keys kept in memory: never for longer than they are good."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from sqlite3 import Connection

import pytest

from cardbeat import cli
from cardbeat.config import FREE, UNLIMITED
from cardbeat.database import Database, monitor
from cardbeat.errors import Refusal
from cardbeat.keys import store
from cardbeat.keys.key import Key
from cardbeat.keys.store import CACHE_SECONDS, CHANGES, Keys, hash_of
from cardbeat.keys.webhook_secrets import WebhookSecrets
from tests.postgresql import BOTH_ENGINES
from tests.support import FakeClock

TIERS = {"free": FREE, "unlimited": UNLIMITED}


pytestmark = BOTH_ENGINES


OpenKeys = Callable[..., Keys]


@pytest.fixture
def monotonic() -> FakeClock:
    """The clock by which keys are cached; only waiting moves it."""
    return FakeClock(0)


@pytest.fixture
def open_keys(database: Database, clock: FakeClock, monotonic: FakeClock) -> OpenKeys:
    """Opens the keys of the database as a further process does."""

    def afterwards(work: Callable[[], object]) -> None:
        monotonic.advance(CACHE_SECONDS)
        work()

    return partial(Keys, database, clock, TIERS, monotonic=monotonic, afterwards=afterwards)


@pytest.fixture
def keys(open_keys: OpenKeys) -> Keys:
    return open_keys()


def test_a_key_revoked_while_it_is_read_is_not_kept(
    keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued, read = keys.issue().wait(), database.read

    @contextlib.contextmanager
    def read_before_the_revocation() -> Iterator[Connection]:
        with read() as connection:
            yield connection
        keys.revoke(issued.key.id).wait()

    keys.renew()
    with monkeypatch.context() as patch:
        patch.setattr(database, "read", read_before_the_revocation)
        assert keys.find(hash_of(issued.value))
    assert keys.find(hash_of(issued.value)) is None


def test_the_cache_is_looked_at_anew_in_time_by_one_and_for_all_keys(keys: Keys, monotonic: FakeClock) -> None:
    asked_often, asked_once = keys.issue().wait().value, keys.issue().wait().value
    renewals = []

    def ask(value: str = asked_often, count: int = 3) -> list[bool]:
        return [keys.find_cached(hash_of(value), lambda: renewals.append(1)) is not None for _ in range(count)]

    assert ask() == [False] * 3
    assert keys.find(hash_of(asked_often))
    assert keys.find(hash_of(asked_once))
    assert ask() == [True] * 3
    for round_ in range(1, 4):
        monotonic.advance(CACHE_SECONDS * 0.6)
        assert ask() == [True] * 3
        assert len(renewals) == round_
        keys.renew()
    assert ask(asked_once) == [True] * 3
    monotonic.advance(CACHE_SECONDS)
    assert ask() == [False] * 3


def test_a_change_elsewhere_empties_the_cache_when_it_is_renewed(keys: Keys, open_keys: OpenKeys) -> None:
    issued, elsewhere = keys.issue().wait(), open_keys()
    assert elsewhere.find(hash_of(issued.value))
    keys.set_tier(issued.key.id, "unlimited").wait()
    elsewhere.renew()
    assert elsewhere.find_cached(hash_of(issued.value), lambda: None) is None
    assert elsewhere.find(hash_of(issued.value)).limits == UNLIMITED


def test_a_renewal_that_read_before_a_change_makes_nothing_good_for_longer(
    keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued, read = keys.issue().wait(), database.read
    assert keys.find(hash_of(issued.value))

    @contextlib.contextmanager
    def read_before_the_revocation() -> Iterator[Connection]:
        with read() as connection:
            yield connection
        keys.revoke(issued.key.id).wait()

    with monkeypatch.context() as patch:
        patch.setattr(database, "read", read_before_the_revocation)
        keys.renew()
    assert keys.find_cached(hash_of(issued.value), lambda: None) is None
    assert keys.find(hash_of(issued.value)) is None


def test_a_revoked_key_is_none_whatever_is_asked_of_it_while_its_row_is_there(
    keys: Keys, database: Database, clock: FakeClock
) -> None:
    issued = keys.issue("ops@example.com").wait()
    assert keys.revoke(issued.key.id).wait()
    assert not keys.revoke(issued.key.id).wait()
    assert not keys.set_tier(issued.key.id, "unlimited").wait()
    assert keys.all() == []
    for change in (keys.rotate, WebhookSecrets(database, clock).renew):
        with pytest.raises(Refusal) as refused:
            change(issued.key).wait()
        assert refused.value.status == 401


def test_another_tier_counts_at_once(keys: Keys) -> None:
    issued = keys.issue().wait()
    assert keys.find(hash_of(issued.value)).limits == FREE
    keys.set_tier(issued.key.id, "unlimited").wait()
    assert keys.find(hash_of(issued.value)).limits == UNLIMITED


@pytest.mark.parametrize(
    "change", [lambda keys, key: keys.rotate(key).wait(), lambda keys, key: keys.revoke(key.id).wait()]
)
def test_once_a_key_is_changed_no_other_process_takes_it_as_it_was(
    keys: Keys, open_keys: OpenKeys, change: Callable[[Keys, Key], object]
) -> None:
    issued, elsewhere = keys.issue().wait(), open_keys()
    assert elsewhere.find(hash_of(issued.value))
    change(keys, issued.key)
    assert elsewhere.find_cached(hash_of(issued.value), lambda: None) is None
    assert elsewhere.find(hash_of(issued.value)) is None


def test_only_so_many_keys_are_kept(open_keys: OpenKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_CACHED", 2)
    keys = open_keys()
    issued = [keys.issue().wait() for _ in range(3)]
    assert all(keys.find(hash_of(each.value)) for each in issued)
    another_process = open_keys()
    assert all(another_process.revoke(each.key.id).wait() for each in issued)
    assert sum(keys.find(hash_of(each.value)) is not None for each in issued) <= 2


def is_cached(keys: Keys, value: str) -> bool:
    return keys.last_known(hash_of(value)) is not None


@pytest.mark.parametrize(
    "change", [lambda keys, key: keys.rotate(key).wait(), lambda keys, key: keys.set_tier(key.id, "unlimited").wait()]
)
def test_a_change_takes_no_key_but_its_own_out_of_the_cache(
    keys: Keys, monotonic: FakeClock, change: Callable[[Keys, Key], object]
) -> None:
    changed, other = keys.issue("a@b").wait(), keys.issue().wait()
    assert keys.find(hash_of(changed.value))
    assert keys.find(hash_of(other.value))
    change(keys, changed.key)
    assert not is_cached(keys, changed.value)
    assert is_cached(keys, other.value)
    monotonic.advance(CACHE_SECONDS)
    keys.renew()
    assert is_cached(keys, other.value)


def test_a_key_that_rotates_itself_in_a_loop_costs_the_others_no_look_up(keys: Keys, monotonic: FakeClock) -> None:
    rotated, other = keys.issue("a@b").wait(), keys.issue().wait().value
    assert keys.find(hash_of(other))
    for _ in range(20):
        rotated = keys.rotate(rotated.key).wait()
        assert keys.find(hash_of(rotated.value))
        assert is_cached(keys, other)


def test_a_change_behind_one_of_another_process_empties_the_cache(keys: Keys, open_keys: OpenKeys) -> None:
    mine, other, elsewhere = keys.issue().wait(), keys.issue().wait(), open_keys()
    assert keys.find(hash_of(mine.value))
    assert keys.find(hash_of(other.value))
    elsewhere.revoke(other.key.id).wait()
    keys.set_tier(mine.key.id, "unlimited").wait()
    assert not is_cached(keys, other.value)
    assert keys.find(hash_of(other.value)) is None


def test_a_change_that_fails_empties_the_cache(keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    issued = keys.issue().wait()
    assert keys.find(hash_of(issued.value))
    with monkeypatch.context() as patch:
        patch.setattr("cardbeat.database.monitor.increment", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            keys.revoke(issued.key.id).wait()
    assert not is_cached(keys, issued.value)
    assert keys.find(hash_of(issued.value))


def test_only_keys_that_live_are_counted(keys: Keys) -> None:
    issued = [keys.issue().wait() for _ in range(3)]
    keys.set_tier(issued[0].key.id, "unlimited").wait()
    for each in issued[1:]:
        keys.revoke(each.key.id).wait()
    assert keys.count_by_tier() == {"unlimited": 1}


@pytest.mark.parametrize("change", [["revoke"], ["replace"], ["tier", "unlimited"]])
def test_when_the_command_returns_a_running_server_has_seen_its_change(
    database: Database, clock: FakeClock, tmp_path: Path, database_url: str | None, change: list[str]
) -> None:
    keys = Keys(database, clock, TIERS)
    issued = keys.issue().wait()
    before = keys.find(hash_of(issued.value))
    action, *name = change
    place = ["--data", str(tmp_path)] if database_url is None else ["--database", database_url]
    assert cli.main(["keys", action, issued.key.id, *name, *place]) == 0
    assert keys.find(hash_of(issued.value)) != before


ENDS: dict[str, Callable[[Keys, Key], object]] = {
    "another": lambda keys, key: keys.issue_reader(key).wait(),
    "none": lambda keys, key: keys.end_reader(key).wait(),
    "rotated": lambda keys, key: keys.rotate(key).wait(),
    "replaced": lambda keys, key: keys.replace(key.id).wait(),
    "revoked": lambda keys, key: keys.revoke(key.id).wait(),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_read_only_key_that_has_ended_is_in_no_cache(keys: Keys, open_keys: OpenKeys, end: str) -> None:
    issued, other, elsewhere = keys.issue("a@b").wait(), keys.issue().wait(), open_keys()
    digest = hash_of(keys.issue_reader(issued.key).wait())
    for each in (keys, elsewhere):
        assert each.find(digest).scope == "read"
        assert each.find(hash_of(other.value))
    ENDS[end](keys, issued.key)
    assert not keys.last_known(digest)
    assert is_cached(keys, other.value)
    assert elsewhere.find_cached(digest, lambda: None) is None
    assert (keys.find(digest), elsewhere.find(digest)) == (None, None)


def test_a_read_only_key_has_the_limits_of_its_key_as_they_are_now(keys: Keys) -> None:
    issued = keys.issue("a@b").wait()
    digest = hash_of(keys.issue_reader(issued.key).wait())
    assert keys.find(digest).limits == FREE
    keys.set_tier(issued.key.id, "unlimited").wait()
    assert keys.find(digest).limits == UNLIMITED


def test_a_key_revoked_after_a_standby_that_lacks_changes_took_over_is_let_go_of(
    keys: Keys, open_keys: OpenKeys, database: Database
) -> None:
    issued, elsewhere = [keys.issue().wait() for _ in range(3)], open_keys()
    for each in issued[1:]:
        keys.revoke(each.key.id).wait()
    assert elsewhere.find(hash_of(issued[0].value))
    database.write(lambda transaction: transaction.execute("UPDATE monitor SET value = 0 WHERE name = ?", (CHANGES,)))
    keys.revoke(issued[0].key.id).wait()
    elsewhere.renew()
    assert elsewhere.find(hash_of(issued[0].value)) is None


def test_a_key_rotated_after_a_backup_was_put_back_is_let_go_of_by_a_process_that_was_idle_meanwhile(
    keys: Keys, open_keys: OpenKeys, database: Database
) -> None:
    """As many changes followed the backup as were lost with it."""
    issued, other, elsewhere = keys.issue().wait(), keys.issue().wait(), open_keys()
    kept = dict(database.write(monitor.values))
    keys.revoke(other.key.id).wait()
    assert elsewhere.find(hash_of(issued.value))
    database.write(lambda transaction: monitor.note(transaction, **{CHANGES: kept.get(CHANGES, 0)}))
    keys.rotate(issued.key).wait()
    elsewhere.renew()
    assert elsewhere.find(hash_of(issued.value)) is None


def test_nobody_waits_where_a_key_was_not_changed(keys: Keys, monotonic: FakeClock) -> None:
    issued = keys.issue("a@b").wait()
    keys.rotate(issued.key).wait()
    before = monotonic.now
    with pytest.raises(Refusal):
        keys.rotate(issued.key).wait()
    assert not keys.revoke("key_0").wait()
    assert monotonic.now == before


def test_changes_that_wait_to_be_known_everywhere_share_a_thread(database: Database, clock: FakeClock) -> None:
    keys = Keys(database, clock, TIERS)
    issued = keys.issue("a@b").wait()
    keys.issue_reader(issued.key).wait()
    threads, began = threading.active_count(), time.monotonic()
    changes = [keys.issue_reader(issued.key) for _ in range(200)]
    database.write(lambda _: None)
    assert threading.active_count() <= threads + 1
    assert len({change.wait() for change in changes}) == 200
    assert time.monotonic() - began >= CACHE_SECONDS
