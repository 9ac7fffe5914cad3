"""`kill -9` at every step of a restore: the folder holds the database it had or the new one, whole."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cardbeat.config import FREE
from cardbeat.database import open_database
from cardbeat.database.sqlite.backup import back_up
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.keys.store import Keys

ROOT = Path(__file__).resolve().parents[2]

CHILD = """
import itertools, os, signal, sys
from pathlib import Path

folder, source, name, moment, call = sys.argv[1:]
numbers = itertools.count(1)
whole = getattr(os, name)


def part(*args, **options):
    last = next(numbers) == int(call)
    if last and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        return whole(*args, **options)
    finally:
        if last:
            os.kill(os.getpid(), signal.SIGKILL)


from cardbeat.database.sqlite.restore import restore

setattr(os, name, part)
restore(Path(folder), Path(source), 1_800_000_000)
"""

LEFT_BY_A_KILLED_SERVER = """
import os, signal, sys
from pathlib import Path

from cardbeat.config import FREE
from cardbeat.database import open_database
from cardbeat.keys.store import Keys

Keys(open_database(Path(sys.argv[1])), lambda: 0, {"free": FREE}).issue("new@example.com").wait()
os.kill(os.getpid(), signal.SIGKILL)
"""

OLD, NEW = ["backup@example.com", "new@example.com"], ["backup@example.com"]


def emails(folder):
    database = open_database(folder)
    found = [key.email for key in Keys(database, lambda: 0, {"free": FREE}).all()]
    database.close()
    return found


@pytest.fixture
def folders(tmp_path):
    """The path of a backup, and a maker of data folders with a newer database, whose last change is in its -wal."""
    database = open_database(tmp_path / "first")
    Keys(database, lambda: 0, {"free": FREE}).issue("backup@example.com").wait()
    database.close()
    back_up(tmp_path / "first", tmp_path / "backup.db")

    def make(name):
        folder = tmp_path / name
        folder.mkdir(0o700)
        (folder / "cardbeat.db").write_bytes((tmp_path / "first" / "cardbeat.db").read_bytes())
        command = [sys.executable, "-c", LEFT_BY_A_KILLED_SERVER, folder]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
        assert (folder / "cardbeat.db-wal").stat().st_size > 0
        return folder

    return tmp_path / "backup.db", make


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", ["open", "fsync", "link", "unlink", "replace"])
def test_a_killed_restore_leaves_one_database_or_the_other(folders, name, moment):
    backup, make = folders
    seen = []
    for call in range(1, 40):
        folder = make(f"{call}")
        command = [sys.executable, "-c", CHILD, folder, backup, name, moment, str(call)]
        ended = subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode
        # A server that is started as the first thing after it finds a database, and makes no new one.
        seen.append(emails(folder))
        assert seen[-1] in (OLD, NEW)
        assert why_refused(folder / FILE_NAME) == []
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert ended == 0
    assert len(seen) > 1
    # Once the new one is in place it stays.
    assert seen == sorted(seen, key=lambda found: found == NEW)
    assert seen[-1] == NEW
