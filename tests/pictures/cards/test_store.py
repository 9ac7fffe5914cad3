"""Stored cards: whole or not at all, never anything else, and within their room."""

import hashlib
import os
import time
from typing import NamedTuple
from unittest.mock import Mock

import pytest

from cardbeat.cards.drawing.render import own_version
from cardbeat.cards.seal import IEND, seal
from cardbeat.cards.store import (
    TOUCHED_SECONDS,
    CardMemory,
    Store,
    file_name,
)
from cardbeat.web.message import Response
from tests.kit.lists import each
from tests.kit.support import wait_until
from tests.kit.systems import DESCRIPTORS, LINKS, PIPES, SPARSE

NAME = file_name("/og?title=a")
OTHER = file_name("/og?title=b")
NAMES = [file_name(str(number)) for number in range(40)]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(1000) + IEND
CARD_BYTES = len(seal(NAME, PNG, 0).png)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "cards", 10_000_000, "v1")
    yield store
    store.close()


def card_of(name=NAME):
    return seal(name, PNG, 3)


def files_in(folder):
    return set(each(folder.iterdir(), "name"))


def test_a_stored_card_comes_back_as_it_was(store):
    store.put(card_of())
    assert store.read(NAME) == card_of()
    assert files_in(store.folder) == {NAME}
    assert hashlib.sha256(b"/og?title=a").hexdigest() + ".png" == NAME


def flip(path, _):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def link(path, other):
    path.unlink()
    path.symlink_to(other)


def pipe(path, _):
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    "flipped": flip,
    "torn": lambda path, _: os.truncate(path, CARD_BYTES // 2),
    "zeros": lambda path, _: path.write_bytes(bytes(CARD_BYTES)),
    "empty": lambda path, _: path.write_bytes(b""),
    "without a seal": lambda path, _: path.write_bytes(PNG),
    "another card": lambda path, other: path.write_bytes(
        other.read_bytes()
    ),
    "gone": lambda path, _: path.unlink(),
    "link": pytest.param(link, marks=LINKS),
    "pipe": pytest.param(pipe, marks=PIPES),
    "huge": pytest.param(
        lambda path, _: os.truncate(path, 1 << 40), marks=SPARSE
    ),
}


@pytest.mark.parametrize("reads", [0, 1])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_or_foreign_file_is_never_served_and_is_replaced(
    store, damage, reads
):
    """Also where it was whole when it was read before, a minute ago by the file's time."""
    for name in (NAME, OTHER):
        store.put(card_of(name))
        os.utime(store.folder / name, (time.time() - 60,) * 2)
        for _ in range(reads):
            assert store.read(name) == card_of(name)
    damage(store.folder / NAME, store.folder / OTHER)
    assert store.read(NAME) is None
    store.put(card_of())
    assert store.read(NAME) == card_of()


@DESCRIPTORS
def test_reading_leaves_nothing_open(store):
    store.put(card_of())
    before = len(os.listdir("/dev/fd"))
    for name in (NAME, OTHER):
        store.read(name)
    assert len(os.listdir("/dev/fd")) == before


def test_a_failed_write_leaves_nothing_behind(store, monkeypatch, caplog):
    monkeypatch.setattr(
        os,
        "replace",
        Mock(side_effect=OSError(28, "No space left on device")),
    )
    store.put(card_of())
    assert store.read(NAME) is None
    assert files_in(store.folder) == set()
    assert "No space left on device" in caplog.text


def test_a_new_version_reads_no_old_cards_and_removes_them(tmp_path):
    old = Store(tmp_path, 1_000_000, own_version())
    old.put(card_of())
    old.close()
    (tmp_path / "photos").mkdir()
    new = Store(tmp_path, 1_000_000, "v1")
    new.start()
    assert new.read(NAME) is None
    wait_until(lambda: files_in(tmp_path) == {"photos"})
    new.close()


def fill(folder, names):
    """Store cards, each used a day after the one before it, the last one a day ago."""
    store = Store(folder, 10**9, "v1")
    for days, name in enumerate(reversed(names), 1):
        store.put(card_of(name))
        used_at = time.time() - days * 86_400
        os.utime(store.folder / name, (used_at, used_at))
    store.close()


def counted(folder, max_bytes, **options):
    """A store that has counted the cards there."""
    store = Store(folder, max_bytes, "v1", **options)
    store.start()
    wait_until(lambda: store.bytes_stored)
    return store


