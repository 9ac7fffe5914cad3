"""Short texts with rules of their own: a domain, and the first letter of a name for an avatar."""

import re
import unicodedata

from cardbeat.typeset.faces.emoji import is_emoji
from cardbeat.typeset.unicode.clusters import clean, clusters

_LOOKED_AT = 64
"""Characters of a name in which its first letter is looked for."""
_LEADING_VOWEL = re.compile("[\u0e40-\u0e44\u0ec0-\u0ec4]")
"""Vowels of Thai and Lao that are written before the consonant that begins the word."""
_EAST_ASIAN = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "KATAKANA-HIRAGANA",
    "HANGUL",
    "BOPOMOFO",
    "IDEOGRAPHIC",
)


def readable_domain(domain: str) -> str:
    """A domain as people write it: `münchen.example` for `xn--mnchen-3ya.example`.

    A name in which letters of several scripts are mixed stays encoded: it may imitate another one.
    """
    return ".".join(map(_decoded, domain.split(".")))


def initial_of(name: str) -> str:
    """The first letter of a name as a grapheme, in upper case where its script has it.

    Quotation marks, `@` and other signs before it are skipped. "" for a name without letters and
    emoji.
    """
    graphemes = clusters(clean(name[:_LOOKED_AT]))
    while graphemes and not _begins_name(graphemes[0]):
        graphemes.pop(0)
    first = "".join(graphemes[:1])
    if _LEADING_VOWEL.match(first):
        first = "".join(graphemes[:2])
    capital = unicodedata.normalize("NFC", first.title())
    # Georgian has capitals for whole words, not for names; that of `ß` would be two letters.
    is_georgian = "\u10d0" <= first[:1] <= "\u10ff"
    return first if is_georgian or len(capital) > len(first) else capital


def _decoded(name: str) -> str:
    if not name.lower().startswith("xn--"):
        return name
    try:
        decoded = name[4:].encode("ascii").decode("punycode")
    except ValueError:
        return name
    scripts = {_script_of(character) for character in decoded if character.isalpha()}
    return decoded if len(scripts) == 1 else name


def _script_of(letter: str) -> str:
    """The first word of its name in Unicode; one for all of Chinese, Japanese and Korean."""
    script = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if script in _EAST_ASIAN or script.startswith("CJK") else script


def _begins_name(grapheme: str) -> bool:
    category = unicodedata.category(grapheme[0])
    return (category[0] in "LN" and category != "Lm") or is_emoji(grapheme)
