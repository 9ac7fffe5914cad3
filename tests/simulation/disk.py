"""The disk under the data folder: real SQLite files, whose commits take simulated time, fail, and are cut short.

What a commit has synced survives a power cut, as SQLite promises with `synchronous = FULL`; what was being written then
stands torn behind it. A connection that syncs less loses what it has not synced.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.simulation import scheduler
from tests.simulation.scheduler import Killed, Process

BRIEF = (0.001, 0.02)
"""Seconds that a commit takes, from and to."""
ROW_SECONDS = 0.001
"""For each row that a transaction has changed: slower than most disks, as there are fewer rows than elsewhere."""
SLOW_READS = 0.002
"""How many of all reads take time."""
FREE = 10 * 2**30

REWRITTEN: list[tuple[str, str]] = []
"""What is put for what in all statements: how some bugs are planted."""

DISK: "Disk"
"""That of the world that runs."""


def use(disk: "Disk") -> None:
    global DISK  # noqa: PLW0603 - connections are made by the product, which knows no disk
    DISK = disk


class Disk:
    """`trouble` is one of SQLite's codes while nothing can be written, `pace` how long a commit takes."""

    def __init__(self, folder: Path, luck: random.Random) -> None:
        self.folder = folder
        self.luck = luck
        self.pace = BRIEF
        self.slow_until = 0.0
        self.trouble: int | None = None
        self.committed: Callable[[Process, Connection], None] = lambda _process, _connection: None
        self.doomed: dict[Process, Callable[[], None]] = {}
        """Processes that die at their next commit, just before or just after it."""
        self.read_late: Callable[[float], None] = lambda _seconds: None
        """Called when a sweep's read outside a transaction has taken so many seconds."""
        self.writing: Connection | None = None

    @property
    def path(self) -> Path:
        return self.folder / "cardbeat.db"

    def usage(self) -> tuple[int, int, int]:
        free = 0 if self.trouble == sqlite3.SQLITE_FULL else FREE
        return FREE, FREE - free, free

    def seconds(self, rows: int) -> float:
        return self.wait_seconds() + rows * ROW_SECONDS

    def wait_seconds(self) -> float:
        """For the disk; what it has taken on while it is slow ends soon after that, also where the machine sleeps."""
        left = max(0.0, self.slow_until - scheduler.SCHEDULER.now)
        return min(self.luck.uniform(*self.pace), left + self.luck.uniform(*BRIEF))

    def close(self, process: Process) -> None:
        """Close what a dead process has left open, as the system does: nothing of it is committed."""
        for connection in process.connections:
            connection.close()
        process.connections.clear()

    def cut(self, processes: list[Process]) -> None:
        """Power is lost: only what was synced is left, and behind it some of what was being written."""
        left = self.folder.with_name(self.folder.name + "-left")
        shutil.rmtree(left, ignore_errors=True)
        left.mkdir(mode=0o700)
        for path in sorted(self.folder.glob("cardbeat.db*")):
            if not path.name.endswith("-shm"):
                shutil.copyfile(path, left / path.name)
        for process in processes:
            self.close(process)
        shutil.rmtree(self.folder)
        left.rename(self.folder)
        wal = Path(f"{self.path}-wal")
        if wal.exists():
            self._tear(wal, all(connection.is_synced for process in processes for connection in process.connections))

    def _tear(self, wal: Path, is_synced: bool) -> None:
        if not is_synced:
            os.truncate(wal, self.luck.randrange(wal.stat().st_size + 1))
        if self.luck.random() < 0.5:
            with wal.open("ab") as file:
                file.write(self.luck.randbytes(self.luck.randrange(1, 20000)))


def connect(path: object, *arguments: Any, **options: Any) -> "Connection":
    """As `sqlite3.connect`. No connection waits for another one's lock in real time."""
    connection = sqlite3.Connection.__new__(Connection)
    connection.__init__(path, *arguments, **{**options, "timeout": 0})  # type: ignore[misc]
    current = scheduler.SCHEDULER.current
    if current is not None:
        current.process.connections.append(connection)
    return connection


