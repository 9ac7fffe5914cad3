"""The disk under the data folder: real SQLite files, whose commits take simulated time, fail, and are cut short.

What a commit has synced survives a power cut, as SQLite promises with `synchronous = FULL`; what was being written then
stands torn behind it. A connection that syncs less loses what it has not synced.
"""

import os
import random
import shutil
import sqlite3
from functools import lru_cache
from pathlib import Path

from tests.model import threads
from tests.model.threads import Killed

BRIEF = (0.001, 0.02)
"""Seconds that a commit takes, from and to."""
ROW_SECONDS = 0.001
"""For each row that a transaction has changed: slower than most disks, as there are fewer rows than elsewhere."""
SLOW_READS = 0.002
"""How many of all reads take time."""
FREE = 10 * 2**30

REWRITTEN = []
"""What is put for what in all statements: how some bugs are planted."""


class Disk:
    """`trouble` is one of SQLite's codes while nothing can be written, `pace` how long a commit takes."""

    def __init__(self, folder, luck):
        self.folder = folder
        self.luck = luck
        self.pace = BRIEF
        self.slow_until = 0.0
        self.trouble = None
        self.committed = lambda _connection: None
        self.doomed = None
        """It dies at its next commit, just before or just after it."""
        self.die = lambda: None
        self.read_late = lambda _seconds: None
        """Called when a sweep's read outside a transaction has taken so many seconds."""

    @property
    def path(self):
        return self.folder / "cardbeat.db"

    @property
    def wal(self):
        return self.folder / "cardbeat.db-wal"

    def usage(self):
        free = 0 if self.trouble == sqlite3.SQLITE_FULL else FREE
        return FREE, FREE - free, free

    def wait_seconds(self):
        """For the disk; what it has taken on while it is slow ends soon after that, also where the machine sleeps."""
        left = max(0.0, self.slow_until - threads.SCHEDULER.now)
        return min(
            self.luck.uniform(*self.pace),
            left + self.luck.uniform(*BRIEF),
        )

    def close(self, process):
        """Close what a dead process has left open, as the system does: nothing of it is committed."""
        for connection in process.connections:
            connection.close()
        for link in Path("/proc/self/fd").iterdir():
            if os.path.islink(link) and os.readlink(link).endswith(
                ".lock"
            ):
                os.close(int(link.name))

    def cut(self, process):
        """Power is lost: only what was synced is left, and behind it some of what was being written."""
        left = self.folder.with_name("left")
        left.mkdir(mode=0o700)
        for path in (self.path, self.wal):
            if path.exists():
                shutil.copyfile(path, left / path.name)
        is_synced = all(
            connection.is_synced for connection in process.connections
        )
        self.close(process)
        shutil.rmtree(self.folder)
        left.rename(self.folder)
        if self.wal.exists():
            if not is_synced:
                os.truncate(
                    self.wal,
                    self.luck.randrange(self.wal.stat().st_size + 1),
                )
            if self.luck.random() < 0.5:
                with self.wal.open("ab") as file:
                    file.write(
                        self.luck.randbytes(self.luck.randrange(1, 20000))
                    )


DISK = Disk(Path(), random.Random())
"""That of the world that runs."""


def connect(path, *arguments, **options):
    """As `sqlite3.connect`. No connection waits for another one's lock in real time."""
    connection = Connection(path, *arguments, **options | {"timeout": 0})
    threads.SCHEDULER.own_thread().process.connections.append(connection)
    return connection


@lru_cache(1000)
def _known(sql):
    """A statement as it is executed, and what kind it is of, as far as that matters here."""
    for usual, planted in REWRITTEN:
        sql = sql.replace(usual, planted)
    start = sql[:6]
    if start in _KINDS:
        return sql, _KINDS[start]
    if sql.startswith("INSERT INTO checks ") or ":credit_until" in sql:
        return sql, "many"
    if " alerts" in sql:
        return sql, "alerts"
    if start == "UPDATE" and "status = 'overdue'" in sql:
        return sql, "outages"
    if start == "PRAGMA" and "synchronous" in sql:
        return sql, "synced" if "FULL" in sql else "not synced"
    return sql, "write"


