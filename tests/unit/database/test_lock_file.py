"""Lock files, and the leases on them."""

import errno
import os
from pathlib import Path

import pytest

from cardbeat.database import open_database
from cardbeat.database.sqlite.file import LOCKS
from cardbeat.database.sqlite.lock_file import open_lock_file
from cardbeat.errors import StartupError, Unavailable
from tests.systems import LINKS, PIPES


@pytest.fixture
def leases(tmp_path):
    """The same lease, as two processes ask for it."""
    databases = [open_database(tmp_path) for _ in range(2)]
    yield [database.lease() for database in databases]
    for database in databases:
        database.close()


def test_one_at_a_time_holds_a_lease_until_it_is_released(leases):
    first, second = leases
    assert (first.take(), second.take()) == (True, False)
    first.release()
    assert second.take()
    second.release()


def test_a_lease_that_can_not_be_asked_for_is_unavailable_and_logged(leases, monkeypatch, caplog):
    def refuse(_descriptor):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("cardbeat.database.sqlite.lock_file.try_lock", refuse)
    with pytest.raises(Unavailable):
        leases[0].take()
    assert "delivery.lock (No locks available)" in caplog.text
    for lease in leases:
        lease.release()


@LINKS
@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize("made_in_between", [False, True])
def test_no_lock_file_follows_a_link(tmp_path, monkeypatch, name, made_in_between):
    folder = tmp_path / "data"
    folder.mkdir(0o700)
    others = tmp_path / "others"
    others.write_text("theirs")
    (folder / name).symlink_to(others)
    if made_in_between:
        monkeypatch.setattr(Path, "is_symlink", lambda _path: False)
    with pytest.raises(StartupError, match=name) as refused:
        os.close(open_lock_file(folder / name))
    assert made_in_between or "it is a link" in str(refused.value)
    assert others.read_text() == "theirs"


@pytest.mark.parametrize("make", [pytest.param("mkfifo", marks=PIPES), "mkdir"])
def test_a_lock_file_must_be_a_file(tmp_path, make):
    getattr(os, make)(tmp_path / LOCKS[0])
    with pytest.raises(StartupError, match=r"it is not a file|directory|Permission denied"):
        os.close(open_lock_file(tmp_path / LOCKS[0]))
