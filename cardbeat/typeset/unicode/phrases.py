"""Where phrases of Japanese and words of Chinese begin, by the models of BudouX in `cardbeat/words`."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from gzip import decompress
from itertools import pairwise

from cardbeat.resources import read_bytes

MODELS = {"ja": "ja", "zh-Hans": "zh-hans", "zh-Hant": "zh-hant"}
"""Languages (BCP 47) and the names of their models."""
# A pattern with thousands of characters takes long to compile: not before a text needs it.
_BETWEEN_KANJI = "[\u3005\u3400-\u9fff](?=[\u3005\u3400-\u9fff])"
_PARTICLES = frozenset("的地得了着著过過们們吗嗎呢吧个個")
_NUMBER = "[一二两兩三四五六七八九十百千万萬亿億几幾每这這那]+"
_WINDOWS = {
    "UW1": (-3, -2), "UW2": (-2, -1), "UW3": (-1, 0), "UW4": (0, 1), "UW5": (1, 2), "UW6": (2, 3),
    "BW1": (-2, 0), "BW2": (-1, 1), "BW3": (0, 2),
    "TW1": (-3, 0), "TW2": (-2, 1), "TW3": (-1, 2), "TW4": (0, 3),
}  # fmt: skip
"""The model's features: the characters that each looks at, counted from the place that is judged."""


class PhraseModel:
    """A linear classifier. A phrase begins where the weights of the text around are more than half of all weights."""

    def __init__(self, weights: Mapping[str, Mapping[str, int]]) -> None:
        self._windows = [(*_WINDOWS[name], weights[name]) for name in _WINDOWS if name in weights]
        self._half = sum(sum(feature.values()) for feature in weights.values()) / 2

    def starts(self, text: str) -> Iterator[int]:
        """The characters with which a phrase begins, without the first."""
        for at in range(1, len(text)):
            found = (
                feature.get(text[at + first : at + end], 0) for first, end, feature in self._windows if at + first >= 0
            )
            if sum(found) > self._half:
                yield at


def phrase_starts(text: str, language: str) -> set[int]:
    """The characters of a text in a language of `MODELS` with which a phrase begins.

    In Japanese none begins between two kanji, where the model is mostly wrong. In Chinese, particles stay with the word
    before them, and measure words of one character with their number.
    """
    starts = [0, *_model(MODELS[language]).starts(text)]
    if language == "ja":
        return {*starts} - {match.end() for match in re.finditer(_BETWEEN_KANJI, text)}
    words = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    joined = {n for n, (before, word) in enumerate(pairwise(words), 1) if _continues(before, word)}
    return {start for n, start in enumerate(starts) if n not in joined}


def _continues(before: str, word: str) -> bool:
    """Whether a word of Chinese stays with the one before it."""
    return word in _PARTICLES or bool(
        re.fullmatch(_NUMBER, before) and (len(word) == 1 or re.fullmatch(_NUMBER, word[:1]))
    )


@lru_cache
def _model(name: str) -> PhraseModel:
    return PhraseModel(json.loads(decompress(read_bytes(f"words/{name}.json.gz"))))
