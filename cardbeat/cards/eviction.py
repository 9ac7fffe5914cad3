"""Which stored cards are removed when there are too many, fair among the keys that own them. Pure."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

STALE_SECONDS: Final = 30 * 24 * 3600
"""A card that was not requested for 30 days is removed before any newer one, of all owners."""


class StoredFile(NamedTuple):
    """One file: the Unix time of its last use, its size, and the owner in its seal, None without a seal."""

    used_at: float
    bytes: int
    name: str
    owner: str | None


def leaving(files: Iterable[StoredFile], now: float) -> Iterator[StoredFile]:
    """All files in the order of removal.

    First those without a seal, then the stale ones, then always the least recently used one of the owner that has the
    most bytes left. So an owner that stores most loses cards until all have the same.
    """
    fresh: defaultdict[str, list[StoredFile]] = defaultdict(list)
    stale = []
    for file in sorted(files, key=lambda file: file.used_at, reverse=True):
        if file.owner is None or file.used_at < now - STALE_SECONDS:
            stale.append(file)
        else:
            fresh[file.owner].append(file)
    yield from sorted(stale, key=lambda file: (file.owner is not None, file.used_at))
    holders = [(-sum(file.bytes for file in held), owner) for owner, held in fresh.items()]
    heapq.heapify(holders)
    while holders:
        minus_bytes, owner = holders[0]
        file = fresh[owner].pop()
        if fresh[owner]:
            heapq.heapreplace(holders, (minus_bytes + file.bytes, owner))
        else:
            heapq.heappop(holders)
        yield file
