"""The room for pings and deletions: a file that gives way step by step, and is made whole when the disk has room."""

import os
import zlib

import pytest

from cardbeat.database import open_database
from cardbeat.database.sqlite.room import CHECK_BYTES, OPEN_BYTES, ROOM, ROOM_BYTES, STEP_BYTES, Room
from cardbeat.host.disk import Reserve
from cardbeat.keys.store import hash_of
from cardbeat.keys.webhook_secrets import new_webhook_secret
from tests.systems import LINKS

GIB = 1024**3


@pytest.fixture
def no_room():
    """Here there is room."""


class Disk:
    def __init__(self, total=100 * GIB, free=50 * GIB):
        self.total = total
        self.free = free

    def __call__(self, _folder):
        return self.total, 0, self.free


def room_on(disk, folder):
    return Room(folder, Reserve(folder, disk))


def test_it_gives_way_step_by_step_and_is_made_whole_when_the_disk_is_not_low_any_more(tmp_path):
    disk = Disk()
    room = room_on(disk, tmp_path)
    room.fill(0)
    assert (tmp_path / ROOM).stat().st_size == ROOM_BYTES
    disk.free = 0
    assert [room.give_way() for _ in range(ROOM_BYTES // STEP_BYTES + 1)] == [True] * 8 + [False]
    room.fill(0)
    assert (tmp_path / ROOM).stat().st_size == 0
    disk.free = 50 * GIB
    assert not room.give_way()
    room.fill(0)
    assert (tmp_path / ROOM).stat().st_size == ROOM_BYTES


def test_it_keeps_a_part_if_it_is_told_to(tmp_path):
    room = room_on(Disk(free=0), tmp_path)
    (tmp_path / ROOM).write_bytes(bytes(2 * STEP_BYTES))
    assert [room.give_way(STEP_BYTES // 2) for _ in range(3)] == [True, True, False]
    assert (tmp_path / ROOM).stat().st_size == STEP_BYTES // 2


def size_for(checks):
    return ROOM_BYTES + checks * CHECK_BYTES


def test_it_keeps_room_for_each_check(tmp_path):
    disk = Disk()
    room = room_on(disk, tmp_path)
    for checks in (0, 1, 100, 40):
        room.fill(checks)
        assert (tmp_path / ROOM).stat().st_size == size_for(checks)
    again = room_on(disk, tmp_path)
    again.fill(41)
    assert (tmp_path / ROOM).stat().st_size == size_for(41)


def test_for_very_many_checks_it_grows_a_part_at_a_time(tmp_path):
    room = room_on(Disk(), tmp_path)
    sizes = []
    for _ in range(4):
        room.fill(5000)
        sizes.append((tmp_path / ROOM).stat().st_size)
    assert sizes == [ROOM_BYTES, 2 * ROOM_BYTES, 3 * ROOM_BYTES, size_for(5000)]


def test_what_it_lacks_must_be_free_besides_the_reserve(tmp_path):
    disk = Disk()
    reserve = Reserve(tmp_path, disk)
    room = Room(tmp_path, reserve)
    room.fill(0)
    assert room.give_way()
    for free, is_low in ((0, True), (reserve.bytes + STEP_BYTES - 1, True), (reserve.bytes + STEP_BYTES, False)):
        disk.free = free
        reserve.look_again()
        room.fill(0)
        assert reserve.is_low() == is_low
        assert (tmp_path / ROOM).stat().st_size == ROOM_BYTES - is_low * STEP_BYTES


def test_where_it_can_not_be_made_nothing_is_refused_for_it(tmp_path):
    (tmp_path / ROOM).mkdir()
    reserve = Reserve(tmp_path, Disk(free=65 * 1024**2))
    room = Room(tmp_path, reserve)
    for _ in range(3):
        room.fill(1)
        reserve.look_again()
    assert not reserve.is_low()


def test_it_takes_its_size_also_where_files_are_compressed(tmp_path):
    room_on(Disk(), tmp_path).fill(0)
    assert len(zlib.compress((tmp_path / ROOM).read_bytes(), 1)) > ROOM_BYTES


def test_what_was_just_given_up_is_not_taken_back(tmp_path):
    disk = Disk()
    room = room_on(disk, tmp_path)
    room.fill(0)
    disk.free = STEP_BYTES
    assert room.give_way()
    room.fill(0)
    assert (tmp_path / ROOM).stat().st_size == ROOM_BYTES - STEP_BYTES


def test_on_a_small_disk_it_is_as_large_as_the_reserve(tmp_path):
    room_on(Disk(total=20 * STEP_BYTES + 20), tmp_path).fill(0)
    assert (tmp_path / ROOM).stat().st_size == STEP_BYTES + 1


@pytest.mark.parametrize(("free", "given"), [(STEP_BYTES - 1, OPEN_BYTES), (STEP_BYTES, 0)])
def test_a_start_takes_a_small_step_only_if_the_disk_is_full(tmp_path, free, given):
    room_on(Disk(), tmp_path).fill(0)
    assert room_on(Disk(free=free), tmp_path).give_way_to_open() == (given > 0)
    assert (tmp_path / ROOM).stat().st_size == ROOM_BYTES - given


def test_a_start_takes_nothing_more_when_nothing_is_left(tmp_path):
    (tmp_path / ROOM).touch()
    assert not room_on(Disk(free=0), tmp_path).give_way_to_open()


@pytest.mark.parametrize(
    ("free", "freed", "lacks"),
    [(0, STEP_BYTES // 2, STEP_BYTES // 2), (0, 9 * STEP_BYTES, 0), (50 * GIB, 1, STEP_BYTES)],
)
def test_a_stop_takes_back_what_is_freed_while_the_disk_is_low_and_no_more_than_lacks(tmp_path, free, freed, lacks):
    disk = Disk()
    room = room_on(disk, tmp_path)
    room.fill(0)
    disk.free = free
    room.give_way()
    room.take_back(freed)
    assert (tmp_path / ROOM).stat().st_size == ROOM_BYTES - lacks


@LINKS
def test_a_link_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    os.symlink(other, tmp_path / ROOM)
    room = room_on(Disk(), tmp_path)
    room.fill(0)
    assert not room.give_way()
    assert other.read_bytes() == b"mine"


MAIL = f"a@{'b' * 155}"
"""With it, 14 keys fill a page to the byte, and the first note of a use divides it: a stranger could aim at that."""


def issue_and_use(database, keys):
    """Issue keys and note the use of each. Returns by how many bytes the notes made the database larger."""

    def issue(transaction):
        for number in range(keys):
            transaction.execute(
                "INSERT INTO keys (id, scope, tier, email, hash, prefix, webhook_secret, created_at)"
                " VALUES (?, 'checks', 'free', ?, ?, 'sk_12345', ?, 1800000000)",
                (f"key_{number:016}", MAIL, hash_of(str(number)), new_webhook_secret()),
            )
        return size(transaction)

    def size(transaction):
        return transaction.execute("PRAGMA page_count").fetchone()[0] * 4096

    before = database.write(issue)
    # One key of each third page first, as the pages beside it are divided with it.
    note = "UPDATE keys SET used_at = 1800000000"
    for sql in (f"{note} WHERE seq % (3 * 14) = 20", note):
        database.write(lambda transaction, sql=sql: transaction.execute(sql))
    return database.write(size) - before


def test_it_keeps_room_for_the_first_use_of_each_key(tmp_path):
    database = open_database(tmp_path)
    grown = issue_and_use(database, 24 * 100)
    database.close()
    assert 0 < grown / (size_for(100) - ROOM_BYTES) < 1
    assert (tmp_path / ROOM).stat().st_size == size_for(100)
