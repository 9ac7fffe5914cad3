"""The table `checks`: what owners read and change through the API, and what pings change.

Four other modules write to it: `sweep` marks checks overdue, `credit` moves deadlines after downtime of the monitor,
`attempts` stores in `delivery` the outcome of the last attempt, and `removal` deletes the checks of revoked keys. Until
then no check of a revoked key is pinged, swept, counted or alerted for, and none is added.
"""

import re
import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple

from cardbeat.clock import Clock
from cardbeat.concurrency.later import Later, Repeatable
from cardbeat.database import Database, Transaction
from cardbeat.errors import Invalid, NotFound, Refusal
from cardbeat.heartbeat.check import COLUMNS, SHORT_ID_CHARACTERS, Check, Settings
from cardbeat.heartbeat.delivery.delivery import Delivery
from cardbeat.heartbeat.outbox import alert
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.pings import Signal, in_order, lock, look_at, note_failures, note_pings, turn_back, turn_overdue
from cardbeat.heartbeat.quota import tests_taken
from cardbeat.heartbeat.transitions import OVERDUE, RECOVERED, Transition, Turned, note, subject_of
from cardbeat.keys.key import Key, key_unknown

_COLUMNS = ", ".join(COLUMNS)
_SHORT_ID = re.compile(f"[0-9a-f]{{{SHORT_ID_CHARACTERS}}}")


class Told(NamedTuple):
    """The outcome of a signal: the check's status, and its deadline in Unix seconds.

    `turned` is the transition that it caused, None for most; `subject` is then the check's name in the log.
    """

    status: str
    deadline_at: int
    turned: Transition | None = None
    subject: str = ""

    @property
    def recovered(self) -> bool:
        return self.turned is RECOVERED


_Outcomes = tuple[dict[str, Told], dict[str, Told]]
"""Of signals, by the ids of their checks: of all, and of the first one of each check that it turned."""


