"""The rows of `checks`, as their owners read and change them and as pings do.

Three others change rows: `sweep.py`, whose deadline has passed, and `credit.py`, after an outage of the monitor, change
many at a time; `alerts.py` notes in `delivery` what came of an attempt. `removal.py` removes the checks of
revoked keys, which are never pinged, swept, counted, added to or alerted for.
"""

import dataclasses
import secrets
from typing import NamedTuple

from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction
from cardbeat.errors import Invalid, NotFound, Refusal
from cardbeat.heartbeat import alert
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.check import COLUMNS, Check, Settings
from cardbeat.heartbeat.delivery import Delivery
from cardbeat.heartbeat.pings import note_pings, turn_back
from cardbeat.heartbeat.quota import tests_taken
from cardbeat.heartbeat.transitions import RECOVERED, subject_of
from cardbeat.keys.key import Key, key_unknown
from cardbeat.later import Later

_COLUMNS = ", ".join(COLUMNS)


class PingResult(NamedTuple):
    """What a ping did; `recovered` if the check was overdue until then. The deadline is in Unix seconds.

    `subject` is how the log names a check that has recovered.
    """

    deadline_at: int
    recovered: bool
    subject: str = ""


class Checks:
    """The checks of all keys. Another key's check is the same as none: `NotFound`.

    `delivery` is woken once an alert that was recorded with a change is committed.
    """

    def __init__(self, database: Database, clock: Clock, alerts: Alerts, delivery: Delivery) -> None:
        self._database = database
        self._clock = clock
        self._alerts = alerts
        self._delivery = delivery

    def create(self, key: Key, settings: Settings) -> Later[Check]:
        """A new check, on time from now on; settled when it is on disk. Raises `Unavailable` while the disk is low.

        The result raises `Refusal` 403 when the key has as many as its tier allows, 401 when it was revoked meanwhile.
        """
        values = {
            **dataclasses.asdict(settings),
            # Hexadecimal digits, so that no id starts with a dash and every shell takes it as it is.
            "id": secrets.token_hex(16),
            "key_id": key.id,
        }

        def create(transaction: Transaction) -> Check:
            return _insert(transaction, {**values, "now": int(self._clock())}, key.limits.max_checks)

        return self._database.create_later(create)

    def get(self, key_id: str, check_id: str) -> Check:
        with self._database.read() as connection:
            return _own(connection, key_id, check_id)

    def page(self, key_id: str, limit: int, after: str | None) -> tuple[list[Check], str | None]:
        """At most `limit` checks, oldest first, from behind the check with the id `after`; and the next `after`.

        Raises `Invalid` when this key has no check with that id.
        """
        with self._database.read() as connection:
            after_seq = 0 if after is None else _seq_of(connection, key_id, after)
            found = _following(connection, key_id, after_seq, limit + 1)
        checks = found[:limit]
        return checks, checks[-1].id if len(found) > limit else None

    def following(self, key_id: str, seq: int, limit: int) -> list[Check]:
        """At most `limit` checks, oldest first, from behind the `seq` of one that may be gone meanwhile."""
        with self._database.read() as connection:
            return _following(connection, key_id, seq, limit)

    def update(self, check: Check, settings: Settings) -> Later[Check]:
        """Write `settings` if the check still has the version that was read; the row so written, once it is on disk.

        Another webhook URL gets the alerts that wait at once; without one they go on waiting. The result raises
        `Refusal` 409 when no row changed, because the check was modified or deleted since it was read: nothing of an
        update that lost is written.
        """
        if settings.webhook_url == check.webhook_url:
            return self._database.write_later(
                lambda transaction: _update(transaction, check, settings, int(self._clock()))
            )

        def move(transaction: Transaction) -> Check:
            now = int(self._clock())
            moved = _update(transaction, check, settings, now)
            self._alerts.move(transaction, check.id, None if settings.webhook_url is None else now)
            return moved

        return self._database.write_later(move).map(self._wake_delivery)

    def delete(self, key_id: str, check_id: str, version: int | None = None) -> Later[None]:
        """Remove a check and, with it, its alerts; settled when that is on disk.

        The result raises `Refusal` 412 unless the check has `version`, if one is given.
        """
        return self._database.write_later(lambda transaction: _delete(transaction, key_id, check_id, version))

    def ping(self, check_id: str) -> Later[PingResult]:
        """Record a ping; settled when it is on disk. Only a ping ends an overdue spell, with a recovery alert.

        The result raises `NotFound` where there is no such check.
        """
        return self._database.write_together(self._ping, check_id).map(self._tell_if_recovered)

    def _tell_if_recovered(self, pinged: PingResult | None) -> PingResult:
        if pinged is None:
            raise _no_check()
        if pinged.recovered:
            self._delivery.wake()
            self._alerts.transitions.note(RECOVERED, [pinged.subject])
        return pinged

    def test_alert(self, key_id: str, check_id: str) -> Later[Check]:
        """Record a test alert; settled when it is on disk. Raises `Unavailable` while the disk is low.

        The result raises `Invalid` for a check without a webhook, `TooMany` past what is taken.
        """
        return self._database.create_later(lambda transaction: self._test(transaction, key_id, check_id)).map(
            self._wake_delivery
        )

    def _wake_delivery(self, check: Check) -> Check:
        self._delivery.wake()
        return check

    def count(self, key_id: str) -> int:
        with self._database.read() as connection:
            return _count(connection, key_id)

    def count_tests(self, key_id: str) -> int:
        """How many test alerts of a key were taken in the last hour."""
        with self._database.read() as connection:
            return tests_taken(connection, key_id, int(self._clock()))

    def totals(self) -> dict[str, int]:
        """How many checks there are in each status, but for those of revoked keys."""
        with self._database.read() as connection:
            # One statement, so that all of it is of one moment.
            return dict(
                connection.execute(
                    "SELECT status, checks - (SELECT count(*) FROM checks INDEXED BY checks_by_key"
                    " WHERE checks.status = totals_by_status.status"
                    " AND api_key_id IN (SELECT id FROM keys WHERE revoked_at IS NOT NULL)) FROM totals_by_status"
                ).fetchall()
            )

    def _ping(self, transaction: Transaction, check_ids: list[str]) -> list[PingResult | None]:
        """What came of pings, in their order; None where there is no such check."""
        # The clock is read here, one group after another, so that of two pings the later one's time stays.
        now = int(self._clock())
        found, overdue = {}, []
        for check_id, status, deadline_at in note_pings(self._database, transaction, check_ids, now):
            found[check_id] = PingResult(deadline_at, recovered=False)
            if status == "overdue":
                overdue.append(check_id)
        recovered = self._recover(transaction, overdue, now) if overdue else {}
        # Of several pings of one check the first ends the outage.
        return [recovered.pop(check_id, None) or found.get(check_id) for check_id in check_ids]

    def _recover(self, transaction: Transaction, check_ids: list[str], now: int) -> dict[str, PingResult]:
        """Turn overdue checks back, each with its alert; what that is for the ping of each, by their ids."""
        rows = turn_back(transaction, check_ids)
        self._alerts.record(transaction, alert.RECOVERED, [Check.from_row(row) for row in rows], now)
        subjects = {row["id"]: subject_of(row["id"], row["key_prefix"]) for row in rows}
        return {row["id"]: PingResult(row["deadline_at"], True, subjects[row["id"]]) for row in rows}

    def _test(self, transaction: Transaction, key_id: str, check_id: str) -> Check:
        check = _own(transaction, key_id, check_id)
        if check.webhook_url is None:
            sentence = "This check has no webhook_url to send an alert to; set one with PATCH first."
            raise Invalid("no_webhook", sentence, field="webhook_url")
        self._alerts.record_test(transaction, check, int(self._clock()))
        return check


