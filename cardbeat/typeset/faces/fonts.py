"""The package's fonts, ready to set text with: which of them draws a grapheme, and what is drawn if none has it."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple

from cardbeat.typeset.faces.catalogue import NASTALIQ, FontSubset, SubsetTable, read_catalogue
from cardbeat.typeset.faces.emoji import emoji_characters, emoji_parts, is_emoji
from cardbeat.typeset.faces.files import Faces, anchors_of
from cardbeat.typeset.faces.unshaped import needs_shaping
from cardbeat.typeset.unicode.clusters import clean, clusters, is_invisible, is_tag
from cardbeat.typeset.unicode.han import REGIONS

_FIRST_HAN_SIGN, _FIRST_HAN = "\u2000", "\u2e80"
_ALPHABETS = (
    "[\u0020-\u052f\u1c80-\u1c8f\u1d00-\u1dbf\u1e00-\u20cf\u2c60-\u2c7f\ua640-\ua69f\ua720-\ua7ff\uab30-\uab6f]"
)
"""Letters of Latin, Greek and Cyrillic, and signs: their fonts place marks on some of them only.
Compiled when it is used: that takes milliseconds."""
_URDU = frozenset("ٹڈڑںےۓ")
"""Letters of Urdu, and of others that are written as it is: Arabic and Persian do without."""
_NASTALIQ_LETTERS, _NASTALIQ_RUNS = 64, 3  # most letters of a text in Nastaliq, and parts between numbers and signs
_JUDGED = 400  # characters of a headline that decide whether serifs suit it: about as many as are shown
_HAN_NAMES = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "FULLWIDTH", "IDEOGRAPHIC")
_SCRIPTS = {"DIGIT": "LATIN"} | dict.fromkeys(_HAN_NAMES, "HAN")
"""By the first word of characters' names the script, where that is another word."""
_HANGUL = "[\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff]"
"""Letters and syllables of Korean: with old letters or marks of tone, a font joins single letters."""
_KEPT, _KEPT_LENGTH = 4_000, 10
"""Graphemes whose choice is kept, and their most characters: with all of them long, 3 MB. Emoji in earnest have 10."""
_RISES_EM = {"<super>": 0.4, "<sub>": -0.14}  # by the kind of decomposition in UnicodeData.txt
_SMALL = 0.6  # size of a superscript or subscript, as in the fonts that have some


class Piece(NamedTuple):
    """What one subset draws of a grapheme."""

    subset: FontSubset
    text: str


class FontChoice(NamedTuple):
    """What draws a grapheme: mostly one piece, none where no font has it."""

    pieces: tuple[Piece, ...] = ()
    inherits: bool = False
    """Whether a neighbour's font draws it if it can: punctuation and spaces, as Unicode's script Common."""
    heritable: FontSubset | None = None
    """The font that a neighbour may inherit; none from emoji, superscripts and subscripts."""
    missing: int = 0
    """Marks that some font has but that are not drawn, and pictures of a sequence of emoji that is not one picture."""


