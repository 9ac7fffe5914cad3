"""The one door to font choice: which file inside the package draws a grapheme, and its opened face."""

import json
import sys
import threading
import unicodedata
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import chain
from typing import NamedTuple
from weakref import WeakValueDictionary

from PIL import ImageFont, features

from cardbeat.resources import read_bytes, read_text
from cardbeat.typeset import unshaped
from cardbeat.typeset.anchors import NO_ANCHORS, Anchors, Part, placed
from cardbeat.typeset.clusters import clusters, is_invisible
from cardbeat.typeset.emoji import Emoji, is_emoji
from cardbeat.typeset.repertoire import Repertoire, small_letter

REGIONS = {"ja": "j", "ko": "k", "zh-Hans": "s", "zh-Hant": "t"}
_FIRST_HAN_SIGN, _FIRST_HAN, _LAST_HAN = "\u2000", "\u2e80", "\U000323af"
_MEASURE_PX = 1000
_KEPT = 4_000
"""Characters of which it is remembered how wide they are, and graphemes, what draws them."""
_SMALL = 0.6
"""Of superscripts and subscripts: as large as those that the fonts have."""
_EMOJI = "emoji"
_SERIF = "source-serif"


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """A font in one or more weights, each a WOFF2 file, covering the same characters."""

    name: str
    weights: tuple[int, ...]
    shaped: bool
    """Letters join, move or carry marks: only a shaping engine knows their width."""
    regions: str
    """For Han: whose shapes these are, of "jstk"; else empty."""
    advance_em: float
    """The width of every character, where it is one for all; else 0."""
    starts: "array[int]"
    """Where covered (even places) and uncovered (odd places) stretches of codepoints begin."""
    scale: float = 1.0
    rise_em: float = 0.0
    """Of superscripts and subscripts: how large in parts of the text's size, and how far above its baseline."""

    def covers(self, character: str) -> bool:
        return bisect_right(self.starts, ord(character)) % 2 == 1

    @property
    def emoji(self) -> bool:
        return self.name.startswith(_EMOJI)

    @property
    def square(self) -> bool:
        """Han and emoji: drawn one by one, in a square."""
        return bool(self.regions) or self.emoji

    def file(self, weight: int) -> str:
        """The file of the nearest weight there is."""
        return f"{self.name}-{min(self.weights, key=lambda w: abs(w - weight))}.woff2"


class Piece(NamedTuple):
    """What one slice draws of a grapheme."""

    slice: Slice
    text: str


class Glyphs(NamedTuple):
    """A grapheme as it will be drawn: in one piece as a rule, in none where no font has it."""

    pieces: tuple[Piece, ...] = ()
    follows: bool = False
    """Punctuation and spaces: drawn in the font of what stands beside them where that has them."""
    leads: Slice | None = None
    """The font that what follows may take; pictures and small letters leave it its own."""


@dataclass(frozen=True, slots=True)
class Face:
    """An opened font at one size. Several threads may use it: Pillow holds the interpreter's lock meanwhile."""

    font: ImageFont.FreeTypeFont
    shapes: bool
    """Raqm orders, joins and places the glyphs; else that is done here as far as letters go."""

    anchors: Anchors = NO_ANCHORS
    """Where marks stand, when no engine places them."""
    rise_px: float = 0
    """How far above the baseline it is drawn."""

    def arranged(self, graphemes: Sequence[str], rtl: bool) -> str:
        """What to hand to Pillow for graphemes in reading order."""
        return "".join(graphemes) if self.shapes else unshaped.arranged(graphemes, rtl)

    def parts(self, text: str) -> list[Part]:
        """Arranged text in pieces that Pillow draws right, and where they stand."""
        if self.shapes or not self.anchors.marks:
            return [Part(text, 0, 0)]
        return placed(text, self.anchors, self.font.size, self.font.getlength)

    def direction(self, rtl: bool) -> str | None:
        """What Pillow takes with Raqm, and only with it."""
        return ("rtl" if rtl else "ltr") if self.shapes else None


