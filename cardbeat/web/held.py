"""How much memory is held for clients, and who gives way when it becomes too much."""

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

H = TypeVar("H")

KEPT_PART: Final = 7 / 8
"""Of the limit: once it is passed so many give way that the next does not pass it at once."""


class HeldBytes(Generic[H]):
    """The bytes that each of many holders holds, and all of them together. For one thread."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self.is_too_much = False
        self._limit = limit
        self._holders: dict[H, tuple[int, float]] = {}
        """For each that holds any: how many, and since when."""

    def set(self, holder: H, count: int, now: float) -> None:
        """Note how much is held for one now; the time runs on for one that holds some already."""
        before, since = self._holders.get(holder, (0, now))
        self.total += count - before
        self.is_too_much = self.total > self._limit
        if count:
            self._holders[holder] = count, since
        elif before:
            del self._holders[holder]

    def heaviest(self, now: float) -> Iterator[H]:
        """Those to give way, as long as there is too much: first whoever held most for longest, in bytes times seconds.

        An honest client holds little, or not for long.
        """
        weights = {holder: count * (now - since) for holder, (count, since) in self._holders.items()}
        for holder in sorted(weights, key=weights.__getitem__, reverse=True):
            if self.total <= self._limit * KEPT_PART:
                return
            yield holder
