"""Which of the package's fonts draws a grapheme, and what if none has it.

Colour emoji are drawn by private-use characters, one for each sequence (UTS #51).
"""

import unicodedata
from functools import cache, lru_cache, partial
from typing import NamedTuple

from PIL import features

from cardbeat.files import read_text
from cardbeat.typeset.faces.files import (
    Coverage,
    Face,
    FontFile,
    anchors_of,
    read_catalogue,
)
from cardbeat.typeset.unicode.clusters import (
    EMOJI_STYLE,
    TEXT_STYLE,
    ZWJ,
    characters,
    clusters,
    is_invisible,
)
from cardbeat.typeset.unicode.han import REGIONS

_FIRST_DRAWN = 0xF0000
"""The private-use character of the first line of `emoji.txt`. Those of the next lines follow."""
_LONGEST = 9
"""Characters in a sequence, without U+FE0F."""
_FIRST_PICTOGRAPH = "\U0001f000"
_KEYCAP = "\u20e3"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"

_FIRST_HAN_SIGN = "\u2000"
_FIRST_HAN = "\u2e80"
_FIRST_PRIVATE = "\U000f0000"
"""Characters by which the emoji fonts draw: none of the text's own."""


class Glyphs(NamedTuple):
    """What draws a grapheme: characters in one font."""

    font: FontFile
    text: str
    grapheme: str


class Fonts:
    """All that setting a text needs of the fonts."""

    def __init__(self, shaping: bool | None = None) -> None:
        """`shaping` False leaves Raqm unused even where it is installed."""
        self.shaping = (
            bool(features.check("raqm")) if shaping is None else shaping
        )
        self._catalogue = read_catalogue()
        self._table = cache(self._new_table)
        self.face = lru_cache(512)(partial(Face, shaping=self.shaping))
        self._found = lru_cache(4_000)(self._find)
        self._has = lru_cache(8_000)(self._is_drawn)

    def choose(
        self, text: str, language: str, serif: bool = False
    ) -> list[Glyphs]:
        """What draws each grapheme of a clean text, without those that no font has.

        The language of `han.REGIONS` chooses the shapes of Han. `serif` prefers fonts with serifs.
        Spaces and punctuation take the font of a neighbour that has them.
        """
        region = REGIONS[language]
        chosen = [
            self._found(grapheme, region, serif)
            for grapheme in _graphemes(text)
        ]
        found = [glyphs for glyphs in chosen if glyphs]
        if len({glyphs.font for glyphs in found}) < 2:
            return found
        for place, glyphs in enumerate(found):
            if (
                glyphs.font.is_emoji
                or unicodedata.category(glyphs.text[0])[0] not in "PZ"
            ):
                continue
            for beside in (
                *found[max(0, place - 1) : place],
                *found[place + 1 : place + 2],
            ):
                font = self._inherited(
                    glyphs.text, beside.font, region, serif
                )
                if font:
                    found[place] = glyphs._replace(font=font)
                    break
        return found

    def drawable(self, text: str) -> tuple[str, int]:
        """What to draw for a clean text, and how many of its characters can't be drawn.

        A character that no font has is replaced by equivalent ones (NFKC) if the fonts have those.
        """
        if text.isascii():
            return text, 0
        missing = 0
        others = {}
        for character in set(text):
            if self._has(character):
                continue
            plain = unicodedata.normalize("NFKC", character)
            if plain != character and all(map(self._has, plain)):
                others[ord(character)] = plain
            else:
                missing += text.count(character)
        return text.translate(others), missing

    def unshaped(self, text: str) -> int:
        """How many letters of a text are not drawn right, for want of a shaping engine."""
        return (
            0 if self.shaping else len(characters("shaped").findall(text))
        )

    def _is_drawn(self, character: str) -> bool:
        """Whether a character is drawn, or is rightly invisible."""
        if is_invisible(character) or character in emoji_characters():
            return True
        return self._font(character, "j", False) is not None

    def _find(
        self, grapheme: str, region: str, serif: bool
    ) -> Glyphs | None:
        if grapheme >= _FIRST_PRIVATE:
            return self._picture(grapheme)
        # the letter, with the marks that some font places
        text = ""
        for character in grapheme:
            if is_invisible(character):
                continue
            if not text or self._font(text + character, region, serif):
                text += character
        font = self._font(text, region, serif) if text else None
        if not font:
            return self._picture(grapheme)
        joiners = "\u200c\u200d" if font.is_shaped else ""
        drawn = "".join(c for c in grapheme if c in text or c in joiners)
        return Glyphs(font, drawn, grapheme)

    def _font(
        self, text: str, region: str, serif: bool
    ) -> FontFile | None:
        """The first font with all of a grapheme. Han is looked for first in Han fonts, signs last.

        Fonts of Latin, Greek and Cyrillic place marks on some letters only.
        """
        letters = self._table("", serif)
        if len(text) > 1 and characters("alphabets").match(text):
            placing = (
                f
                for f in letters.all_with(text)
                if anchors_of(f.name).places(text)
            )
            return next(placing, None)
        tables = [letters]
        if text[0] >= _FIRST_HAN_SIGN:
            tables.append(self._table(region, serif))
        if text[0] >= _FIRST_HAN:
            tables.reverse()
        return next(
            (font for table in tables for font in table.all_with(text)),
            None,
        )

    def _picture(self, sign: str) -> Glyphs | None:
        """An emoji, or that of a sign that no font has as text."""
        for drawn in emoji_parts(sign):
            for font in self._catalogue:
                if (
                    drawn >= _FIRST_PRIVATE
                    and font.is_emoji
                    and font.covers(drawn)
                ):
                    return Glyphs(font, drawn, sign)
        return None

    def _inherited(
        self, text: str, beside: FontFile, region: str, serif: bool
    ) -> FontFile | None:
        """The font of a neighbour that has a space or sign, or another Han font beside Han."""
        if beside.covers(text[0]):
            return beside
        if beside.regions and text[0] >= _FIRST_HAN_SIGN:
            return next(
                self._table(region, serif).all_with(text[0]), None
            )
        return None

    def _new_table(self, region: str, serif: bool) -> Coverage:
        """Fonts of letters without a region, else those of Han with its shapes first."""
        fonts = [
            font
            for font in self._catalogue
            if bool(font.regions) == bool(region)
        ]
        own = [
            font
            for font in fonts
            if region in font.regions and not font.is_emoji
        ]
        with_serifs = [font for font in own if font.is_serif and serif]
        plain = [font for font in own if not font.is_serif]
        others = [
            font for font in fonts if font.regions and not font.is_serif
        ]
        return Coverage([*with_serifs, *plain, *others])


