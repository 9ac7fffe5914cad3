"""Backup and restore of the SQLite file: a sound database in its place, or nothing is changed."""

import contextlib
import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from cardbeat.database import open_database
from cardbeat.database.schema import VERSION
from cardbeat.database.sqlite.copies import (
    back_up,
    require_sound,
    restore,
)
from cardbeat.database.sqlite.file import FILE_NAME, FILES
from cardbeat.errors import StartupError
from tests.kit.heart import Heart
from tests.kit.lists import each
from tests.kit.support import FakeClock, begun, count_up
from tests.kit.systems import LINKS, PIPES, ROOT, WINDOWS

NOON = 1_800_014_400


@pytest.fixture
def data(tmp_path):
    """The folder of a database with rows, which is not served now."""
    with contextlib.closing(open_database(tmp_path / "data")) as database:
        heart = Heart(database, FakeClock())
        for _ in range(3):
            heart.create(1)
        heart.pass_time(10)
        heart.sweep.sweep_once()
    return tmp_path / "data"


@pytest.fixture
def backup(data, tmp_path):
    back_up(data, tmp_path / "backup.db")
    return tmp_path / "backup.db"


def run(script):
    def spoil(path):
        with contextlib.closing(
            sqlite3.connect(path, isolation_level=None)
        ) as connection:
            connection.executescript(script)

    return spoil


def damage(path):
    with path.open("r+b") as file:
        # Indexes of alerts.
        file.seek(12 * 4096)
        file.write(b"\xa5" * 8192)


def rows(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'"
        ).fetchall()
        names = [
            name for (name,) in tables if not name.startswith("sqlite_")
        ]
        return {
            name: connection.execute(
                f"SELECT * FROM {name} ORDER BY 1"
            ).fetchall()
            for name in names
        }


def contents(folder):
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file()
    }


SPOILED = [
    # What is wrong with a file, why it is not served (it is, if empty), why no backup of it is made.
    (
        lambda path: path.write_bytes(b""),
        "is not a cardbeat database",
        "is not a cardbeat database",
    ),
    (
        lambda path: path.write_bytes(b"no database " * 999),
        "damaged",
        "damaged",
    ),
    (damage, "damaged", "damaged"),
    (
        lambda path: (path.unlink(), path.mkdir()),
        "not a regular file",
        "not a regular file",
    ),
    (
        run("PRAGMA application_id = 7"),
        "is not a cardbeat database",
        "is not a cardbeat database",
    ),
    (
        run(f"PRAGMA user_version = {VERSION + 1}"),
        "newer cardbeat",
        "newer cardbeat",
    ),
    (run("PRAGMA user_version = 6"), "older cardbeat", "older cardbeat"),
    (
        run("DROP TABLE outages"),
        "no such table: outages",
        "the table outages not as cardbeat makes it",
    ),
    (
        run("ALTER TABLE keys ADD COLUMN more TEXT"),
        "",
        "the table keys not as cardbeat makes it",
    ),
    (
        run("DROP TABLE alerts; CREATE VIEW alerts AS SELECT 1"),
        "",
        "the view alerts not as",
    ),
    (
        run("CREATE INDEX own ON keys (email)"),
        "",
        "the index own not as cardbeat makes it",
    ),
    (
        run(
            "CREATE TRIGGER evil AFTER INSERT ON keys BEGIN DELETE FROM checks; END"
        ),
        "",
        "the trigger evil not as",
    ),
    (
        run("DELETE FROM keys"),
        "",
        "has a row of checks that refers to no row",
    ),
    (
        run(
            "PRAGMA ignore_check_constraints = ON; UPDATE keys SET scope = 'x'"
        ),
        "",
        "CHECK constraint failed",
    ),
]


@pytest.mark.parametrize(("spoil", "unserved", "refused"), SPOILED)
def test_a_file_that_is_not_ours_and_sound_is_refused_and_nothing_is_changed(
    data, tmp_path, spoil, unserved, refused
):
    path, target = data / FILE_NAME, tmp_path / "copy.db"
    spoil(path)
    before = contents(data).get(FILE_NAME)
    if unserved:
        with pytest.raises(StartupError, match=unserved):
            open_database(data)
        assert contents(data).get(FILE_NAME) == before
    target.write_text("yesterday's")
    with pytest.raises(StartupError, match=refused) as no_backup:
        back_up(data, target)
    assert target.read_text() == "yesterday's"
    assert set(each(tmp_path.iterdir(), "name")) == {"data", "copy.db"}
    with pytest.raises(
        StartupError, match=r"; nothing was restored$"
    ) as not_restored:
        restore(tmp_path / "other", path, NOON)
    assert "\n" not in f"{no_backup.value}{not_restored.value}"
    assert not (tmp_path / "other" / FILE_NAME).exists()


def test_a_backup_is_of_one_moment_while_it_is_served(tmp_path):
    stopping = threading.Event()
    with contextlib.closing(open_database(tmp_path / "data")) as database:
        database.write(
            lambda it: it.execute(
                "INSERT INTO monitor VALUES ('a', 0), ('b', 0)"
            )
        )

        def write_on():
            while not stopping.is_set():
                database.write(
                    lambda it: it.execute(
                        "UPDATE monitor SET value = value + 1"
                    )
                )

        writing = begun(write_on)
        try:
            for number in range(5):
                back_up(tmp_path / "data", tmp_path / f"{number}.db")
        finally:
            stopping.set()
            writing.result(60)
    found = [
        dict(rows(tmp_path / f"{number}.db")["monitor"])
        for number in range(5)
    ]
    assert all(one["a"] == one["b"] for one in found)
    assert sorted(each(found, "a")) == each(found, "a")


