"""The visual order of letters on a line (UAX #9, whose rules are named by their numbers).

Left out are rule L1 (white space at the end of a line is not drawn), and what `clusters.clean`
removes from every text: embeddings, overrides and isolates. So a paragraph is one run at one level.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby
from typing import TypeVar

from cardbeat.files import read_text

Item = TypeVar("Item")

MIRRORED = {
    pair[0]: pair[1] for pair in read_text("words/brackets.txt").split()
}
"""Brackets, and what stands for them from right to left."""
_EQUIVALENT = str.maketrans("\u2329\u232a", "\u3008\u3009")
"""BD16: brackets that also pair with their canonical equivalents."""
_MAX_PENDING_BRACKETS = 63
"""BD16."""
_LETTERS = {
    "L": "L",
    "R": "R",
    "AL": "A",
    "EN": "E",
    "AN": "N",
    "ES": "S",
    "ET": "T",
    "CS": "C",
    "NSM": "M",
}
"""Kinds of characters as one letter each. All others are neutral: O."""
_WEAK = (
    ("A[^LRA]+", "E", "N"),
    ("A", "A", "R"),
    ("(?<=E)[SC](?=E)", ".", "E"),
    ("(?<=N)C(?=N)", ".", "N"),
    ("T*E[ET]*", ".", "E"),
    ("[STC]", ".", "O"),
    ("L[^LR]+", "E", "L"),
)
"""W2 to W7: a pattern of kinds, and which of them become which.

Numbers after Arabic are Arabic, signs in and beside a number belong to it, others are neutral, and
numbers after Latin are Latin. W1, before them: a mark is like its letter.
"""
_NEUTRAL = (
    ("(?<=L)O+(?=L)", ".", "L"),
    ("(?<=[REN])O+(?=[REN])", ".", "R"),
)
"""N1: neutrals between text of one direction take it."""
_STRONG = {"L": "L", "R": "R", "E": "R", "N": "R"}
"""The direction that a neutral sees: numbers count as right-to-left (N1)."""
_RISES = {
    "L": {"L": 0, "R": 1, "E": 2, "N": 2},
    "R": {"R": 0, "L": 1, "E": 1, "N": 1},
}
"""I1 and I2: by the paragraph's direction and a kind, how far its level is above the base."""


def is_rtl(text: str) -> bool:
    """Whether the first strong character is right-to-left (P2, P3)."""
    kinds = map(unicodedata.bidirectional, text)
    return (
        next((kind for kind in kinds if kind in ("L", "R", "AL")), "L")
        != "L"
    )


def levels(text: str, rtl: bool) -> list[int]:
    """The embedding level of each character in a paragraph: odd is right-to-left."""
    kinds = [
        unicodedata.bidirectional(character) or "L" for character in text
    ]
    if not rtl and {"R", "AL", "AN"}.isdisjoint(kinds):
        return [0] * len(text)
    side = "R" if rtl else "L"
    # X9 removes invisible characters (BN). Each then has the level of the one before it (5.2).
    visible = [place for place, kind in enumerate(kinds) if kind != "BN"]
    letters = "".join(
        _LETTERS.get(kinds[place], "O") for place in visible
    )
    resolved = iter(
        _resolved(
            "".join(text[place] for place in visible), letters, side
        )
    )
    level = int(rtl)
    found = []
    for kind in kinds:
        if kind != "BN":
            level = int(rtl) + _RISES[side][next(resolved)]
        found.append(level)
    return found


def in_visual_order(
    items: Sequence[Item], item_levels: Sequence[int]
) -> list[Item]:
    """Items of one line from left to right, given in logical order (L2)."""
    order = list(range(len(items)))
    for level in range(max(item_levels, default=0), 0, -1):
        turned: list[int] = []
        for is_deep, group in groupby(
            order, key=lambda i: item_levels[i] >= level
        ):
            places = list(group)
            turned += reversed(places) if is_deep else places
        order = turned
    return [items[i] for i in order]


def _resolved(text: str, kinds: str, side: str) -> str:
    """W1 to N2: the kinds of all characters, each L, R, E or N.

    The paragraph's direction stands before and after them. So in a paragraph from the left, `E` of
    "12 א" is `L` (W7), and the space, between L and R, is `L` as the paragraph (N2).
    """
    found = re.sub(
        "(.)M+", lambda part: part[1] * len(part[0]), side + kinds
    )
    for rule in _WEAK:
        found = _replaced(found, *rule)
    found = side + _with_brackets(text, found[1:], kinds, side) + side
    for rule in _NEUTRAL:
        found = _replaced(found, *rule)
    return found.replace("O", side)[1:-1]


def _replaced(kinds: str, pattern: str, old: str, new: str) -> str:
    """The kinds, with others in the parts that have a pattern."""
    return re.sub(pattern, lambda part: re.sub(old, new, part[0]), kinds)


def _with_brackets(text: str, found: str, kinds: str, side: str) -> str:
    """N0: a pair of brackets, and the marks on it, take a direction from the text inside it."""
    resolved = list(found)
    for start, end in _pairs(text, found):
        inside = [
            _STRONG[kind]
            for kind in resolved[start:end]
            if kind in _STRONG
        ]
        if not inside:
            continue
        before = [
            _STRONG[kind]
            for kind in (side, *resolved[:start])
            if kind in _STRONG
        ]
        direction = side if side in inside else before[-1]
        for bracket in (start, end):
            marks = re.match("M*", kinds[bracket + 1 :])
            length = 1 + len(marks[0] if marks else "")
            resolved[bracket : bracket + length] = direction * length
    return "".join(resolved)


def _pairs(text: str, kinds: str) -> list[tuple[int, int]]:
    """Where each pair of brackets opens and closes, in the order of opening (BD16)."""
    opened: list[tuple[str, int]] = []
    pairs = []
    for place, character in enumerate(text.translate(_EQUIVALENT)):
        if kinds[place] != "O" or character not in MIRRORED:
            continue
        kind = unicodedata.category(character)
        if kind == "Ps" and len(opened) == _MAX_PENDING_BRACKETS:
            break
        if kind == "Ps":
            opened.append((MIRRORED[character], place))
        elif kind == "Pe" and any(
            closing == character for closing, _ in opened
        ):
            while opened[-1][0] != character:
                opened.pop()
            pairs.append((opened.pop()[1], place))
    return sorted(pairs)
