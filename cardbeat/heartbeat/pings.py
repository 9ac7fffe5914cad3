"""What jobs signal: pings and failures. All that wait for the same commit share few statements."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import NamedTuple

from cardbeat.clock import Clock
from cardbeat.database import (
    Database,
    Row,
    Transaction,
    lock_checks,
    marks,
)
from cardbeat.heartbeat import transitions
from cardbeat.heartbeat.check import (
    NOW_OVERDUE,
    NOW_RECOVERED,
    Check,
    note,
)
from cardbeat.jobs import Future

_HAS_KEY = "EXISTS (SELECT 1 FROM keys WHERE keys.id = api_key_id AND revoked_at IS NULL)"
"""The key of a check is not revoked."""


class Told(NamedTuple):
    """The outcome of a signal: the check's status, and its deadline in Unix seconds.

    `recovered` if it ended an outage. `subject` is the check's name in the log if it turned the
    check, empty for most.
    """

    status: str
    deadline_at: int
    recovered: bool = False
    subject: str = ""


class Pings:
    """Takes signals of jobs, without waiting.

    `ping` and `fail` return a future that is set once the signal is on disk. The result is None if
    there is no such check. `client` is who takes turns with others. `wake` is called after a
    commit that stored alerts.
    """

    def __init__(
        self, database: Database, clock: Clock, wake: Callable[[], None]
    ) -> None:
        self._database = database
        self._clock = clock
        self._wake = wake
        database.ping_listeners.append(self._tell_turned)

    def ping(
        self, check_id: str, client: str = ""
    ) -> Future[Told | None]:
        """Record a ping. It ends an outage, and stores an alert of that."""
        return self._database.write_ping(self._ping, check_id, client)

    def fail(
        self, check_id: str, client: str = ""
    ) -> Future[Told | None]:
        """Record that a job failed. It turns a check overdue at once, unless that is snoozed."""
        return self._database.write_ping(self._fail, check_id, client)

    def look(self, check_id: str) -> Told | None:
        """Change nothing: a job has started, or sends a line of its log. May wait."""
        sql = f"SELECT status, deadline_at FROM checks WHERE id = ? AND {_HAS_KEY}"
        with self._database.read() as connection:
            row = connection.execute(sql, (check_id,)).fetchone()
        return None if row is None else Told(*row)

    def _ping(
        self, transaction: Transaction, check_ids: list[str]
    ) -> list[Told | None]:
        # Read in the writer, which makes groups one after another: the later ping is not earlier.
        now = int(self._clock())
        self._lock(transaction, check_ids)
        found = {}
        overdue = []
        rows = _note_pings(transaction, check_ids, now)
        for check_id, status, deadline_at in rows:
            found[check_id] = Told("on_time", deadline_at)
            if status == "overdue":
                overdue.append(check_id)
        recovered: list[Check] = []
        if overdue:
            recovered = transitions.turn_back(transaction, overdue, now)
        return _outcomes(check_ids, found, recovered)

    def _fail(
        self, transaction: Transaction, check_ids: list[str]
    ) -> list[Told | None]:
        """Checks that are on time and not snoozed turn overdue."""
        now = int(self._clock())
        self._lock(transaction, check_ids)
        ids = list(dict.fromkeys(check_ids))
        rows = transaction.execute(
            f"UPDATE checks SET failed_at = ? WHERE id IN ({marks(ids)}) AND {_HAS_KEY}"
            " RETURNING id, status, deadline_at",
            (now, *ids),
        )
        found = {
            check_id: Told(status, deadline_at)
            for check_id, status, deadline_at in rows
        }
        where = (
            f"id IN ({marks(ids)}) AND {_HAS_KEY}"
            " AND (snoozed_until IS NULL OR clock_from <= ? OR clock_from > snoozed_until)"
        )
        failed = transitions.turn_overdue(
            transaction, "failed", where, [*ids, now], now
        )
        return _outcomes(check_ids, found, failed)

    def _lock(
        self, transaction: Transaction, check_ids: list[str]
    ) -> None:
        """Lock the checks before the first of them is changed.

        All transactions lock rows of `checks` by `seq`: so two nodes never wait for each other.
        """
        ids = list(dict.fromkeys(check_ids))
        if len(ids) > 1:
            lock_checks(self._database, transaction, ids)

    def _tell_turned(self, outcomes: list[Told | None]) -> None:
        """Have the alerts of stored signals sent, and log their transitions."""
        turned = [told for told in outcomes if told and told.subject]
        if turned:
            self._wake()
            note(
                NOW_RECOVERED,
                [told.subject for told in turned if told.recovered],
            )
            note(
                NOW_OVERDUE,
                [told.subject for told in turned if not told.recovered],
            )


def _outcomes(
    check_ids: list[str], found: dict[str, Told], turned: list[Check]
) -> list[Told | None]:
    """What each signal is told. Of several signals of one check only the first has turned it."""
    first = {}
    for check in turned:
        told = Told(check.status, check.deadline_at)
        found[check.id] = told
        first[check.id] = told._replace(
            recovered=check.status == "on_time", subject=check.subject
        )
    return [
        first.pop(check_id, None) or found.get(check_id)
        for check_id in check_ids
    ]


def _note_pings(
    transaction: Transaction, check_ids: list[str], now: int
) -> list[Row]:
    """Record pings; the rows `id`, `status`, `deadline_at` of the checks that exist.

    The status is the one before the ping. A snooze goes on: the next ping is due after it.
    """
    by_number = defaultdict(list)
    for check_id, number in Counter(check_ids).items():
        by_number[number].append(check_id)
    rows: list[Row] = []
    for number, ids in by_number.items():
        rows += transaction.execute(
            "UPDATE checks SET"
            " clock_from = CASE WHEN clock_from > ? AND clock_from <= snoozed_until"
            " THEN clock_from ELSE ? END,"
            " last_ping_at = ?, ping_count = ping_count + ?, failed_at = NULL"
            f" WHERE id IN ({marks(ids)}) AND {_HAS_KEY} RETURNING id, status, deadline_at",
            (now, now, now, number, *ids),
        )
    return rows
