"""The database file: created, checked and refused."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from cardbeat.database import open_database
from cardbeat.database.schema import newest
from cardbeat.database.sqlite.backup import back_up
from cardbeat.database.sqlite.file import FILE_NAME, last_moment_stored, looking
from cardbeat.errors import StartupError
from tests.support import count_up
from tests.systems import LINKS, MODES


def damage(path):
    with path.open("r+b") as file:
        # Indexes of alerts, in an empty database.
        file.seek(12 * 4096)
        file.write(b"\xa5" * 8192)


def look_at(folder):
    with looking(folder / FILE_NAME):
        pass


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda path: path.write_bytes(b""), "damaged"),
        (lambda path: path.write_bytes(b"not a database at all" * 400), "damaged"),
        (damage, "damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "damaged"),
    ],
)
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path, spoil, sentence):
    database = open_database(tmp_path)
    for number in range(200):
        database.write(lambda c, n=number: c.execute("INSERT INTO monitor VALUES (?, 1)", (f"{n}" * 50,)))
    database.close()
    path = tmp_path / FILE_NAME
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(StartupError, match=sentence):
        open_database(tmp_path)
    assert path.read_bytes() == before


def test_a_damaged_file_keeps_the_wal_that_a_crash_left(tmp_path):
    database = open_database(tmp_path / "live")
    for number in range(200):
        database.write(lambda c, n=number: c.execute("INSERT INTO monitor VALUES (?, 1)", (f"{n}" * 50,)))
    with closing(sqlite3.connect(tmp_path / "live" / FILE_NAME)) as other:
        # A connection of its own waits for the writer's, which may still end its last write.
        assert other.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0] == 0
    database.write(count_up)
    shutil.copytree(tmp_path / "live", tmp_path / "crashed")
    database.close()
    damage(tmp_path / "crashed" / FILE_NAME)
    files = [tmp_path / "crashed" / f"{FILE_NAME}{end}" for end in ("", "-wal")]
    before = [file.read_bytes() for file in files]
    for use in (open_database, look_at, lambda folder: back_up(folder, tmp_path / "copy.db")):
        with pytest.raises(StartupError, match="damaged"):
            use(tmp_path / "crashed")
        assert [file.read_bytes() for file in files] == before
    # doctor looks into a damaged file too, as far as it can be read.
    last_moment_stored(tmp_path / "crashed")
    assert [file.read_bytes() for file in files] == before


def test_a_damaged_file_can_be_moved_away_as_its_refusal_says(tmp_path):
    open_database(tmp_path).close()
    damage(tmp_path / FILE_NAME)
    with pytest.raises(StartupError, match="move it away"):
        open_database(tmp_path)
    (tmp_path / FILE_NAME).rename(tmp_path / "away.db")
    open_database(tmp_path).close()


def test_a_newer_file_is_refused(tmp_path):
    open_database(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute(f"PRAGMA user_version = {newest('sqlite') + 1}")
    connection.close()
    with pytest.raises(StartupError, match="newer"):
        open_database(tmp_path)


def test_another_programs_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    with pytest.raises(StartupError, match="not a cardbeat database"):
        open_database(tmp_path)


def test_a_wal_without_its_database_is_not_thrown_away(tmp_path):
    (tmp_path / f"{FILE_NAME}-wal").write_bytes(b"precious")
    with pytest.raises(StartupError, match="missing"):
        open_database(tmp_path)
    assert (tmp_path / f"{FILE_NAME}-wal").read_bytes() == b"precious"


@LINKS
@pytest.mark.parametrize("target", ["nowhere.db", FILE_NAME])
def test_a_link_to_nothing_is_never_replaced_by_a_new_database(tmp_path, target):
    link = tmp_path / FILE_NAME
    link.symlink_to(target)
    for use in (open_database, look_at):
        with pytest.raises(StartupError, match="is a link to nothing"):
            use(tmp_path)
    assert os.readlink(link) == target


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="data folder"):
        open_database(tmp_path / "file" / "data")


@MODES
def test_all_that_a_new_database_makes_is_for_the_owner_alone(tmp_path, usual_umask):
    database = open_database(tmp_path / "data")
    database.write(count_up)
    made = [tmp_path / "data", *(tmp_path / "data").iterdir()]
    assert {path.name for path in made} == {"data", FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", "writer.lock"}
    assert [path.name for path in made if path.stat().st_mode & 0o077] == []
    database.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: folder.write_text(""), "data is not a folder"),
        pytest.param(lambda folder: folder.symlink_to("nowhere"), "data is not a folder", marks=LINKS),
        (
            lambda folder: (folder / "writer.lock").mkdir(parents=True),
            "writer.lock: (Is a directory|Permission denied)",
        ),
    ],
)
def test_what_keeps_the_lock_from_being_taken_is_named(tmp_path, spoil, words):
    spoil(tmp_path / "data")
    with pytest.raises(StartupError, match=words):
        open_database(tmp_path / "data")
