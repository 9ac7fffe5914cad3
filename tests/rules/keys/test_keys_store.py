"""Keys in the database, and in memory for never longer than they count."""

import contextlib
from unittest.mock import Mock

import pytest

from cardbeat import cli
from cardbeat.config import FREE, UNLIMITED
from cardbeat.errors import MaybeDone, Refusal, Unavailable
from cardbeat.keys.store import (
    CACHE_SECONDS,
    MAX_CACHED,
    OLD_SECRET_SECONDS,
    Keys,
    hash_of,
)
from tests.kit.heart import at_once
from tests.kit.lists import each, numbered
from tests.kit.postgresql import BOTH_ENGINES, SQLITE

pytestmark = BOTH_ENGINES

ENDS_OF_A_KEY = {
    "rotate": lambda keys, key: keys.rotate(key),
    "revoke": lambda keys, key: keys.revoke(key.id),
}
ENDS_OF_A_READER = {
    **ENDS_OF_A_KEY,
    "another": lambda keys, key: keys.issue_reader(key),
    "none": lambda keys, key: keys.end_reader(key),
}


class SlowReads:
    """A database whose reads take a while to come back with what they have read."""

    def __init__(self, database, pause):
        self._database = database
        self._pause = pause

    def __getattr__(self, name):
        return getattr(self._database, name)

    @contextlib.contextmanager
    def read(self):
        with self._database.read() as connection:
            yield connection
        self._pause()


def columns(database, names):
    with database.read() as connection:
        return [
            *map(
                tuple,
                connection.execute(
                    f"SELECT {names} FROM keys ORDER BY seq"
                ),
            )
        ]


def found(keys, digest):
    """The key that a request with this hash has; None if it is refused."""
    with contextlib.suppress(Refusal):
        return keys.authenticate(digest)
    return None


def refused(keys, digests):
    """Those of these hashes."""
    return [digest for digest in digests if not found(keys, digest)]


def test_a_key_is_cached_for_a_second(keys, monotonic):
    digest = hash_of(keys.issue().value)
    assert keys.cached(digest) is None
    assert found(keys, digest)
    assert keys.cached(digest)
    monotonic.advance(CACHE_SECONDS * 0.99)
    assert keys.cached(digest)
    monotonic.advance(CACHE_SECONDS * 0.01)
    assert keys.cached(digest) is None


@pytest.mark.parametrize("end", ENDS_OF_A_READER)
def test_what_has_ended_is_refused_here_at_once_and_elsewhere_after_a_second(
    keys, open_keys, monotonic, end
):
    issued = keys.issue("a@b")
    reader = hash_of(keys.issue_reader(issued.key))
    other = hash_of(keys.issue().value)
    elsewhere = open_keys()
    ended = [reader]
    if end in ENDS_OF_A_KEY:
        ended.append(hash_of(issued.value))
    for store in (keys, elsewhere):
        assert found(store, other)
        assert refused(store, ended) == []
    ENDS_OF_A_READER[end](keys, issued.key)
    assert refused(keys, ended) == ended
    assert keys.cached(other)
    monotonic.advance(CACHE_SECONDS)
    assert refused(elsewhere, ended) == ended


def test_a_key_that_ends_while_it_is_read_is_not_cached(
    database, open_keys
):
    changes = []
    keys = open_keys(
        SlowReads(database, lambda: changes and changes.pop()())
    )
    issued = keys.issue("a@b")
    digest = hash_of(issued.value)
    changes.append(lambda: keys.revoke(issued.key.id))
    assert found(keys, digest)
    assert found(keys, digest) is None


def test_of_many_rotations_of_one_value_one_is_made(keys):
    key = keys.issue("a@b").key
    results = at_once(*[lambda: keys.rotate(key)] * 8)
    results.sort(key=lambda result: isinstance(result, Refusal))
    assert found(keys, hash_of(results[0].value))
    assert each(results[1:], "status") == [401] * 7


def test_a_change_that_may_be_done_leaves_no_old_value(
    keys, database, monkeypatch
):
    issued = keys.issue()
    digest = hash_of(issued.value)
    assert found(keys, digest)
    write = database.write

    def unconfirmed(work):
        write(work)
        raise MaybeDone

    monkeypatch.setattr(database, "write", unconfirmed)
    with pytest.raises(MaybeDone):
        keys.revoke(issued.key.id)
    assert found(keys, digest) is None


