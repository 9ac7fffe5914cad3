"""The folder in which a file's new content is made, and the reserve of free disk."""

import subprocess
import sys

import pytest

from cardbeat.errors import Unavailable
from cardbeat.host.disk import RESERVE_BYTES, Reserve
from cardbeat.host.staging import (
    PREFIX,
    remove_left_behind,
    staging_folder,
)
from tests.kit.artifact import ROOT
from tests.kit.lists import each
from tests.kit.support import FakeClock
from tests.kit.systems import LINKS, WINDOWS

MIB = 1024**2
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
    return [
        path.name
        for path in folder.iterdir()
        if path.name.startswith(PREFIX)
    ]


@pytest.fixture
def killed(tmp_path):
    """What a process left that was killed while it used its folder."""
    subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path], cwd=ROOT, check=False
    )
    (name,) = left_behind(tmp_path)
    return tmp_path / name


def refuse(*_arguments, **_options):
    raise OSError("no")


@pytest.mark.parametrize("locks", [True, False])
def test_a_staging_folder_is_private_and_gone_at_the_end(
    tmp_path, monkeypatch, locks
):
    if not locks:
        monkeypatch.setattr("cardbeat.host.staging.try_lock", refuse)

    def fail_in_one():
        with staging_folder(tmp_path) as folder:
            assert len(left_behind(tmp_path)) == 2
            assert WINDOWS or folder.stat().st_mode & 0o077 == 0
            raise ZeroDivisionError

    with staging_folder(tmp_path), pytest.raises(ZeroDivisionError):
        fail_in_one()
    assert list(tmp_path.iterdir()) == []


def test_that_of_a_killed_process_is_removed_by_the_next_and_one_in_use_stays(
    killed,
):
    with staging_folder(killed.parent) as folder:
        assert left_behind(killed.parent) == [folder.name]
        (folder / "copy").write_text("half")
        with staging_folder(killed.parent):
            pass
        assert (folder / "copy").exists()


@LINKS
def test_what_else_is_named_so_and_one_that_may_be_in_use_stays(killed):
    other = killed.rename(killed.with_name("other"))
    for name in ("file", "link", "fresh"):
        path = other.with_name(f"{PREFIX}{name}")
        if name == "link":
            path.symlink_to(other)
        else:
            path.mkdir()
            (path / ("lock" if name == "fresh" else "notes.txt")).touch()
    remove_left_behind(other.parent)
    assert set(each(other.iterdir(), "name")) == {"copy", "lock"}
    assert len(left_behind(other.parent)) == 3


def disk(total, *free):
    """The sizes of a disk, with what is free at each look in turn."""
    looks = list(free)
    return lambda _folder: (total, 0, looks.pop(0))


@pytest.mark.parametrize(
    ("total", "reserve"), [(10**11, 64), (640 * MIB, 64), (100 * MIB, 10)]
)
def test_the_reserve_is_64_mib_or_a_tenth_of_a_small_disk(
    tmp_path, total, reserve
):
    enough = Reserve(tmp_path, disk(total, reserve * MIB + 5))
    enough.require()
    assert enough.spare() == 5
    with pytest.raises(Unavailable) as refused:
        Reserve(tmp_path, disk(total, reserve * MIB - 1)).require()
    assert refused.value.status == 503
    assert refused.value.code == "disk_low"
    assert int(refused.value.headers["Retry-After"]) > 0


def test_the_system_is_asked_once_a_second_and_a_change_is_logged(
    tmp_path, caplog
):
    caplog.set_level("INFO")
    clock = FakeClock()
    reserve = Reserve(
        tmp_path,
        disk(10**11, 3 * MIB, 2 * MIB, RESERVE_BYTES, 10**10),
        clock,
    )
    seen = []
    for _ in range(4):
        seen.append([reserve.spare() < 0 for _ in range(3)])
        clock.advance(1)
    assert seen == [[True] * 3, [True] * 3, [False] * 3, [False] * 3]
    low, high = caplog.messages
    assert low.startswith(
        "less than the reserve of 65536 KiB of disk is free"
    )
    assert high == "the disk has its reserve again"


def test_a_disk_that_tells_nothing_refuses_nothing(tmp_path):
    Reserve(tmp_path, refuse).require()
    Reserve(tmp_path).require()
