"""The visual order of letters on a line (UAX #9, whose rules are named by their numbers).

Two parts of it are left out. Rule L1: white space at the end of a line is not drawn. Embeddings and overrides (U+202A
to U+202E): `clusters.clean` removes them from every text. Isolates are U+2066 to U+2069.
"""

import unicodedata
from collections.abc import Sequence
from itertools import accumulate, groupby, takewhile
from typing import NamedTuple, TypeVar

from cardbeat.typeset.unicode.clusters import LINE_CONTROLS, SOFT_HYPHEN

Item = TypeVar("Item")

INITIATORS = frozenset({"LRI", "RLI", "FSI"})
REMOVED = "BN"  # the one kind that X9 removes: joiners, soft hyphens and other invisible characters
_MAX_DEPTH = 125
_BRACKETS = "()[]{}<>«»‹›≤≥⁅⁆⁽⁾₍₎〈〉⟦⟧⟨⟩⟪⟫⦅⦆〈〉《》「」『』【】〔〕〖〗〘〙〚〛（）＜＞［］｛｝｟｠"
_PAIRED = list(zip(_BRACKETS[::2], _BRACKETS[1::2], strict=True))
MIRRORED = dict(_PAIRED) | {closing: opening for opening, closing in _PAIRED}
_OPENING = {c for c in _BRACKETS if unicodedata.category(c) == "Ps"}
_RTL_KINDS = {"R", "AL", "AN"}
_ISOLATING = INITIATORS | {"PDI"}
_NEUTRAL = {"B", "S", "WS", "ON"} | _ISOLATING
_RISES = {"L": {"L": 0, "R": 1, "EN": 2, "AN": 2}, "R": {"R": 0, "L": 1, "EN": 1, "AN": 1}}
"""I1 and I2: by the direction of a run and the kind of a character, how far its level is above that of the run."""
_EQUIVALENT = str.maketrans("\u2329\u232a", "\u3008\u3009")
"""BD16: brackets that also pair with their canonical equivalents."""
_MAX_PENDING_BRACKETS = 63  # BD16
_SEPARATORS = {("EN", "ES"), ("EN", "CS"), ("AN", "CS")}
"""W4: kinds of numbers, and the separators that join two of them into one."""


class IsolatingRun(NamedTuple):
    """An isolating run sequence (BD13): the places of its characters, its level, and the directions at its ends."""

    places: list[int]
    level: int
    before: str
    after: str


class Ordered(NamedTuple):
    """The visible graphemes of a text, the embedding level of each, and those with a soft hyphen before them."""

    graphemes: list[str]
    levels: list[int]
    rtl: bool
    hyphens: set[int]


def ordered(graphemes: Sequence[str]) -> Ordered:
    """The text without its `LINE_CONTROLS`. The level of a grapheme is that of its first character."""
    whole = "".join(graphemes)
    rtl = is_rtl(whole)
    every = levels(whole, rtl)
    seen: list[str] = []
    own_levels, hyphens = [], set()
    for grapheme, at in zip(graphemes, accumulate(map(len, graphemes), initial=0), strict=False):
        if grapheme not in LINE_CONTROLS:
            seen.append(grapheme)
            own_levels.append(every[at])
        elif grapheme == SOFT_HYPHEN:
            hyphens.add(len(seen))
    return Ordered(seen, own_levels, rtl, hyphens)


def is_rtl(text: str) -> bool:
    """Whether the first strong character outside isolates is right-to-left (P2, P3)."""
    if text.isascii():
        return False
    kinds = _kinds(text)
    return first_is_rtl(kinds, matching(kinds), 0, len(kinds))


def levels(text: str, rtl: bool) -> list[int]:
    """The embedding level of each character in a paragraph of that direction: odd is right-to-left."""
    if not rtl and text.isascii():
        return [0] * len(text)
    kinds = _kinds(text)
    if not rtl and _RTL_KINDS.isdisjoint(kinds) and INITIATORS.isdisjoint(kinds):
        return [0] * len(text)
    base = int(rtl)
    found, runs = isolating_runs(kinds, base)
    for run in runs:
        own = "R" if run.level % 2 else "L"
        resolved = _resolved("".join(text[i] for i in run.places), [kinds[i] for i in run.places], own, run)
        for i, kind in zip(run.places, resolved, strict=True):
            found[i] += _RISES[own][kind]
    # What X9 removes gets the level of the character before it, so that it divides no run (5.2).
    for i, kind in enumerate(kinds):
        if kind == REMOVED:
            found[i] = found[i - 1] if i else base
    return found


