"""The rows of `alerts`: stored with the change that they report, posted after its commit.

An alert is due when its `next_attempt_at` has come. Only the first waiting alert of a check, and
its first waiting test, has one; the result that ends it gives the next one its time. So the alerts
of a check go out in order.

Both engines run the same statements but one. Two rules keep them quick over PostgreSQL, whatever it
knows of the tables: a statement finds rows by their key, Python decides, and rows are changed by
`seq`; and no statement joins without a LIMIT. Lock the rows of `checks`, by `seq`, before a row of
`alerts` is changed: the change of a check does so, and so does `store`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from operator import itemgetter
from typing import Any, NamedTuple

from cardbeat.clock import time_or_none, utc_text
from cardbeat.database import Database, Row, Transaction
from cardbeat.files import read_text
from cardbeat.heartbeat.alerts.message import (
    OVERDUE,
    RECOVERED,
    TEST,
    Facts,
    body_of,
)
from cardbeat.heartbeat.alerts.recording import marks
from cardbeat.heartbeat.check import GIVEN_UP, Check, note

KEPT = 100
"""Alerts that a check keeps; older finished ones are deleted."""
LINK_CHARACTERS = 8
"""Of a check's id in the link to the dashboard: too few to ping with."""


class Queue(NamedTuple):
    """The due alerts of one key, either of checks whose last alert was taken or of the others."""

    key_id: str
    is_new: bool
    tier: str


class Due(NamedTuple):
    """A due alert. `line` is its check, and whether it is a test: these go out beside others."""

    seq: int
    receiver: str
    line: tuple[str, bool]


class Message(NamedTuple):
    """What one attempt needs: the alert's row as it was read, and what is sent to where.

    `line` is as in `Due`, `subject` names the check in the log, each of `secrets` signs.
    """

    alert: Row
    line: tuple[str, bool]
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
        self, database: Database, base_url: str, zone: tzinfo | None = None
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
        full: Iterable[str],
        dry: Iterable[str],
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
            "SELECT seq, receiver, check_id, outage IS NULL FROM alerts WHERE state = 'pending'"
            " AND next_attempt_at IS NOT NULL AND is_new = ? AND key_id = ?"
            f" AND next_attempt_at <= ? AND receiver NOT IN ({marks(full)}) AND attempts >= ?"
            f" AND (attempts > 0 OR receiver NOT IN ({marks(dry)}))"
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
        return [
            Due(seq, host, (check_id, is_test))
            for seq, host, check_id, is_test in rows
        ]

    def messages(
        self, seqs: Sequence[int], receiver: str, now: int
    ) -> list[Message]:
        """What attempts at these alerts need, in this order.

        Without those that are not due any more, and those that go to another host by now.
        """
        with self.database.read() as connection:
            alerts = _rows_by(connection, "alerts", "seq", seqs)
            check_ids = {alert["check_id"] for alert in alerts.values()}
            checks = _rows_by(connection, "checks", "id", check_ids)
            key_ids = {check["api_key_id"] for check in checks.values()}
            keys = _rows_by(connection, "keys", "id", key_ids)
        found = []
        for seq in seqs:
            alert = alerts.get(seq)
            check = alert and checks.get(alert["check_id"])
            key = check and keys.get(check["api_key_id"])
            if (
                alert
                and check
                and key
                and _may_be_posted(alert, check, key, receiver, now)
            ):
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
        secrets = [key["webhook_secret"]]
        if (key["old_webhook_secret_until"] or 0) > now:
            secrets.append(key["old_webhook_secret"])
        body = body_of(told, shown, link, self._zone)
        line = (check.id, alert["outage"] is None)
        return Message(
            alert,
            line,
            check.subject,
            row["webhook_url"],
            body,
            tuple(secrets),
        )

    def store(self, results: Sequence[Result], now: int) -> list[Result]:
        """Store the results of up to 200 attempts; those that count. Raises `Unavailable`."""

        def store(transaction: Transaction) -> list[Result]:
            # So no change of a check comes between what is read and what is written.
            check_ids = list(
                {result.message.alert["check_id"] for result in results}
            )
            sql = f"SELECT seq FROM checks WHERE id IN ({marks(check_ids)}) ORDER BY seq"
            self.database.lock(transaction, sql, check_ids)
            return _store(transaction, results, now)

        stored = self.database.write(store)
        note(
            GIVEN_UP,
            [one.message.subject for one in stored if one.state == "failed"],
        )
        return stored

    def repair(self, now: int) -> None:
        """Make the first waiting alerts due that have no time. There are none without a defect."""
        firsts = (
            "SELECT min(seq) AS seq FROM alerts WHERE state = 'pending'"
            " GROUP BY check_id, outage IS NULL"
        )
        with self.database.read() as connection:
            rows = connection.execute(
                f"SELECT first.seq FROM ({firsts}) AS first JOIN alerts ON alerts.seq = first.seq"
                " WHERE next_attempt_at IS NULL LIMIT 1000"
            ).fetchall()
        seqs = [row["seq"] for row in rows]
        if seqs:
            # Older alerts never come, so what is first stays first.
            sql = (
                f"UPDATE alerts SET next_attempt_at = ? WHERE seq IN ({marks(seqs)})"
                " AND state = 'pending' AND next_attempt_at IS NULL"
            )
            self.database.write(
                lambda transaction: transaction.execute(sql, (now, *seqs))
            )

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
_STATUS_TOLD = {OVERDUE: "overdue", RECOVERED: "on_time"}
"""The status that a check had when an alert of this type was stored."""


