"""The table `checks`: what owners read and change through the API.

Others write to it too: `pings` and `sweep`, which move its clock and its status, the results of
alerts, which set `delivery`, and `tidy`, which deletes the checks of revoked keys. Until then no
check of a revoked key is pinged, swept, counted or alerted for, and none is added.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterator
from functools import cache
from math import ceil

from cardbeat.clock import Clock
from cardbeat.config import TESTS_AN_HOUR
from cardbeat.database import Database, Transaction
from cardbeat.errors import Invalid, NotFound, Refusal, TooMany
from cardbeat.heartbeat import transitions
from cardbeat.heartbeat.alerts.limits import HourlyLimit
from cardbeat.heartbeat.alerts.message import TEST
from cardbeat.heartbeat.check import (
    CHANGEABLE,
    COLUMNS,
    SHORT_ID_CHARACTERS,
    Check,
    Settings,
)
from cardbeat.keys.key import Key

WAITING_TESTS = 5
"""Test alerts of one check that may wait. A stranger with a free key chooses the receiver."""
WAIT_SECONDS = 60
"""When to try again while these wait."""
_SHORT_ID = re.compile(f"[0-9a-f]{{{SHORT_ID_CHARACTERS}}}")


class Checks:
    """The checks of all keys.

    A check of another key raises `NotFound`, like one that does not exist. `wake` is called after
    a commit that stored alerts, or made some due.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        wake: Callable[[], None],
        monotonic: Clock = time.monotonic,
    ) -> None:
        self._database = database
        self.clock = clock
        self._wake = wake
        self._tests = HourlyLimit(monotonic)
        """Test alerts of each key. Each server counts its own, from zero after a start."""

    def create(
        self, key: Key, settings: Settings, check_id: str | None = None
    ) -> Check:
        """Store a new check, on time, and return it. Raises `Unavailable` while the disk is low.

        Raises `Refusal` 403 if the key has all checks that its tier allows, 401 if the key was
        revoked, or if there is a check with this id.
        """

        def create(transaction: Transaction) -> Check:
            # Locked, so that creations at the same time can't exceed the limit together.
            sql = "SELECT seq FROM keys WHERE id = ?"
            self._database.lock(transaction, sql, (key.id,))
            most = key.limits.max_checks
            if most is not None and _count(transaction, key.id) >= most:
                raise Refusal("too_many_checks", most=most)
            row = transaction.execute(
                f"INSERT INTO checks (id, api_key_id, {', '.join(CHANGEABLE)},"
                " clock_from, created_at, updated_at)"
                f" SELECT :id, id, :{', :'.join(CHANGEABLE)}, :now, :now, :now FROM keys"
                " WHERE id = :key_id AND revoked_at IS NULL"
                f" ON CONFLICT (id) DO NOTHING RETURNING {COLUMNS}",
                settings._asdict()
                | {
                    # In hexadecimal, so that it never starts with a dash.
                    "id": check_id or secrets.token_hex(16),
                    "key_id": key.id,
                    "now": int(self.clock()),
                },
            ).fetchone()
            if row is None:
                raise Refusal(
                    "key_unknown",
                    "This API key was revoked a moment ago.",
                )
            return Check(*row)

        return self._database.create(create)

    def get(self, key_id: str, check_id: str) -> Check:
        with self._database.read() as connection:
            return _own(connection, key_id, check_id)

    def whole_id(self, key_id: str, short_id: str) -> str:
        """The id of the key's check with this short one; "" if none or several have it.

        No other length is taken: by longer and longer beginnings, a reader would find the whole id.
        """
        if not _SHORT_ID.fullmatch(short_id):
            return ""
        # Both ends are ids too, so that every collation puts what begins so between them.
        ends = (short_id.ljust(32, "0"), short_id.ljust(32, "f"))
        with self._database.read() as connection:
            sql = "SELECT id, api_key_id FROM checks WHERE id BETWEEN ? AND ?"
            among = connection.execute(sql, ends).fetchall()
        own = [
            str(row["id"]) for row in among if row["api_key_id"] == key_id
        ]
        return own[0] if len(own) == 1 else ""

    def page(
        self, key_id: str, limit: int, after: str | None
    ) -> tuple[list[Check], str | None]:
        """At most `limit` checks, oldest first, after the check `after`, and the next `after`.

        That is None at the end. Raises `Invalid` if this key has no check with the id `after`.
        """
        with self._database.read() as connection:
            after_seq = 0
            if after is not None:
                after_seq = _seq_of(connection, key_id, after)
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM checks WHERE api_key_id = ? AND seq > ?"
                " ORDER BY seq LIMIT ?",
                (key_id, after_seq, limit + 1),
            )
            found = [Check(*row) for row in rows]
        if len(found) <= limit:
            return found, None
        return found[:limit], found[limit - 1].id

    def each(self, key_id: str) -> Iterator[Check]:
        """All checks of a key, oldest first, as of one moment.

        They are read while the caller goes through them.
        """
        sql = f"SELECT {COLUMNS} FROM checks WHERE api_key_id = ? ORDER BY seq"
        with self._database.read() as connection:
            for row in connection.execute(sql, (key_id,)):
                yield Check(*row)

    def update(self, check: Check, settings: Settings) -> Check:
        """Write `settings` if the check still has the version that was read; return the new row.

        With a new webhook URL, waiting alerts are sent to it at once. Raises `Refusal` 409 if the
        check was modified or deleted since it was read; then nothing is written.
        """
        is_moved = settings.webhook_url != check.webhook_url

        def write(transaction: Transaction) -> Check:
            now = int(self.clock())
            row = transaction.execute(
                f"UPDATE checks SET {' = ?, '.join(CHANGEABLE)} = ?,"
                " updated_at = ?, version = version + 1,"
                # To another URL no alert was tried yet.
                " delivery = CASE webhook_url WHEN ? THEN delivery END"
                f" WHERE id = ? AND api_key_id = ? AND version = ? RETURNING {COLUMNS}",
                (
                    *settings,
                    now,
                    settings.webhook_url,
                    check.id,
                    check.api_key_id,
                    check.version,
                ),
            ).fetchone()
            if row is None:
                raise Refusal("conflict")
            if settings.repeat_seconds != check.repeat_seconds:
                # Of an overdue check, from now or from the end of its snooze.
                transaction.execute(
                    "UPDATE checks SET remind_at = repeat_seconds + CASE"
                    " WHEN clock_from > ? AND clock_from <= snoozed_until"
                    " THEN clock_from ELSE ? END WHERE id = ? AND status = 'overdue'",
                    (now, now, check.id),
                )
                transitions.drop_reminders(transaction, [check.id])
            if is_moved:
                transitions.move(
                    transaction, check.id, settings.webhook_url, now
                )
            return Check(*row)

        updated = self._database.write(write)
        if is_moved:
            self._wake()
        return updated

    def snooze(
        self,
        key_id: str,
        check_id: str,
        seconds: int,
        version: int | None = None,
    ) -> Check:
        """Send no overdue alert and no reminder for so many seconds; with 0, end a snooze.

        The check's clock starts then. Returns the new row, or the row as it is if there was no
        snooze to end. Raises `Refusal` 412 if `version` is given and the check has another one.
        """

        def write(transaction: Transaction) -> Check:
            now = int(self.clock())
            row = transaction.execute(
                "UPDATE checks SET snoozed_until = :until, clock_from = :until, updated_at = :now,"
                " version = version + 1,"
                " remind_at = CASE status WHEN 'overdue' THEN :until + repeat_seconds END"
                " WHERE id = :id AND api_key_id = :key_id"
                " AND version = coalesce(:version, version)"
                " AND (:until > :now OR clock_from > :now AND clock_from <= snoozed_until)"
                f" RETURNING {COLUMNS}",
                {
                    "id": check_id,
                    "key_id": key_id,
                    "version": version,
                    "now": now,
                    "until": now + seconds,
                },
            ).fetchone()
            if row is not None:
                transitions.drop_reminders(transaction, [check_id])
                return Check(*row)
            check = _own(transaction, key_id, check_id)
            if version not in (None, check.version):
                raise other_version(check)
            return check

        return self._database.write(write)

    def delete(
        self, key_id: str, check_id: str, version: int | None = None
    ) -> None:
        """Delete a check with its alerts and outages.

        Raises `Refusal` 412 if `version` is given and the check has another one.
        """

        sql = (
            "DELETE FROM checks"
            " WHERE id = ? AND api_key_id = ? AND version = coalesce(?, version)"
        )

        def delete(transaction: Transaction) -> None:
            values = (check_id, key_id, version)
            if not transaction.execute(sql, values).rowcount:
                raise other_version(_own(transaction, key_id, check_id))

        self._database.write(delete)

    def test_alert(self, key_id: str, check_id: str) -> Check:
        """Store a test alert of a check, which is returned. Raises `Unavailable` on a low disk.

        Raises `Invalid` for a check without a webhook URL, `TooMany` while many wait or were sent.
        """

        # A write may be made again, but takes one of the hour.
        take = cache(self._take_test)

        def record(transaction: Transaction) -> Check:
            sql = "SELECT seq FROM checks WHERE id = ?"
            self._database.lock(transaction, sql, (check_id,))
            check = _own(transaction, key_id, check_id)
            if check.webhook_url is None:
                raise Invalid("no_webhook", field="webhook_url")
            # Only test alerts have no outage.
            (waiting,) = transaction.execute(
                "SELECT count(*) FROM alerts WHERE check_id = ? AND outage IS NULL"
                " AND state = 'pending'",
                (check.id,),
            ).fetchone()
            if waiting >= WAITING_TESTS:
                told = f"{waiting} test alerts of this check wait for its receiver; try later."
                raise TooMany(told, WAIT_SECONDS)
            take(check.api_key_id)
            now = int(self.clock())
            transitions.record(transaction, TEST, [check], now)
            return check

        check = self._database.create(record)
        self._wake()
        return check

    def _take_test(self, key_id: str) -> None:
        seconds = self._tests.take(key_id, TESTS_AN_HOUR)
        if seconds:
            told = f"This key has sent {TESTS_AN_HOUR} test alerts within an hour, its limit; try"
            raise TooMany(f"{told} again in {ceil(seconds)} s.", seconds)

    def usage(self, key_id: str) -> tuple[int, int]:
        """The number of checks of a key, and of its test alerts that count now."""
        with self._database.read() as connection:
            return _count(connection, key_id), self._tests.taken(key_id)

    def totals(self) -> dict[str, int]:
        """The number of checks by status, without those of revoked keys."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT status, count(*) FROM checks WHERE api_key_id NOT IN"
                " (SELECT id FROM keys WHERE revoked_at IS NOT NULL) GROUP BY status"
            ).fetchall()
        return {"on_time": 0, "overdue": 0} | dict(rows)


def _count(transaction: Transaction, key_id: str) -> int:
    sql = "SELECT count(*) FROM checks WHERE api_key_id = ?"
    return int(transaction.execute(sql, (key_id,)).fetchone()[0])


def _own(transaction: Transaction, key_id: str, check_id: str) -> Check:
    sql = f"SELECT {COLUMNS} FROM checks WHERE id = ? AND api_key_id = ?"
    row = transaction.execute(sql, (check_id, key_id)).fetchone()
    if row is None:
        raise no_check()
    return Check(*row)


def _seq_of(transaction: Transaction, key_id: str, check_id: str) -> int:
    try:
        return _own(transaction, key_id, check_id).seq
    except NotFound:
        sentence = (
            "The parameter after must be the id of one of your checks."
        )
        raise Invalid(
            "invalid_parameter", sentence, field="after"
        ) from None


def count_by_key(database: Database) -> dict[str, int]:
    """The number of checks by key id; keys without checks are left out."""
    with database.read() as connection:
        sql = (
            "SELECT api_key_id, count(*) FROM checks GROUP BY api_key_id"
        )
        return dict(connection.execute(sql).fetchall())


def other_version(check: Check) -> Refusal:
    return Refusal(
        "precondition_failed", field="If-Match", version=check.version
    )


def no_check() -> NotFound:
    return NotFound("There is no check with this id.")
