"""The rows of `alerts`: stored with the change that they report, posted after its commit.

An alert is due when its `next_attempt_at` has come. Only the first waiting alert of a check, and
its first waiting test, has one; the result that ends it gives the next one its time. So the alerts
of a check go out in order.

Both engines run the same statements but one. Two rules keep them quick over PostgreSQL, whatever it
knows of the tables: a statement finds rows by their key, Python decides, and rows are changed by
`seq`; and no statement joins without a LIMIT. Lock the rows of `checks`, by `seq`, before a row of
`alerts` is changed: the change of a check does so, and so does `store`.
"""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from functools import partial
from typing import Any, NamedTuple

from cardbeat.clock import time_or_none
from cardbeat.database import Database, Row, Transaction
from cardbeat.heartbeat.alerts import results as results_of
from cardbeat.heartbeat.alerts.message import OVERDUE, RECOVERED, TEST, Facts, body_of
from cardbeat.heartbeat.alerts.recording import marks
from cardbeat.heartbeat.alerts.results import KEPT, Message, Result, rows_by
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.transitions import GIVEN_UP, note, subject_of

LINK_CHARACTERS = 8
"""Of a check's id in the link to the dashboard: too few to ping with."""


class Queue(NamedTuple):
    """The due alerts of one key, either of checks whose last alert was taken or of the others."""

    key_id: str
    is_new: bool
    tier: str


class Due(NamedTuple):
    """A due alert. Of its check, test alerts and others go out beside each other."""

    seq: int
    receiver: str
    check_id: str
    is_test: bool


class Outbox:
    """The alerts of all checks. Methods with a transaction work inside the caller's.

    `base_url` is where people reach the dashboard; `zone` is that of the sentences' times.
    """

    def __init__(self, database: Database, base_url: str, zone: tzinfo | None = None) -> None:
        self.database = database
        self._base_url = base_url
        self._zone = zone
        self._scan = _SCAN if database.fence is None else _SCAN_POSTGRESQL

    def queues(self, connection: Transaction) -> dict[Queue, int]:
        """All queues, and since or from when the first alert of each is due. 4 µs for each key."""
        rows = connection.execute(f"{self._scan} {_WITH_TIER}")
        # Without a tier: the key is revoked.
        return {Queue(key_id, bool(is_new), tier): at for key_id, is_new, tier, at in rows if tier}

    def due(
        self,
        connection: Transaction,
        queue: Queue,
        now: int,
        full: Iterable[str],
        limit: int,
        *,
        tried: bool = False,
    ) -> list[Due]:
        """The due alerts of a queue, the oldest first, at most `limit`.

        Without those for the receivers in `full`; with `tried` only those that were tried before.
        """
        excluded = ["", *full]
        rows = connection.execute(
            "SELECT seq, receiver, check_id, outage IS NULL FROM alerts WHERE state = 'pending'"
            " AND next_attempt_at IS NOT NULL AND is_new = ? AND key_id = ?"
            f" AND next_attempt_at <= ? AND receiver NOT IN ({marks(excluded)})"
            f"{' AND attempts > 0' if tried else ''} ORDER BY next_attempt_at LIMIT ?",
            (int(queue.is_new), queue.key_id, now, *excluded, limit),
        )
        return [Due(*row) for row in rows]

    def oldest_due_at(self) -> int | None:
        """The Unix time since when the oldest alert is due; None if none waits."""
        with self.database.read() as connection:
            row = connection.execute(f"{self._scan} SELECT min(due_at) FROM found").fetchone()
        return None if row[0] is None else int(row[0])

    def messages(self, seqs: Sequence[int], receiver: str, now: int) -> list[Message]:
        """What attempts at these alerts need, in this order.

        Without those that are not due any more, and those that go to another host by now.
        """
        with self.database.read() as connection:
            alerts = rows_by(connection, "alerts", "seq", seqs)
            check_ids = {alert["check_id"] for alert in alerts.values()}
            checks = rows_by(connection, "checks", "id", check_ids)
            key_ids = {check["api_key_id"] for check in checks.values()}
            keys = rows_by(connection, "keys", "id", key_ids)
        found = []
        for seq in seqs:
            alert = alerts.get(seq)
            check = alert and checks.get(alert["check_id"])
            key = check and keys.get(check["api_key_id"])
            if alert and check and key and _may_be_posted(alert, check, key, receiver, now):
                found.append(self._message(alert, check, key, now))
        return found

    def _message(self, alert: Row, row: Row, key: Row, now: int) -> Message:
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
        signed_with = [key["webhook_secret"]]
        if (key["old_webhook_secret_until"] or 0) > now:
            signed_with.append(key["old_webhook_secret"])
        return Message(
            alert["seq"],
            alert["id"],
            check.id,
            subject_of(check.id, key["prefix"]),
            row["webhook_url"],
            body_of(told, shown, link, self._zone),
            tuple(signed_with),
            alert["attempts"],
            alert["outages"],
            alert["created_at"],
        )

    def store(self, results: Sequence[Result], now: int) -> list[Result]:
        """Store the results of up to 200 attempts; those that count. Raises `Unavailable`."""

        def store(transaction: Transaction) -> list[Result]:
            # So no change of a check comes between what is read and what is written.
            check_ids = list({result.message.check_id for result in results})
            sql = f"SELECT seq FROM checks WHERE id IN ({marks(check_ids)}) ORDER BY seq"
            self.database.lock(transaction, sql, check_ids)
            return results_of.store(transaction, results, now)

        stored = self.database.write(store)
        note(GIVEN_UP, [one.message.subject for one in stored if one.state == "failed"])
        return stored

    def repair(self, now: int) -> None:
        """Make the first waiting alerts due that have no time. There are none without a defect."""
        firsts = (
            "SELECT min(seq) AS seq FROM alerts WHERE state = 'pending'"
            " GROUP BY check_id, outage IS NULL"
        )
        with self.database.read() as connection:
            rows = connection.execute(
                f"SELECT first.seq FROM ({firsts}) AS first"
                " JOIN alerts ON alerts.seq = first.seq WHERE next_attempt_at IS NULL"
            ).fetchall()
        for row in rows:
            # Older alerts never come, so what is first stays first.
            self.database.write(partial(_repair, row["seq"], now))

    def newest(self, check_id: str) -> list[dict[str, Any]]:
        """The newest alerts of a check, as `GET /checks/{id}/alerts` has them, at most `KEPT`."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT id, type, state, attempts, last_status, last_error, created_at,"
                " next_attempt_at FROM alerts WHERE check_id = ? ORDER BY seq DESC LIMIT ?",
                (check_id, KEPT),
            ).fetchall()
        due_at: dict[bool, int | None] = {}
        # The oldest first: one that waits behind another has its time.
        shown = [_shown(row, due_at) for row in reversed(rows)]
        return shown[::-1]


_STATUS_TOLD = {OVERDUE: "overdue", RECOVERED: "on_time"}
"""The status that a check had when an alert of this type was stored."""

_WAITS = "state = 'pending' AND next_attempt_at IS NOT NULL"
_FIRST = (
    f"SELECT seq, is_new, key_id, next_attempt_at AS due_at FROM alerts WHERE {_WAITS}"
    " ORDER BY is_new, key_id, next_attempt_at LIMIT 1"
)
_NEXT = (
    f"SELECT {{}} FROM alerts WHERE {_WAITS} AND {{}}"
    " ORDER BY is_new, key_id, next_attempt_at LIMIT 1"
)
_SCAN = (
    f"WITH RECURSIVE found (seq, is_new, key_id, due_at) AS (SELECT * FROM ({_FIRST}) UNION ALL"
    " SELECT next.seq, next.is_new, next.key_id, next.next_attempt_at"
    " FROM found JOIN alerts AS next ON next.seq = coalesce("
    f"({_NEXT.format('seq', 'is_new = found.is_new AND key_id > found.key_id')}),"
    f" ({_NEXT.format('seq', 'is_new > found.is_new')})))"
)
"""The first alert of each queue, of the index `alerts_due`: one step for a key, not for an alert.

