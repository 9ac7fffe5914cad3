"""Stored cards: whole or not at all, and never anything else."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from cardbeat.cards.drawing.render import own_version
from cardbeat.cards.folder import MAX_FILE_BYTES
from cardbeat.cards.seal import StoredCard, seal, unseal
from cardbeat.cards.store import CardIndex, Entry, Store, file_name
from cardbeat.errors import Unavailable
from tests.systems import DESCRIPTORS, LINKS, MODES, PIPES, SPARSE, WINDOWS

IEND = b"\x00\x00\x00\x00IEND\xaeB`\x82"
NAME = file_name("/og?title=a")
OTHER = file_name("/og?title=b")


def drawing(size: int = 1000) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + os.urandom(size) + IEND


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "cards", 10_000_000, "v1")
    yield store
    store.close()


@pytest.fixture
def clock(clock):
    """Near the real time, which the files' own times are in."""
    clock.now = time.time()
    return clock


def stored(store: Store, name: str = NAME, size: int = 1000) -> StoredCard:
    card = seal(name, drawing(size), 3)
    store.put(name, card)
    return card


def got(store: Store, name: str = NAME) -> StoredCard | None:
    found = store.get(name)
    return found and found[0]


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def test_a_stored_card_comes_back_as_it_was(store: Store) -> None:
    card = stored(store)
    assert got(store) == card
    assert got(store) == card
    assert [path.name for path in store.folder.iterdir()] == [NAME]


def test_what_is_stored_is_served_and_nothing_larger_is_stored(store: Store) -> None:
    around = len(seal(NAME, drawing(0), 3).png)
    largest = stored(store, NAME, MAX_FILE_BYTES - around)
    stored(store, OTHER, MAX_FILE_BYTES - around + 1)
    assert got(store) == largest
    assert [path.name for path in store.folder.iterdir()] == [NAME]


def test_the_file_is_named_by_the_hash_of_the_target() -> None:
    assert hashlib.sha256(b"/og?title=a").hexdigest() + ".png" == NAME


