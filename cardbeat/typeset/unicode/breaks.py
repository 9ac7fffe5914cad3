"""Where a line may end, and where it had better not (UAX #14, whose rules are named by their numbers).

The Line_Break property of characters is found by their category, and by lists for those that differ from it. Letters of
Korean are `AL`, since its lines end between words here. Small kana are `NS`.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate

from cardbeat.typeset.unicode.phrases import MODELS, phrase_starts
from cardbeat.typeset.unicode.syllables import syllables
from cardbeat.typeset.unicode.words import continues_syllable, has_words, word_starts


class Break(IntEnum):
    """How good it is to end a line between two graphemes."""

    NEVER = 0
    EMERGENCY = 1  # inside a word: only where the text does not fit in any other way
    POOR = 2
    """Inside a word of katakana, after a hyphen between letters, between syllables of a long word: better than
    letters half as large."""
    FAIR = 3
    """Inside a phrase or the brackets of a call, between a number and its sign, or at a soft hyphen: better than
    letters 20 % smaller."""
    GOOD = 4


_NOT_FIRST = frozenset(["CL", "CP", "EX", "IS", "SY", "QU", "BA", "HY", "NS", "IN"])
"""LB13, LB19, LB21, LB22: what no line starts with."""
_NOT_LAST = frozenset(("OP", "QU", "BB"))  # LB14, LB19, LB21: what no line ends with
_LETTERS = frozenset(("AL", "HL", "SA"))
_IN_WORD = _LETTERS | {"NU"}
_TOGETHER = {
    **dict.fromkeys(_IN_WORD, _IN_WORD | {"PR", "PO", "OP"}),
    "CL": {"PR", "PO"},
    "CP": _IN_WORD | {"PR", "PO"},
    "PR": _IN_WORD | {"ID", "OP"},
    "PO": _IN_WORD | {"OP"},
    "ID": {"PO"},
    "IS": _IN_WORD,
    "SY": {"HL", "NU"},
    "HY": {"NU"},
    "B2": {"B2"},
}
"""LB17, LB21b, LB23 to LB30: classes, and those that stay on the same line after them."""
_SPACELESS = frozenset(("ID", "SA"))
_SIGNS = frozenset(("BA", "HY", "B2", "SY"))  # signs after which a line may end between letters
_HYPHENS = frozenset("-‐")
_AFTER_SPACE_TOO = {"QU": {"OP"}, "CL": {"NS"}, "CP": {"NS"}, "B2": {"B2"}}
"""LB15 to LB17: what stays together also over a space."""
_LEADING_VOWELS = frozenset("เแโใไເແໂໃໄ")
"""Vowels of Thai and Lao, written before the consonant that is spoken first."""
_HAN = re.compile("[\u3041-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]").search
_IN_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2}").fullmatch
_LONGEST_CALL = 24
_IN_CALL = re.compile(r"\w\([^()]*$").search
_ENDS_PHRASE = frozenset(" \u200b、。，．！？：；")
_REPEATS = frozenset("ฯๆຯໆ")  # part of the word before them
_LISTED = {
    "SP": " ",
    "ZW": "\u200b",
    "NU": "٫٬",
    "WJ": "\u2060\ufeff",
    "GL": "\u00a0\u202f\u2007\u2011\u180e\u0f08\u0f0c\u0f12",
    "OP": "¡¿⸘",
    "CL": "、。，．｡､﹐﹑﹒",
    "CP": ")]",
    "QU": "'\"❛❜❝❞",
    "EX": "!?׆؛؝؟۔؞߹།༎༏༐༑༔᠂᠃᠈᠉᥄᥅꘎！？﹖﹗︕︖❢❣",
    "IS": ",.:;\u037e։،؍߸⁄",
    "SY": "/",
    "NS": "‼‽⁇⁈⁉々〻゠〜～・：；･៖゛゜ゝゞヽヾﾞﾟ﹔﹕ー〳〴〵ｰ"
    "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿｧｨｩｪｫｬｭｮｯ",
    "PO": "%‰‱′″‴‵‶‷℃℉°¢٪％￠؉؊؋৲৳﷼₧₾",
    "PR": "+−±№\\",
    "BA": "\u00ad\u3000‐‒–|·‧֊־་༴፡।॥၊။។៕៘៚๚๛᛫᛬᛭᠄᠅᭚᭛᭝᭞᭟᱾᱿꘍꘏꛳꛴꛵꛶꛷꧇꧈꧉꩝꩞꩟꫰꫱꯫",
    "HY": "-",
    "B2": "—⸺⸻",
    "IN": "․‥…⋯︙",
    "BB": "´ˈˌ༁༂༃༄༆༇༉༊࿐࿑࿓᠆",
    "CB": "\ufffc",
}
_CLASSES = {character: name for name, characters in _LISTED.items() for character in characters}
_BY_CATEGORY = {"Ps": "OP", "Pe": "CL", "Pi": "QU", "Pf": "QU", "Nd": "NU", "Sc": "PR"}
# Thai and Lao, Myanmar, Khmer, Tai Le with New Tai Lue, Tai Tham, Balinese, Javanese, Cham, Myanmar, Tai Viet.
_SYLLABIC = (
    ("\u0e00", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff"), ("\u1950", "\u19df"), ("\u1a20", "\u1aaf"),
    ("\u1b00", "\u1b7f"), ("\ua980", "\ua9df"), ("\uaa00", "\uaadf"),
)  # fmt: skip
_IDEOGRAPHIC = (
    ("\u231a", "\u231b"), ("\u23f0", "\u23f3"), ("\u2600", "\u2603"), ("\u2614", "\u2615"), ("\u261a", "\u261f"),
    ("\u2639", "\u263b"), ("\u26bd", "\u26c8"), ("\u26cf", "\u26d1"), ("\u26e9", "\u26fc"), ("\u2700", "\u2704"),
    ("\u2708", "\u270d"), ("\u2764", "\u2764"),
    ("\u2e80", "\u312f"), ("\u3190", "\ua4cf"), ("\uf900", "\ufaff"), ("\ufe30", "\ufe4f"), ("\uff00", "\uffef"),
    ("\U0001b000", "\U0001b2ff"), ("\U0001f000", "\U0001faff"), ("\U00020000", "\U0003ffff"),
)  # fmt: skip
_LAST = chr(0x10FFFF)


def breaks(graphemes: Sequence[str], language: str | None = None) -> list[Break]:
    """For each grapheme how good a break before it is; the first has none. A line never breaks before a space.

    In a language of `phrases.MODELS`, only breaks between its phrases are good.
    """
    classes = [line_break(grapheme[0]) for grapheme in graphemes]
    words = word_starts(graphemes) if "SA" in classes else set()
    found = [_between(graphemes, classes, i, i in words) if i else Break.NEVER for i in range(len(graphemes))]
    text = "".join(graphemes)
    if language not in MODELS or "ID" not in classes or not _HAN(text):
        return found
    starts, places = phrase_starts(text, language), accumulate(map(len, graphemes), initial=0)
    return [
        _inside_phrase(graphemes[i - 1], graphemes[i]) if good == Break.GOOD and at not in starts else good
        for i, (good, at) in enumerate(zip(found, places, strict=False))
    ]


def breaks_at_hyphens(graphemes: Sequence[str], language: str, soft: Iterable[int]) -> tuple[list[Break], set[int]]:
    """The breaks of a text with soft hyphens before some graphemes, and those graphemes at which a hyphen is drawn."""
    found = breaks(graphemes, language)
    drawn = set()
    for places, quality in ((soft, Break.FAIR), (syllables(graphemes), Break.POOR)):
        for place in places:
            if place < len(found) and found[place] == Break.EMERGENCY:
                found[place] = quality
                drawn.add(place)
    return found, drawn


def _inside_phrase(before: str, after: str) -> Break:
    if before in _ENDS_PHRASE:
        return Break.GOOD
    return Break.POOR if _IN_KATAKANA(before[-1] + after[0]) else Break.FAIR


def _between(graphemes: Sequence[str], classes: Sequence[str], i: int, word: bool) -> Break:
    """The break before grapheme `i`; `word` says whether a word of a script without spaces begins there."""
    before, after = classes[i - 1], classes[i]
    if before == after == "AL" and graphemes[i - 1][-1] != "\u200d":
        return Break.EMERGENCY  # most of them: inside a word
    if after in ("SP", "ZW"):
        return Break.NEVER
    if before == "ZW" or (before == "SP" and classes[max(0, i - 2)] == "ZW"):
        return Break.GOOD
    if before == "SP":
        return _at_space(graphemes, classes, i)
    if "WJ" in (before, after) or "GL" in (before, after) or graphemes[i - 1][-1] == "\u200d":
        return Break.NEVER
    if before == after == "SA":
        return _in_spaceless(graphemes[i - 1], graphemes[i], word)
    if _stay(graphemes, classes, i):
        return Break.NEVER if _SPACELESS & {before, after} else Break.EMERGENCY
    if before in _SIGNS and not _SPACELESS & {before, after}:
        return _after_sign(classes[i - 2] if i > 1 else "", before, after, hyphen=graphemes[i - 1] in _HYPHENS)
    return Break.FAIR if (before, after) == ("NU", "ID") else Break.GOOD


def _stay(graphemes: Sequence[str], classes: Sequence[str], i: int) -> bool:
    """Whether the rules from LB13 on keep two neighbours on one line."""
    before, after = classes[i - 1], classes[i]
    if after in _NOT_FIRST or before in _NOT_LAST:
        return True
    if after == "OP" and unicodedata.east_asian_width(graphemes[i][0]) in "FWH":
        return False
    return after in _TOGETHER.get(before, ())


def _at_space(graphemes: Sequence[str], classes: Sequence[str], i: int) -> Break:
    """LB13 to LB18. French puts spaces inside its quotation marks, where no line ends."""
    left, after = classes[i - 2] if i > 1 else "", classes[i]
    if after in ("CL", "CP", "EX", "IS", "SY", "WJ") or left == "OP" or after in _AFTER_SPACE_TOO.get(left, ()):
        return Break.NEVER
    if graphemes[i] in ("»", "›") or (i > 1 and graphemes[i - 2] in ("«", "‹")) or graphemes[i] in "‼⁇⁈⁉":
        return Break.NEVER
    # As in O(log n).
    start = "".join(graphemes[max(0, i - _LONGEST_CALL) : i])
    return Break.FAIR if _IN_CALL(start) else Break.GOOD


def _after_sign(left: str, sign: str, after: str, *, hyphen: bool) -> Break:
    """The break between a sign and a letter. A Hebrew prefix, its hyphen and its word stay together (LB21a)."""
    if (left == "HL" and sign in ("HY", "BA")) or left not in _IN_WORD or after not in _LETTERS:
        return Break.EMERGENCY
    return Break.POOR if hyphen else Break.GOOD


def _in_spaceless(before: str, after: str, word: bool) -> Break:
    """The break between words if the script has a word list, else between syllables as far as letters show them."""
    if before[0] in _LEADING_VOWELS or after[0] in _REPEATS or continues_syllable(after):
        return Break.NEVER
    if has_words(after):
        return Break.GOOD if word or before[0] in _REPEATS else Break.EMERGENCY
    return Break.GOOD


@lru_cache(maxsize=4096)
def line_break(character: str) -> str:
    """The class of a character in UAX #14. Of scripts without spaces, only letters and marks are `SA`."""
    listed = _CLASSES.get(character) or _BY_CATEGORY.get(category := unicodedata.category(character))
    if listed and not (listed == "NU" and character >= "\uff00"):
        return listed
    if _within(character, _SYLLABIC):
        return "SA" if category[0] in "LM" else "AL"
    if _within(character, _IDEOGRAPHIC):
        return "ID"
    is_hebrew = "\u05d0" <= character <= "\u05f2" or "\ufb1d" <= character <= "\ufb4f"
    return "HL" if is_hebrew else "AL"


def _within(character: str, ranges: tuple[tuple[str, str], ...]) -> bool:
    """Whether it is in one of the sorted ranges."""
    at = bisect_right(ranges, (character, _LAST))
    return at > 0 and character <= ranges[at - 1][1]