def _graphemes(text: str) -> list[str]:
    """The graphemes of a clean text. One of emoji that has no picture as a whole is divided."""
    if text.isascii():
        return list(text)
    found = []
    for grapheme in clusters(text):
        if is_emoji(grapheme):
            found += emoji_parts(grapheme)
        elif grapheme < _FIRST_PRIVATE:
            found.append(grapheme)
    return found


def emoji_parts(grapheme: str) -> list[str]:
    """A grapheme in parts: private-use characters that draw an emoji each, and text between them.

    At each place the longest sequence is taken, as ligatures are found.
    """
    drawn = _drawn()
    rest = grapheme.replace(EMOJI_STYLE, "")
    parts = [""]
    while rest:
        for length in range(_LONGEST, 0, -1):
            if rest[:length] in drawn:
                parts += [drawn[rest[:length]], ""]
                break
        else:
            # Here the length is 1.
            parts[-1] += rest[0]
        rest = rest[length:]
    return [part for part in parts if part.strip(ZWJ)]


@cache
def emoji_characters() -> frozenset[str]:
    """Every character of any sequence."""
    return frozenset("".join(_drawn()))


def is_emoji(grapheme: str) -> bool:
    """Whether an emoji is meant, not the sign of text with the same character."""
    first = grapheme[0]
    rest = grapheme[1:]
    if TEXT_STYLE in grapheme:
        return False
    if first in "#*0123456789":
        return rest.replace(EMOJI_STYLE, "") == _KEYCAP
    if _FIRST_PICTOGRAPH <= first <= "\U0001ffff" or characters(
        "emoji_presentation"
    ).match(first):
        return True
    return (
        EMOJI_STYLE in rest
        or ZWJ in rest
        or rest[:1] in tuple(_SKIN_TONES)
    )


@cache
def _drawn() -> dict[str, str]:
    """The sequences that the emoji fonts draw, and the private-use character of each."""
    sequences = read_text("fonts/emoji.txt").splitlines()
    return {
        sequence: chr(code)
        for code, sequence in enumerate(sequences, _FIRST_DRAWN)
    }