_KINDS = {
    "SELECT": "read",
    "BEGIN ": "begin",
    "COMMIT": "commit",
    "ROLLBA": "rollback",
}
_execute = sqlite3.Connection.execute


class Connection(sqlite3.Connection):
    """One that the product has opened: what it writes takes time and may fail."""

    _changes_before = 0
    began_at = 0.0
    """When its last transaction began: what it wrote was decided then, however late it was committed."""
    _statements = -1
    """How many statements are left until the disk is found full; none are counted while it is negative."""
    has_alerts = False
    """Whether the transaction has to do with alerts."""
    has_outages = False
    """Whether it marks checks that are overdue, or some that are so no longer."""
    many_rows = 0
    """New checks, for which callers wait, and moved clocks: they are written together, however many."""
    is_synced = True

    def execute(self, sql, parameters=()):
        sql, kind = _known(sql)
        if kind == "read":
            if DISK.luck.random() < SLOW_READS:
                self._take_time_to_read()
            return _execute(self, sql, parameters)
        if kind != "write":
            if kind == "commit":
                return self._commit()
            if kind == "begin":
                return self._begin(sql)
            if kind == "rollback":
                return _execute(self, sql)
            self._note(kind)
        if self._statements >= 0:
            self._run_into_trouble()
        before = self.total_changes
        done = _execute(self, sql, parameters)
        if kind == "many":
            self.many_rows += self.total_changes - before
        return done

    def executescript(self, script):
        """Of these only how a connection begins matters here."""
        script, kind = _known(script)
        if kind.endswith("synced"):
            self._note(kind)
        return super().executescript(script)

    def _note(self, kind):
        if kind == "alerts":
            self.has_alerts = True
        elif kind == "outages":
            self.has_outages = True
        elif kind != "many":
            self.is_synced = kind == "synced"

    def close(self):
        super().close()
        # Who makes a file without syncing each commit syncs it when it is closed.
        self.is_synced = True

    @property
    def changed_rows(self):
        """By the transaction."""
        return self.total_changes - self._changes_before

    def _take_time_to_read(self):
        if not self.in_transaction:
            seconds = DISK.wait_seconds()
            threads.SCHEDULER.sleep(seconds)
            if threads.SCHEDULER.own_thread().name == "sweep":
                DISK.read_late(seconds)

    def _begin(self, sql):
        if DISK.trouble == sqlite3.SQLITE_READONLY:
            raise _error(DISK.trouble)
        self._statements = (
            DISK.luck.randrange(12)
            if DISK.trouble == sqlite3.SQLITE_FULL
            else -1
        )
        self._changes_before = self.total_changes
        self.began_at = threads.SCHEDULER.now
        self.many_rows = 0
        self.has_alerts = self.has_outages = False
        return _execute(self, sql)

    def _run_into_trouble(self):
        self._statements -= 1
        if self._statements < 0 and self.in_transaction:
            # SQLite undoes the whole transaction by itself.
            _execute(self, "ROLLBACK")
            raise _error(sqlite3.SQLITE_FULL)

    def _commit(self):
        scheduler = threads.SCHEDULER
        process = scheduler.own_thread().process
        seconds = DISK.wait_seconds() + self.changed_rows * ROW_SECONDS
        scheduler.sleep(seconds)
        self._die_if_doomed(process, 0.5)
        if DISK.trouble is not None:
            _execute(self, "ROLLBACK")
            raise _error(DISK.trouble)
        done = _execute(self, "COMMIT")
        DISK.committed(self)
        self._die_if_doomed(process, 1.0)
        scheduler.sleep(min(seconds * 0.1, BRIEF[1]))
        return done

    def _die_if_doomed(self, process, chance):
        if process is DISK.doomed and DISK.luck.random() < chance:
            threads.SCHEDULER.after(0, DISK.die)
            while not process.is_dead:
                threads.SCHEDULER.sleep(1.0)
            raise Killed


def _error(code):
    error = sqlite3.OperationalError(f"simulated trouble {code}")
    error.sqlite_errorcode = code
    return error