@pytest.mark.parametrize(
    "there", [None, "yesterday's", pytest.param("link", marks=LINKS)]
)
def test_a_backup_is_one_private_file_with_the_same_rows(
    data, tmp_path, usual_umask, there
):
    target = real = tmp_path / "copy.db"
    if there == "link":
        (tmp_path / "elsewhere").mkdir()
        real = tmp_path / "elsewhere" / "old.db"
        target.symlink_to(real)
    elif there:
        target.write_text(there)
    back_up(data, target)
    assert target.is_symlink() == (there == "link")
    assert rows(real) == rows(data / FILE_NAME)
    require_sound(real)
    assert WINDOWS or stat.S_IMODE(real.stat().st_mode) == 0o600
    assert set(each(tmp_path.iterdir(), "name")) <= {
        "data",
        "copy.db",
        "elsewhere",
    }


def test_a_check_that_takes_too_long_ends(backup):
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)"
    run(f"{numbers} INSERT INTO monitor SELECT i, 1 FROM n")(backup)
    with pytest.raises(StartupError, match="could not be read within"):
        require_sound(backup, seconds=-9999)


@pytest.mark.parametrize(
    "name",
    [
        *FILES,
        pytest.param("link", marks=LINKS),
        pytest.param("pipe", marks=PIPES),
    ],
)
def test_a_backup_never_replaces_what_belongs_to_the_database_nor_what_is_no_file(
    data, tmp_path, name
):
    target = data / name
    with contextlib.closing(open_database(data)) as database:
        database.claim()
        if name == "pipe":
            os.mkfifo(target := tmp_path / "pipe")
        elif name == "link":
            (target := tmp_path / "link").symlink_to(data / FILE_NAME)
        with pytest.raises(StartupError, match="choose another file"):
            back_up(data, target)
        database.write(count_up)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_backup_is_restored_and_the_database_before_is_kept(
    data, backup, tmp_path, is_there
):
    before = rows(backup)
    folder = data if is_there else tmp_path / "new"
    if is_there:
        run("INSERT INTO monitor VALUES ('later', 1)")(data / FILE_NAME)
    (data / f"{FILE_NAME}.before-restore-20270115-120000").write_text(
        "of an earlier restore"
    )
    restored = restore(folder, backup, NOON)
    counts = {
        "keys": 1,
        "checks": 3,
        "last_served_at": "2027-01-15 08:00:10",
    }
    assert restored == {
        "database": str(folder / FILE_NAME),
        "kept": restored["kept"],
        **counts,
    }
    assert rows(folder / FILE_NAME) == rows(backup) == before
    open_database(folder).close()
    if not is_there:
        assert restored["kept"] is None
        return
    kept = data / f"{FILE_NAME}.before-restore-20270115-120001"
    assert restored["kept"] == str(kept)
    assert ("later", 1) in rows(kept)["monitor"]
    assert WINDOWS or stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_wal_that_a_crash_left_is_kept_and_not_in_what_is_restored(
    data, backup, is_damaged
):
    before = rows(backup)
    with contextlib.closing(open_database(data)) as database:
        database.write(count_up)
        files = contents(data)
    if is_damaged:
        files[FILE_NAME] = b"no database " * 999
    for name, content in files.items():
        (data / name).write_bytes(content)
    kept = Path(restore(data, backup, NOON)["kept"])
    assert rows(data / FILE_NAME) == before
    if is_damaged:
        assert kept.read_bytes() == files[FILE_NAME]
        assert (
            Path(f"{kept}-wal").read_bytes() == files[f"{FILE_NAME}-wal"]
        )
    else:
        assert rows(kept)["monitor"] != before["monitor"]
    open_database(data).close()


def test_a_folder_that_is_served_written_or_read_is_left_alone(
    data, backup
):
    def refused(why):
        with pytest.raises(StartupError, match=why):
            restore(data, backup, NOON)

    with contextlib.closing(open_database(data)) as server:
        with contextlib.closing(open_database(data)) as other:
            other.claim()
            refused("another server uses .*; nothing was restored")
        server.write(count_up)
        refused("database is locked; nothing was restored")


@LINKS
def test_a_link_in_the_place_of_the_database_is_refused(
    data, backup, tmp_path
):
    (tmp_path / "new").mkdir(0o700)
    (tmp_path / "new" / FILE_NAME).symlink_to(data / FILE_NAME)
    for use in (
        open_database,
        lambda folder: restore(folder, backup, NOON),
    ):
        with pytest.raises(
            StartupError,
            match="is a link, so move the file here or link the data folder",
        ):
            use(tmp_path / "new")


@ROOT
@pytest.mark.parametrize("is_there", [True, False])
def test_root_gives_what_it_restores_to_the_user_of_the_server(
    data, backup, is_there
):
    if not is_there:
        for path in data.iterdir():
            path.unlink()
    for path in (data, *data.iterdir()):
        os.chown(path, 1234, 1234)
    restore(data, backup, NOON)
    assert {
        path.stat().st_uid for path in data.glob(f"{FILE_NAME}*")
    } == {1234}
