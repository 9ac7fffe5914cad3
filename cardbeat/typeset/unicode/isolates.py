"""Isolates in a text (U+2066 to U+2069), and the runs they divide it into (UAX #9, rules BD8 to BD13 and X1 to X10).

Embeddings and overrides (U+202A to U+202E) are not supported: `clusters.clean` removes them from every text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

INITIATORS = frozenset({"LRI", "RLI", "FSI"})
REMOVED = "BN"  # the one kind that X9 removes: joiners, soft hyphens and other invisible characters
_MAX_DEPTH = 125


@dataclass(frozen=True, slots=True)
class IsolatingRun:
    """An isolating run sequence (BD13): the places of its characters, its level, and the directions at its ends."""

    places: list[int]
    level: int
    before: str
    after: str


def matching(kinds: Sequence[str]) -> dict[int, int]:
    """For the place of each initiator that is closed, the place of its PDI (BD9)."""
    opened: list[int] = []
    found = {}
    for i, kind in enumerate(kinds):
        if kind in INITIATORS:
            opened.append(i)
        elif kind == "PDI" and opened:
            found[opened.pop()] = i
    return found


def first_is_rtl(kinds: Sequence[str], matches: dict[int, int], start: int, end: int) -> bool:
    """Whether the first strong character between two places, outside isolates, is right-to-left (P2, P3)."""
    while start < end:
        if kinds[start] in ("L", "R", "AL"):
            return kinds[start] != "L"
        start = matches.get(start, end) if kinds[start] in INITIATORS else start + 1
    return False


def explicit_levels(kinds: Sequence[str], matches: dict[int, int], base: int) -> list[int]:
    """The level of each character before its own direction counts (X1, X5a to X6a)."""
    levels: list[int] = []
    opened, too_deep = [base], 0
    for i, kind in enumerate(kinds):
        if kind == "PDI" and too_deep:
            too_deep -= 1
        elif kind == "PDI" and len(opened) > 1:
            opened.pop()
        levels.append(opened[-1])
        if kind in INITIATORS:
            end = matches.get(i, len(kinds))
            rtl = kind == "RLI" or (kind == "FSI" and first_is_rtl(kinds, matches, i + 1, end))
            level = opened[-1] + 1 + (opened[-1] % 2 == rtl)
            if level <= _MAX_DEPTH and not too_deep:
                opened.append(level)
            else:
                too_deep += 1
    return levels


def isolating_runs(kinds: Sequence[str], base: int) -> tuple[list[int], list[IsolatingRun]]:
    """The explicit levels of a paragraph, and its isolating run sequences, without what X9 removes (X10)."""
    matches = matching(kinds)
    levels = explicit_levels(kinds, matches, base)
    kept = [i for i, kind in enumerate(kinds) if kind != REMOVED]
    number = {place: n for n, place in enumerate(kept)}
    # The level before kept[n] is around[n], the one after it around[n + 2].
    around = [base, *(levels[i] for i in kept), base]
    runs = {run[0]: run for run in (list(group) for _, group in groupby(kept, key=levels.__getitem__))}
    closings = set(matches.values())
    found = []
    for first, run in runs.items():
        if first in closings:
            continue
        places = list(run)
        while (closing := matches.get(places[-1])) is not None:
            places += runs[closing]
        level, last = levels[first], places[-1]
        after = base if kinds[last] in INITIATORS else around[number[last] + 2]
        found.append(IsolatingRun(places, level, _side(level, around[number[first]]), _side(level, after)))
    return levels, found


def _side(level: int, neighbour: int) -> str:
    """The direction that X10 sets between two levels."""
    return "R" if max(level, neighbour) % 2 else "L"
