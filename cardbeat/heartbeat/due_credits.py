"""Credits that are due, in the table `monitor`: one comes behind those before it, and is given to checks in batches."""

from collections.abc import Mapping
from typing import Final

from cardbeat.database import Database, Transaction, monitor

_IS_CHANGED_SINCE: Final = "updated_at >= :since AND updated_at <= :wall"
"""A snooze or a change of a check was stored by a clock that was set back already."""


def add(transaction: Transaction, noted: Mapping[str, int], seconds: int, before: int) -> None:
    """Store a credit as the current one, or behind those that are not finished."""
    credit = {"credit_seconds": seconds, "credit_before": before, "credit_after_seq": 0}
    behind = "next_" * sum(name.endswith("credit_seconds") for name in noted)
    monitor.note(transaction, **{behind + name: value for name, value in credit.items()})


def give(database: Database, transaction: Transaction, wall: int, batch: int, *, skips_locked: bool) -> bool:
    """Give the first credit to the next `batch` of checks, and store the progress. False if none is due any more.

    `wall` is now by the wall clock, in Unix seconds. Skips checks that were pinged or created after the outage: their
    `clock_from` lies between `credit_before` (if the clock was set back again, the next `credit_before`) and now. No
    `clock_from` moves past now. "Now" is the wall clock without the later credits, which are given afterwards.

    If the clock was set back, snoozes, reminders and retries move back too: else they wait longer by as much; but not
    those that began since then. A ping since then may have started its clock at the end of a snooze that was over
    before.

    If `skips_locked`, also skips checks whose rows another session holds. Their alerts may be early. If the clock was
    set back, they would be late, so none is skipped.
    """
    noted = monitor.values(transaction)
    if "credit_seconds" not in noted:
        return False
    behind = sum(seconds for name, seconds in noted.items() if name.endswith("next_credit_seconds"))
    is_set_back = noted.get("next_credit_seconds", 0) < 0
    (last_seq,) = transaction.execute(
        "SELECT max(seq) FROM (SELECT seq FROM checks WHERE seq > ? ORDER BY seq LIMIT ?) AS batch",
        (noted["credit_after_seq"], batch),
    ).fetchone()
    if last_seq is None:
        return _end(transaction, noted)
    among, rows = "seq", "SELECT seq FROM checks WHERE seq > ? AND seq <= ? ORDER BY seq"
    bounds = noted["credit_after_seq"], last_seq
    if skips_locked and noted["credit_seconds"] > 0:
        among = ", ".join(map(str, database.lock_free(transaction, rows, bounds))) or "NULL"
    else:
        database.lock(transaction, rows, bounds)
    values = {
        "seconds": noted["credit_seconds"],
        "before": noted["credit_before"],
        "after_seq": noted["credit_after_seq"],
        "last_seq": last_seq,
        "now": wall - behind,
        "set_back_from": noted["next_credit_before"] if is_set_back else wall + 1,
        "wall": wall,
    }
    values["since"] = min(values["before"], values["set_back_from"])
    transaction.execute(
        "UPDATE checks SET "
        "clock_from = CASE WHEN clock_from <= :now AND clock_from + :seconds > :now THEN :now"
        " WHEN clock_from > :now AND last_ping_at > clock_from + :seconds AND last_ping_at <= :wall"
        " AND last_ping_at >= :before THEN last_ping_at ELSE clock_from + :seconds END "
        f"WHERE seq > :after_seq AND seq <= :last_seq AND seq IN ({among}) AND status = 'on_time' "
        "AND (clock_from < :before OR (clock_from > :now AND :seconds < 0))"
        " AND NOT (clock_from >= :set_back_from AND clock_from <= :wall)"
        f" AND NOT (clock_from > :now AND clock_from = coalesce(snoozed_until, 0) AND {_IS_CHANGED_SINCE})",
        values,
    )
    if noted["credit_seconds"] < 0:
        transaction.execute(
            "UPDATE checks SET snoozed_until = CASE WHEN snoozed_until > :now"
            # Other changes of the check leave its clock as it is.
            f" AND NOT (clock_from = snoozed_until AND {_IS_CHANGED_SINCE})"
            " THEN snoozed_until + :seconds ELSE snoozed_until END,"
            " remind_at = CASE WHEN remind_at > :now AND NOT (overdue_at >= :since AND overdue_at <= :wall)"
            f" AND NOT ({_IS_CHANGED_SINCE}) THEN remind_at + :seconds ELSE remind_at END"
            " WHERE seq > :after_seq AND seq <= :last_seq AND (snoozed_until > :now OR remind_at > :now)",
            values,
        )
        _move_retries(transaction, noted, last_seq, wall)
    monitor.note(transaction, credit_after_seq=last_seq)
    return True


def _move_retries(transaction: Transaction, noted: Mapping[str, int], last_seq: int, now: int) -> None:
    """Move the next attempts for a batch of checks as far back as the clock was set; those before now are due."""
    transaction.execute(
        "UPDATE alerts SET next_attempt_at = next_attempt_at + ? WHERE state = 'pending' AND next_attempt_at > ?"
        " AND check_id IN (SELECT id FROM checks WHERE seq > ? AND seq <= ?)",
        (noted["credit_seconds"], now, noted["credit_after_seq"], last_seq),
    )


def _end(transaction: Transaction, noted: Mapping[str, int]) -> bool:
    """Remove the finished credit and make the next one the current one. Whether there is a next one."""
    transaction.execute("DELETE FROM monitor WHERE name LIKE '%credit_%'")
    left = {name.removeprefix("next_"): value for name, value in noted.items() if name.startswith("next_")}
    if left:
        monitor.note(transaction, **left)
    return bool(left)