class Fonts:
    """All that setting a text needs of the fonts. Any number of threads may use one."""

    def __init__(self, max_bytes: int = 1_600_000, shaping: bool | None = None) -> None:
        """Keeps at most `max_bytes` of inflated font files open; `shaping` False leaves Raqm unused."""
        self.faces = Faces(max_bytes, shaping)
        self._catalogue = read_catalogue()
        emoji = [s for s in self._catalogue if s.emoji]
        # One piece for each picture, however many graphemes have it.
        self._emoji_piece = cache(lambda drawn: Piece(next(s for s in emoji if s.covers(drawn)), drawn))
        plain = [s for s in self._catalogue if not s.serif]
        self._any_han = SubsetTable(s for s in plain if s.regions)
        self._prefer(
            SubsetTable(s for s in plain if not s.square),
            lambda region: SubsetTable((s for s in plain if region in s.regions), self._any_han),
        )

    def with_serif(self) -> "SerifFonts":
        """The same fonts and opened faces, with serifs on the scripts that have them: for headlines."""
        return SerifFonts(self)

    def _prefer(self, letters: SubsetTable, han_of: Callable[[str], SubsetTable]) -> None:
        """Choose fonts of letters from a table, and those of Han from the one of a region."""
        self._letters, self._tables = letters, (letters, self._any_han)
        # Most sites write in one language. Two threads may make the same table at once.
        self._han_of = cache(han_of)
        # `lru_cache` has a lock of its own. Two threads may look for the same grapheme once each.
        self._choice = lru_cache(_KEPT)(self._found)
        self._small_subsets: dict[tuple[FontSubset, float], FontSubset] = {}
        """By letters' subset and rise. Any thread writes without a lock: the first one counts."""

    def choose(self, graphemes: Sequence[str], language: str) -> list[FontChoice]:
        """What draws each grapheme of a text, with the Han shapes of a language of `han.REGIONS`."""
        region = REGIONS[language]
        choices = self._choices(graphemes, region)
        for i, choice in enumerate(choices):
            if choice.inherits:
                ((own, text),) = choice.pieces
                beside = [c.heritable for c in (choices[i - 1 : i] + choices[i + 1 : i + 2]) if c.heritable]
                subset = self._inherited(text, beside, region) or own
                if subset is not own:
                    choices[i] = FontChoice((Piece(subset, text),), inherits=True, heritable=subset)
        return choices

    def _choices(self, graphemes: Sequence[str], region: str) -> list[FontChoice]:
        """The choice of each grapheme, before punctuation takes its neighbour's font."""
        return [(self._choice if len(g) <= _KEPT_LENGTH else self._found)(g, region) for g in graphemes]

    def _found(self, grapheme: str, region: str) -> FontChoice:
        letters = None if is_emoji(grapheme) else self._piece(grapheme, region)
        if letters:
            pieces, lost = [letters], sum(self._is_lost(character, letters.text) for character in grapheme[1:])
        else:
            pieces, lost = self._parts(grapheme, region)
        first = pieces[0].subset if pieces else None
        heritable = first if first and not first.emoji and first.scale == 1 else None
        inherits = bool(heritable) and len(pieces) == 1 and unicodedata.category(pieces[0].text[0])[0] in "PZ"
        return FontChoice(tuple(pieces), inherits, heritable, lost)

    def _is_lost(self, mark: str, drawn: str) -> bool:
        """Whether a mark that some font has is not drawn."""
        return mark not in drawn and not is_invisible(mark) and self._letters.covers(mark)

    def _parts(self, grapheme: str, region: str) -> tuple[list[Piece], int]:
        """A grapheme in parts: emoji, each in its own subset, and letters. No mark stands on an emoji.

        The number is how many visible parts follow the first one: the grapheme should have been one picture.
        """
        pieces: list[Piece] = []
        after = 0
        for drawn, part in emoji_parts(grapheme):
            after += bool(pieces) and (bool(drawn) or self._is_part(part))
            if drawn:
                pieces.append(self._emoji_piece(drawn))
            elif letters := self._piece("".join(clusters(part)), region):
                pieces.append(letters)
        return pieces, after

    def _is_part(self, text: str) -> bool:
        """Whether a text between emoji is more than joiners, and not counted as missing elsewhere."""
        return any(is_tag(c) or (not is_invisible(c) and self._letters.covers(c)) for c in text)

    def _piece(self, text: str, region: str) -> Piece | None:
        """A grapheme in the first subset that has all of it, else its letter with the marks that some font places."""
        visible = "".join(c for c in text if not is_invisible(c))
        if len(visible) > 1 and self.faces.shaping and re.match(_HANGUL, visible):
            letters = unicodedata.normalize("NFD", visible)
            text = visible = letters if self._letters.first(letters) else visible
        found = self._subset(visible, region) if visible else None
        if not found and len(visible) > 1:
            text = visible[0]
            for mark in visible[1:]:
                text += mark if self._subset(text + mark, region) else ""
            found = self._subset(text, region)
        if not found:
            return self._small(visible, region)
        return Piece(found, "".join(c for c in text if found.covers(c) or (found.shaped and c in "\u200c\u200d")))

    def _small(self, text: str, region: str) -> Piece | None:
        """A superscript or subscript that no font has, as its letter in a smaller size."""
        small = small_letter(text[0]) if text else None
        piece = self._piece(small[0] + text[1:], region) if small else None
        if not (small and piece):
            return None
        key = piece.subset, small[1]
        # Neighbours are drawn together only in one and the same subset: all threads must get the same object.
        subset = self._small_subsets.get(key) or self._small_subsets.setdefault(
            key, piece.subset._replace(scale=_SMALL, rise_em=small[1])
        )
        return Piece(subset, piece.text)

    def _subset(self, text: str, region: str) -> FontSubset | None:
        """The first subset that has all of a grapheme. Han is looked for first in Han subsets, signs there last."""
        if len(text) > 1 and re.match(_ALPHABETS, text):
            return next((s for s in self._letters.all_with(text) if anchors_of(s.name).places(text)), None)
        if text[0] < _FIRST_HAN_SIGN:
            return self._letters.first(text)
        han = self._han_of(region)
        first, second = (han, self._letters) if text[0] >= _FIRST_HAN else (self._letters, han)
        return first.first(text) or second.first(text)

    def _inherited(self, text: str, beside: list[FontSubset], region: str) -> FontSubset | None:
        for subset in beside:
            if subset.covers(text[0]):
                return subset
            if subset.regions and text[0] >= _FIRST_HAN_SIGN:
                return self._han_of(region).first(text[0])
        return None

    def drawable(self, text: str) -> tuple[str, int]:
        """What to draw for a clean text, and how many of its characters can't be drawn.

        A character that no font has is replaced by equivalent ones (NFKC) if the fonts have those.
        """
        lacking = set() if text.isascii() else {character for character in set(text) if not self.has(character)}
        if not lacking:
            return text, 0
        others = {ord(character): other for character in lacking if (other := self._other(character))}
        return text.translate(others), sum(character in lacking and ord(character) not in others for character in text)

    def unshaped(self, text: str) -> int:
        """How many graphemes of a text are not drawn as they are written, for want of a shaping engine."""
        return 0 if self.faces.shaping or text.isascii() else sum(map(needs_shaping, clusters(clean(text))))

    def has(self, character: str) -> bool:
        """Whether a character is drawn, or is rightly invisible."""
        has_font = any(table.covers(character) for table in self._tables)
        return has_font or is_invisible(character) or character in emoji_characters()

    def _other(self, character: str) -> str:
        """The replacement of a character that no font has, or "". Superscripts and subscripts stay, for `_small`."""
        plain = unicodedata.normalize("NFKC", character)
        if plain == character or not all(map(self.has, plain)):
            return ""
        return character if small_letter(character) else plain


