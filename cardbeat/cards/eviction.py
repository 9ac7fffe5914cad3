"""Which stored cards are removed when there are too many: fair among keys, and among networks of clients. Pure."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

STALE_SECONDS: Final = 30 * 24 * 3600
"""A card that was not requested for 30 days is removed before any newer one, of all owners."""


class StoredFile(NamedTuple):
    """One file: the Unix time of its last use, its size, and the owner in its seal, None without a seal.

    `client` is the network that it was drawn for, `other` the next one that asked for it; empty where not known.
    """

    used_at: float
    bytes: int
    name: str
    owner: str | None
    client: str = ""
    other: str = ""

    @property
    def of_several(self) -> bool:
        """Whether several networks have asked for it, also if that is not known."""
        return not self.client or bool(self.other)


def leaving(files: Iterable[StoredFile], now: float) -> Iterator[StoredFile]:
    """All files in the order of removal.

    First those without a seal, then the stale ones, then always one of the owner that has the most bytes left. So an
    owner that stores most loses cards until all have the same. `of_owner` says which one of its cards.

    Keys are free: a stranger can have many with few cards each. So owners whose cards the same networks asked for
    count together as one, which loses cards of its largest owner.
    """
    fresh: defaultdict[str, list[StoredFile]] = defaultdict(list)
    stale = []
    for file in sorted(files, key=lambda file: file.used_at):
        if file.owner is None or file.used_at < now - STALE_SECONDS:
            stale.append(file)
        else:
            fresh[file.owner].append(file)
    yield from sorted(stale, key=lambda file: (file.owner is not None, file.used_at))
    sharers: defaultdict[str | frozenset[str], list[list[StoredFile]]] = defaultdict(list)
    for owner, held in sorted(fresh.items()):
        sharers[askers(held) or owner].append(of_owner(held))
    yield from _from_largest([[*_from_largest(owners)] for owners in sharers.values()])


def askers(files: Sequence[StoredFile]) -> frozenset[str]:
    """The networks that asked for these cards; none if they are not known for all cards."""
    networks = {file.client for file in files}
    return frozenset() if "" in networks else frozenset(networks.union(file.other for file in files) - {""})


def of_owner(files: Iterable[StoredFile]) -> list[StoredFile]:
    """The cards of one owner in the order of removal; `files` are in the order of their last use.

    A cards key is public, and a stranger can have many cards drawn with it. So those that several clients asked for
    come last, and before and among these always one of the client for which most bytes are left.
    """
    groups: defaultdict[tuple[bool, str], list[StoredFile]] = defaultdict(list)
    for file in files:
        groups[file.of_several, file.client].append(file)
    of_one, of_several = ([held for key, held in groups.items() if key[0] is several] for several in (False, True))
    return [*_from_largest(of_one), *_from_largest(of_several)]


def _from_largest(groups: list[list[StoredFile]]) -> Iterator[StoredFile]:
    """All files: each time the first one that is left of the group with most bytes left."""
    holders = [(-sum(file.bytes for file in group), place) for place, group in enumerate(groups)]
    left = [iter(group) for group in groups]
    heapq.heapify(holders)
    while holders:
        minus_bytes, place = holders[0]
        file = next(left[place])
        if minus_bytes + file.bytes < 0:
            heapq.heapreplace(holders, (minus_bytes + file.bytes, place))
        else:
            heapq.heappop(holders)
        yield file