def test_the_least_recently_used_make_room_and_those_in_memory_are_the_last(
    tmp_path,
):
    fill(tmp_path, NAMES[:10])
    store = counted(tmp_path, 10 * CARD_BYTES)
    assert store.read(NAMES[0])
    store.memory.put("1", hot(CARD_BYTES))
    store.put(card_of(NAMES[10]))
    wait_until(lambda: store.bytes_stored <= 9 * CARD_BYTES)
    store.close()
    assert files_in(store.folder) == {*NAMES[:2], *NAMES[4:11]}


def memory_of(**sizes):
    """A memory for 100 bytes that was given cards of these sizes."""
    memory = CardMemory(100)
    for target, size in sizes.items():
        memory.put(target, hot(size))
    return memory


def hot(size):
    return Response(200, bytes(size)), b"hash"


def test_the_card_used_longest_ago_gives_way_to_one_that_is_asked_for_twice():
    memory = memory_of(a=40, b=40)
    assert memory.get("a") == hot(40)
    memory.put("c", hot(40))
    assert memory.names() == {file_name("a"), file_name("b")}
    memory.put("c", hot(40))
    assert memory.names() == {file_name("a"), file_name("c")}
    for size, kept in ((100, {file_name("large")}), (101, set())):
        memory = memory_of(a=40, b=40)
        for _ in range(2):
            memory.put("large", hot(size))
        assert memory.names() == kept


def test_the_memory_holds_at_most_half_of_what_the_disk_may_hold(
    tmp_path,
):
    store = Store(tmp_path, 10 * CARD_BYTES, "v1")
    for name in NAMES[:10]:
        store.memory.put(name, hot(CARD_BYTES))
    store.close()
    assert len(store.memory.names()) == 5


def test_a_use_is_noted_once_an_hour(tmp_path):
    fill(tmp_path, [NAME])
    store = counted(tmp_path, 10**9)
    path = store.folder / NAME
    long_ago = time.time() - TOUCHED_SECONDS - 60
    lately = time.time() - TOUCHED_SECONDS + 60
    for used_at, is_noted in ((long_ago, True), (lately, False)):
        os.utime(path, (used_at, used_at))
        store.read(NAME)
        assert (path.stat().st_mtime > used_at + 1) == is_noted
    store.close()


def test_a_card_that_cannot_be_removed_keeps_no_other_from_it(
    tmp_path, monkeypatch
):
    fill(tmp_path, NAMES[:10])
    unlink = os.unlink

    def refused(path):
        if str(path).endswith(NAMES[0]):
            raise PermissionError(1, "Operation not permitted")
        unlink(path)

    monkeypatch.setattr(os, "unlink", refused)
    store = Store(tmp_path, 5 * CARD_BYTES, "v1")
    store.start()
    wait_until(lambda: store.bytes_stored == 4 * CARD_BYTES)
    store.close()
    assert files_in(store.folder) == {NAMES[0], *NAMES[7:10]}


class Disk(NamedTuple):
    """A disk whose reserve is 40 cards, and what is free beside it."""

    free: int
    bytes: int = 40 * CARD_BYTES

    def spare(self):
        return self.free


@pytest.mark.parametrize(
    ("beside", "is_stored"), [(0, True), (-1, False)]
)
def test_cards_are_not_stored_while_less_than_twice_the_reserve_is_free(
    tmp_path, caplog, beside, is_stored
):
    disk = Disk(40 * CARD_BYTES + beside)
    store = Store(tmp_path, 10**9, "v1", reserve=disk)
    store.put(card_of())
    store.close()
    assert (store.read(NAME) is not None) == is_stored
    assert ("the disk is nearly full" in caplog.text) == (not is_stored)


@pytest.mark.parametrize(
    ("lacking", "kept"), [(0, 30), (10, 18), (30, 0), (71, 0)]
)
def test_stored_cards_make_room_while_the_disk_is_low(
    tmp_path, lacking, kept
):
    fill(tmp_path, NAMES[:30])
    store = Store(
        tmp_path, 10**9, "v1", reserve=Disk((40 - lacking) * CARD_BYTES)
    )
    store.start()
    wait_until(
        lambda: (
            store.bytes_stored == kept * CARD_BYTES
            and len(files_in(store.folder)) == kept
        )
    )
    store.close()
    assert files_in(store.folder) == set(NAMES[30 - kept : 30])
