"""Stored cards on a disk that they fill: they give way before anything else is refused."""

import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from cardbeat.cards.seal import StoredCard, owner_of, seal
from cardbeat.cards.store import WAKE_SECONDS, Store, file_name
from cardbeat.host.disk import SMALL_DISK_SHARE, Reserve
from tests.support import FakeClock, wait_until

CARD = b"\x89PNG\r\n\x1a\n" + bytes(1000) + b"\x00\x00\x00\x00IEND\xaeB`\x82"
CARD_BYTES = len(seal(file_name("a"), CARD, 0).png)
RESERVE = 40 * CARD_BYTES
LEFT = 2 * RESERVE
DISK = SMALL_DISK_SHARE * RESERVE


class Disk:
    """A disk of 800 cards. Only cards and what the test says take its room."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.others = 0  # bytes of other programs
        self.reserve = Reserve(folder, self.usage)

    def usage(self, _folder: Path) -> tuple[int, int, int]:
        free = DISK - self.others - CARD_BYTES * len(self.cards())
        return DISK, DISK - free, free

    def cards(self) -> list[str]:
        return [path.name for path in self.folder.rglob("*.png")]

    def leave(self, cards: int) -> None:
        """Let other programs take the disk but for what cards leave free, and so many cards."""
        self.others = DISK - LEFT - cards * CARD_BYTES
        self.reserve.look_again()


@pytest.fixture
def clock() -> FakeClock:
    """Near the real time, which the files' own times are in."""
    return FakeClock(time.time())


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.fixture
def store(disk: Disk, clock: FakeClock) -> Iterator[Store]:
    """A store with 20 cards, whose limit is far beyond the disk."""
    earlier = Store(disk.folder / "cards", 10**9, "v1", clock)
    fill(earlier, clock, "honest", 20)
    earlier.close()
    store = Store(disk.folder / "cards", 10**9, "v1", clock, reserve=disk.reserve)
    wait_until(lambda: store.bytes_stored)
    yield store
    store.close()


def name_of(key: str, number: int) -> str:
    return file_name(f"{key} {number}")


def card_of(key: str, number: int) -> StoredCard:
    return seal(name_of(key, number), CARD, 0, owner_of(key))


def fill(store: Store, clock: FakeClock, key: str, count: int) -> None:
    for number in range(count):
        clock.advance(1)
        store.put(name_of(key, number), card_of(key, number))


def ask_for_room(store: Store, clock: FakeClock) -> None:
    """Have one card drawn that has no room, when the last one that asked for some did so long ago."""
    clock.advance(WAKE_SECONDS)
    assert store.put(name_of("asks", 0), card_of("asks", 0)) is None


def count_again(disk: Disk, clock: FakeClock) -> None:
    """Have the cards counted, and trimmed where they should be, as after a start."""
    store = Store(disk.folder / "cards", 10**9, "v1", clock, reserve=disk.reserve)
    wait_until(lambda: store.bytes_stored)
    store.close()


def kept(disk: Disk, key: str, count: int) -> int:
    cards = set(disk.cards())
    return sum(name_of(key, number) in cards for number in range(count))


def test_cards_stop_above_the_reserve_also_between_two_looks_at_the_disk(disk, store, clock):
    disk.leave(50)
    fill(store, clock, "stranger", 100)
    assert len(disk.cards()) <= 51
    assert disk.usage(disk.folder)[2] >= LEFT - CARD_BYTES
    disk.reserve.look_again()
    assert not disk.reserve.is_low()


def test_who_stores_most_makes_room_and_new_cards_are_stored_again(disk, store, clock):
    disk.leave(100)
    fill(store, clock, "stranger", 80)
    disk.leave(99)
    ask_for_room(store, clock)
    wait_until(lambda: store.bytes_stored == 89 * CARD_BYTES)
    assert len(disk.cards()) == 89
    assert kept(disk, "honest", 20) == 20
    disk.reserve.look_again()
    assert store.put(name_of("new", 0), card_of("new", 0))


def test_the_reserve_comes_back_where_another_program_took_it(disk, store, clock):
    disk.leave(100)
    fill(store, clock, "stranger", 80)
    disk.leave(30)
    assert disk.reserve.is_low()
    ask_for_room(store, clock)
    wait_until(lambda: store.bytes_stored == 27 * CARD_BYTES)
    disk.reserve.look_again()
    assert not disk.reserve.is_low()


def test_cards_that_could_not_bring_the_reserve_back_stay_and_are_served(disk, store, clock):
    disk.others = DISK - RESERVE + CARD_BYTES
    disk.reserve.look_again()
    assert store.put(name_of("new", 0), card_of("new", 0)) is None
    count_again(disk, clock)
    assert store.get(name_of("new", 0)) is None
    assert all(store.get(name_of("honest", number))[0] == card_of("honest", number) for number in range(20))


def test_all_cards_go_if_only_all_bring_the_reserve_back(disk, store, clock):
    disk.others = DISK - RESERVE - CARD_BYTES
    disk.reserve.look_again()
    assert disk.reserve.is_low()
    ask_for_room(store, clock)
    wait_until(lambda: not disk.cards())
    disk.reserve.look_again()
    assert not disk.reserve.is_low()


def test_what_the_room_for_pings_lacks_is_left_too(disk, store, clock):
    disk.leave(30)
    disk.reserve.owed = 15 * CARD_BYTES
    ask_for_room(store, clock)
    wait_until(lambda: store.bytes_stored == 13 * CARD_BYTES)


def test_cards_on_another_disk_stay(disk, store, clock, monkeypatch):
    monkeypatch.setattr(disk.reserve, "covers", lambda folder: folder != store.folder)
    disk.leave(0)
    count_again(disk, clock)
    assert kept(disk, "honest", 20) == 20


def test_room_that_another_process_made_a_moment_ago_is_not_made_again(disk, store, clock):
    disk.leave(10)
    assert disk.reserve.spare() < RESERVE
    disk.others -= 10 * CARD_BYTES
    count_again(disk, clock)
    assert kept(disk, "honest", 20) == 20


def test_cards_ask_for_room_at_most_once_in_ten_seconds(disk, clock, monkeypatch):
    """Some file systems take as long to count what was removed as free: all cards could go meanwhile."""
    thread = Mock()
    monkeypatch.setattr("cardbeat.cards.store.BackgroundThread", Mock(return_value=thread))
    store = Store(disk.folder / "cards", 10**9, "v1", clock, reserve=disk.reserve)
    disk.leave(-1)
    for asked in (1, 2):
        for number in range(9):
            assert store.put(name_of("asks", number), card_of("asks", number)) is None
            clock.advance(1)
        assert thread.wake.call_count == asked
        clock.advance(1)


def test_cards_that_another_process_stored_make_room_too(disk, store, clock):
    other = Store(disk.folder / "cards", 10**9, "v1", clock)
    wait_until(lambda: other.bytes_stored)
    fill(other, clock, "stranger", 80)
    other.close()
    disk.others = DISK - RESERVE - 50 * CARD_BYTES
    disk.reserve.look_again()
    ask_for_room(store, clock)
    wait_until(lambda: len(disk.cards()) <= 9)
