"""Where words begin in Thai, Lao, Khmer and Burmese, which put no spaces between them, by word lists of ICU."""

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
"""The first of the 128 codepoints that hold the letters of a script, and the name of its word list."""
JOINERS = dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060))
"""Invisible characters that a text may have inside a word. The word lists have none."""
_BLOCK = 128
_LONGEST = 33  # characters of the longest word in any list
_SHORT = 3  # a word of fewer letters, beside letters in no word, is more likely a part of the same unknown word
_UNKNOWN_COST = 2.0  # of a grapheme in no word; a word costs 1
_CLOSES_SYLLABLE = re.compile(".[^\u0e4c]*\u0e4c|.\u1037?\u103a(?!\u1039)")
"""Ends of syllables: silent letters of Thai, and letters of Burmese without a vowel."""
_NEVER_FIRST = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3\u0ebd"  # vowels written after their consonant
_ABBREVIATING = "\u0e2f\u0eaf"  # signs of Thai and Lao after an abbreviation


def word_starts(graphemes: Sequence[str]) -> set[int]:
    """The graphemes of these scripts with which a word begins, as far as the lists tell."""
    starts: set[int] = set()
    start = 0
    for name, group in groupby(graphemes, key=_script_of):
        run = list(group)
        if name:
            starts.update(start + at for at in _list_of(name).starts(run))
        start += len(run)
    return starts


def _script_of(grapheme: str) -> str:
    """The name of the list with a grapheme's words; "" for other scripts, and for digits and signs."""
    character = grapheme[0]
    name = SCRIPTS.get(ord(character) // _BLOCK * _BLOCK, "")
    return name if name and unicodedata.category(character) == "Lo" and character not in _ABBREVIATING else ""


def has_words(grapheme: str) -> bool:
    """Whether a grapheme is of a script that has a list."""
    return ord(grapheme[0]) // _BLOCK * _BLOCK in SCRIPTS


def continues_syllable(grapheme: str) -> bool:
    """Whether no syllable can begin with this grapheme."""
    return grapheme[0] in _NEVER_FIRST or bool(_CLOSES_SYLLABLE.match(grapheme))


def encoded(text: str) -> bytes:
    """One byte for each character of one script, as in the lists. Other characters become a byte of no letter."""
    return bytes(0x80 | ord(c) % _BLOCK if ord(c) // _BLOCK * _BLOCK in SCRIPTS else 0x20 for c in text)


class _Group(NamedTuple):
    """Neighbours that stay together: the first grapheme, the number of letters, and whether they are in the list."""

    start: int
    letters: int
    known: bool


class WordList:
    """All words of one script, in lines by their first two letters. A line is unpacked when a text needs it.

    A line is those letters and then, each after a space, the rest of a word. A word of one letter is a line by itself.
    """

    def __init__(self, lines: bytes) -> None:
        self._lines = {line[: 2 if line[1:2] > b" " else 1]: line for line in lines.split(b"\n")}

    def starts(self, graphemes: Sequence[str]) -> list[int]:
        """Where words begin among neighbours of its script.

        Letters in no word are joined with short words beside them. Groups of one or two are joined to the word before.
        """
        groups: list[_Group] = []
        weak_before = False
        for word in self._words(graphemes):
            weak = not word.known or word.letters < _SHORT
            if groups and weak and weak_before and not (word.known and groups[-1].known):
                groups[-1] = _Group(groups[-1].start, groups[-1].letters + word.letters, known=False)
            else:
                groups.append(word)
            weak_before = weak
        return [group.start for group in groups if group.known or group.letters >= _SHORT]

    def _words(self, graphemes: Sequence[str]) -> Iterator[_Group]:
        """The fewest words that make up the text, the first ones the longest, and single graphemes in no word."""
        parts = [encoded(g.translate(JOINERS)) for g in graphemes]
        ends = list(accumulate(map(len, parts), initial=0))
        best = self._best_ends(b"".join(parts), ends, [not continues_syllable(g) for g in graphemes])
        start = 0
        while start < len(graphemes):
            end, known = best[start]
            yield _Group(start, ends[end] - ends[start], known)
            start = end

    def _best_ends(self, text: bytes, ends: Sequence[int], begins: Sequence[bool]) -> list[tuple[int, bool]]:
        """For each grapheme, the end of the best first word of the text from there, and whether it is a word."""
        count = len(ends) - 1
        costs = [0.0] * (count + 1)
        best = [(0, False)] * count
        rests: dict[bytes, frozenset[bytes]] = {}
        for start in range(count - 1, -1, -1):
            costs[start], best[start] = costs[start + 1] + _UNKNOWN_COST, (start + 1, False)
            if not begins[start]:
                continue
            for end in self._word_ends(text, ends, start, rests):
                if costs[end] + 1 < costs[start] and (end == count or begins[end]):
                    costs[start], best[start] = costs[end] + 1, (end, True)
        return best

    def _word_ends(
        self, text: bytes, ends: Sequence[int], start: int, rests: dict[bytes, frozenset[bytes]]
    ) -> list[int]:
        """The ends of the words that begin with a grapheme, the longest first. `rests` keeps unpacked lines."""
        first = ends[start]
        letters = text[first : first + 2]
        if letters not in rests:
            rests[letters] = frozenset(self._lines.get(letters, b"").split(b" ")[1:])
        last = bisect_right(ends, first + _LONGEST) - 1
        found = [end for end in range(last, start, -1) if text[first + 2 : ends[end]] in rests[letters]]
        alone = ends[start + 1] == first + 1
        if alone and found and found[-1] == start + 1:
            found.pop()
        return [*found, start + 1] if alone and letters[:1] in self._lines else found


@lru_cache
def _list_of(script: str) -> WordList:
    return WordList(decompress(read_bytes(f"words/{script}.gz")))