def in_visual_order(items: Sequence[Item], item_levels: Sequence[int]) -> list[Item]:
    """Items of one line from left to right, given in logical order (L2)."""
    order = list(range(len(items)))
    for level in range(max(item_levels, default=0), 0, -1):
        start = 0
        for deep, group in groupby(order, key=lambda i: item_levels[i] >= level):
            count = len(list(group))
            if deep:
                order[start : start + count] = reversed(order[start : start + count])
            start += count
    return [items[i] for i in order]


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


def _kinds(text: str) -> list[str]:
    return [unicodedata.bidirectional(c) or "L" for c in text]


def _resolved(text: str, kinds: list[str], own: str, run: IsolatingRun) -> list[str]:
    """The kinds of a run's characters after the rules W1 to N2: "L", "R", "EN" or "AN"."""
    marks = [kind == "NSM" for kind in kinds]
    _resolve_weak(kinds, run.before)
    _resolve_brackets(text, kinds, marks, own, run.before)
    _resolve_neutral(kinds, own, run)
    return kinds


def _resolve_weak(kinds: list[str], start: str) -> None:
    """W1 to W7: resolve marks, numbers and the signs in numbers, in place. `start` is the direction before them."""
    _resolve_marks(kinds, start)
    for i in range(1, len(kinds) - 1):
        if kinds[i - 1] == kinds[i + 1] and (kinds[i - 1], kinds[i]) in _SEPARATORS:
            kinds[i] = kinds[i - 1]
    _spread_terminators(kinds)
    strong = start
    for i, kind in enumerate(kinds):
        if kind in ("ES", "ET", "CS"):
            kinds[i] = "ON"
        elif kind in ("L", "R", "AL"):
            strong = kind
            kinds[i] = "R" if kind == "AL" else kind
        elif kind == "EN" and strong == "L":
            kinds[i] = "L"


def _resolve_marks(kinds: list[str], start: str) -> None:
    """W1 and W2: a mark gets the kind of its letter; a European number after Arabic letters is an Arabic one."""
    previous, strong = start, start
    for i, kind in enumerate(kinds):
        if kind == "NSM":
            kinds[i] = previous
        elif kind == "EN" and strong == "AL":
            kinds[i] = "AN"
        elif kind in ("L", "R", "AL"):
            strong = kind
        previous = "ON" if kind in _ISOLATING else kinds[i]


def _spread_terminators(kinds: list[str]) -> None:
    """W5: currency and percent signs beside a European number are part of it."""
    for order in (range(1, len(kinds)), range(len(kinds) - 2, -1, -1)):
        step = -1 if order.step > 0 else 1
        for i in order:
            if kinds[i] == "ET" and kinds[i + step] == "EN":
                kinds[i] = "EN"


def _resolve_brackets(text: str, kinds: list[str], marks: Sequence[bool], own: str, start_side: str) -> None:
    """N0: a pair of brackets, and the marks on it, take a direction from the text inside it."""
    for start, end in _pairs(text, kinds):
        inside = {_strong(kind) for kind in kinds[start + 1 : end]} - {None}
        if not inside:
            continue
        side = own
        if own not in inside:
            side = next((s for kind in reversed(kinds[:start]) if (s := _strong(kind))), start_side)
        for bracket in (start, end):
            kinds[bracket] = side
            for mark in takewhile(marks.__getitem__, range(bracket + 1, len(kinds))):
                kinds[mark] = side


def _pairs(text: str, kinds: list[str]) -> list[tuple[int, int]]:
    """Where each pair of brackets opens and closes, in the order of opening (BD16)."""
    stack: list[tuple[str, int]] = []
    pairs = []
    for i, character in enumerate(text.translate(_EQUIVALENT)):
        if kinds[i] != "ON" or character not in MIRRORED:
            continue
        if character in _OPENING:
            if len(stack) == _MAX_PENDING_BRACKETS:
                break
            stack.append((MIRRORED[character], i))
        else:
            at = next((n for n in range(len(stack) - 1, -1, -1) if stack[n][0] == character), None)
            if at is not None:
                pairs.append((stack[at][1], i))
                del stack[at:]
    return sorted(pairs)


def _resolve_neutral(kinds: list[str], own: str, run: IsolatingRun) -> None:
    """N1 and N2: neutrals between text of one direction take that direction, others that of their run."""
    before, start = run.before, 0
    for neutral, group in groupby(list(kinds), key=_NEUTRAL.__contains__):
        end = start + len(list(group))
        if neutral:
            after = _strong(kinds[end]) if end < len(kinds) else run.after
            kinds[start:end] = [before if before == after else own] * (end - start)
        else:
            before = _strong(kinds[end - 1]) or own
        start = end


def _strong(kind: str) -> str | None:
    """The direction a neutral sees: numbers count as right-to-left (N1)."""
    return "R" if kind in ("R", "AL", "EN", "AN") else "L" if kind == "L" else None
