"""Explicit directions in a text: embeddings, overrides and isolates (UAX #9, rules BD8 to BD13 and X1 to X10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

INITIATORS = frozenset({"LRI", "RLI", "FSI"})
_EMBEDDINGS = {"LRE": (0, ""), "RLE": (1, ""), "LRO": (0, "L"), "RLO": (1, "R")}
"""Whether the level that each opens is odd, and the kind that it forces on what it holds."""
_REMOVED = frozenset({*_EMBEDDINGS, "PDF", "BN"})
"""What X9 takes out before the other rules."""
EXPLICIT = INITIATORS | _REMOVED
_MAX_DEPTH = 125


class _Status(NamedTuple):
    """An entry of X1's stack: what is open."""

    level: int
    forced: str
    isolate: bool


@dataclass(frozen=True, slots=True)
class IsolatingRun:
    """An isolating run sequence (BD13): the places of its characters, its level, and the directions at its ends."""

    places: list[int]
    level: int
    before: str
    after: str


def matching(kinds: Sequence[str]) -> dict[int, int]:
    """BD9: for the place of each initiator of an isolate that is closed, where that is."""
    opened: list[int] = []
    found = {}
    for i, kind in enumerate(kinds):
        if kind in INITIATORS:
            opened.append(i)
        elif kind == "PDI" and opened:
            found[opened.pop()] = i
    return found


def first_is_rtl(kinds: Sequence[str], matches: dict[int, int], start: int, end: int) -> bool:
    """Whether the first strong character between two places is right-to-left, isolates passed over (P2, P3)."""
    while start < end:
        if kinds[start] in ("L", "R", "AL"):
            return kinds[start] != "L"
        start = matches.get(start, end) if kinds[start] in INITIATORS else start + 1
    return False


class ExplicitLevels:
    """X1 to X8: the level of each character, `levels`, and in `kinds` what overrides have made of them."""

    def __init__(self, kinds: Sequence[str], base: int) -> None:
        self.kinds, self.levels = list(kinds), [base] * len(kinds)
        self.matches = matching(kinds)
        self._base = base
        self._stack = [_Status(base, "", False)]
        self._lost_isolates = self._lost_embeddings = self._isolates = 0
        """Opened beyond `_MAX_DEPTH`, of either kind, and the isolates on the stack."""
        for i, kind in enumerate(kinds):
            self._take(i, kind)

    def _take(self, i: int, kind: str) -> None:
        if kind == "PDI":
            self._close_isolate()
        elif kind == "PDF":
            self._close_embedding()
        elif kind == "B":
            return
        status = self._stack[-1]
        self.levels[i] = status.level
        if kind in _EMBEDDINGS:
            self._embed(*_EMBEDDINGS[kind])
        elif status.forced and kind not in _REMOVED:
            self.kinds[i] = status.forced
        if kind in INITIATORS:
            self._isolate(kind == "RLI" or (kind == "FSI" and self._holds_rtl(i)))

    def _holds_rtl(self, i: int) -> bool:
        """X5c; of the kinds before any override."""
        return first_is_rtl(self.kinds, self.matches, i + 1, self.matches.get(i, len(self.kinds)))

    def _next(self, odd: int) -> int:
        level = self._stack[-1].level + 1
        return level + (level % 2 != odd)

    def _embed(self, odd: int, forced: str) -> None:
        """X2 to X5."""
        level = self._next(odd)
        if level <= _MAX_DEPTH and not self._lost_isolates and not self._lost_embeddings:
            self._stack.append(_Status(level, forced, isolate=False))
        elif not self._lost_isolates:
            self._lost_embeddings += 1

    def _isolate(self, rtl: bool) -> None:
        """X5a to X5c."""
        level = self._next(int(rtl))
        if level <= _MAX_DEPTH and not self._lost_isolates and not self._lost_embeddings:
            self._isolates += 1
            self._stack.append(_Status(level, "", isolate=True))
        else:
            self._lost_isolates += 1

    def _close_isolate(self) -> None:
        """X6a."""
        if self._lost_isolates:
            self._lost_isolates -= 1
        elif self._isolates:
            self._lost_embeddings = 0
            while not self._stack.pop().isolate:
                pass
            self._isolates -= 1

    def _close_embedding(self) -> None:
        """X7."""
        if self._lost_isolates:
            return
        if self._lost_embeddings:
            self._lost_embeddings -= 1
        elif not self._stack[-1].isolate and len(self._stack) > 1:
            self._stack.pop()


def isolating_runs(original: Sequence[str], explicit: ExplicitLevels, base: int) -> list[IsolatingRun]:
    """X9 and X10, for the kinds before any override."""
    levels, matches = explicit.levels, explicit.matches
    kept = [i for i, kind in enumerate(original) if kind not in _REMOVED]
    starts = {run[0]: run for run in (list(group) for _, group in groupby(kept, key=levels.__getitem__))}
    closings = set(matches.values())
    neighbours = _Neighbours(kept, levels, base)
    found = []
    for run in starts.values():
        if run[0] in closings:
            continue
        places = list(run)
        while (closing := matches.get(places[-1])) is not None:
            places += starts[closing]
        unclosed = original[places[-1]] in INITIATORS
        after = base if unclosed else neighbours.after(places[-1])
        level = levels[run[0]]
        found.append(IsolatingRun(places, level, _side(level, neighbours.before(run[0])), _side(level, after)))
    return found


def fill_removed(original: Sequence[str], levels: list[int], base: int) -> None:
    """Gives what X9 took out the level of the character before it, so that it parts no run (5.2)."""
    for i, kind in enumerate(original):
        if kind in _REMOVED:
            levels[i] = levels[i - 1] if i else base


class _Neighbours:
    """The levels of the characters before and after others, those that X9 takes out left aside."""

    def __init__(self, kept: Sequence[int], levels: Sequence[int], base: int) -> None:
        line = [base, *(levels[i] for i in kept), base]
        self._at = {place: n for n, place in enumerate(kept, 1)}
        self._line = line

    def before(self, place: int) -> int:
        return self._line[self._at[place] - 1]

    def after(self, place: int) -> int:
        return self._line[self._at[place] + 1]


def _side(level: int, neighbour: int) -> str:
    """The direction that X10 sets between two levels."""
    return "R" if max(level, neighbour) % 2 else "L"
