"""Where words of scripts without spaces begin.

Those of Thai, Lao, Khmer and Burmese by the word lists of ICU, phrases of Japanese and words of
Chinese by the models of BudouX.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from gzip import decompress
from itertools import groupby, pairwise
from typing import NamedTuple

from cardbeat.files import read_bytes
from cardbeat.typeset.unicode.clusters import characters

MODELS = ("ja", "zh-Hans", "zh-Hant")
"""Languages (BCP 47) and the names of their models."""
_BETWEEN_KANJI = "[\u3005\u3400-\u9fff](?=[\u3005\u3400-\u9fff])"
_PARTICLES = frozenset("的地得了着著过過们們吗嗎呢吧个個")
"""Words of Chinese that stay with the one before them."""
_WINDOWS = {"UW": (1, -4), "BW": (2, -3), "TW": (3, -4)}
"""The models' features, as `BW1`: how many characters each looks at, and where `BW0` would begin.

Places are counted from the one that is judged: `BW1` is the two characters before it.
"""

SCRIPTS = {
    0x0E00: "thai",
    0x0E80: "lao",
    0x1000: "burmese",
    0x1780: "khmer",
}
"""The first of the 128 codepoints of a script's letters, and the name of its word list."""
JOINERS = dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060))
"""Invisible characters that a text may have inside a word. The word lists have none."""
_BLOCK = 128
_LONGEST = 33
"""Characters of the longest word in any list."""
_SHORT = 3
"""A word of fewer letters, beside letters in no word, is likely part of an unknown word."""
_UNKNOWN_COST = 2
"""Of a grapheme in no word; a word costs 1."""
_ABBREVIATING = "\u0e2f\u0eaf"
"""Signs of Thai and Lao after an abbreviation."""


class _Word(NamedTuple):
    """Neighbouring graphemes that stay together, from `start` on."""

    start: int
    letters: int
    is_known: bool

    @property
    def is_weak(self) -> bool:
        return not self.is_known or self.letters < _SHORT


def word_starts(graphemes: Sequence[str]) -> set[int]:
    """The graphemes of these scripts with which a word begins, as far as the lists tell."""
    starts: set[int] = set()
    start = 0
    for script, group in groupby(graphemes, key=_script_of):
        run = list(group)
        if script:
            starts.update(
                start + place for place in _starts(run, _words_of(script))
            )
        start += len(run)
    return starts


def has_words(grapheme: str) -> bool:
    """Whether a grapheme is of a script that has a list."""
    return ord(grapheme[0]) // _BLOCK * _BLOCK in SCRIPTS


def continues_syllable(grapheme: str) -> bool:
    """Whether no syllable can begin with this grapheme.

    Those are vowels written after their consonant, silent letters of Thai, and letters of Burmese
    without a vowel.
    """
    return bool(characters("inside_syllable").match(grapheme))


def encoded(text: str) -> bytes:
    """One byte for each character of one script, as in the lists.

    Others become a byte of no letter.
    """
    return bytes(
        0x80 | ord(c) % _BLOCK if has_words(c) else 0x20 for c in text
    )


def _script_of(grapheme: str) -> str:
    """The name of the list with a grapheme's words; "" for other scripts, digits and signs."""
    is_letter = (
        unicodedata.category(grapheme[0]) == "Lo"
        and grapheme[0] not in _ABBREVIATING
    )
    if not is_letter:
        return ""
    return SCRIPTS.get(ord(grapheme[0]) // _BLOCK * _BLOCK, "")


def _starts(
    graphemes: Sequence[str], known: frozenset[bytes]
) -> list[int]:
    """Where words begin among neighbours of one script.

    Letters in no word are joined with short words beside them; groups of one or two with the word
    before.
    """
    groups: list[_Word] = []
    was_weak = False
    for word in _fewest(graphemes, known):
        if (
            was_weak
            and word.is_weak
            and not (word.is_known and groups[-1].is_known)
        ):
            last = groups.pop()
            groups.append(
                _Word(
                    last.start,
                    last.letters + word.letters,
                    is_known=False,
                )
            )
        else:
            groups.append(word)
        was_weak = word.is_weak
    return [
        group.start
        for group in groups
        if group.is_known or group.letters >= _SHORT
    ]


def _fewest(
    graphemes: Sequence[str], known: frozenset[bytes]
) -> list[_Word]:
    """The fewest words that make up the text, the first the longest, and graphemes in no word."""
    parts = [
        encoded(grapheme.translate(JOINERS)) for grapheme in graphemes
    ]
    begins = [
        not continues_syllable(grapheme) for grapheme in graphemes
    ] + [True]
    costs = [0] * (len(parts) + 1)
    words: list[list[_Word]] = [[]]
    """The best words from each place on, the last place first."""
    for start in reversed(range(len(parts))):
        costs[start] = costs[start + 1] + _UNKNOWN_COST
        best = [
            _Word(start, len(parts[start]), is_known=False),
            *words[-1],
        ]
        tried = b""
        for end in range(
            start + 1, len(parts) + 1 if begins[start] else 0
        ):
            tried += parts[end - 1]
            if len(tried) > _LONGEST:
                break
            if (
                begins[end]
                and costs[end] + 1 <= costs[start]
                and tried in known
            ):
                costs[start] = costs[end] + 1
                best = [
                    _Word(start, len(tried), is_known=True),
                    *words[len(parts) - end],
                ]
        words.append(best)
    return words[-1]


@cache
def _words_of(script: str) -> frozenset[bytes]:
    """All words of a script.

    In the file a line is two letters, and after spaces what may follow them.
    """
    words = []
    for line in decompress(read_bytes(f"words/{script}.gz")).split(b"\n"):
        first, *rests = line.split(b" ")
        words += [first + rest for rest in rests] or [first]
    return frozenset(words)


def phrase_starts(text: str, language: str) -> set[int]:
    """The characters of a text in a language of `MODELS` with which a phrase begins.

    In Japanese none begins between two kanji, where the model is mostly wrong.
    """
    model = _model(language.lower())
    half = sum(sum(weights.values()) for weights in model.values()) / 2
    starts = [0]
    for place in range(1, len(text)):
        total = 0
        for name, weights in model.items():
            length, offset = _WINDOWS[name[:2]]
            first = place + offset + int(name[2:])
            if first >= 0:
                total += weights.get(text[first : first + length], 0)
        if total > half:
            starts.append(place)
    if language == "ja":
        return set(starts) - {
            match.end() for match in re.finditer(_BETWEEN_KANJI, text)
        }
    words = pairwise([*starts, len(text)])
    return {
        start for start, end in words if text[start:end] not in _PARTICLES
    }


@cache
def _model(name: str) -> dict[str, dict[str, int]]:
    model: dict[str, dict[str, int]] = json.loads(
        decompress(read_bytes(f"words/{name}.json.gz"))
    )
    return model
