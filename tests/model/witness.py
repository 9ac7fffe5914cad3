"""Reads what each commit has changed, and compares it with the model: the only one here that knows the tables."""

import sqlite3
from urllib.parse import urlsplit

from tests.model.model import Told

SAMPLE = 60
"""Checks that are looked at in one audit."""
SAMPLE_OF_GONE = 10
"""As many are looked for that should be there no more."""

_NEW = "SELECT id, seq, check_id, type, ping_count FROM alerts WHERE seq > ? ORDER BY seq"
_PENDING = "SELECT seq, check_id, type, outage, outages, attempts, next_attempt_at FROM alerts WHERE state = 'pending'"
_UNTOLD = (
    "SELECT id, outage FROM checks WHERE status = 'overdue' AND webhook_url IS NOT NULL AND NOT EXISTS (SELECT 1"
    " FROM alerts WHERE check_id = checks.id AND outage = checks.outage AND type = 'check.overdue')"
    " AND api_key_id NOT IN (SELECT id FROM keys WHERE revoked_at IS NOT NULL)"
)


class Witness:
    """Looks through a connection of its own, which is no part of the simulated disk's."""

    def __init__(self, world):
        self._world = world
        self._model = world.model
        self._connection = None
        self._last_seq = 0

    def close(self):
        """Before the files are replaced."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def committed(self, connection):
        self._model.changed(
            connection.changed_rows - connection.many_rows
        )
        if connection.has_alerts:
            self._compare_alerts(connection.began_at)
        if connection.has_outages:
            self._require_told()

    def audit(self):
        """Look at everything that is due, and at some of the checks."""
        now = self._world.now
        self._compare_alerts(now)
        self._require_told()
        rows = self._rows(
            "SELECT checks.id, webhook_url, revoked_at FROM checks JOIN keys ON keys.id = api_key_id"
            " WHERE checks.id IN (SELECT check_id FROM alerts WHERE state = 'pending')"
        )
        hosts = {}
        going = set()
        for check_id, url, revoked_at in rows:
            hosts[check_id] = urlsplit(url or "").hostname
            if revoked_at is not None:
                going.add(check_id)
        self._model.require_in_time(now, hosts, going)
        self._require_swept(now)
        self._require_removed(now)
        known = self._model.checks.values()
        there = self._some(
            [check for check in known if check.gone_at is None], SAMPLE
        )
        gone = self._some(
            [check for check in known if check.gone_at is not None],
            SAMPLE_OF_GONE,
        )
        for check in (*there, *gone):
            self._require_check(check, now)

    def _some(self, checks, most):
        return (
            checks
            if len(checks) <= most
            else self._world.luck.sample(checks, most)
        )

    def noted(self):
        """What the servers have noted of themselves, to be shown with a failure."""
        return dict(self._rows("SELECT name, value FROM monitor"))

    def _rows(self, sql, parameters=()):
        if self._connection is None:
            self._connection = sqlite3.Connection(
                self._world.disk.path, isolation_level=None
            )
            self._connection.row_factory = sqlite3.Row
        return self._connection.execute(sql, parameters).fetchall()

    def _compare_alerts(self, decided_at):
        now, wall = self._world.now, self._world.scheduler.wall()
        for row in self._rows(_NEW, (self._last_seq,)):
            self._last_seq = row["seq"]
            self._world.counts[row["type"]] += 1
            self._model.recorded(Told(*row, decided_at, now, now))
        pending = {row["seq"]: row for row in self._rows(_PENDING)}
        self._compare_pending(pending, now, wall)
        waiting = [
            (row["check_id"], row["type"])
            for row in pending.values()
            if row["outage"] is not None
        ]
        self._model.require_in_order(waiting)
        self._model.require_counted(
            {
                row["check_id"]: row["outages"]
                for row in pending.values()
                if row["outages"]
            }
        )

    def _compare_pending(self, pending, now, wall):
        gone = []
        for seq, told in self._model.open.items():
            row = pending.get(seq)
            if row is None:
                gone.append(told)
            elif row["attempts"] < told.attempts:
                seconds = row["next_attempt_at"] - wall
                self._model.hurried(told, seconds, now)
            elif row["attempts"] > told.attempts:
                told.attempts = row["attempts"]
                self._model.tried(told, row["next_attempt_at"] - wall)
                # The wait begins when the result is recorded, which on a disk in trouble is long after the post. What
                # is stored is by the clock as it was then.
                waits_until = row["next_attempt_at"] + told.set_forward
                told.due_at = (
                    now + waits_until - wall + now - told.posted_at
                )
        for told in gone:
            self._world.counts["taken back"] += self._model.is_taken_back(
                told
            )
            del self._model.open[told.seq]
            self._let_next_go(told, now)
            self._require_reason(told, now)

    def _let_next_go(self, told, now):
        """The alert behind a finished one is due from now on."""
        for other in self._model.open.values():
            if other.check_id == told.check_id:
                other.due_at = max(other.due_at, now)

    def _require_reason(self, told, now):
        rows = self._rows(
            "SELECT state, attempts, webhook_url FROM alerts JOIN checks ON checks.id = check_id WHERE alerts.seq = ?",
            (told.seq,),
        )
        if rows:
            self._model.finished(told, *rows[0], now)
        else:
            self._model.removed(told)

    def _require_told(self):
        """The change of status and its alert are one transaction."""
        for row in self._rows(_UNTOLD):
            # After many reminders the history has forgotten it.
            self._model.require(
                self._model.is_told(row["id"]),
                "an outage is marked and has no alert",
                tuple(row),
            )

    def _require_swept(self, now):
        # A change may set a deadline that has passed already.
        rows = self._rows(
            "SELECT id, max(deadline_at, updated_at) AS deadline_at FROM checks WHERE status = 'on_time' AND api_key_id"
            " IN (SELECT id FROM keys WHERE revoked_at IS NULL) ORDER BY 2 LIMIT 1"
        )
        rows += self._rows(
            "SELECT id, max(remind_at, updated_at) FROM checks WHERE status = 'overdue' AND remind_at IS NOT NULL AND"
            " api_key_id IN (SELECT id FROM keys WHERE revoked_at IS NULL) ORDER BY 2 LIMIT 1"
        )
        for check_id, due_at in rows:
            passed_at = now - (self._world.scheduler.wall() - due_at)
            self._model.require_swept(passed_at, now, check_id)

    def _require_removed(self, now):
        if self._model.revoked:
            left = {row[0] for row in self._rows("SELECT id FROM keys")}
            for key in list(self._model.revoked):
                if key in left:
                    self._model.require_removed(key, now)
                else:
                    self._require_no_orphans(key)
                    del self._model.revoked[key]

    def _require_no_orphans(self, key):
        left = self._rows(
            "SELECT count(*) FROM checks WHERE api_key_id = ?", (key,)
        )[0][0]
        self._model.require(left == 0, "a removed key has checks", key)

    def _require_check(self, check, now):
        rows = self._rows(
            "SELECT * FROM checks WHERE id = ?", (check.id,)
        )
        if not rows:
            self._model.require(
                check.may_be_gone, "a check is lost", check
            )
            return
        self._model.require(
            not check.is_deleted, "a deleted check is there again", check
        )
        row = rows[0]
        outage = None
        if row["status"] == "overdue":
            told = self._rows(
                "SELECT id FROM alerts WHERE check_id = ? AND type = 'check.overdue' AND outage = ?",
                (check.id, row["outage"]),
            )
            if not told:
                return
            outage = self._model.alerts[told[0]["id"]]
        self._model.require_check(
            check, row, now, self._world.scheduler.wall(), outage
        )
