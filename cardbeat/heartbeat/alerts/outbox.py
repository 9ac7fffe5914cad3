"""The rows of `alerts`: stored with the change that they report, posted after its commit.

An alert is due when its `next_attempt_at` has come. Only the first waiting alert of a check, and
its first waiting test, has one; the result that ends it gives the next one its time. So the alerts
of a check go out in order.

Both engines run the same statements but one. Two rules keep them quick over PostgreSQL, whatever it
knows of the tables: a statement finds rows by their key, Python decides, and rows are changed by
`seq`; and no statement joins without a LIMIT. Lock the rows of `checks`, by `seq`, before a row of
`alerts` is changed: the change of a check does so, and so does `store`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from operator import itemgetter
from typing import Any, NamedTuple

from cardbeat.clock import time_or_none, utc_text
from cardbeat.database import (
    Database,
    Row,
    Transaction,
    lock_checks,
    marks,
)
from cardbeat.files import read_text
from cardbeat.heartbeat.alerts.message import (
    OVERDUE,
    RECOVERED,
    TEST,
    Facts,
    body_of,
)
from cardbeat.heartbeat.check import NOW_GIVEN_UP, Check, note

KEPT = 100
"""Alerts that a check keeps; older finished ones are deleted."""
REPAIRED = 1000
"""Most alerts that one repair finds."""
LINK_CHARACTERS = 8
"""Of a check's id in the link to the dashboard: too few to ping with."""


class Queue(NamedTuple):
    """The due alerts of one key, either of checks whose last alert was taken or of the others."""

    key_id: str
    is_new: bool
    tier: str


class Due(NamedTuple):
    seq: int
    receiver: str
    check_id: str


class Message(NamedTuple):
    """What one attempt needs: the alert's row as it was read, and what is sent to where.

    `subject` names the check in the log, each of `secrets` signs.
    """

    alert: Row
    subject: str
    webhook_url: str
    body: bytes
    secrets: tuple[str, ...]


class Result(NamedTuple):
    """The result of an attempt, as it is stored. The times are None for a finished alert."""

    message: Message
    status: int | None
    error: str | None
    state: str
    next_attempt_at: int | None = None
    asked_until: int | None = None


