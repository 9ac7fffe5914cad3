"""Writes a font, or the part of it that draws some characters, as a file of `cardbeat/fonts`.

TrueType compressed with gzip (RFC 1952) is a quarter longer than WOFF2, but opens in a third of the time, and once
inflated in a thirtieth for each other size.
"""

import struct
import zlib
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import newTable
from fontTools.ttLib.tables._g_l_y_f import (
    OVERLAP_COMPOUND,
    flagOverlapSimple,
)
from fontTools.ttLib.tables.ttProgram import Program

FOLDER = Path(__file__).parents[1]
FOR_BROWSERS = {"inter-latin-400", "inter-latin-600", "inter-latin-800"}
"""What the pages load, which are written as WOFF2 besides."""
FOR_BROWSERS_ONLY = {"inter-latin-800"}

_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"

_UNWANTED_TABLES = ["STAT", "DSIG", "meta", "FFTM", "vhea", "vmtx", "gasp", "MVAR", "HVAR"]
_NO_HINTS = Program()
_NO_HINTS.fromBytecode(b"\xb8\x01\xff\x85\xb0\x04\x8d\xb0\x00\x21")
"""FreeType auto-hints a font whose program is 7 bytes or less; letters then differ with the shaping engine."""


class BuiltSubset(NamedTuple):
    """A file in each weight, the codepoints it draws, and for Han the regions whose shapes it holds."""

    name: str
    weights: tuple[int, ...]
    codepoints: list[int]
    shaped: bool = False
    """Letters join, move or carry marks, so that widths need shaping."""
    regions: str = ""


def write(font: Any, name: str, codepoints: Iterable[int], features: Iterable[str] = ("*",)) -> list[int]:
    """Writes the part of a font that draws these codepoints, with an empty `.notdef`, so that no box is ever drawn.

    Returns the codepoints that it does draw, sorted. `features` are tags of OpenType layout features.
    """
    options = Options(hinting=False, layout_features=list(features), notdef_outline=False, name_IDs=[0, 13, 14])
    options.drop_tables += _UNWANTED_TABLES
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[c for c in codepoints if c >= 0x20])
    subsetter.subset(font)
    return save(font, name)


def save(font: Any, name: str) -> list[int]:
    """Writes a whole font without hints. Returns its codepoints, sorted."""
    _unflag_overlaps(font["glyf"])
    font["prep"] = newTable("prep")
    font["prep"].program = _NO_HINTS
    if name in FOR_BROWSERS:
        font.flavor = "woff2"
        font.save(FOLDER / f"{name}.woff2")
    codepoints = sorted(font.getBestCmap())
    if name in FOR_BROWSERS_ONLY:
        return codepoints
    font.flavor = None
    plain = BytesIO()
    font.save(plain)
    (FOLDER / f"{name}.ttf.gz").write_bytes(gzipped(plain.getvalue()))
    return codepoints


def read(name: str) -> BytesIO:
    """A file that `save` wrote, inflated."""
    return BytesIO(zlib.decompress((FOLDER / f"{name}.ttf.gz").read_bytes(), wbits=31))


def gzipped(data: bytes) -> bytes:
    """A gzip file whose header tells no time and no system."""
    end = struct.pack("<II", zlib.crc32(data), len(data))
    return _GZIP_HEADER + zlib.compress(data, 9, wbits=-15) + end


def _unflag_overlaps(glyphs: Any) -> None:
    """FreeType draws a glyph that is flagged as overlapping itself in 16 times the pixels, for no visible gain."""
    for name in glyphs.keys():  # noqa: SIM118 - a table of glyphs is not a mapping
        glyph = glyphs[name]
        if glyph.numberOfContours > 0:
            glyph.flags[0] &= ~flagOverlapSimple
        elif glyph.isComposite():
            glyph.components[0].flags &= ~OVERLAP_COMPOUND
