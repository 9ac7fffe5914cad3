"""Han characters are one codepoint in several national shapes: which of them a text wants."""

REGIONS = {"ja": "j", "ko": "k", "zh-Hans": "s", "zh-Hant": "t"}
"""Languages (BCP 47) and the letters that stand for their shapes in `FontSubset.regions`."""


def language_of(text: str, otherwise: str | None = None) -> str:
    """The language of `REGIONS` whose Han shapes a text wants.

    Kana are Japanese, Hangul is Korean. Without either it is `otherwise`; where that is not given, the language
    whose character set (GB 2312, Big5, Shift JIS) holds most of the text's Han.
    """
    kana = sum("\u3041" <= c <= "\u30ff" or "\uff66" <= c <= "\uff9d" for c in text)
    hangul = sum("\uac00" <= c <= "\ud7a3" or "\u1100" <= c <= "\u11ff" for c in text)
    if kana or hangul:
        return "ja" if kana >= hangul else "ko"
    if otherwise:
        return otherwise
    han = "".join(c for c in text if "\u3400" <= c <= "\u9fff")
    sets = {"zh-Hans": "gb2312", "zh-Hant": "big5", "ja": "shift_jis"}
    return max(sets, key=lambda language: len(han.encode(sets[language], "ignore")))