class SerifFonts(Fonts):
    """Fonts for headlines. A script has serifs if every letter of it in a text has.

    Nastaliq, the hand of Urdu, cannot be drawn without a shaping engine, and is for short texts.
    """

    def __init__(self, plain: Fonts) -> None:
        vars(self).update(vars(plain))
        self._plain = plain
        serif = [s for s in self._catalogue if s.serif]
        letters = [s for s in serif if not s.square and s.name != NASTALIQ]
        self._prefer(
            SubsetTable(letters, plain._letters),
            lambda region: SubsetTable((s for s in serif if region in s.regions), plain._han_of(region)),
        )
        self._nastaliq = next((s for s in serif if s.name == NASTALIQ and self.faces.shaping), None)

    def suits(self, text: str, language: str) -> bool:
        """Whether at least half of the letters of a text have serifs."""
        graphemes = [g for g in clusters(clean(text[:_JUDGED])) if g[0].isalpha()]
        choices = self._choices(graphemes, REGIONS[language])
        return sum(map(_has_serifs, choices)) * 2 >= len(graphemes)

    def _choices(self, graphemes: Sequence[str], region: str) -> list[FontChoice]:
        choices = super()._choices(graphemes, region)
        scripts = [_script_of(grapheme[0]) for grapheme in graphemes]
        if self._nastaliq and not _URDU.isdisjoint("".join(graphemes)):
            for n in _places_of_nastaliq(self._nastaliq, graphemes, scripts):
                choices[n] = FontChoice((Piece(self._nastaliq, graphemes[n]),), heritable=self._nastaliq)
        pairs = zip(scripts, graphemes, choices, strict=True)
        plain = {script for script, g, choice in pairs if g[0].isalpha() and not _has_serifs(choice)}
        if plain:
            others = self._plain._choices(graphemes, region)
            choices = [b if s in plain else a for s, a, b in zip(scripts, choices, others, strict=True)]
        return choices


def _places_of_nastaliq(nastaliq: FontSubset, graphemes: Sequence[str], scripts: Sequence[str]) -> list[int]:
    """The places of letters to be drawn in Nastaliq: those of a short text all in Urdu, else none.

    A run of it takes 5 ms to draw, and its lines are twice as high as others.
    """
    letters = [n for n, grapheme in enumerate(graphemes) if grapheme[0].isalpha()]
    has_all = all(nastaliq.covers(c) or is_invisible(c) for n in letters for c in graphemes[n])
    is_urdu = has_all and all(scripts[n] == "ARABIC" for n in letters)
    inside = groupby(nastaliq.covers(grapheme[0]) and not grapheme[0].isdigit() for grapheme in graphemes)
    is_short = len(letters) <= _NASTALIQ_LETTERS and sum(key for key, _ in inside) <= _NASTALIQ_RUNS
    return letters if is_urdu and is_short else []


def _has_serifs(choice: FontChoice) -> bool:
    return bool(choice.pieces) and all(piece.subset.serif for piece in choice.pieces)


@lru_cache(_KEPT)
def _script_of(character: str) -> str:
    """The first word of its name in Unicode, which is its script for letters; one for digits and Latin."""
    script = re.split("[ -]", unicodedata.name(character, ""), maxsplit=1)[0]
    return _SCRIPTS.get(script, script)


def runs_of(choices: Sequence[FontChoice], levels: Sequence[int]) -> list[tuple[FontSubset, int, list[str]]]:
    """The runs of neighbours that one font draws at one embedding level, in logical order."""
    pairs = zip(choices, levels, strict=True)
    drawn = [(subset, level, text) for choice, level in pairs for subset, text in choice.pieces]
    return [(key[0], key[1], [item[2] for item in group]) for key, group in groupby(drawn, key=lambda d: d[:2])]


def small_letter(character: str) -> tuple[str, float] | None:
    """The letter of a superscript or subscript, and its height above the baseline in em; None for others."""
    rise_em = _RISES_EM.get(unicodedata.decomposition(character).partition(" ")[0])
    letter = unicodedata.normalize("NFKC", character)
    return (letter, rise_em) if rise_em and len(letter) == 1 else None
