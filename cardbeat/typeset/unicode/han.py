"""The language of a text: the shapes of its Han characters, and its small words."""

import json
import re
from functools import cache

from cardbeat.files import read_text

_LANGUAGES: dict[str, dict[str, str]] = json.loads(
    read_text("words/languages.json")
)
REGIONS = _LANGUAGES["regions"]
"""Languages with Han (BCP 47), and the letters of their shapes in `FontFile.regions`."""
_TAGS = _LANGUAGES["tags"]
"""Patterns of the beginnings of language tags, and their languages of `REGIONS`."""
_COUNTRIES = _LANGUAGES["countries"]
"""Patterns of the ends of domains."""
_LETTERS = _LANGUAGES["letters"]
"""Kana, Hangul and Bopomofo."""
_USUAL = _LANGUAGES["usual"]
"""Character sets that hold the usual characters of each language, the preferred language first."""
_ALL = _LANGUAGES["all"]
"""Character sets that hold all characters of each language."""
_LAST_COMMON_KANJI = b"\x98\x72"
"""The end of the first level of JIS X 0208 in Shift JIS. The second has old forms, as Chinese."""
_SAMPLE = 100
"""Han characters, enough to tell a language by."""


def language_of(text: str, tag: str = "", domain: str = "") -> str:
    """The language of `REGIONS` whose Han shapes a text wants. A language tag decides.

    Without one, kana are Japanese, Hangul is Korean and Bopomofo is from Taiwan; else it is the
    language of the domain's country, if that has all of the text's Han; else the one that has most
    of them.
    """
    for beginning, language in _TAGS.items():
        if re.match(rf"({beginning})(-|$)", tag, re.IGNORECASE):
            return language
    if text.isascii():
        return "zh-Hans"
    counts = {
        language: len(re.findall(signs, text))
        for signs, language in _LETTERS.items()
    }
    language = max(counts, key=counts.__getitem__)
    if counts[language]:
        return language
    han = "".join(re.findall("[\u3400-\u9fff]", text)[:_SAMPLE])
    country = domain.rstrip("./ ").lower().rpartition(".")[2]
    for countries, language in _COUNTRIES.items():
        if re.fullmatch(countries, country) and len(
            _encoded(han, _ALL[language])
        ) == len(han):
            return language
    return max(_USUAL, key=lambda language: _usual_of(han, language))


def small_words(text: str, tag: str = "") -> frozenset[str]:
    """Articles, prepositions, conjunctions and words for "new", with which no line should end.

    Without a language tag that is known, the language of which the text has most such words.
    """
    by_language = _small_words()
    language = tag.lower().partition("-")[0]
    if language in by_language:
        return by_language[language]
    words = set(text.lower().split())
    return max(by_language.values(), key=lambda small: len(small & words))


@cache
def _small_words() -> dict[str, frozenset[str]]:
    lines = map(str.split, read_text("words/small.txt").splitlines())
    return {language: frozenset(words) for language, *words in lines}


def _usual_of(han: str, language: str) -> int:
    """How many characters are usual in a language. Those that only Chinese has are simplified."""
    codes = _encoded(han, _USUAL[language])
    if language == "ja":
        return sum(code <= _LAST_COMMON_KANJI for code in codes)
    if language == "zh-Hans":
        others = [_ALL["ja"], _ALL["zh-Hant"], _ALL["ko"]]
        codes += [
            b""
            for c in han
            if not any(_encoded(c, other) for other in others)
        ]
    return len(codes)


def _encoded(text: str, character_set: str) -> list[bytes]:
    """The characters that a set has, encoded."""
    codes = [
        character.encode(character_set, "ignore") for character in text
    ]
    return [code for code in codes if code]