def _insert(transaction: Transaction, values: dict[str, object], max_checks: int | None) -> Check:
    """Insert and count in one transaction, so that many creations at once don't get past the limit.

    To insert comes first: the schema's trigger takes the key's row of totals for it, so that nobody counts meanwhile.
    """
    row = transaction.execute(
        "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, "
        "clock_from, created_at, updated_at) SELECT :id, id, :name, :period_seconds, :grace_seconds, "
        ":webhook_url, :now, :now, :now FROM keys WHERE id = :key_id AND revoked_at IS NULL RETURNING *",
        values,
    ).fetchone()
    if row is None:
        raise key_unknown("This API key was revoked a moment ago.")
    check = Check.from_row(row)
    if max_checks is not None and _count(transaction, check.api_key_id) > max_checks:
        sentence = f"This key's tier allows {max_checks} checks and you have them all; delete one first."
        raise Refusal(403, "too_many_checks", sentence)
    return check


def _update(transaction: Transaction, check: Check, settings: Settings, now: int) -> Check:
    row = transaction.execute(
        "UPDATE checks SET name = ?, period_seconds = ?, grace_seconds = ?, webhook_url = ?, "
        "updated_at = ?, version = version + 1 "
        f"WHERE id = ? AND api_key_id = ? AND version = ? RETURNING {_COLUMNS}",
        (*dataclasses.astuple(settings), now, check.id, check.api_key_id, check.version),
    ).fetchone()
    if row is None:
        sentence = "The check was modified concurrently and nothing was changed; read it again and retry."
        raise Refusal(409, "conflict", sentence)
    return Check(*row)


def _delete(transaction: Transaction, key_id: str, check_id: str, version: int | None) -> None:
    sql = "DELETE FROM checks WHERE id = ? AND api_key_id = ? AND version = coalesce(?, version)"
    if not transaction.execute(sql, (check_id, key_id, version)).rowcount:
        raise other_version(_own(transaction, key_id, check_id))


def _count(transaction: Transaction, key_id: str) -> int:
    row = transaction.execute("SELECT checks FROM totals_by_key WHERE api_key_id = ?", (key_id,)).fetchone()
    return int(row["checks"]) if row else 0


def _own(transaction: Transaction, key_id: str, check_id: str) -> Check:
    sql = f"SELECT {_COLUMNS} FROM checks WHERE id = ? AND api_key_id = ?"
    row = transaction.execute(sql, (check_id, key_id)).fetchone()
    if row is None:
        raise _no_check()
    return Check(*row)


def _following(transaction: Transaction, key_id: str, seq: int, limit: int) -> list[Check]:
    sql = f"SELECT {_COLUMNS} FROM checks WHERE api_key_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    return [Check(*row) for row in transaction.execute(sql, (key_id, seq, limit)).fetchall()]


def _seq_of(transaction: Transaction, key_id: str, check_id: str) -> int:
    try:
        # Not every engine takes a NUL, and no id holds either of the two.
        return _own(transaction, key_id, check_id.replace("\0", "\ufffd")).seq
    except NotFound:
        sentence = "The parameter after must be the id of one of your checks."
        raise Invalid("invalid_parameter", sentence, field="after") from None


def count_by_key(database: Database) -> dict[str, int]:
    """How many checks each key has that has any, by the key's id."""
    with database.read() as connection:
        return dict(connection.execute("SELECT api_key_id, checks FROM totals_by_key WHERE checks > 0").fetchall())


def other_version(check: Check) -> Refusal:
    sentence = f"The check has version {check.version}, which If-Match does not name; read it again and retry."
    return Refusal(412, "precondition_failed", sentence, field="If-Match")


def _no_check() -> NotFound:
    return NotFound("There is no check with this id.")