def damage_flip(path: Path, _: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def damage_truncate(path: Path, _: bytes) -> None:
    os.truncate(path, path.stat().st_size // 2)


def damage_zeros(path: Path, _: bytes) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def damage_empty(path: Path, _: bytes) -> None:
    path.write_bytes(b"")


def damage_other_png(path: Path, _: bytes) -> None:
    path.write_bytes(drawing())


def damage_other_card(path: Path, other: bytes) -> None:
    path.write_bytes(other)


def damage_folder(path: Path, _: bytes) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_text("x")


def damage_link(path: Path, other: bytes) -> None:
    path.unlink()
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.write_bytes(other)
    path.symlink_to(elsewhere)


def damage_pipe(path: Path, _: bytes) -> None:
    path.unlink()
    os.mkfifo(path)


def damage_huge(path: Path, _: bytes) -> None:
    os.truncate(path, 1 << 40)


def damage_gone(path: Path, _: bytes) -> None:
    path.unlink()


NEEDS = {damage_link: LINKS, damage_pipe: PIPES, damage_huge: SPARSE}
DAMAGE = [
    pytest.param(value, marks=NEEDS.get(value, ()))
    for name, value in dict(globals()).items()
    if name.startswith("damage_")
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_foreign_file_is_never_served_and_is_replaced(
    store: Store, damage: Callable[[Path, bytes], None]
) -> None:
    card = seal(NAME, drawing(), 3)
    signature = store.put(NAME, card)
    other = stored(store, OTHER)
    assert signature
    descriptor = store.open(NAME, signature, "192.0.2.1")
    assert descriptor
    os.close(descriptor)
    damage(store.folder / NAME, other.png)
    assert store.open(NAME, signature, "192.0.2.1") is None
    assert store.get(NAME) is None
    again = stored(store)
    assert got(store) == again


def test_the_signature_of_a_stored_card_is_that_of_its_file(store: Store) -> None:
    signature = store.put(NAME, seal(NAME, drawing(), 3))
    status = (store.folder / NAME).stat()
    assert signature == (status.st_ino, status.st_size, status.st_mtime_ns)
    assert store.get(NAME)[1] == signature


def test_writing_down_what_was_used_changes_no_signature(store: Store, clock) -> None:
    signature = store.put(NAME, seal(NAME, drawing(), 3))
    store.write_uses()
    descriptor = store.open(NAME, signature, "192.0.2.1")
    assert descriptor
    os.close(descriptor)


@DESCRIPTORS
def test_trying_to_open_what_is_no_card_leaves_nothing_open(store: Store) -> None:
    signature = store.put(NAME, seal(NAME, drawing(), 3))
    damage_zeros(store.folder / NAME, b"")
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        assert store.open(NAME, signature, "192.0.2.1") is None
        assert store.get(NAME) is None
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_where_descriptors_lack_a_stored_card_is_not_taken_for_one_that_is_missing(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    card = stored(store)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", Mock(side_effect=OSError(number, os.strerror(number))))
        with pytest.raises(Unavailable):
            store.get(NAME)
    assert got(store) == card


def test_every_torn_length_is_noticed() -> None:
    card = seal(NAME, drawing(60), 0)
    assert unseal(NAME, card.png) == card
    left_out = seal(NAME, drawing(60), 0, left_out=True)
    assert (unseal(NAME, left_out.png), left_out.etag == card.etag) == (left_out, False)
    assert all(unseal(NAME, card.png[:length]) is None for length in range(len(card.png)))


def test_a_card_is_bound_to_its_name() -> None:
    assert unseal(OTHER, seal(NAME, drawing(), 0).png) is None


def test_the_least_recently_used_go_first(tmp_path: Path, clock) -> None:
    names = [file_name(str(n)) for n in range(10)]
    earlier = Store(tmp_path, 10_000, "v1", clock)
    stored(earlier, names[0])
    earlier.close()
    store = Store(tmp_path, 10_000, "v1", clock)
    assert eventually(lambda: store.bytes_stored > 0)  # else what is stored while it counts may count twice
    for name in names[1:9]:
        clock.advance(1)
        stored(store, name)
    clock.advance(1)
    assert store.get(names[0])
    clock.advance(1)
    stored(store, names[9])
    assert eventually(lambda: store.bytes_stored <= 9_000)
    store.close()
    assert store.get(names[0])
    assert store.get(names[9])
    assert not store.get(names[1])
    assert sum(path.stat().st_size for path in store.folder.iterdir()) <= 10_000


def test_a_card_that_can_not_be_removed_keeps_no_other_from_it(tmp_path: Path, clock, monkeypatch, caplog) -> None:
    names = [file_name(str(n)) for n in range(30)]
    remove = os.unlink

    def unlink(path: Path) -> None:
        if Path(path).name == names[0]:
            raise PermissionError(1, "Operation not permitted")
        remove(path)

    monkeypatch.setattr(os, "unlink", unlink)
    store = Store(tmp_path, 10_000, "v1", clock)
    for name in names:
        clock.advance(1)
        stored(store, name)
    assert eventually(lambda: store.bytes_stored <= 10_000)
    store.close()
    assert sum(path.stat().st_size for path in store.folder.iterdir()) <= 10_000
    assert f"can't remove {store.folder / names[0]}: Operation not permitted" in caplog.text


def test_what_was_used_when_survives_a_restart(tmp_path: Path, clock) -> None:
    names = [file_name(str(n)) for n in range(6)]
    first = Store(tmp_path, 1_000_000, "v1", clock)
    for name in names:
        clock.advance(1)
        stored(first, name)
    clock.advance(1)
    first.get(names[0])
    first.close()
    second = Store(tmp_path, 3_000, "v1", clock)
    assert eventually(lambda: 0 < second.bytes_stored <= 3_000)
    second.close()
    assert second.get(names[0])
    assert not second.get(names[1])


OLD_VERSION = "0123456789ab-raqm"


def test_old_versions_and_old_temporary_files_are_removed(tmp_path: Path) -> None:
    old, now = tmp_path / OLD_VERSION, tmp_path / "v1"
    for folder in (old, now):
        folder.mkdir()
        (folder / NAME).write_bytes(b"x")
        (folder / "abandoned.tmp").write_bytes(b"x")
        os.utime(folder / "abandoned.tmp", (1, 1))
    (now / "fresh.tmp").write_bytes(b"x")
    store = Store(tmp_path, 1_000_000, "v1")
    assert eventually(lambda: not old.exists() and not (now / "abandoned.tmp").exists())
    assert (now / "fresh.tmp").exists()
    store.close()


def test_what_is_not_ours_beside_the_cards_is_kept(tmp_path: Path) -> None:
    kept = [
        tmp_path / "photos" / NAME,
        tmp_path / OLD_VERSION / "holiday.png",
        tmp_path / OLD_VERSION / "folder" / NAME,
        tmp_path / "elsewhere" / NAME,
    ]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (tmp_path / OLD_VERSION / NAME).write_bytes(b"x")
    if not WINDOWS:
        (tmp_path / "fedcba987654-basic").symlink_to(tmp_path / "elsewhere")
    store = Store(tmp_path, 1_000_000, "v1")
    assert eventually(lambda: not (tmp_path / OLD_VERSION / NAME).exists())
    store.close()
    assert all(path.read_bytes() == b"x" for path in kept)


def test_the_present_version_has_the_shape_by_which_an_old_one_is_known(tmp_path: Path) -> None:
    (tmp_path / own_version()).mkdir()
    store = Store(tmp_path, 1_000_000, "v1")
    assert eventually(lambda: not (tmp_path / own_version()).exists())
    store.close()


def test_a_folder_that_cannot_be_made_costs_only_the_storing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cards").write_text("a file stands where the folder belongs")
    store = Store(tmp_path / "cards", 1_000_000, "v1")
    stored(store)
    assert store.get(NAME) is None
    store.close()
    assert "can't store a card" in caplog.text


def test_a_failed_write_leaves_nothing_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cardbeat.cards.store.os.replace", full)
    stored(store)
    assert store.get(NAME) is None
    assert list(store.folder.iterdir()) == []


@MODES
def test_files_are_for_their_owner_only(store: Store) -> None:
    stored(store)
    assert stat.S_IMODE((store.folder / NAME).stat().st_mode) == 0o600


def entry(n: int) -> Entry:
    return Entry(NAME, (n, 1, 1), b"hash", '"etag"', 0, False, b"lines")


def test_the_cards_asked_for_longest_ago_are_forgotten_first() -> None:
    index = CardIndex(max_entries=2)
    index.put("a", entry(1))
    index.put("b", entry(2))
    assert index.get("a") == entry(1)
    index.put("c", entry(3))
    assert [index.get(name) for name in "abc"] == [entry(1), None, entry(3)]


def test_long_targets_leave_room_for_fewer_cards() -> None:
    index = CardIndex(max_characters=10)
    index.put("a" * 4, entry(1))
    index.put("b" * 4, entry(2))
    index.put("b" * 4, entry(3))
    assert index.get("a" * 4) == entry(1)
    index.put("c" * 6, entry(4))
    assert [index.get(target) for target in ("a" * 4, "b" * 4, "c" * 6)] == [entry(1), None, entry(4)]
    index.put("d" * 11, entry(5))
    assert [index.get(target) for target in ("a" * 4, "c" * 6, "d" * 11)] == [None, None, None]
    index.put("a" * 4, entry(1))
    assert index.get("a" * 4) == entry(1)


def test_a_card_may_be_put_again_and_discarded_twice() -> None:
    index = CardIndex(max_entries=1)
    index.put("a", entry(1))
    index.put("a", entry(2))
    assert index.get("a") == entry(2)
    for _ in range(2):
        index.discard("a")
    assert index.get("a") is None