For `(is_new, key_id) > (found.is_new, found.key_id)` SQLite searches by `is_new` alone.
"""
_SCAN_POSTGRESQL = (
    f"WITH RECURSIVE found (seq, is_new, key_id, due_at) AS (({_FIRST}) UNION ALL"
    " SELECT next.seq, next.is_new, next.key_id, next.next_attempt_at FROM found CROSS JOIN"
    " LATERAL ("
    f"{_NEXT.format('*', '(is_new, key_id) > (found.is_new, found.key_id)')}) AS next)"
)
_WITH_TIER = (
    "SELECT key_id, is_new, (SELECT tier FROM keys WHERE keys.id = found.key_id"
    " AND revoked_at IS NULL) AS tier, due_at FROM found"
)


def _repair(seq: int, now: int, transaction: Transaction) -> None:
    transaction.execute(
        "UPDATE alerts SET next_attempt_at = ?"
        " WHERE seq = ? AND state = 'pending' AND next_attempt_at IS NULL",
        (now, seq),
    )


def _may_be_posted(alert: Row, check: Row, key: Row, receiver: str, now: int) -> bool:
    """Whether an alert is still due, and still for this host."""
    due_at = alert["next_attempt_at"]
    is_due = alert["state"] == "pending" and due_at is not None and due_at <= now
    has_receiver = check["webhook_url"] is not None and alert["receiver"] == receiver
    return is_due and has_receiver and key["revoked_at"] is None


def _shown(row: Row, due_at: dict[bool, int | None]) -> dict[str, Any]:
    """An alert as it is shown. `due_at` has the times of older ones that wait, by whether tests."""
    shown = dict(row)
    if row["state"] == "pending":
        shown["next_attempt_at"] = due_at.setdefault(row["type"] == TEST, row["next_attempt_at"])
    for name in ("created_at", "next_attempt_at"):
        shown[name] = time_or_none(shown[name])
    return shown
