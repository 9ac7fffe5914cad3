"""Texts made to be slow to draw: what shaping, breaking, fonts and emoji find hardest, mixed."""

import unicodedata
from urllib.parse import quote_plus

from cardbeat.cards.request import TEMPLATES, TEXTS, THEMES
from cardbeat.files import read_text
from cardbeat.typeset.faces.files import read_catalogue

QUERY_BYTES = 8_000
"""About what a request line of 8 KiB leaves for the texts, percent-encoded."""


def _between(first, end):
    return "".join(map(chr, range(first, end)))


def _letters_of_subsets():
    """The characters of each font."""
    found = []
    for subset in read_catalogue():
        if not subset.is_emoji:
            bounds = iter(subset.boundaries)
            found.append("".join(map(_between, bounds, bounds)))
    return found


def _all_of(first, end, tell, kinds):
    """The characters between two of which a property is one of these."""
    return [c for c in _between(first, end) if tell(c) in kinds.split()]


_SUBSETS = _letters_of_subsets()
_EMOJI = read_text("fonts/emoji.txt").splitlines()
_MARKS = _all_of(0x300, 0x1E900, unicodedata.category, "Mn Mc Me")
_DIGITS = _all_of(0x30, 0x1FBFA, unicodedata.category, "Nd")
_RTL = _all_of(0x5D0, 0x700, unicodedata.bidirectional, "R AL")
_CONTROLS = "\u200d\u200c\u200b\u2060\u202e\u2066\u2069\u200f\ufe0e\ufe0f\u20e3\u034f\u00ad\u00a0"
_TALL = [
    "ཧཱུྃ",
    "ནྡྷྲ",
    "ཧྐྵྨླྺྲྻཾ",
    "ครู้ป์",
    "نستعلیقؓؒ",
    "ញ៉ាំ",
    "क्ष्म्य्र्\u200dी",
    "స్త్ర్యై",
    "ﷺ",
]

_ENDLESS = {
    "skin tones": ("👋", "🏻🏼🏽🏾🏿", ""),
    "animals": ("", _between(0x1F400, 0x1F440), "\u200d"),
    "tags": ("🏴", _between(0xE0061, 0xE007B), ""),
    "conjuncts": ("", _between(0x915, 0x93A), "\u094d"),
    "vowel signs": (
        "क",
        "\u0903\u093b\u093e\u093f\u0940\u0949\u094a\u094b\u094c\u094e\u094f",
        "",
    ),
    "jamo": ("", _between(0x1100, 0x1113), ""),
    "marks over two letters": (
        "",
        "abcdefghijklmnopqrstuvwxyz",
        "\u0361",
    ),
    "joiners": ("ب", "\u200c\u200d\ufe0e\ufe0f", ""),
    "am": ("น", "\u0e33\u0eb3", ""),
}
"""What continues one grapheme for ever: how it begins, what follows, and what stands between."""
ENDLESS = tuple(_ENDLESS)


def endless(chance, kind, characters):
    """One grapheme of Unicode of about so many characters."""
    first, others, between = _ENDLESS[kind]
    count = max(1, characters // (1 + len(between)))
    return first + between.join(chance.choices(others, k=count))


def _of_any_subset(chance):
    """Every letter in another font."""
    return chance.choice(chance.choice(_SUBSETS))


def _with_marks(chance):
    marks = chance.choices(_MARKS, k=chance.randrange(1, 40))
    return chance.choice("aйя漢กकקعк👍") + "".join(marks)


def _joined_emoji(chance):
    return "\u200d".join(chance.choices(_EMOJI, k=chance.randrange(1, 9)))


def _one_of(letters):
    return lambda chance: chance.choice(letters)


UNITS = (
    _of_any_subset,
    _with_marks,
    _joined_emoji,
    _one_of(_between(0x20, 0x33480)),
    _one_of(_MARKS),
    lambda chance: (
        chance.choice(_EMOJI)[0] + chance.choice("\ufe0e\ufe0f")
    ),
    _one_of(_between(0x1F1E6, 0x1F200)),
    lambda chance: chance.choice(_RTL) + chance.choice("abc1($.[%"),
    _one_of(_DIGITS),
    lambda chance: chance.choice("aא漢") + chance.choice(_CONTROLS),
    _one_of(_TALL),
    _one_of("il.,'|!\u2009WM@﷽⸻"),
    _one_of("([{«‹（「א1"),
    _one_of(_between(0x21, 0x7F)),
    lambda chance: endless(
        chance, chance.choice(ENDLESS), chance.choice((9, 300, 4_000))
    ),
)


def hostile_text(chance, longest):
    """One to three kinds of units mixed, some repeated, with many spaces, few or none."""
    kinds = chance.sample(UNITS, k=chance.choice((1, 1, 1, 2, 3)))
    spaces = chance.choice((0, 0, 0.03, 0.15, 0.5))
    runs = chance.choice((1, 1, 1, 2, 12))
    wanted = min(longest, int(chance.expovariate(1 / 250)) + 1)
    text = ""
    while len(text) < wanted:
        text += chance.choice(kinds)(chance) * runs
        if chance.random() < spaces:
            text += " "
    return text


def hostile_fields(chance):
    """Any of the five texts, of which one may be as long as a URL can be."""
    longest = chance.choice((40, 150, 700, 4_000))
    names = [
        name
        for name in TEXTS
        if name == "title" or chance.random() < 0.75
    ]
    texts = {name: hostile_text(chance, longest) for name in names}
    return _sent(chance, texts)


def mixed_scripts(chance):
    """Five texts in which each letter is in another script."""
    texts = {}
    for name in TEXTS:
        count = chance.choice((30, 140, 500))
        texts[name] = "".join(
            _of_any_subset(chance) for _ in range(count)
        )
    return _sent(chance, texts)


def _sent(chance, texts):
    """The fields of a card with a title that is not blank, no longer than one URL can hold."""
    texts["title"] = f"x{texts['title']}"
    length = 0
    for name, text in texts.items():
        texts[name] = text.encode("utf-8", "replace").decode()
        length += len(quote_plus(texts[name]))
    over = max(1, length / QUERY_BYTES)
    for name, text in texts.items():
        texts[name] = text[: int(len(text) / over) + 1]
    template = chance.choice(TEMPLATES)
    return {**texts, "template": template, "theme": chance.choice(THEMES)}