class Outbox:
    """The alerts of all checks. Methods with a transaction work inside the caller's.

    `base_url` is where people reach the dashboard; `zone` is that of the sentences' times.
    """

    def __init__(
        self,
        database: Database,
        base_url: str,
        zone: tzinfo | None = None,
    ) -> None:
        self.database = database
        self._base_url = base_url
        self._zone = zone
        engine = "postgresql" if database.fence else "sqlite"
        self._queues = read_text(f"heartbeat/alerts/queues_{engine}.sql")

    def queues(self, connection: Transaction) -> dict[Queue, int]:
        """All queues, and since or from when the first alert of each is due. 4 µs for each key."""
        rows = connection.execute(self._queues)
        # Without a tier: the key is revoked.
        return {
            Queue(key_id, bool(is_new), tier): at
            for key_id, is_new, at, tier in rows
            if tier
        }

    def due(  # noqa: PLR0917
        self,
        connection: Transaction,
        queue: Queue,
        now: int,
        full: Sequence[str],
        dry: Sequence[str],
        least_attempts: int,
        limit: int,
    ) -> list[Due]:
        """The due alerts of a queue, the oldest first, at most `limit`.

        Without those for the hosts in `full`, without first posts to those in `dry`, and without
        those that have had less than `least_attempts`.
        """
        # SQL has no empty lists, and no host has this name.
        full = ["/", *full]
        dry = ["/", *dry]
        rows = connection.execute(
            "SELECT seq, receiver, check_id FROM alerts WHERE state = 'pending'"
            " AND next_attempt_at IS NOT NULL AND is_new = ? AND key_id = ?"
            f" AND next_attempt_at <= ? AND receiver NOT IN ({marks(full)})"
            f" AND attempts >= ? AND (attempts > 0 OR receiver NOT IN ({marks(dry)}))"
            " ORDER BY next_attempt_at LIMIT ?",
            (
                int(queue.is_new),
                queue.key_id,
                now,
                *full,
                least_attempts,
                *dry,
                limit,
            ),
        )
        return [Due(*row) for row in rows]

    def messages(self, seqs: Sequence[int], now: int) -> list[Message]:
        """What attempts at these alerts need, in this order, without those that have ended."""
        with self.database.read() as connection:
            alerts = _rows_by(connection, "alerts", "seq", seqs)
            check_ids = {alert["check_id"] for alert in alerts.values()}
            checks = _rows_by(connection, "checks", "id", check_ids)
            key_ids = {check["api_key_id"] for check in checks.values()}
            keys = _rows_by(connection, "keys", "id", key_ids)
        found = []
        for alert in filter(None, map(alerts.get, seqs)):
            check = checks.get(alert["check_id"])
            if alert["state"] != "pending" or not check:
                continue
            key = keys.get(check["api_key_id"])
            # Each may have been changed since the alert was read.
            if check["webhook_url"] and key and key["revoked_at"] is None:
                found.append(self._message(alert, check, key, now))
        return found

    def _message(
        self, alert: Row, row: Row, key: Row, now: int
    ) -> Message:
        """The message of an alert, whose check is shown with the state that the alert tells."""
        check = Check.from_row(row).as_of(now)
        shown = check._replace(
            status=_STATUS_TOLD.get(alert["type"], check.status),
            last_ping_at=alert["last_ping_at"],
            deadline_at=alert["deadline_at"],
            ping_count=alert["ping_count"],
        )
        told = Facts(*(alert[name] for name in Facts._fields))
        link = f"{self._base_url}/dashboard#{check.id[:LINK_CHARACTERS]}"
        secrets = [key["webhook_secret"]]
        if (key["old_webhook_secret_until"] or 0) > now:
            secrets.append(key["old_webhook_secret"])
        body = body_of(told, shown, link, self._zone)
        return Message(
            alert,
            check.subject,
            row["webhook_url"],
            body,
            tuple(secrets),
        )

    def store(self, results: Sequence[Result], now: int) -> list[Result]:
        """Store the results of attempts, one of a check; those that count. Raises `Unavailable`.

        1. A result counts only for the attempt that it is of, and none that failed at a URL which
        the check no longer has. 2. The check shows the last result.
        3. Behind an alert that ended the next one is due, and a delivered test lets an outage that
        waits for its retry be tried. 4. Finished alerts beyond `KEPT` go.
        """
        read = [result.message.alert for result in results]
        seqs = [alert["seq"] for alert in read]
        check_ids = list({alert["check_id"] for alert in read})

        def store(transaction: Transaction) -> list[Result]:
            # So no change of a check comes between what is read and what is written.
            lock_checks(self.database, transaction, check_ids)
            checks = _rows_by(transaction, "checks", "id", check_ids)
            alerts = _rows_by(transaction, "alerts", "seq", seqs)
            stored = []
            changed: dict[str, list[str]] = {"ok": [], "failing": []}
            for result in results:
                tried = result.message.alert
                alert = alerts.get(tried["seq"])
                if not alert or _attempt_of(alert) != _attempt_of(tried):
                    continue
                check = checks[alert["check_id"]]
                delivery = _DELIVERY.get(result.state, "failing")
                if check["webhook_url"] == result.message.webhook_url:
                    if check["delivery"] != delivery:
                        changed[delivery].append(check["id"])
                elif delivery == "failing":
                    continue
                stored.append(result)
            _store_results(transaction, stored)
            _show(transaction, changed)
            _go_on(transaction, stored, alerts, now)
            return stored

        stored = self.database.write(store)
        note(
            NOW_GIVEN_UP,
            [
                one.message.subject
                for one in stored
                if one.state == "failed"
            ],
        )
        return stored

    def repair(self, now: int) -> None:
        """Make due what should be and has no time. There is no such alert without a defect."""
        lost = (
            "SELECT check_id FROM alerts WHERE state = 'pending'"
            " GROUP BY check_id, outage IS NULL HAVING max(next_attempt_at) IS NULL LIMIT ?"
        )
        with self.database.read() as connection:
            rows = connection.execute(lost, (REPAIRED,)).fetchall()
        check_ids = [check_id for (check_id,) in rows]

        def repair(transaction: Transaction) -> None:
            lock_checks(self.database, transaction, check_ids)
            _make_next_due(transaction, check_ids, now)

        if check_ids:
            self.database.write(repair)

    def newest(self, check_id: str) -> list[dict[str, Any]]:
        """The newest alerts of a check, as `GET /checks/{id}/alerts` has them, at most `KEPT`."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT id, type, state, attempts, last_status, last_error, created_at,"
                " next_attempt_at FROM alerts WHERE check_id = ? ORDER BY seq DESC LIMIT ?",
                (check_id, KEPT),
            ).fetchall()
        due_at: dict[bool, int | None] = {}
        shown = []
        # The oldest first: one that waits behind another has its time.
        for row in reversed(rows):
            at = row["next_attempt_at"]
            if row["state"] == "pending":
                at = due_at.setdefault(row["type"] == TEST, at)
            times = {
                "created_at": utc_text(row["created_at"]),
                "next_attempt_at": time_or_none(at),
            }
            shown.append(dict(row) | times)
        return shown[::-1]


_attempt_of = itemgetter("id", "attempts", "state")
_DELIVERY = {"delivered": "ok"}
_STATUS_TOLD = {OVERDUE: "overdue", RECOVERED: "on_time"}
"""The status that a check had when an alert of this type was stored."""


def _rows_by(
    connection: Transaction,
    table: str,
    name: str,
    values: Iterable[object],
) -> dict[Any, Row]:
    """The rows of a table with one of these values in this column, by that value."""
    values = list(values)
    if not values:
        return {}
    sql = f"SELECT * FROM {table} WHERE {name} IN ({marks(values)})"
    return {
        row[name]: row
        for row in connection.execute(sql, values).fetchall()
    }


def _show(
    transaction: Transaction, changed: dict[str, list[str]]
) -> None:
    """Let checks show the result of their last attempt, `ok` or `failing`."""
    for delivery, check_ids in changed.items():
        if check_ids:
            among = f"IN ({marks(check_ids)})"
            transaction.execute(
                f"UPDATE checks SET delivery = ? WHERE id {among}",
                (delivery, *check_ids),
            )
            transaction.execute(
                f"UPDATE alerts SET is_new = ? WHERE state = 'pending' AND check_id {among}",
                (int(delivery != "ok"), *check_ids),
            )


def _store_results(
    transaction: Transaction, results: Sequence[Result]
) -> None:
    """Store results, those that are alike in one statement."""
    alike = defaultdict(list)
    for result in results:
        alike[result[1:]].append(result.message.alert["seq"])
    for made, seqs in alike.items():
        transaction.execute(
            "UPDATE alerts SET attempts = attempts + 1, last_status = coalesce(?, last_status),"
            " last_error = ?, state = ?, next_attempt_at = ?, asked_until = ?"
            f" WHERE seq IN ({marks(seqs)})",
            (*made, *seqs),
        )


def _go_on(
    transaction: Transaction,
    results: Sequence[Result],
    alerts: dict[Any, Row],
    now: int,
) -> None:
    """Make due what waits behind finished alerts, and delete the oldest finished ones.

    The next alert of a check tells the outages that a finished one has not told.
    """
    ended = []
    tested = []
    for result in results:
        if result.state == "pending":
            continue
        alert = alerts[result.message.alert["seq"]]
        check_id = alert["check_id"]
        ended.append(check_id)
        untold = alert["outages"]
        if result.state == "delivered":
            untold -= result.message.alert["outages"]
            if alert["outage"] is None:
                tested.append(check_id)
        if untold:
            transaction.execute(
                "UPDATE alerts SET outages = outages + ? WHERE seq = (SELECT min(seq) FROM alerts"
                " WHERE state = 'pending' AND check_id = ? AND outage IS NOT NULL)",
                (untold, check_id),
            )
    if ended:
        _make_next_due(transaction, ended, now)
        _drop_oldest(transaction, ended)
    if tested:
        transaction.execute(
            "UPDATE alerts SET next_attempt_at = ? WHERE state = 'pending' AND outage IS NOT NULL"
            f" AND next_attempt_at IS NOT NULL AND check_id IN ({marks(tested)})",
            (now, *tested),
        )


def _make_next_due(
    transaction: Transaction, check_ids: Sequence[str], now: int
) -> None:
    """Make due the first waiting alert of each check, and its first waiting test."""
    firsts = transaction.execute(
        "SELECT min(seq) FROM alerts WHERE state = 'pending'"
        f" AND check_id IN ({marks(check_ids)}) GROUP BY check_id, outage IS NULL",
        check_ids,
    )
    seqs = [seq for (seq,) in firsts]
    if seqs:
        transaction.execute(
            "UPDATE alerts SET next_attempt_at = ? WHERE next_attempt_at IS NULL"
            f" AND seq IN ({marks(seqs)})",
            (now, *seqs),
        )


def _drop_oldest(
    transaction: Transaction, check_ids: Sequence[str]
) -> None:
    """Delete the finished alerts of these checks beyond the newest `KEPT`."""
    places = (
        "SELECT seq, row_number() OVER (PARTITION BY check_id ORDER BY seq DESC) AS place"
        f" FROM alerts WHERE check_id IN ({marks(check_ids)})"
    )
    transaction.execute(
        "DELETE FROM alerts WHERE state <> 'pending' AND seq IN"
        f" (SELECT seq FROM ({places}) AS placed WHERE place > ?)",
        (*check_ids, KEPT),
    )
