"""The reserve of free disk, with a disk that only the test fills."""

import os
from pathlib import Path

import pytest

from cardbeat.errors import Unavailable
from cardbeat.host.disk import RESERVE_BYTES, Reserve
from tests.support import FakeClock

GIB = 1024**3
MIB = 1024**2


class Disk:
    def __init__(self, total, free):
        self.total = total
        self.free = free
        self.looks = 0

    def __call__(self, _folder):
        self.looks += 1
        return self.total, self.total - self.free, self.free


@pytest.fixture
def monotonic():
    return FakeClock(100)


@pytest.mark.parametrize(
    ("total", "reserve"),
    [(100 * GIB, RESERVE_BYTES), (2 * GIB, RESERVE_BYTES), (1 * GIB, GIB // 20), (3 * MIB, 157_286)],
)
def test_it_is_64_mib_or_a_twentieth_of_a_small_disk(tmp_path, total, reserve):
    assert RESERVE_BYTES == 64 * MIB
    assert not Reserve(tmp_path, Disk(total, reserve)).is_low()
    assert Reserve(tmp_path, Disk(total, reserve - 1)).is_low()


def test_what_is_owed_to_the_room_counts_as_taken(tmp_path):
    reserve = Reserve(tmp_path, Disk(100 * GIB, RESERVE_BYTES + 5))
    reserve.owed = 6
    assert reserve.is_low()


def test_the_system_is_asked_once_a_second(tmp_path, monotonic):
    disk = Disk(100 * GIB, 0)
    reserve = Reserve(tmp_path, disk, monotonic)
    assert [reserve.is_low() for _ in range(3)] == [True] * 3
    disk.free = 50 * GIB
    monotonic.advance(0.9)
    assert reserve.is_low()
    monotonic.advance(0.1)
    assert not reserve.is_low()
    assert disk.looks == 2


def test_what_is_new_is_refused_for_a_while(tmp_path):
    with pytest.raises(Unavailable) as refusal:
        Reserve(tmp_path, Disk(100 * GIB, 0)).require()
    assert (refusal.value.status, refusal.value.code) == (503, "disk_low")
    assert int(refusal.value.headers["Retry-After"]) > 0


def test_a_disk_that_tells_nothing_refuses_nothing(tmp_path):
    def fail(_folder):
        raise PermissionError

    Reserve(tmp_path, fail).require()


def test_the_disk_of_a_folder_is_asked_for(tmp_path):
    Reserve(tmp_path).require()


def test_the_log_tells_when_it_begins_and_ends(tmp_path, monotonic, caplog):
    disk = Disk(100 * GIB, 3 * MIB)
    reserve = Reserve(tmp_path, disk, monotonic)
    caplog.set_level("INFO")
    for free in (3 * MIB, 2 * MIB, 50 * GIB, 50 * GIB):
        disk.free = free
        reserve.is_low()
        monotonic.advance(1)
    assert [record.getMessage()[:8] for record in caplog.records] == ["3072 KiB", "the disk"]


def test_it_tells_what_is_free_besides(tmp_path):
    reserve = Reserve(tmp_path, Disk(100 * GIB, RESERVE_BYTES + 5))
    reserve.owed = 6
    assert reserve.spare() == -1


def test_it_covers_the_folders_of_its_disk(tmp_path):
    assert Reserve(tmp_path).covers(tmp_path)
    assert not Reserve(tmp_path).covers(tmp_path / "none")
    if os.path.ismount("/proc"):
        assert not Reserve(tmp_path).covers(Path("/proc"))
