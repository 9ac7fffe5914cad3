"""Which stored cards give way when there are too many: fair among the keys that own them. Pure."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

STALE_SECONDS: Final = 30 * 24 * 3600
"""A card that nobody has asked for in this time gives way before any other, whoever owns it."""


class StoredFile(NamedTuple):
    """One file: when it was last used, in Unix time; its size; its owner as its seal has it, None without a seal."""

    used_at: float
    bytes: int
    name: str
    owner: str | None


def leaving(files: Iterable[StoredFile], now: float) -> Iterator[StoredFile]:
    """All files in the order in which they give way.

    First what has no seal, then what is stale, then always the least recently used of the owner that holds most by
    then. So an owner who stores more than others makes room at their own cost, until all hold the same.
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
