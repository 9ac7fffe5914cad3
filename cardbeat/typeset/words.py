"""Where words begin in Thai, Lao, Khmer and Burmese, which put no spaces between them: by word lists of ICU."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from gzip import decompress
from itertools import accumulate, groupby
from typing import NamedTuple

from cardbeat.resources import read_bytes

SCRIPTS = {0x0E00: "thai", 0x0E80: "lao", 0x1000: "burmese", 0x1780: "khmer"}
"""The first of the 128 code points that have the letters of a script, and its word list."""
JOINERS = dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060))
"""What may stand in a word without being written in the list."""
_BLOCK = 128
_LONGEST = 33
"""Letters and signs of the longest word in any list."""
_SHORT = 3
"""A word of fewer, beside letters that make no word, is more likely a part of the same unknown one."""
_UNKNOWN_COST = 2.0
"""Of a grapheme that is in no word, where a word costs 1."""
_CLOSES_SYLLABLE = re.compile(".[^\u0e4c]*\u0e4c|.\u1037?\u103a(?!\u1039)")
"""Letters of Thai that are not spoken and of Burmese that have no vowel."""
_NEVER_FIRST = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3\u0ebd"
"""Vowels written after their consonant."""
_ABBREVIATING = "\u0e2f\u0eaf"
"""Signs of Thai and Lao after what is shortened."""


def word_starts(graphemes: Sequence[str]) -> set[int]:
    """The graphemes of these scripts with which a word begins, as far as the lists tell."""
    starts: set[int] = set()
    start = 0
    for name, end in _runs(graphemes):
        if name:
            starts.update(start + at for at in _list_of(name).starts(graphemes[start:end]))
        start = end
    return starts


def _script_of(grapheme: str) -> str:
    """Which list has the words that a grapheme may be in; "" for other scripts and for digits and signs."""
    character = grapheme[0]
    name = SCRIPTS.get(ord(character) // _BLOCK * _BLOCK, "")
    return name if name and unicodedata.category(character) == "Lo" and character not in _ABBREVIATING else ""


def has_words(grapheme: str) -> bool:
    """Whether a grapheme is of a script that has a list."""
    return ord(grapheme[0]) // _BLOCK * _BLOCK in SCRIPTS


def encoded(text: str) -> bytes:
    """One byte for each character of one script, as in the lists; another character is like no letter."""
    return bytes(0x80 | ord(c) % _BLOCK if ord(c) // _BLOCK * _BLOCK in SCRIPTS else 0x20 for c in text)


class WordList:
    """All words of one script, in lines by their first two letters; a line is unpacked when a text needs it.

    A line is those letters and then, each after a space, what follows them in a word. A word of one letter is a line.
    """

    def __init__(self, lines: bytes) -> None:
        self._lines = {line[: 2 if line[1:2] > b" " else 1]: line for line in lines.split(b"\n")}

    def has_letter(self, letter: bytes) -> bool:
        """Whether a letter is a word by itself."""
        return letter in self._lines

    def after(self, letters: bytes) -> frozenset[bytes]:
        """What follows two letters in the words that begin with them."""
        return frozenset(self._lines.get(letters, b"").split(b" ")[1:])

    def starts(self, graphemes: Sequence[str]) -> list[int]:
        """Where words begin among neighbours of its script.

        Letters that make no word stay with short words beside them, and where they are few with the word before.
        """
        groups: list[_Group] = []
        weak_before = False
        for word in self._words(graphemes):
            weak = not word.known or word.letters < _SHORT
            if groups and weak and weak_before and not (word.known and groups[-1].known):
                groups[-1] = groups[-1].with_(word)
            else:
                groups.append(word)
            weak_before = weak
        return [group.start for group in groups if group.known or group.letters >= _SHORT]

    def _words(self, graphemes: Sequence[str]) -> Iterator["_Group"]:
        """The fewest words that make up the text, the first ones the longest, and what is in none of them."""
        parts = [encoded(g.translate(JOINERS)) for g in graphemes]
        ends = list(accumulate(map(len, parts), initial=0))
        best = self._best_ends(b"".join(parts), ends, [not continues_syllable(g) for g in graphemes])
        start = 0
        while start < len(graphemes):
            end, known = best[start]
            yield _Group(start, ends[end] - ends[start], known)
            start = end

    def _best_ends(self, text: bytes, ends: Sequence[int], begins: Sequence[bool]) -> list[tuple[int, bool]]:
        """For each grapheme with which word from there the text is split best: its end, and whether it is a word."""
        count = len(ends) - 1
        costs = [0.0] * (count + 1)
        best = [(0, False)] * count
        groups: dict[bytes, frozenset[bytes]] = {}
        for start in range(count - 1, -1, -1):
            costs[start], best[start] = costs[start + 1] + _UNKNOWN_COST, (start + 1, False)
            if not begins[start]:
                continue
            for end in self._word_ends(text, ends, start, groups):
                if costs[end] + 1 < costs[start] and (end == count or begins[end]):
                    costs[start], best[start] = costs[end] + 1, (end, True)
        return best

    def _word_ends(
        self, text: bytes, ends: Sequence[int], start: int, groups: dict[bytes, frozenset[bytes]]
    ) -> list[int]:
        """Where the words end that begin with a grapheme, the longest first. `groups` keeps the words unpacked."""
        first = ends[start]
        letters = text[first : first + 2]
        if letters not in groups:
            groups[letters] = self.after(letters)
        rests = groups[letters]
        last = bisect_right(ends, first + _LONGEST) - 1
        found = [end for end in range(last, start, -1) if text[first + 2 : ends[end]] in rests]
        alone = ends[start + 1] == first + 1
        if alone and found and found[-1] == start + 1:
            found.pop()
        return [*found, start + 1] if alone and self.has_letter(letters[:1]) else found


class _Group(NamedTuple):
    """Neighbours that stay together: the first grapheme, how many letters, and whether they are in the list."""

    start: int
    letters: int
    known: bool

    def with_(self, after: "_Group") -> "_Group":
        return _Group(self.start, self.letters + after.letters, known=False)


@lru_cache
def _list_of(script: str) -> WordList:
    return WordList(decompress(read_bytes(f"words/{script}.gz")))


def continues_syllable(grapheme: str) -> bool:
    """Whether letters show that no syllable begins with it."""
    return grapheme[0] in _NEVER_FIRST or bool(_CLOSES_SYLLABLE.match(grapheme))


def _runs(graphemes: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Neighbours of one script: its list, and where they end."""
    end = 0
    for script, group in groupby(graphemes, key=_script_of):
        end += sum(1 for _ in group)
        yield script, end