class Faces:
    """Opened faces, the least recently used let go first; `max_bytes` of their files are kept.

    What a text still holds is found again after that too: a line of Han can need more faces than are kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._opened: OrderedDict[tuple[str, int, bool], tuple[Face, int]] = OrderedDict()
        self._alive: WeakValueDictionary[tuple[str, int, bool], ImageFont.FreeTypeFont] = WeakValueDictionary()
        self._lock = threading.Lock()
        self.bytes = 0

    def open(self, name: str, size_px: int, shapes: bool) -> Face:
        key = (name, size_px, shapes)
        with self._lock:
            if key in self._opened:
                self._opened.move_to_end(key)
                return self._opened[key][0]
            font = self._alive.get(key)
            if font is not None:
                return Face(font, shapes)
            data = read_bytes(f"fonts/{name}")
            engine = ImageFont.Layout.RAQM if shapes else ImageFont.Layout.BASIC
            font = self._alive[key] = ImageFont.truetype(BytesIO(data), size_px, layout_engine=engine)
            face = Face(font, shapes)
            self._opened[key] = face, len(data)
            self.bytes += len(data)
            while self.bytes > self._max_bytes:
                self.bytes -= self._opened.popitem(last=False)[1][1]
            return face


class Fonts:
    """The slices in the order they are asked, and their opened faces. Any number of threads may use one."""

    def __init__(self, max_bytes: int = 700_000, shaping: bool | None = None) -> None:
        """`shaping` False does without Raqm even where it is there."""
        self.shaping = bool(features.check("raqm")) if shaping is None else shaping
        every = self._read_index()
        self._serif = [s for s in every if s.name.startswith(_SERIF)]
        self._plain = [s for s in every if not s.square and s not in self._serif]
        self._han = {r: _by_region(every, r) for r in REGIONS.values()}
        self._emoji_slices = [s for s in every if s.emoji]
        self._emoji = Emoji()
        self._repertoire = Repertoire((s.starts for s in every if not s.emoji), self._emoji)
        self._chosen: dict[tuple[str, str], Glyphs] = {}
        self._smaller: dict[tuple[Slice, float], Slice] = {}
        self._advances: dict[tuple[str, str], float] = {}
        self._read_anchors: dict[str, Anchors] = {}
        self.faces = Faces(max_bytes)

    def with_serif(self) -> "Fonts":
        """The same fonts, and letters with serifs where there are any, for headlines."""
        fonts = copy(self)
        fonts._plain, fonts._chosen = self._serif + self._plain, {}
        return fonts

    def choose(self, graphemes: Sequence[str], language: str) -> list[Glyphs]:
        """A font for each grapheme; punctuation goes with the script it stands in."""
        region = REGIONS[language]
        chosen = [self._glyphs(grapheme, region) for grapheme in graphemes]
        for i, glyphs in enumerate(chosen):
            if glyphs.follows:
                ((own, text),) = glyphs.pieces
                beside = [c.leads for c in (chosen[i - 1 : i] + chosen[i + 1 : i + 2]) if c.leads]
                slice_ = self._beside(text, beside, region) or own
                if slice_ is not own:
                    chosen[i] = Glyphs((Piece(slice_, text),), follows=True, leads=slice_)
        return chosen

    def drawable(self, text: str) -> tuple[str, int]:
        """A clean text with others for characters that no font has, and how many are left that no font has."""
        return self._repertoire.drawable(text)

    def face(self, slice_: Slice, weight: int, size_px: int) -> Face:
        """Where letters stand one by one, no shaping, which costs more than drawing them."""
        size, shapes = round(size_px * slice_.scale), self.shaping and not slice_.square
        face = replace(self.faces.open(slice_.file(weight), size, shapes), rise_px=size_px * slice_.rise_em)
        return replace(face, anchors=self._anchors(slice_)) if slice_.shaped and not self.shaping else face

    def width_em(self, slice_: Slice, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        """A width to plan lines with, quickly: what shaping and kerning change is left out."""
        if slice_.advance_em:
            return slice_.scale * slice_.advance_em * sum(map(len, graphemes))
        return slice_.scale * self._advances_em(slice_, weight, graphemes, rtl)

    def shaping_factor(self, slice_: Slice, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        """How much wider or narrower shaping makes such a text: one look instead of one a word, which would be slow."""
        plain = self._advances_em(slice_, weight, graphemes, rtl)
        if not (plain and self.shaping and slice_.shaped):
            return 1.0
        face = self.faces.open(slice_.file(weight), _MEASURE_PX, shapes=True)
        return float(face.font.getlength("".join(graphemes), direction=face.direction(rtl))) / _MEASURE_PX / plain

    def _advances_em(self, slice_: Slice, weight: int, graphemes: Sequence[str], rtl: bool) -> float:
        file = slice_.file(weight)
        return sum(self._advance_em(file, character) for character in unshaped.arranged(graphemes, rtl))

    def _advance_em(self, file: str, character: str) -> float:
        advance = self._advances.get((file, character))
        if advance is None:
            if len(self._advances) >= _KEPT:
                self._advances.clear()
            face = self.faces.open(file, _MEASURE_PX, shapes=False)
            advance = self._advances[file, character] = float(face.font.getlength(character)) / _MEASURE_PX
        return advance

    def emoji_sequences(self) -> Iterable[str]:
        return self._emoji.sequences()

    def _read_index(self) -> list[Slice]:
        numbers = array("I", read_bytes("fonts/index.bin"))
        if sys.byteorder == "big":
            numbers.byteswap()
        slices, start = [], 0
        for name, weights, shaped, regions, advance_em, count in json.loads(read_text("fonts/index.json")):
            slices.append(Slice(name, tuple(weights), shaped, regions, advance_em, numbers[start : start + count]))
            start += count
        return slices

    def _glyphs(self, grapheme: str, region: str) -> Glyphs:
        key = grapheme, region
        glyphs = self._chosen.get(key)
        if glyphs is None:
            if len(self._chosen) >= _KEPT:
                self._chosen.clear()
            glyphs = self._chosen[key] = self._choice(grapheme, region)
        return glyphs

    def _choice(self, grapheme: str, region: str) -> Glyphs:
        letters = None if is_emoji(grapheme) else self._letters(grapheme, region)
        pieces = (letters,) if letters else tuple(self._pieces(grapheme, region))
        leads = pieces[0].slice if pieces and not pieces[0].slice.emoji and pieces[0].slice.scale == 1 else None
        follows = bool(leads) and len(pieces) == 1 and unicodedata.category(pieces[0].text[0])[0] in "PZ"
        return Glyphs(pieces, follows, leads)

    def _pieces(self, grapheme: str, region: str) -> Iterator[Piece]:
        """What a grapheme falls into: pictures, each in its own slice, and letters. No mark stands on a picture."""
        for drawn, part in self._emoji.parts(grapheme):
            if drawn:
                yield Piece(next(s for s in self._emoji_slices if s.covers(drawn)), drawn)
            elif letters := self._letters("".join(clusters(part)), region):
                yield letters

    def _letters(self, text: str, region: str) -> Piece | None:
        visible = "".join(c for c in text if not is_invisible(c))
        found = self._slice(visible, region) if visible else None
        if not found and len(visible) > 1:
            found = self._slice(visible[0], region)
        if not found:
            return self._small(visible, region)
        return Piece(found, "".join(c for c in text if found.covers(c) or (found.shaped and c in "\u200c\u200d")))

    def _small(self, text: str, region: str) -> Piece | None:
        """A superscript or subscript that no font has, drawn with its letter."""
        small = small_letter(text[0]) if text else None
        piece = self._letters(small[0] + text[1:], region) if small else None
        if not (small and piece):
            return None
        slice_, rise_em = piece.slice, small[1]
        key = slice_, rise_em
        if key not in self._smaller:
            self._smaller[key] = replace(slice_, scale=_SMALL, rise_em=rise_em)
        return Piece(self._smaller[key], piece.text)

    def _slice(self, text: str, region: str) -> Slice | None:
        """The first slice that has all of a grapheme's characters."""
        first, rest = ord(text[0]), text[1:]
        for slice_ in self._order(text[0], region):
            # As `covers`, without a call: rare Han is asked of a hundred slices.
            if bisect_right(slice_.starts, first) % 2 and all(map(slice_.covers, rest)):
                return slice_
        return None

    def _order(self, character: str, region: str) -> Iterable[Slice]:
        """Han is a hundred slices: asked only where it can answer."""
        if not _FIRST_HAN_SIGN <= character <= _LAST_HAN:
            return self._plain
        han = self._han[region]
        return chain(han, self._plain) if character >= _FIRST_HAN else chain(self._plain, han)

    def _beside(self, text: str, beside: list[Slice], region: str) -> Slice | None:
        for slice_ in beside:
            if slice_.covers(text[0]):
                return slice_
            if slice_.regions and text[0] >= _FIRST_HAN_SIGN:
                return next((s for s in self._han[region] if s.covers(text[0])), None)
        return None

    def _anchors(self, slice_: Slice) -> Anchors:
        if slice_.name not in self._read_anchors:
            try:
                anchors = Anchors.read(read_text(f"fonts/{slice_.name}.json"))
            except OSError:
                anchors = NO_ANCHORS
            self._read_anchors[slice_.name] = anchors
        return self._read_anchors[slice_.name]


def _by_region(slices: list[Slice], region: str) -> list[Slice]:
    """Han slices, this region's own before the others."""
    han = [s for s in slices if s.regions]
    return sorted(han, key=lambda s: region not in s.regions)


def language_of(text: str, otherwise: str | None = None) -> str:
    """Whose Han shapes a text wants: kana are Japanese, Hangul Korean, else `otherwise`, else by the characters.

    What only one national character set holds tells simplified from traditional Chinese and from Japanese.
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
