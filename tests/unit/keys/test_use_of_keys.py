"""When a key is used: noted once a day, beside the requests and never in their way."""

from collections.abc import Callable

import pytest

from cardbeat.concurrency.later import Later
from cardbeat.config import FREE
from cardbeat.database import Database, Transaction
from cardbeat.errors import Unavailable
from cardbeat.keys.store import NOTED_SECONDS, RELOAD_SECONDS, RETRY_SECONDS, Keys, hash_of
from tests.postgresql import BOTH_ENGINES
from tests.support import FakeClock, writer_held

DAY = 86_400
WriteLater = Callable[[Callable[[Transaction], object]], Later[object]]

pytestmark = BOTH_ENGINES


def used_at(database: Database) -> list[int | None]:
    # What was asked for before is written.
    database.write(lambda _: None)
    with database.read() as connection:
        return [row[0] for row in connection.execute("SELECT used_at FROM keys ORDER BY seq").fetchall()]


def test_a_key_is_noted_at_its_first_use_and_once_a_day(keys: Keys, database: Database, clock: FakeClock) -> None:
    used, _unused = keys.issue("a@b").wait(), keys.issue().wait()
    assert used_at(database) == [None, None]
    first = int(clock())
    assert keys.authenticate(hash_of(used.value))
    assert used_at(database) == [first, None]
    clock.advance(NOTED_SECONDS - 1)
    Keys(database, clock, {"free": FREE}).find(hash_of(used.value))
    assert used_at(database) == [first, None]
    clock.advance(1)
    Keys(database, clock, {"free": FREE}).find(hash_of(used.value))
    assert used_at(database) == [int(clock()), None]


def test_a_key_that_stays_cached_for_days_is_noted_each_day(
    keys: Keys, database: Database, clock: FakeClock, monotonic: FakeClock
) -> None:
    digest = hash_of(keys.issue().wait().value)
    keys.find(digest)
    longest = 0
    for _ in range(4 * DAY // 600):
        for each in (clock, monotonic):
            each.advance(600)
        # As the loop does it: the key from the cache, renewed by a worker.
        keys.renew()
        keys.find_cached(digest, lambda: None) or keys.find(digest)
        (noted,) = used_at(database)
        assert noted is not None
        longest = max(longest, int(clock()) - noted)
    assert longest <= NOTED_SECONDS + RELOAD_SECONDS


def test_a_use_noted_by_a_wrong_clock_is_noted_again(keys: Keys, database: Database, clock: FakeClock) -> None:
    digest = hash_of(keys.issue().wait().value)
    now = clock.now
    for wrong in (0, 50 * 365 * DAY, now):
        clock.now = wrong
        assert Keys(database, clock, {"free": FREE}).find(digest)
        assert used_at(database) == [wrong]


def test_no_request_waits_for_the_note(keys: Keys, database: Database) -> None:
    digest = hash_of(keys.issue().wait().value)
    with writer_held(database):
        assert keys.authenticate(digest)
    assert used_at(database) != [None]


def test_a_use_is_noted_also_on_a_low_disk(
    keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch, clock: FakeClock, monotonic: FakeClock
) -> None:
    digest = hash_of(keys.issue().wait().value)
    monkeypatch.setattr(database.reserve, "is_low", lambda: True)
    for _ in range(2):
        clock.advance(DAY)
        monotonic.advance(RELOAD_SECONDS)
        assert keys.authenticate(digest)
        assert used_at(database) == [int(clock())]


def is_made(write_later: WriteLater) -> Later[object]:
    return write_later(lambda _: 1 // 0)


def is_refused(_write_later: WriteLater) -> Later[object]:
    raise Unavailable("busy")


@pytest.mark.parametrize("fails", [is_made, is_refused])
def test_a_note_that_fails_is_written_again_within_a_minute(
    keys: Keys,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    monotonic: FakeClock,
    fails: Callable[[WriteLater], Later[object]],
) -> None:
    digest, write_later = hash_of(keys.issue().wait().value), database.write_later

    def use() -> None:
        keys.renew()
        keys.find_cached(digest, lambda: None) or keys.find(digest)

    tried = []
    with monkeypatch.context() as patch:
        patch.setattr(database, "write_later", lambda _: tried.append(1) or fails(write_later))
        for _ in range(2 * RETRY_SECONDS):
            use()
            write_later(lambda _: None).wait()
            monotonic.advance(1)
    assert 2 <= len(tried) <= 3
    for _ in range(RETRY_SECONDS):
        use()
        monotonic.advance(1)
    assert used_at(database) != [None]


def test_a_key_that_was_removed_is_not_noted_as_used(keys: Keys, database: Database, clock: FakeClock) -> None:
    issued = keys.issue("a@b").wait()
    digest = hash_of(issued.value)
    with writer_held(database):
        revoked = keys.revoke(issued.key.id)
        assert keys.authenticate(digest)
    assert revoked.wait()
    assert used_at(database) == [None]
