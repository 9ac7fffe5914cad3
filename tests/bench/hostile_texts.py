"""Texts made to be slow to draw: every script and block mixed, and what shaping, breaking and emoji find hardest."""

import random
import unicodedata
from collections.abc import Callable
from urllib.parse import quote_plus

from cardbeat.cards.request import TEMPLATES, TEXTS, THEMES
from cardbeat.resources import read_text
from cardbeat.typeset.faces.catalogue import read_catalogue

Fields = dict[str, str]
"""What `card_from` takes: texts, template and theme by their names."""

QUERY_BYTES = 8_000
"""About what a request line of 8 KiB leaves for the texts, percent-encoded."""

_SUBSETS = [
    [chr(c) for first, end in zip(s.boundaries[::2], s.boundaries[1::2], strict=True) for c in range(first, end)]
    for s in read_catalogue()
    if not s.emoji
]
_HAN = [
    [c for c in characters if c >= "\u2e80"] for characters in _SUBSETS if characters and characters[-1] >= "\u3400"
]
_EMOJI = read_text("fonts/emoji.txt").splitlines()
_MARKS = [chr(c) for c in range(0x300, 0x1E900) if unicodedata.category(chr(c))[0] == "M"]
_DIGITS = [chr(c) for c in range(0x30, 0x1FBFA) if unicodedata.category(chr(c)) == "Nd"]
_SMALL = [chr(c) for c in range(0xAA, 0x1E070) if unicodedata.decomposition(chr(c)).startswith(("<su", "<fr", "<no"))]
_RTL = [chr(c) for c in range(0x5D0, 0x700) if unicodedata.bidirectional(chr(c)) in ("R", "AL")]
_CONTROLS = "\u200d\u200c\u200b\u2060\u202e\u2066\u2069\u200f\ufe0e\ufe0f\u20e3\u034f\u00ad\U000e0067\ufffd\u00a0"
_TALL = ["ཧཱུྃ", "ནྡྷྲ", "ཧྐྵྨླྺྲྻཾ", "ครู้ป์", "ใู้", "نستعلیقؓؒ", "ញ៉ាំ", "क्ष्म्य्र्\u200dी", "స్త్ర్యై", "ක්\u200dෂ්\u200dය", "ﷺ"]

_ENDLESS = {
    "skin tones": ("👋", "🏻🏼🏽🏾🏿", ""),
    "animals": ("", "".join(map(chr, range(0x1F400, 0x1F440))), "\u200d"),
    "tags": ("🏴", "".join(map(chr, range(0xE0061, 0xE007B))), ""),
    "conjuncts": ("", "".join(map(chr, range(0x915, 0x93A))), "\u094d"),
    "vowel signs": ("क", "\u0903\u093b\u093e\u093f\u0940\u0949\u094a\u094b\u094c\u094e\u094f", ""),
    "jamo": ("", "".join(map(chr, range(0x1100, 0x1113))), ""),
    "marks over two letters": ("", "abcdefghijklmnopqrstuvwxyz", "\u0361"),
    "joiners": ("ب", "\u200c\u200d\ufe0e\ufe0f", ""),
    "am": ("น", "\u0e33\u0eb3", ""),
}
"""What continues one grapheme for ever: how it begins, what follows in any order, and what stands between."""

Chance = random.Random
"""Chosen with one seed, the same texts come again."""


def _of_any_subset(chance: Chance) -> str:
    """Every letter in another font."""
    return chance.choice(chance.choice(_SUBSETS))


def _of_any_han(chance: Chance) -> str:
    return chance.choice(chance.choice(_HAN))


def _with_marks(chance: Chance) -> str:
    return chance.choice("aйя漢กကקعк👍") + "".join(chance.choices(_MARKS, k=chance.randrange(1, 40)))


def _joined_emoji(chance: Chance) -> str:
    return "\u200d".join(chance.choices(_EMOJI, k=chance.randrange(1, 9)))


def _flags(chance: Chance) -> str:
    return "".join(chr(chance.randrange(0x1F1E6, 0x1F200)) for _ in range(chance.randrange(1, 9)))


def _other_direction(chance: Chance) -> str:
    return chance.choice(_RTL) + chance.choice("abc1($.[%")


def _selected(chance: Chance) -> str:
    return chance.choice(_EMOJI)[0] + chance.choice("\ufe0e\ufe0f")


