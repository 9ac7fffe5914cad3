"""Where phrases of Japanese and words of Chinese begin, by the models of BudouX."""

import json
import re
from functools import cache
from gzip import decompress
from itertools import pairwise

from cardbeat.files import read_bytes

MODELS = ("ja", "zh-Hans", "zh-Hant")
"""Languages (BCP 47) and the names of their models."""
_BETWEEN_KANJI = "[\u3005\u3400-\u9fff](?=[\u3005\u3400-\u9fff])"
_PARTICLES = frozenset("的地得了着著过過们們吗嗎呢吧个個")
"""Words of Chinese that stay with the one before them."""
_WINDOWS = {"UW": (1, -4), "BW": (2, -3), "TW": (3, -4)}
"""The models' features, as `BW1`: how many characters each looks at, and where `BW0` would begin.

Places are counted from the one that is judged: `BW1` is the two characters before it.
"""


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
        return set(starts) - {match.end() for match in re.finditer(_BETWEEN_KANJI, text)}
    words = pairwise([*starts, len(text)])
    return {start for start, end in words if text[start:end] not in _PARTICLES}


@cache
def _model(name: str) -> dict[str, dict[str, int]]:
    model: dict[str, dict[str, int]] = json.loads(decompress(read_bytes(f"words/{name}.json.gz")))
    return model
