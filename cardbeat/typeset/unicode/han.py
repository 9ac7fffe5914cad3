"""The national shapes of Han characters, one codepoint for all: which of them a text wants."""

import re
from itertools import islice

REGIONS = {"ja": "j", "ko": "k", "zh-Hans": "s", "zh-Hant": "t"}
"""Languages (BCP 47), and the letters that stand for their shapes in `FontSubset.regions`."""

_DOMAINS = {
    ".jp": "ja",
    ".kr": "ko",
    ".cn": "zh-Hans",
    ".sg": "zh-Hans",
    ".tw": "zh-Hant",
    ".hk": "zh-Hant",
    ".mo": "zh-Hant",
}
_CHARACTER_SETS = {"zh-Hans": "gb2312", "ja": "shift_jis", "zh-Hant": "big5"}
"""The usual characters of each language, in the order of preference where several have all."""
_ENCODINGS = {"zh-Hans": "gbk", "ja": "cp932", "zh-Hant": "big5hkscs", "ko": "euc_kr"}
"""All characters that each language can be written with."""
_LAST_COMMON_KANJI = b"\x98\x72"
"""The end of the first level of JIS X 0208 in Shift JIS. The second level holds old forms, which Chinese uses."""
_SAMPLE = 100  # Han characters, enough to tell a language by
_PLACES = re.compile("([台臺]北|[台臺][灣湾中南東]|高雄|新竹|香港|九龍|澳門)|(東京|大阪|京都|横浜|日本)")
"""Places in characters that two languages share: in Taiwan, Hong Kong and Macau, or in Japan."""


def language_of(text: str, otherwise: str | None = None, domain: str = "") -> str:
    """The language of `REGIONS` whose Han shapes a text wants.

    Kana are Japanese, Hangul is Korean, Bopomofo is from Taiwan. Without any of them it is `otherwise`, if given; else
    the language of the domain's country, if it has all of the text's Han; else the one with most of them.
    """
    if otherwise and text.isascii():
        return otherwise
    kana = sum("\u3041" <= c <= "\u30ff" or "\uff66" <= c <= "\uff9d" for c in text)
    hangul = sum("\uac00" <= c <= "\ud7a3" or "\u1100" <= c <= "\u11ff" for c in text)
    if kana or hangul:
        return "ja" if kana >= hangul else "ko"
    if otherwise:
        return otherwise
    if any("\u3105" <= c <= "\u312f" for c in text):
        return "zh-Hant"
    han = "".join(islice((c for c in text if "\u3400" <= c <= "\u9fff"), _SAMPLE))
    language = _DOMAINS.get(domain.rstrip("./ ").lower()[-3:])
    return language if language and all(_can_write(language, c) for c in han) else _by_characters(han, text)


def _by_characters(han: str, text: str) -> str:
    held = {language: _held(han, language) for language in _CHARACTER_SETS}
    most = max(held.values())
    place = _PLACES.search(text)
    named = ("zh-Hant" if place[1] else "ja") if place else None
    if named and held[named] == most:
        return named
    return next(language for language, count in held.items() if count == most)


def _held(han: str, language: str) -> int:
    """How many of the characters are usual in a language. Those that only Chinese can write count as simplified."""
    encoded = [character.encode(_CHARACTER_SETS[language], "ignore") for character in han]
    if language == "zh-Hans":
        others = ("ja", "zh-Hant", "ko")
        return sum(
            bool(code) or not any(_can_write(other, character) for other in others)
            for character, code in zip(han, encoded, strict=True)
        )
    return sum(bool(code) and (language != "ja" or code <= _LAST_COMMON_KANJI) for code in encoded)


def _can_write(language: str, character: str) -> bool:
    return bool(character.encode(_ENCODINGS[language], "ignore"))
