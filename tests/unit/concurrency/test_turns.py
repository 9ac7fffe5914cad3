"""Whose turn it is: networks are served round robin, and what waits already waits once."""

import threading
import time

import pytest

from cardbeat.concurrency import turns as turns_module
from cardbeat.concurrency.turns import FairLock, Turns
from tests.support import wait_until


def names(turns: Turns) -> list[object]:
    taken = []
    while turns.networks:
        taken.append(turns.take()())
    return taken


def test_each_network_has_one_call_in_turn_however_many_it_has() -> None:
    turns = Turns()
    for call, network in [(lambda: "a1", "a"), (lambda: "a2", "a"), (lambda: "a3", "a"), (lambda: "b1", "b")]:
        turns.add(call, network)
    assert turns.take()() == "a1"
    turns.add(lambda: "c1", "c")
    assert names(turns) == ["b1", "a2", "c1", "a3"]


def test_a_network_that_comes_back_is_last() -> None:
    turns = Turns()
    turns.add(lambda: "a1", "a")
    assert turns.take()() == "a1"
    turns.add(lambda: "b1", "b")
    turns.add(lambda: "a2", "a")
    assert names(turns) == ["b1", "a2"]


def test_a_call_that_waits_is_not_added_again_and_keeps_its_place() -> None:
    class Client:
        def do(self) -> object:
            return self

    first, second = Client(), Client()
    turns = Turns()
    for client in (first, second, first):
        turns.add(client.do, "a")
    assert names(turns) == [first, second]


class Holders:
    """Threads that take a lock one after the other, and note that they had it."""

    def __init__(self, lock: FairLock) -> None:
        self.lock = lock
        self.had: list[str] = []
        self.threads: list[threading.Thread] = []

    def start(self, name: str, seconds: float = 60) -> None:
        waiting = self.waiting()
        self.threads.append(threading.Thread(target=self._hold, args=(name, time.monotonic() + seconds)))
        self.threads[-1].start()
        wait_until(lambda: self.waiting() > waiting or not self.threads[-1].is_alive())

    def waiting(self) -> int:
        return sum(map(len, list(self.lock._waiting.networks.values())))

    def _hold(self, name: str, deadline: float) -> None:
        with self.lock.held(name, deadline):
            self.had.append(name)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(30)


def test_a_fair_lock_goes_to_one_of_each_name_in_turn() -> None:
    holders = Holders(FairLock())
    with holders.lock.held("first", time.monotonic() + 60):
        for name in ("a", "a", "a", "b", "c"):
            holders.start(name)
        assert not holders.had
    holders.join()
    assert holders.had == ["a", "b", "c", "a", "a"]
    with holders.lock.held("last", time.monotonic()):
        pass


def test_who_waits_for_a_fair_lock_until_its_deadline_leaves_its_turn_to_others() -> None:
    holders = Holders(FairLock())
    with holders.lock.held("first", time.monotonic() + 60):
        with pytest.raises(TimeoutError), holders.lock.held("late", time.monotonic()):
            holders.had.append("late")
        holders.start("a")
    holders.join()
    assert holders.had == ["a"]
    assert holders.lock._taken_at is None


def test_whoever_holds_a_fair_lock_for_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "STUCK_SECONDS", 0.05)
    holders = Holders(FairLock())
    with holders.lock.held("stuck", time.monotonic() + 60):
        holders.start("a")
        wait_until(lambda: holders.had == ["a"])
    holders.join()
    assert holders.lock._taken_at is None
