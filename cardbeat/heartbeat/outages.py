"""The table `outages`: when checks were overdue, for 92 days, at most the newest 1,000 of each.

`transitions` writes its rows, also for checks without a webhook.
"""

import re
from typing import Any

from cardbeat.clock import Clock, time_or_none, utc_text
from cardbeat.database import Database, Row, Transaction, numbers
from cardbeat.errors import Invalid
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.transitions import KEPT_OUTAGES
from cardbeat.keys.key import Key

DAY_SECONDS = 86_400
KEPT_DAYS = 92
KEPT_SINCE = "outages_kept_since"
"""Name of the time of the upgrade in the table `monitor`: before it none were kept."""

_SEQ = re.compile("[0-9]{1,18}")
NO_SEQ = 2**62
"""Larger than any."""


def remove_old(transaction: Transaction, now: int, most: int) -> int:
    """Delete at most so many that ended more than `KEPT_DAYS` ago; how many were deleted."""
    old = "SELECT seq FROM outages WHERE ended_at < ? ORDER BY ended_at LIMIT ?"
    sql = f"DELETE FROM outages WHERE seq IN ({old})"
    return int(
        transaction.execute(
            sql, (now - KEPT_DAYS * DAY_SECONDS, most)
        ).rowcount
    )


class Outages:
    """Reads outages, newest first."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def of_check(self, check: Check) -> dict[str, Any]:
        """What `GET /checks/{id}/outages` answers."""
        now = int(self._clock())
        with self._database.read() as connection:
            since = _kept_since(
                connection, now, check.created_at, "id", check.id
            )
            first = now - KEPT_DAYS * DAY_SECONDS
            rows = _newest(
                connection, "check_id", check.id, first, KEPT_OUTAGES
            )
        return {"outages": list(map(_shown, rows)), "kept_since": since}

    def page(
        self, key: Key, days: int, limit: int, after: str | None
    ) -> dict[str, Any]:
        """What `GET /checks/outages` answers, with whole ids.

        Raises `Invalid` if `after` names no outage of this key.
        """
        now = int(self._clock())
        with self._database.read() as connection:
            before = NO_SEQ
            if after is not None:
                before = _seq_of(connection, key, after)
            since = _kept_since(
                connection, now, key.created_at, "api_key_id", key.id
            )
            first = now - days * DAY_SECONDS
            rows = _newest(
                connection, "key_id", key.id, first, limit + 1, before
            )
        following = None
        if len(rows) > limit:
            following = str(rows[limit - 1]["seq"])
        listed = [
            {"check_id": row["check_id"], **_shown(row)}
            for row in rows[:limit]
        ]
        return {"outages": listed, "kept_since": since, "next": following}


def _newest(  # noqa: PLR0917
    connection: Transaction,
    owner: str,
    value: str,
    first: int,
    limit: int,
    before: int = NO_SEQ,
) -> list[Row]:
    """Outages of a check or of a key that lasted since this time, before this `seq`."""
    rows: list[Row] = connection.execute(
        "SELECT seq, check_id, began_at, noticed_at, ended_at, reason FROM outages"
        f" WHERE {owner} = ? AND seq < ? AND (ended_at IS NULL OR ended_at >= ?)"
        " ORDER BY seq DESC LIMIT ?",
        (value, before, first, limit),
    ).fetchall()
    return rows


def _kept_since(
    connection: Transaction,
    now: int,
    created_at: int,
    column: str,
    value: str,
) -> str:
    """Since when all outages of some checks are there.

    That is their creation, the upgrade, the oldest row of one that has as many as are kept, or
    `KEPT_DAYS` ago.
    """
    many = f"SELECT id FROM checks WHERE {column} = ? AND outage >= ?"
    full = (
        f"SELECT min(noticed_at) AS oldest_at FROM outages WHERE check_id IN ({many})"
        " GROUP BY check_id HAVING count(*) >= ?"
    )
    sql = f"SELECT max(oldest_at) FROM ({full}) AS full_checks"
    row = connection.execute(
        sql, (value, KEPT_OUTAGES, KEPT_OUTAGES)
    ).fetchone()
    upgraded_at = numbers(connection).get(KEPT_SINCE, 0)
    return utc_text(
        max(
            created_at,
            upgraded_at,
            row[0] or 0,
            now - KEPT_DAYS * DAY_SECONDS,
        )
    )


def _seq_of(connection: Transaction, key: Key, after: str) -> int:
    row = None
    if _SEQ.fullmatch(after):
        sql = "SELECT seq FROM outages WHERE seq = ? AND key_id = ?"
        row = connection.execute(sql, (int(after), key.id)).fetchone()
    if row is None:
        sentence = (
            "The parameter after must be the next of an earlier page."
        )
        raise Invalid("invalid_parameter", sentence, field="after")
    return int(row["seq"])


def _shown(row: Row) -> dict[str, Any]:
    return {
        "began_at": utc_text(row["began_at"]),
        "noticed_at": utc_text(row["noticed_at"]),
        "ended_at": time_or_none(row["ended_at"]),
        "reason": row["reason"],
    }
