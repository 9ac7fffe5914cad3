"""Where long words of Latin, Greek and Cyrillic may get a hyphen: between syllables, as letters show them."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import sub

from cardbeat.typeset.unicode.clusters import is_european

_LONG = 18  # letters of the shortest word that gets hyphens: large, it is wider than the middle square
_VERY_LONG = 28  # letters between two joints that get more
_LEAST = 3  # letters of a word before its first hyphen and after its last
_VOWELS = frozenset("aeiouyæœøıαεηιουωаеёиоуыэюяіїєѣ")
_PAIRS = (
    "ch ck gh ph rh sh th sch bl br cl cr dr fl fr gl gr kl kr pl pr tr vr"
    " βλ βρ γλ γρ δρ θρ κλ κρ πλ πρ τρ φλ φρ χλ χρ бл бр вл вр гл гр др кл кр пл пр тр фл фр хр"
)
_GERMAN = re.compile("(?<=ungs|eits)(?=[a-z])|(?<=schafts)(?=[a-z])|(?<=[ts]ions)(?=[a-z])|(?<=[a-z])(?=uber|unter)")
"""Where words of German are joined. If such places are close enough, no syllables are guessed."""
_TOGETHER = frozenset(_PAIRS.split())
"""Consonants that begin a syllable together. Of others, only the last one before a vowel does."""


def syllables(graphemes: Sequence[str]) -> Iterator[int]:
    """The graphemes that begin a syllable inside a long word."""
    if max(map(len, "".join(graphemes).split(" "))) < _LONG:
        return
    start = 0
    for end in range(len(graphemes) + 1):
        if end == len(graphemes) or not (graphemes[end][0].isalpha() and is_european(graphemes[end][0])):
            if end - start >= _LONG:
                letters = [_plain(grapheme) for grapheme in graphemes[start:end]]
                starts = [match.start() for match in _GERMAN.finditer("".join(letters))]
                if not starts or max(map(sub, [*starts, len(letters)], [0, *starts])) >= _VERY_LONG:
                    guessed = [at for at in _starts(letters) if all(abs(at - joint) > _LEAST for joint in starts)]
                    starts = sorted(starts + guessed)
                yield from (start + at for at in starts if _LEAST <= at <= len(letters) - _LEAST)
            start = end + 1


def _starts(letters: Sequence[str]) -> Iterator[int]:
    vowels = [at for at, letter in enumerate(letters) if letter in _VOWELS]
    for before, after in pairwise(vowels):
        if after - before > 1:
            most = min(3, after - before - 1)
            groups = ("".join(letters[after - size : after]) for size in range(most, 1, -1))
            yield after - next((len(group) for group in groups if group in _TOGETHER), 1)


def _plain(grapheme: str) -> str:
    """Its letter in lower case, without marks. The short i of Cyrillic is no vowel without its mark."""
    letter = grapheme[0].lower()
    return letter if letter in "йў" else unicodedata.normalize("NFD", letter)[0]