def endless(chance: Chance, kind: str, characters: int) -> str:
    """One grapheme of Unicode of about so many characters."""
    first, others, between = _ENDLESS[kind]
    return first + between.join(chance.choices(others, k=max(1, characters // (1 + len(between)))))


ENDLESS = tuple(_ENDLESS)
UNITS: dict[str, Callable[[Chance], str]] = {
    "any subset": _of_any_subset,
    "any Han": _of_any_han,
    "any codepoint": lambda chance: chr(chance.randrange(0x20, 0x33480)),
    "one plane": lambda chance: chr(chance.randrange(0xA0, 0x3000)),
    "marks on a letter": _with_marks,
    "only marks": lambda chance: chance.choice(_MARKS),
    "emoji": lambda chance: chance.choice(_EMOJI),
    "joined emoji": _joined_emoji,
    "flags": _flags,
    "directions": _other_direction,
    "selectors": _selected,
    "digits": lambda chance: chance.choice(_DIGITS),
    "small letters": lambda chance: chance.choice(_SMALL),
    "controls": lambda chance: chance.choice("aא漢") + chance.choice(_CONTROLS),
    "tall": lambda chance: chance.choice(_TALL),
    "replacement": lambda chance: "\ufffd",
    "narrow": lambda chance: chance.choice("il.,'|!\u2009"),
    "wide": lambda chance: chance.choice("WM@﷽⸻"),
    "brackets": lambda chance: chance.choice("([{«‹（「א1"),
    "latin": lambda chance: chr(chance.randrange(0x21, 0x7F)),
    "endless grapheme": lambda chance: endless(chance, chance.choice(ENDLESS), chance.choice((9, 40, 300, 4_000))),
}


def hostile_text(chance: Chance, longest: int) -> str:
    """One to three kinds of units mixed, sometimes each repeated, with many spaces, few or none."""
    kinds = chance.sample(list(UNITS.values()), k=chance.choice((1, 1, 1, 2, 3)))
    spaces, runs = chance.choice((0, 0, 0.03, 0.15, 0.5)), chance.choice((1, 1, 1, 2, 12))
    wanted = min(longest, int(chance.expovariate(1 / 250)) + 1) if chance.random() < 0.7 else longest
    parts: list[str] = []
    while wanted > 0:
        unit = chance.choice(kinds)(chance) * runs
        parts.append(unit + " " * (chance.random() < spaces))
        wanted -= len(parts[-1])
    return "".join(parts)


def hostile_fields(chance: Chance) -> Fields:
    """Any of the five texts, of which one may be as long as a URL can be."""
    longest = chance.choice((40, 150, 700, 4_000))
    texts = {name: hostile_text(chance, longest) for name in TEXTS if name == "title" or chance.random() < 0.75}
    return sent({**texts, "template": chance.choice(TEMPLATES), "theme": chance.choice(THEMES)})


def mutated(chance: Chance, fields: Fields) -> Fields:
    """The same with one text cut, doubled, shuffled, replaced or mixed with others."""
    name = chance.choice(TEXTS)
    text = fields.get(name, "") or fields["title"]
    at, to = sorted(chance.choices(range(len(text) + 1), k=2))
    changes = (
        lambda: text[:at] + hostile_text(chance, 60) + text[at:],
        lambda: text[:at] + text[to:],
        lambda: text + text[at:to],
        lambda: "".join(chance.sample(text, len(text))),
        lambda: hostile_text(chance, 700),
        lambda: text[:at] + fields["title"][:200] + text[to:],
    )
    changed = {**fields, name: chance.choice(changes)()}
    if chance.random() < 0.2:
        changed["template"] = chance.choice(TEMPLATES)
    return sent(changed)


def mixed_scripts(chance: Chance) -> Fields:
    """Five texts in which each letter is in another script."""
    texts = {name: "".join(_of_any_subset(chance) for _ in range(chance.choice((30, 140, 500)))) for name in TEXTS}
    return sent({**texts, "template": chance.choice(TEMPLATES), "theme": chance.choice(THEMES)})


def sent(fields: Fields) -> Fields:
    """The fields with a title that is not blank, and no longer than one URL can hold."""
    cut = {**fields, "title": "x" + fields["title"]}
    cut = {name: text.encode("utf-8", "replace").decode() for name, text in cut.items()}
    over = sum(len(quote_plus(cut.get(name, ""))) for name in TEXTS) / QUERY_BYTES
    if over <= 1:
        return cut
    return {name: text[: int(len(text) / over) + 1] if name in TEXTS else text for name, text in cut.items()}
