"""Credits that are due, in the table `monitor`: one comes behind those before it, and is given to checks in batches."""

from collections.abc import Mapping
from typing import Final

from cardbeat.database import Database, Transaction, monitor

_IS_CHANGED_SINCE: Final = "updated_at BETWEEN :since AND :wall"
"""A snooze or a change of a check was stored by a clock that was set back already."""
_IS_NEW: Final = f"(clock_from = coalesce(snoozed_until, 0) AND {_IS_CHANGED_SINCE})"
_IS_SNOOZED: Final = "(clock_from > :before_jump AND clock_from <= coalesce(snoozed_until, 0))"
"""Before the clock was set it was snoozed."""
_IS_OLDER: Final = "(snoozed_until > :now AND updated_at > :older_from AND updated_at <= :now AND :shown <= :now)"
"""The clock is right again, not behind what it had shown, and the snooze began before it was wrong."""


def add(transaction: Transaction, noted: Mapping[str, int], lost: int, before: int, *, now: int, jumped: bool) -> None:
    """Store a credit of the lost seconds as the current one, or behind those that are not finished."""
    # The clock was wrong if it is back at a time that it had left out, or was behind one that it had shown.
    if lost < 0:
        is_return = noted.get("set_forward_from", 0) <= now < noted.get("set_forward_to", 0)
        monitor.note(transaction, set_back_from=now - lost)
    else:
        is_return = jumped or now - lost < noted.get("set_back_from", 0)
        monitor.note(transaction, set_forward_from=now - lost, set_forward_to=now)
    older_from = (lost > 0) * (now - lost) if is_return else 2**33
    credit = {"seconds": lost, "before": before, "after_seq": 0, "older_from": older_from}
    behind = "next_" * sum(name.endswith("credit_seconds") for name in noted)
    monitor.note(transaction, **{f"{behind}credit_{name}": value for name, value in credit.items()})


def give(database: Database, transaction: Transaction, wall: int, batch: int, *, skips_locked: bool) -> bool:
    """Give the first credit to the next `batch` of checks, and store the progress. False if none is due any more.

    `wall` is now by the wall clock, in Unix seconds. Skips checks that were pinged or created after the outage: their
    `clock_from` lies between `credit_before` (if the clock was set back again, the next `credit_before`) and now. No
    `clock_from` moves past now. "Now" is the wall clock without the later credits, which are given afterwards.

    If the clock was set back, the ends of snoozes, reminders and retries move back too: else they wait longer by as
    much; but not those that began since then. Set forward again, they move on, a snooze up to `snoozed_until`. A ping
    since then may have started its clock at the end of a snooze that was over before.

    If `skips_locked`, also skips checks whose rows another session holds. Their alerts may be early. If the clock was
    set back, they would be late, so none is skipped.
    """
    noted = monitor.values(transaction)
    if "credit_seconds" not in noted:
        return False
    behind = sum(seconds for name, seconds in noted.items() if name.endswith("next_credit_seconds"))
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
        "set_back_from": noted["next_credit_before"] if noted.get("next_credit_seconds", 0) < 0 else wall + 1,
        "wall": wall,
        "older_from": noted.get("credit_older_from", 2**33),
        "shown": noted.get("set_back_from", 0) if noted["credit_seconds"] > 0 else 0,
        "before_jump": wall - behind - noted["credit_seconds"],
    }
    values["since"] = min(values["before"], values["set_back_from"])
    batch_of = f"seq > :after_seq AND seq <= :last_seq AND seq IN ({among})"
    if noted["credit_seconds"] > 0:
        left = "snoozed_until - clock_from"
        moved = f"CASE WHEN {_IS_OLDER} OR :seconds > {left} THEN {left} ELSE :seconds END"
        for change in (
            f"clock_from = clock_from + {moved}, remind_at = remind_at + {moved} WHERE clock_from < snoozed_until"
            f" AND ({_IS_OLDER} OR {_IS_SNOOZED} AND clock_from <> coalesce(last_ping_at, 0))",
            "remind_at = CASE WHEN remind_at + :seconds < :now + repeat_seconds THEN remind_at + :seconds"
            " ELSE :now + repeat_seconds END WHERE remind_at > :older_from AND remind_at <= :now",
        ):
            transaction.execute(f"UPDATE checks SET {change} AND {batch_of}", values)
    transaction.execute(
        "UPDATE checks SET clock_from = CASE WHEN clock_from <= :now AND clock_from + :seconds > :now THEN :now"
        " WHEN clock_from > :now AND last_ping_at > clock_from + :seconds AND last_ping_at BETWEEN :before AND :wall"
        f" THEN last_ping_at ELSE clock_from + :seconds END WHERE {batch_of} AND status = 'on_time'"
        f" AND (clock_from < :before OR (clock_from > :now AND :seconds < 0 AND NOT {_IS_SNOOZED}))"
        f" AND NOT (clock_from BETWEEN :set_back_from AND :wall) AND NOT (clock_from > :now AND {_IS_NEW})",
        values,
    )
    if noted["credit_seconds"] < 0:
        transaction.execute(
            f"UPDATE checks SET clock_from = CASE WHEN {_IS_OLDER} THEN snoozed_until"
            # Other changes of the check leave its clock as it is.
            f" WHEN {_IS_SNOOZED} AND NOT {_IS_NEW} THEN clock_from + :seconds ELSE clock_from END,"
            f" snoozed_until = CASE WHEN snoozed_until > :now AND NOT ({_IS_OLDER} OR {_IS_SNOOZED} OR {_IS_NEW})"
            " THEN snoozed_until + :seconds ELSE snoozed_until END,"
            f" remind_at = CASE WHEN {_IS_OLDER} AND status = 'overdue' THEN snoozed_until + repeat_seconds"
            " WHEN remind_at > :now + repeat_seconds AND NOT (overdue_at BETWEEN :since AND :wall)"
            f" AND NOT ({_IS_CHANGED_SINCE}) THEN remind_at + :seconds ELSE remind_at END"
            f" WHERE {batch_of} AND (snoozed_until > :now OR remind_at > :now)",
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