@lru_cache(1000)
def _known(sql: str) -> tuple[str, str]:
    """A statement as it is executed, and what kind it is of, as far as that matters here."""
    for usual, planted in REWRITTEN:
        sql = sql.replace(usual, planted)
    start = sql[:6]
    if start in _KINDS:
        return sql, _KINDS[start]
    if sql.startswith("INSERT INTO checks "):
        return sql, "creation"
    if " alerts" in sql:
        return sql, "alerts"
    if start == "UPDATE" and "status = 'overdue'" in sql:
        return sql, "outages"
    if start == "PRAGMA" and "synchronous" in sql:
        return sql, "synced" if "FULL" in sql else "not synced"
    return sql, "write"


_KINDS = {"SELECT": "read", "BEGIN ": "begin", "COMMIT": "commit", "ROLLBA": "rollback"}
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
    created_rows = 0
    """By callers who wait for their new checks: however many these are, they are written together."""
    is_synced = True

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:  # type: ignore[override]
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
        if kind == "creation":
            self.created_rows += self.total_changes - before
        return done

    def _note(self, kind: str) -> None:
        if kind == "alerts":
            self.has_alerts = True
        elif kind == "outages":
            self.has_outages = True
        elif kind != "creation":
            self.is_synced = kind == "synced"

    def executescript(self, script: str) -> sqlite3.Cursor:
        """A migration: whole, or not at all where the process dies before."""
        if scheduler.SCHEDULER.current is not None:
            scheduler.SCHEDULER.sleep(DISK.seconds(100))
        if DISK.trouble is not None:
            raise _error(DISK.trouble)
        return super().executescript(script)

    def close(self) -> None:
        current = scheduler.SCHEDULER.current
        if current is not None and not current.process.is_dead and self in current.process.connections:
            current.process.connections.remove(self)
        super().close()

    @property
    def changed_rows(self) -> int:
        """By the transaction."""
        return self.total_changes - self._changes_before

    def _take_time_to_read(self) -> None:
        current = scheduler.SCHEDULER.current
        if current is not None and not self.in_transaction:
            seconds = DISK.wait_seconds()
            scheduler.SCHEDULER.sleep(seconds)
            if current.name == "sweep":
                DISK.read_late(seconds)

    def _begin(self, sql: str) -> sqlite3.Cursor:
        if DISK.trouble == sqlite3.SQLITE_READONLY:
            raise _error(DISK.trouble)
        self._statements = DISK.luck.randrange(12) if DISK.trouble == sqlite3.SQLITE_FULL else -1
        self._changes_before = self.total_changes
        self.began_at = scheduler.SCHEDULER.now
        self.created_rows = 0
        self.has_alerts = self.has_outages = False
        return _execute(self, sql)

    def _run_into_trouble(self) -> None:
        self._statements -= 1
        if self._statements < 0 and self.in_transaction:
            # SQLite undoes the whole transaction by itself.
            _execute(self, "ROLLBACK")
            raise _error(sqlite3.SQLITE_FULL)

    def _commit(self) -> sqlite3.Cursor:
        now = scheduler.SCHEDULER
        if now.current is None:
            return _execute(self, "COMMIT")
        process = now.current.process
        seconds = DISK.seconds(self.changed_rows)
        now.sleep(seconds)
        self._die_if_doomed(process, 0.5)
        if DISK.trouble is not None:
            _execute(self, "ROLLBACK")
            raise _error(DISK.trouble)
        done = _execute(self, "COMMIT")
        DISK.committed(process, self)
        self._die_if_doomed(process, 1.0)
        now.sleep(min(seconds * 0.1, BRIEF[1]))
        return done

    def _die_if_doomed(self, process: Process, chance: float) -> None:
        if process in DISK.doomed and DISK.luck.random() < chance:
            scheduler.SCHEDULER.after(0, DISK.doomed.pop(process))
            while not process.is_dead:
                scheduler.SCHEDULER.sleep(1.0)
            raise Killed


def _error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(f"simulated trouble {code}")
    error.sqlite_errorcode = code
    return error
