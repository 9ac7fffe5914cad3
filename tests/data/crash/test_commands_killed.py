"""A command that is killed before each use of a file, or whose disk fails: it leaves what was there or what is new."""

import contextlib
import itertools
import shutil
import signal
import sqlite3
import sys

import pytest

from cardbeat.config import FREE
from cardbeat.database import open_database
from cardbeat.database.schema import VERSION
from cardbeat.database.sqlite.copies import back_up, require_sound
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.host.staging import PREFIX
from cardbeat.keys.store import Keys
from tests.data.crash.conftest import SEEDS
from tests.kit.artifact import ROOT, clean_environment, ran

SCHEMA_7 = ROOT / "tests/data/database/schema_7_sqlite.sql"
LEAST_KILLS = 10
CHILD = """
import os, signal, sys
from cardbeat import cli

place, left, *command = sys.argv[1:]
left = int(left)


def count(event, arguments):
    global left
    if event.startswith(("open", "os.", "sqlite3.")) and any(place in str(one) for one in arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(count)
sys.exit(cli.main(command))
"""


def issue(database, email):
    Keys(database, lambda: 0, {"free": FREE}).issue(email)


def nothing(folder):
    folder.mkdir(0o700)


def newer_than_its_backup(folder):
    """Its last change is in the -wal that a killed server left. The backup is beside the folder."""
    before = folder.with_name("before")
    with contextlib.closing(open_database(before)) as database:
        issue(database, "a@b")
        back_up(before, folder.with_name("backup.db"))
        issue(database, "c@d")
        shutil.copytree(before, folder)


def of_version_7(folder):
    folder.mkdir(0o700)
    with contextlib.closing(
        sqlite3.connect(folder / FILE_NAME)
    ) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA_7.read_text())


def found_in(folder):
    """The version, and how many keys and checks there are once the next start has opened the database."""
    version = 0
    if (folder / FILE_NAME).exists():
        require_sound(folder / FILE_NAME)
        with contextlib.closing(
            sqlite3.connect(folder / FILE_NAME)
        ) as connection:
            (version,) = connection.execute(
                "PRAGMA user_version"
            ).fetchone()
    with (
        contextlib.closing(open_database(folder)) as database,
        database.read() as connection,
    ):
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM keys), (SELECT count(*) FROM checks)"
        ).fetchone()
    return version, *counts


def found_in_backup(folder):
    with contextlib.closing(
        sqlite3.connect(folder.with_name("backup.db"))
    ) as connection:
        assert connection.execute(
            "PRAGMA integrity_check"
        ).fetchall() == [("ok",)]
        return connection.execute("SELECT count(*) FROM keys").fetchone()[
            0
        ]


CREATE = ("keys", "create", "--email", "e@f")
TABLE = pytest.mark.parametrize(
    "case",
    [
        (
            nothing,
            CREATE,
            found_in,
            [(0, 0, 0), (VERSION, 0, 0), (VERSION, 1, 0)],
        ),
        (
            newer_than_its_backup,
            ("restore", "backup.db"),
            found_in,
            [(VERSION, 2, 0), (VERSION, 1, 0)],
        ),
        (
            newer_than_its_backup,
            ("backup", "backup.db"),
            found_in_backup,
            [1, 2],
        ),
        (
            of_version_7,
            CREATE,
            found_in,
            [(7, 3, 3), (VERSION, 3, 3), (VERSION, 4, 3)],
        ),
    ],
)


@pytest.fixture
def run(tmp_path):
    """Runs a command in a new copy of a folder, and kills it before its Nth use of a file there; 0 is never."""
    numbers = itertools.count(1)

    def run(
        setup, command, at=0, fault=lambda data: contextlib.nullcontext()
    ):
        first = tmp_path / "first"
        if not first.exists():
            first.mkdir()
            setup(first / "data")
        place = shutil.copytree(first, tmp_path / str(next(numbers)))
        child = (
            sys.executable,
            "-c",
            CHILD,
            place,
            str(at),
            *command,
            "--data",
            place / "data",
        )
        with fault(place):
            return ran(
                *child,
                cwd=place,
                env=clean_environment(PYTHONPATH=str(ROOT)),
            ), place / "data"

    return run


@TABLE
def test_a_killed_command_leaves_what_was_there_or_what_is_new(run, case):
    setup, command, look, states = case
    seen = []
    for at in itertools.count(1):
        done, data = run(setup, command, at)
        seen.append(states.index(look(data)))
        assert not list(data.glob(f"{PREFIX}*/copy"))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    # What is new stays.
    assert seen == sorted(seen)
    assert set(seen) == set(range(len(states)))
    assert at > LEAST_KILLS


@TABLE
@pytest.mark.parametrize("seed", SEEDS)
def test_a_command_whose_disk_fails_works_or_says_why(
    run, faults, case, seed
):
    setup, command, look, states = case
    done, data = run(
        setup,
        command,
        fault=lambda place: faults.failing_disk(
            place, seed, 2 + 4 * (seed % 7)
        ),
    )
    state = states.index(look(data))
    assert "Traceback" not in done.stderr
    if done.returncode == 0:
        assert state == len(states) - 1
    else:
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("cardbeat: ")