@pytest.mark.parametrize("end", ENDS_OF_A_KEY)
def test_nothing_can_be_done_with_a_value_that_has_ended(
    keys, database, end
):
    key = keys.issue("ops@example.com").key
    ENDS_OF_A_KEY[end](keys, key)
    before = columns(database, "*")
    for change in (
        keys.rotate,
        keys.issue_reader,
        keys.end_reader,
        keys.renew_webhook_secret,
    ):
        with pytest.raises(Refusal) as refused:
            change(key)
        assert refused.value.status == 401
    assert columns(database, "*") == before


def test_a_revoked_key_is_in_no_list_and_has_no_tier(keys):
    key = keys.issue().key
    assert keys.revoke(key.id)
    assert not keys.revoke(key.id)
    assert not keys.set_tier(key.id, "unlimited")
    assert keys.all() == []


def test_the_first_use_of_a_key_or_its_reader_is_noted_once(
    keys, database, clock, monotonic
):
    by_key = keys.issue("a@b")
    by_reader = keys.issue("a@b")
    keys.issue()
    digests = [
        hash_of(by_key.value),
        hash_of(keys.issue_reader(by_reader.key)),
    ]
    assert columns(database, "used_at") == [(None,)] * 3
    first = int(clock())
    for _ in range(2):
        assert refused(keys, digests) == []
        assert columns(database, "used_at") == [
            (first,),
            (first,),
            (None,),
        ]
        clock.advance(1000)
        monotonic.advance(1000)


def test_a_first_use_is_served_where_it_cannot_be_written_and_noted_later(
    keys, database, monotonic, monkeypatch
):
    digest = hash_of(keys.issue().value)
    with monkeypatch.context() as patch:
        patch.setattr(
            database,
            "write",
            Mock(side_effect=Unavailable("database_unavailable")),
        )
        assert found(keys, digest)
    assert columns(database, "used_at") == [(None,)]
    monotonic.advance(CACHE_SECONDS)
    # A low disk refuses what is new, not this.
    monkeypatch.setattr(database.reserve, "spare", lambda: -1)
    assert found(keys, digest)
    assert columns(database, "used_at") != [(None,)]


@SQLITE
def test_on_a_low_disk_no_key_is_issued_and_all_others_can_change(
    keys, database, monkeypatch
):
    issued = keys.issue("a@b")
    monkeypatch.setattr(database.reserve, "spare", lambda: -1)
    with pytest.raises(Unavailable):
        keys.issue()
    keys.issue_reader(issued.key)
    keys.end_reader(issued.key)
    assert keys.revoke(keys.rotate(issued.key).key.id)


def test_a_new_webhook_secret_leaves_the_one_before_for_a_day(
    keys, database, clock
):
    issued = keys.issue("a@b")
    secrets = [issued.webhook_secret]
    for _ in range(2):
        secrets.append(keys.renew_webhook_secret(issued.key))
        until = int(clock()) + OLD_SECRET_SECONDS
        stored = columns(
            database,
            "webhook_secret, old_webhook_secret, old_webhook_secret_until",
        )
        assert stored == [(secrets[-1], secrets[-2], until)]
        clock.advance(60)
    assert len(set(secrets)) == 3


@SQLITE
def test_only_so_many_keys_are_cached(keys, database):
    digests = [*map(hash_of, numbered("{}", MAX_CACHED + 50))]
    sql = (
        "INSERT INTO keys (id, scope, tier, hash, prefix, created_at, used_at)"
        " VALUES (?, 'cards', 'free', ?, 'sk_', 1, 1)"
    )
    database.write(
        lambda it: [
            it.execute(sql, (digest.hex(), digest)) for digest in digests
        ]
    )
    assert refused(keys, digests) == []
    cached = [*filter(keys.cached, digests)]
    assert 0 < len(cached) <= MAX_CACHED


@SQLITE
@pytest.mark.parametrize(
    "change", [["revoke"], ["replace"], ["tier", "unlimited"]]
)
def test_when_a_command_returns_a_running_server_has_seen_its_change(
    database, clock, tmp_path, change
):
    keys = Keys(database, clock, {"free": FREE, "unlimited": UNLIMITED})
    issued = keys.issue()
    before = found(keys, hash_of(issued.value))
    action, *name = change
    assert (
        cli.main(
            [
                "keys",
                action,
                issued.key.id,
                *name,
                "--data",
                str(tmp_path),
            ]
        )
        == 0
    )
    assert found(keys, hash_of(issued.value)) != before
