"""The folder in which a file's new content is made: gone at the end, however that came."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cardbeat.host.staging import PREFIX, UNLOCKED_SECONDS, remove_left_behind, staging_folder
from tests.systems import LINKS, WINDOWS

ROOT = Path(__file__).resolve().parents[3]
KILLED = """
import os, signal, sys
from pathlib import Path

from cardbeat.host.staging import staging_folder

with staging_folder(Path(sys.argv[1])) as folder:
    (folder / "copy").write_text("half")
    # Windows has no SIGKILL; there each of the others ends a process as that does.
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""


def left_behind(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(PREFIX)]


def age(folder, seconds):
    moment = folder.stat().st_mtime - seconds
    os.utime(folder, (moment, moment))


@pytest.fixture
def killed(tmp_path):
    """What a process left that was killed while it used its folder."""
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], cwd=ROOT, check=False)
    (name,) = left_behind(tmp_path)
    return tmp_path / name


def test_it_is_gone_at_the_end_whatever_ends_it(tmp_path):
    def fail():
        with staging_folder(tmp_path) as folder:
            (folder / "copy").write_text("half")
            assert WINDOWS or folder.stat().st_mode & 0o077 == 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_that_of_a_killed_process_is_removed_by_the_next(killed):
    with staging_folder(killed.parent) as folder:
        assert left_behind(killed.parent) == [folder.name]


def test_one_in_use_stays(tmp_path):
    with staging_folder(tmp_path) as folder:
        (folder / "copy").write_text("half")
        age(folder, 10 * UNLOCKED_SECONDS)
        with staging_folder(tmp_path):
            pass
        assert (folder / "copy").exists()


@pytest.mark.parametrize("content", [None, b""])
def test_one_whose_lock_is_not_taken_yet_stays_until_it_is_old(tmp_path, content):
    folder = tmp_path / f"{PREFIX}fresh"
    folder.mkdir()
    if content is not None:
        (folder / "lock").write_bytes(content)
    remove_left_behind(tmp_path)
    assert folder.exists()
    age(folder, UNLOCKED_SECONDS + 1)
    remove_left_behind(tmp_path)
    assert not folder.exists()


@LINKS
def test_what_else_is_named_so_stays(killed):
    (killed / "notes.txt").write_text("mine")
    (killed.parent / f"{PREFIX}file").write_text("mine")
    (killed.parent / f"{PREFIX}link").symlink_to(killed)
    remove_left_behind(killed.parent)
    assert {path.name for path in killed.iterdir()} == {"copy", "lock", "notes.txt"}
    assert len(left_behind(killed.parent)) == 3


def test_a_file_system_without_locks_has_one_too(tmp_path, monkeypatch):
    def refuse(_descriptor):
        raise OSError("no locks available")

    monkeypatch.setattr("cardbeat.host.staging.try_lock", refuse)
    with staging_folder(tmp_path), staging_folder(tmp_path):
        assert len(left_behind(tmp_path)) == 2
    assert left_behind(tmp_path) == []


def refuse(*_args, **_options):
    raise OSError


def test_a_disk_that_does_not_let_it_be_removed_hides_no_result(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(KeyError), staging_folder(tmp_path):
        raise KeyError