class Checks:
    """The checks of all keys. A check of another key raises `NotFound`, like one that does not exist.

    A change that stores an alert wakes `delivery` after its commit.
    """

    def __init__(self, database: Database, clock: Clock, alerts: Alerts, delivery: Delivery) -> None:
        self._database = database
        self.clock = clock
        self._alerts = alerts
        self._delivery = delivery
        self._noted = {Signal.PING: self._ping, Signal.FAILURE: self._fail, Signal.OTHER: _look}

    def create(self, key: Key, settings: Settings) -> Later[Check]:
        """A new check, on time; settled when it is on disk. Raises `Unavailable` while the disk is low.

        The result raises `Refusal` 403 if the key has all checks that its tier allows, 401 if the key was revoked.
        """
        # Hexadecimal digits: an id never starts with a dash and needs no quotes in a shell.
        values = {**settings._asdict(), "id": secrets.token_hex(16), "key_id": key.id}

        def create(transaction: Transaction) -> Check:
            return _insert(transaction, {**values, "now": int(self.clock())}, key.limits.max_checks)

        return self._database.create_later(create)

    def get(self, key_id: str, check_id: str) -> Check:
        with self._database.read() as connection:
            return _own(connection, key_id, check_id)

    def whole_id(self, key_id: str, short_id: str) -> str:
        """The id of the key's check with this short one; "", which is no check's, if none or several have it.

        No other length is taken: by longer and longer beginnings, a reader would find the whole id.
        """
        if not _SHORT_ID.fullmatch(short_id):
            return ""
        with self._database.read() as connection:
            # Both ends are ids too, so that every collation puts what begins so between them.
            sql = "SELECT id, api_key_id FROM checks WHERE id BETWEEN ? AND ?"
            among = connection.execute(sql, (short_id.ljust(32, "0"), short_id.ljust(32, "f"))).fetchall()
        own = [str(row["id"]) for row in among if row["api_key_id"] == key_id]
        return own[0] if len(own) == 1 else ""

    def page(self, key_id: str, limit: int, after: str | None) -> tuple[list[Check], str | None]:
        """At most `limit` checks, oldest first, after the check `after`; and the next `after`, None at the end.

        Raises `Invalid` if this key has no check with the id `after`.
        """
        with self._database.read() as connection:
            after_seq = 0 if after is None else _seq_of(connection, key_id, after)
            sql = f"SELECT {_COLUMNS} FROM checks WHERE api_key_id = ? AND seq > ? ORDER BY seq LIMIT ?"
            found = [Check(*row) for row in connection.execute(sql, (key_id, after_seq, limit + 1))]
        return found[:limit], found[limit - 1].id if len(found) > limit else None

    def each(self, key_id: str) -> Iterator[Check]:
        """All checks of a key, oldest first, as of one moment. They are read while the caller goes through them."""
        sql = f"SELECT {_COLUMNS} FROM checks WHERE api_key_id = ? ORDER BY seq"
        with self._database.read() as connection:
            for row in connection.execute(sql, (key_id,)):
                yield Check(*row)

    def update(self, check: Check, settings: Settings) -> Later[Check]:
        """Write `settings` if the check still has the version that was read; the new row, once it is on disk.

        With a new webhook URL, waiting alerts are sent to it at once; without one they wait for a new URL. The result
        raises `Refusal` 409 if the check was modified or deleted since it was read; then nothing is written. Raises
        `Unavailable` while the disk is low, if name and URL become longer.
        """
        is_moved = settings.webhook_url != check.webhook_url

        def write(transaction: Transaction) -> Check:
            now = int(self.clock())
            updated = _update(transaction, check, settings, now)
            if settings.repeat_seconds != check.repeat_seconds:
                _restart_reminders(transaction, check.id, now)
                self._alerts.drop_reminders(transaction, [check.id])
            if is_moved:
                self._alerts.move(transaction, check.id, None if settings.webhook_url is None else now)
            return updated

        before, after = (len(f"{of.name}{of.webhook_url or ''}".encode()) for of in (check, settings))
        written = (self._database.create_later if after > before else self._database.write_later)(write)
        return written.map(self._wake_delivery) if is_moved else written

    def snooze(self, key_id: str, check_id: str, seconds: int, version: int | None = None) -> Later[Check]:
        """Send no overdue alert and no reminder for so many seconds; with 0, end a snooze. The clock starts then.

        The result is the new row, or the row as it is if there was no snooze to end. It raises `Refusal` 412 if
        `version` is given and the check has another one.
        """

        def write(transaction: Transaction) -> Check:
            now = int(self.clock())
            values = {"id": check_id, "key_id": key_id, "version": version, "now": now, "until": now + seconds}
            snoozed = _snooze(transaction, values)
            # During a snooze none is stored.
            if seconds:
                self._alerts.drop_reminders(transaction, [check_id])
            return snoozed

        return self._database.write_later(write)

    def delete(self, key_id: str, check_id: str, version: int | None = None) -> Later[None]:
        """Delete a check and its alerts; settled when that is on disk.

        If `version` is given and the check has another one, the result raises `Refusal` 412.
        """
        return self._database.write_later(lambda transaction: _delete(transaction, key_id, check_id, version))

    def ping(self, check_id: str, network: str = "") -> Later[Told]:
        """Record a ping, on disk once settled, or raise `NotFound`. It ends an outage, and stores an alert of that."""
        return self.signal(check_id, Signal.PING, network)

    def signal(self, check_id: str, signal: Signal, network: str = "") -> Later[Told]:
        """As `ping`, for any signal. A failure of a check that is on time begins an outage and stores an alert."""
        # Where only reading works, no ping can be stored: one that tells of a start is no sign that it can.
        stores = signal is not Signal.OTHER
        noted = self._database.write_together(self._note_signals, (check_id, signal), network, stores=stores)
        return Repeatable(noted, self._tell)

    def _tell(self, told: Told | None) -> Told:
        if told is None:
            raise _no_check()
        if told.turned is not None:
            self._delivery.wake()
            note(told.turned, [told.subject])
        return told

    def test_alert(self, key_id: str, check_id: str) -> Later[Check]:
        """Store a test alert; settled when it is on disk. Raises `Unavailable` while the disk is low.

        The result raises `Invalid` for a check without a webhook URL, `TooMany` above the limits of `quota`.
        """

        def record(transaction: Transaction) -> Check:
            check = _own(transaction, key_id, check_id)
            if check.webhook_url is None:
                raise Invalid("no_webhook", field="webhook_url")
            self._alerts.record_test(transaction, check, int(self.clock()))
            return check

        return self._database.create_later(record).map(self._wake_delivery)

    def _wake_delivery(self, check: Check) -> Check:
        self._delivery.wake()
        return check

    def usage(self, key_id: str) -> tuple[int, int]:
        """The number of checks of a key, and of its test alerts in the last hour."""
        with self._database.read() as connection:
            return _count(connection, key_id), tests_taken(connection, key_id, int(self.clock()))

    def totals(self) -> dict[str, int]:
        """The number of checks by status, without those of revoked keys."""
        with self._database.read() as connection:
            # One statement, so that all counts are of the same moment.
            return dict(
                connection.execute(
                    "SELECT status, checks - (SELECT count(*) FROM checks INDEXED BY checks_by_key"
                    " WHERE checks.status = totals_by_status.status"
                    " AND api_key_id IN (SELECT id FROM keys WHERE revoked_at IS NOT NULL)) FROM totals_by_status"
                ).fetchall()
            )

    def _note_signals(self, transaction: Transaction, signals: list[tuple[str, Signal]]) -> list[Told | None]:
        """The outcomes of a group of signals, in their order; None if there is no such check."""
        # Read the clock in the writer, which runs groups one after another: the later ping has the later time.
        now = int(self.clock())
        outcomes: list[Told | None] = [None] * len(signals)
        lock(self._database, transaction, signals)
        for signal, places in in_order(signals):
            check_ids = [signals[place][0] for place in places]
            found, turned = self._noted[signal](transaction, check_ids, now)
            # If one check is pinged several times in a group, only the first ping is the recovery.
            for place, check_id in zip(places, check_ids, strict=True):
                outcomes[place] = turned.pop(check_id, None) or found.get(check_id)
        return outcomes

    def _ping(self, transaction: Transaction, check_ids: list[str], now: int) -> _Outcomes:
        found, overdue = {}, []
        for check_id, status, deadline_at in note_pings(transaction, check_ids, now):
            found[check_id] = Told("on_time", deadline_at)
            if status == "overdue":
                overdue.append(check_id)
        return found, self._turned(transaction, RECOVERED, turn_back(transaction, overdue), now) if overdue else {}

    def _fail(self, transaction: Transaction, check_ids: list[str], now: int) -> _Outcomes:
        rows = note_failures(transaction, check_ids, now)
        on_time = [check_id for check_id, status, _ in rows if status == "on_time"]
        turned = self._turned(transaction, OVERDUE, turn_overdue(transaction, on_time, now), now) if on_time else {}
        return {row[0]: Told("overdue" if row[0] in turned else row[1], row[2]) for row in rows}, turned

    def _turned(self, transaction: Transaction, how: Transition, checks: list[Turned], now: int) -> dict[str, Told]:
        """Store the alerts of checks that turned; the outcome for each, by its id."""
        alert_type, status = (alert.RECOVERED, "on_time") if how is RECOVERED else (alert.OVERDUE, "overdue")
        self._alerts.record(transaction, alert_type, checks, now)
        return {
            check.id: Told(status, check.deadline_at, how, subject_of(check.id, check.key_prefix)) for check in checks
        }


