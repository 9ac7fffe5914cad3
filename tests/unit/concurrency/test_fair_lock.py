"""Who gets a lock that many wait for, and who leaves."""

import threading
import time

import pytest

from cardbeat.concurrency import fair_lock
from cardbeat.concurrency.fair_lock import FairLock
from tests.support import wait_until


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
        return sum(map(len, list(self.lock._waiting._new.values())))

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
    monkeypatch.setattr(fair_lock, "STUCK_SECONDS", 0.05)
    holders = Holders(FairLock())
    with holders.lock.held("stuck", time.monotonic() + 60):
        holders.start("a")
        wait_until(lambda: holders.had == ["a"])
    holders.join()
    assert holders.lock._taken_at is None