def _rows_by(
    connection: Transaction, table: str, name: str, values: Iterable[object]
) -> dict[Any, Row]:
    """The rows of a table with one of these values in this column, by that value."""
    values = list(values)
    if not values:
        return {}
    sql = f"SELECT * FROM {table} WHERE {name} IN ({marks(values)})"
    return {
        row[name]: row for row in connection.execute(sql, values).fetchall()
    }


def _may_be_posted(
    alert: Row, check: Row, key: Row, receiver: str, now: int
) -> bool:
    """Whether an alert is still due, and still for this host."""
    due_at = alert["next_attempt_at"]
    is_due = (
        alert["state"] == "pending" and due_at is not None and due_at <= now
    )
    has_receiver = (
        check["webhook_url"] is not None and alert["receiver"] == receiver
    )
    return is_due and has_receiver and key["revoked_at"] is None


def _store(
    transaction: Transaction, results: Sequence[Result], now: int
) -> list[Result]:
    """Store results of checks whose rows are locked; those that count, as they are stored.

    1. A result counts only for the attempt that it is of. One that failed at a URL which the check
    no longer has changes neither state nor time. 2. The check shows the last result. 3. Behind an
    alert that ended the next one is due, and a delivered test lets an outage that waits for its
    retry be tried. 4. Finished alerts beyond `KEPT` go.
    """
    read = [result.message.alert for result in results]
    checks = _rows_by(
        transaction, "checks", "id", {alert["check_id"] for alert in read}
    )
    alerts = _rows_by(
        transaction, "alerts", "seq", [alert["seq"] for alert in read]
    )
    stored = []
    delivery = {}
    for result in results:
        before = result.message.alert
        alert = alerts.get(before["seq"])
        if alert is None or _attempt_of(alert) != _attempt_of(before):
            continue
        check = checks[alert["check_id"]]
        stored.append(_as_stored(result, alert, check))
        if check["webhook_url"] == result.message.webhook_url:
            delivery[check["id"]] = (
                "ok" if result.state == "delivered" else "failing"
            )
    if stored:
        _store_results(transaction, stored)
        for told, is_new in (("ok", 0), ("failing", 1)):
            changed = [
                check_id
                for check_id, last in delivery.items()
                if last == told and checks[check_id]["delivery"] != told
            ]
            if changed:
                among = marks(changed)
                transaction.execute(
                    f"UPDATE checks SET delivery = ? WHERE id IN ({among})",
                    (told, *changed),
                )
                transaction.execute(
                    "UPDATE alerts SET is_new = ? WHERE state = 'pending'"
                    f" AND check_id IN ({among})",
                    (is_new, *changed),
                )
        _go_on(transaction, stored, alerts, now)
    return stored


