"""The Line_Break property of characters (UAX #14), by their category, and by lists for those that differ from it.

Letters of Korean are `AL`, since its lines end between words here. Small kana are `NS`.
"""

import unicodedata
from bisect import bisect_right
from functools import lru_cache

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
