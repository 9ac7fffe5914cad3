"""What the store removes from its folder in the background, and what it leaves."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cardbeat.cards.folder import MAX_FILE_BYTES
from cardbeat.cards.seal import owner_of, seal
from cardbeat.cards.store import Store, file_name
from tests.support import FakeClock, wait_until

CARD = b"\x89PNG\r\n\x1a\n" + bytes(1000) + b"\x00\x00\x00\x00IEND\xaeB`\x82"
NAMES = [file_name(str(n)) for n in range(10)]
CARD_BYTES = len(seal(NAMES[0], CARD, 0).png)


@pytest.fixture
def clock() -> FakeClock:
    """Near the real time, which the files' own times are in."""
    return FakeClock(time.time())


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    """Holds all names but the last, and has room for no more; the first was used longest ago."""
    earlier = Store(tmp_path, 10**9, "v1", clock)
    fill(earlier, clock, NAMES[:1])
    earlier.close()
    store = Store(tmp_path, 9 * CARD_BYTES, "v1", clock)
    wait_until(lambda: store.bytes_stored)
    fill(store, clock, NAMES[1:9])
    yield store
    store.close()


def fill(store: Store, clock: FakeClock, names: list[str]) -> None:
    for name in names:
        clock.advance(1)
        store.put(name, seal(name, CARD, 0))


def overflow(store: Store, clock: FakeClock) -> None:
    """Store one more card, and wait until there is room again."""
    fill(store, clock, NAMES[9:])
    wait_until(lambda: store.bytes_stored < 9 * CARD_BYTES)


def test_a_card_that_is_only_opened_is_not_the_least_recently_used(store: Store, clock: FakeClock) -> None:
    _, signature = store.get(NAMES[0])
    store.write_uses()
    clock.advance(1)
    descriptor = store.open(NAMES[0], signature, "192.0.2.1")
    assert descriptor
    os.close(descriptor)
    overflow(store, clock)
    assert store.get(NAMES[0])
    assert not store.get(NAMES[1])


def test_a_card_used_while_room_is_made_stays(store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    scan: Callable[..., object] = os.scandir

    def use_and_scan(folder: Path) -> object:
        assert store.get(NAMES[0])
        return scan(folder)

    monkeypatch.setattr("cardbeat.cards.store.os.scandir", use_and_scan)
    overflow(store, clock)
    assert store.get(NAMES[0])
    assert not store.get(NAMES[1])


@pytest.mark.parametrize("is_restarted", [False, True], ids=["owners known", "owners read from the files"])
def test_a_key_with_many_cards_makes_room_at_its_own_cost(
    tmp_path: Path, clock: FakeClock, *, is_restarted: bool
) -> None:
    store = Store(tmp_path, 40 * CARD_BYTES, "v1", clock)
    names = {owner: [file_name(f"{owner}{n}") for n in range(44)] for owner in "ab"}
    owned(store, clock, "b", names["b"][:10])
    owned(store, clock, "a", names["a"][:30])
    if is_restarted:
        store.close()
        store = Store(tmp_path, 40 * CARD_BYTES, "v1", clock)
        wait_until(lambda: store.bytes_stored)
    for name in names["a"][30:]:
        owned(store, clock, "a", [name])
        wait_until(lambda: store.bytes_stored <= 40 * CARD_BYTES)
    assert all(store.get(name) for name in names["b"][:10])
    assert store.get(names["a"][-1])
    store.close()


def test_a_file_without_a_seal_gives_way_before_any_card(store: Store, clock: FakeClock) -> None:
    foreign = store.folder / "foreign.png"
    foreign.write_bytes(b"\0" * CARD_BYTES)
    overflow(store, clock)
    assert not foreign.exists()
    assert store.get(NAMES[2])


def test_cards_that_are_being_written_do_not_give_way(store: Store, clock: FakeClock) -> None:
    (store.folder / "a.tmp").write_bytes(b"\0" * CARD_BYTES)
    overflow(store, clock)
    assert (store.folder / "a.tmp").exists()


def owned(store: Store, clock: FakeClock, key_id: str, names: list[str]) -> None:
    for name in names:
        clock.advance(1)
        store.put(name, seal(name, CARD, 0, owner_of(key_id)))


def test_a_file_too_large_to_be_a_card_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "v1"
    folder.mkdir()
    for name, size in (("large", MAX_FILE_BYTES + 1), ("largest card", MAX_FILE_BYTES)):
        (folder / name).touch()
        os.truncate(folder / name, size)
    store = Store(tmp_path, 10**9, "v1")
    wait_until(lambda: store.bytes_stored)
    store.close()
    assert [path.name for path in folder.iterdir()] == ["largest card"]


def test_what_a_stranger_has_drawn_with_a_public_key_makes_room_for_what_others_ask_for(
    tmp_path: Path, clock: FakeClock
) -> None:
    earlier = Store(tmp_path, 10**9, "v1", clock)
    fill(earlier, clock, [file_name("earlier")])
    earlier.close()
    names = [file_name(str(number)) for number in range(60)]
    owner, seen, strange = names[:10], names[10:20], names[20:]
    store = Store(tmp_path, 40 * CARD_BYTES, "v1", clock)
    wait_until(lambda: store.bytes_stored)
    for name in names:
        clock.advance(1)
        store.put(name, seal(name, CARD, 0, owner_of("key")), "stranger" if name in strange else "owner")
        store.note_client(name, "visitor" if name in seen else "owner" if name in owner else "stranger")
        wait_until(lambda: store.bytes_stored <= 40 * CARD_BYTES)
    assert all(map(store.get, owner + seen))
    store.close()


@pytest.mark.parametrize("networks", [1, 2])
def test_a_stranger_with_many_keys_makes_room_for_the_cards_of_one_honest_key(
    tmp_path: Path, clock: FakeClock, networks: int
) -> None:
    store = Store(tmp_path, 10**9, "v1", clock)
    fill(store, clock, [file_name("earlier")])
    store.close()
    store = Store(tmp_path, 40 * CARD_BYTES, "v1", clock)
    wait_until(lambda: store.bytes_stored)
    honest = [file_name(str(number)) for number in range(12)]
    for name in honest:
        clock.advance(1)
        store.put(name, seal(name, CARD, 0, owner_of("honest")), "127.0.0.1")
    for number in range(60):
        clock.advance(1)
        name = file_name(f"strange {number}")
        store.put(name, seal(name, CARD, 0, owner_of(f"key {number // 2}")), "127.0.0.2")
        store.note_client(name, f"127.0.0.{1 + networks}")
        wait_until(lambda: store.bytes_stored <= 40 * CARD_BYTES)
    assert all(map(store.get, honest))
    store.close()