def _as_stored(result: Result, alert: Row, check: Row) -> Result:
    """The result, without effect on state and time if it failed at a URL that is gone."""
    if (
        result.state == "delivered"
        or check["webhook_url"] == result.message.webhook_url
    ):
        return result
    due_at = alert["next_attempt_at"]
    return result._replace(
        state="pending", next_attempt_at=due_at, asked_until=None
    )


def _store_results(
    transaction: Transaction, results: Sequence[Result]
) -> None:
    types = "BIGINT BIGINT TEXT TEXT BIGINT BIGINT".split()
    casts = [f"CAST(? AS {one})" for one in types]
    row = f"({', '.join(casts)})"
    values: list[object] = []
    for result in results:
        values += (result.message.alert["seq"], *result[1:])
    transaction.execute(
        "WITH made (seq, status, error, state, due_at, asked) AS"
        f" (VALUES {', '.join([row] * len(results))})"
        " UPDATE alerts SET attempts = attempts + 1,"
        " last_status = coalesce(made.status, last_status), last_error = made.error,"
        " state = made.state, next_attempt_at = made.due_at, asked_until = made.asked"
        " FROM made WHERE alerts.seq = made.seq",
        values,
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
    tested = set()
    untold: Counter[str] = Counter()
    ended = set()
    for result in results:
        alert = alerts[result.message.alert["seq"]]
        if result.state == "pending":
            continue
        ended.add(alert["check_id"])
        told = 0
        if result.state == "delivered":
            told = result.message.alert["outages"]
            if alert["outage"] is None:
                tested.add(alert["check_id"])
        untold[alert["check_id"]] += alert["outages"] - told
    if not ended:
        return
    firsts = transaction.execute(
        "SELECT check_id, seq, outage, attempts, next_attempt_at FROM alerts WHERE seq IN ("
        f"SELECT min(seq) FROM alerts WHERE state = 'pending' AND check_id IN ({marks(ended)})"
        " GROUP BY check_id, outage IS NULL)",
        list(ended),
    ).fetchall()
    due = []
    for first in firsts:
        is_outage = first["outage"] is not None
        waits_for_retry = (
            first["attempts"] and is_outage and first["check_id"] in tested
        )
        if first["next_attempt_at"] is None or waits_for_retry:
            due.append(first["seq"])
        if is_outage and untold[first["check_id"]]:
            sql = "UPDATE alerts SET outages = outages + ? WHERE seq = ?"
            transaction.execute(sql, (untold[first["check_id"]], first["seq"]))
    if due:
        sql = f"UPDATE alerts SET next_attempt_at = ? WHERE seq IN ({marks(due)})"
        transaction.execute(sql, (now, *due))
    _drop_oldest(transaction, list(ended))


def _drop_oldest(transaction: Transaction, check_ids: Sequence[str]) -> None:
    """Delete the finished alerts of these checks beyond the newest `KEPT`."""
    rows = transaction.execute(
        "SELECT id, (SELECT seq FROM alerts WHERE check_id = checks.id"
        " ORDER BY seq DESC LIMIT 1 OFFSET ?) AS beyond"
        f" FROM checks WHERE id IN ({marks(check_ids)})",
        (KEPT, *check_ids),
    ).fetchall()
    for row in rows:
        if row["beyond"] is not None:
            transaction.execute(
                "DELETE FROM alerts WHERE check_id = ? AND seq <= ? AND state <> 'pending'",
                (row["id"], row["beyond"]),
            )