def _look(transaction: Transaction, check_ids: list[str], _now: int) -> _Outcomes:
    rows = look_at(transaction, check_ids)
    return {check_id: Told(status, deadline_at) for check_id, status, deadline_at in rows}, {}


def _insert(transaction: Transaction, values: dict[str, object], max_checks: int | None) -> Check:
    """Insert a check, then count, in one transaction: so that concurrent creations can't exceed the limit.

    The insert comes first because its trigger locks the key's row of totals until the commit.
    """
    row = transaction.execute(
        "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, repeat_seconds, "
        "clock_from, created_at, updated_at) SELECT :id, id, :name, :period_seconds, :grace_seconds, "
        ":webhook_url, :repeat_seconds, :now, :now, :now FROM keys "
        "WHERE id = :key_id AND revoked_at IS NULL RETURNING *",
        values,
    ).fetchone()
    if row is None:
        raise key_unknown("This API key was revoked a moment ago.")
    check = Check.from_row(row)
    if max_checks is not None and _count(transaction, check.api_key_id) > max_checks:
        raise Refusal("too_many_checks", most=max_checks)
    return check


def _update(transaction: Transaction, check: Check, settings: Settings, now: int) -> Check:
    row = transaction.execute(
        "UPDATE checks SET name = ?, period_seconds = ?, grace_seconds = ?, webhook_url = ?, repeat_seconds = ?, "
        "updated_at = ?, version = version + 1 "
        f"WHERE id = ? AND api_key_id = ? AND version = ? RETURNING {_COLUMNS}",
        (*settings, now, check.id, check.api_key_id, check.version),
    ).fetchone()
    if row is None:
        raise Refusal("conflict")
    return Check(*row)


def _restart_reminders(transaction: Transaction, check_id: str, now: int) -> None:
    """Let the time to the next reminder, if the check is overdue, begin now or after its snooze."""
    transaction.execute(
        "UPDATE checks SET remind_at = CASE status WHEN 'overdue' THEN repeat_seconds +"
        " CASE WHEN clock_from > ? AND clock_from <= snoozed_until THEN clock_from ELSE ? END END WHERE id = ?",
        (now, now, check_id),
    )


def _snooze(transaction: Transaction, values: dict[str, Any]) -> Check:
    row = transaction.execute(
        "UPDATE checks SET snoozed_until = :until, clock_from = :until, updated_at = :now, version = version + 1,"
        " remind_at = CASE status WHEN 'overdue' THEN :until + repeat_seconds END"
        " WHERE id = :id AND api_key_id = :key_id AND version = coalesce(:version, version)"
        f" AND (:until > :now OR clock_from > :now AND clock_from <= snoozed_until) RETURNING {_COLUMNS}",
        values,
    ).fetchone()
    if row is not None:
        return Check(*row)
    check = _own(transaction, values["key_id"], values["id"])
    if values["version"] not in (None, check.version):
        raise other_version(check)
    return check


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


def _seq_of(transaction: Transaction, key_id: str, check_id: str) -> int:
    try:
        return _own(transaction, key_id, check_id).seq
    except NotFound:
        sentence = "The parameter after must be the id of one of your checks."
        raise Invalid("invalid_parameter", sentence, field="after") from None


def count_by_key(database: Database) -> dict[str, int]:
    """The number of checks by key id; keys without checks are left out."""
    with database.read() as connection:
        return dict(connection.execute("SELECT api_key_id, checks FROM totals_by_key WHERE checks > 0").fetchall())


def other_version(check: Check) -> Refusal:
    return Refusal("precondition_failed", field="If-Match", version=check.version)


def _no_check() -> NotFound:
    return NotFound("There is no check with this id.")
