"""Colour emoji from Twemoji (COLRv0): every sequence gets a character of its own, so that it draws without shaping."""

from collections.abc import Iterator
from typing import Any

from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables.C_O_L_R_ import LayerRecord

from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import FOLDER, BuiltSubset, write

PACKAGE = "twemoji-colr-font"
FILE = "twemoji.woff2"
FIRST_CODEPOINT = 0xF0000
ADVANCE = 544
"""Of 512 units an em: a little space keeps an emoji from its neighbours."""
CHUNK = 300
"""Sequences in a file: about 40 KB, opened in a millisecond."""
_VARIATION_SELECTOR_16 = 0xFE0F


def subsets(packages: Packages) -> Iterator[BuiltSubset]:
    """`emoji.txt` gets the sequences, each on a line; line `n`, from 0, is drawn by U+F0000 + n."""
    sequences = dict(sorted(_sequences(packages.font(PACKAGE, FILE))))
    (FOLDER / "emoji.txt").write_text("".join(f"{_text(sequence)}\n" for sequence in sequences), "utf-8", newline="\n")
    glyphs = list(enumerate(sequences.values(), FIRST_CODEPOINT))
    for number, start in enumerate(range(0, len(glyphs), CHUNK)):
        name, chunk = f"emoji-{number:02}", dict(glyphs[start : start + CHUNK])
        codepoints = write(_mapped(packages.font(PACKAGE, FILE), chunk), f"{name}-400", chunk)
        yield BuiltSubset(name, (400,), codepoints)


def _sequences(font: Any) -> Iterator[tuple[str, str]]:
    """`1f468-200d-...`, without variation selectors, and the glyph that draws it."""
    drawn, names = font["COLR"].ColorLayers, font.getBestCmap()
    for codepoint, name in names.items():
        if name in drawn:
            yield f"{codepoint:x}", name
    codepoints = {name: codepoint for codepoint, name in names.items()}
    for components, glyph in _ligatures(font):
        parts = [codepoints.get(name) for name in components]
        yield "-".join(f"{part:x}" for part in parts if part and part != _VARIATION_SELECTOR_16), glyph


def _text(sequence: str) -> str:
    return "".join(chr(int(part, 16)) for part in sequence.split("-"))


def _ligatures(font: Any) -> Iterator[tuple[list[str], str]]:
    """The glyphs that each ligature stands for, and its own."""
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            for first, ligatures in table.ligatures.items():
                for ligature in ligatures:
                    yield [first, *ligature.Component], ligature.LigGlyph


def _mapped(font: Any, names: dict[int, str]) -> Any:
    """The font with these characters only. FreeType draws a colour glyph only if it has an outline too, and places
    it by its first layer: both become an empty box as large as the em."""
    for name in names.values():
        font["glyf"][name] = _empty_box()
        font["hmtx"][name] = ADVANCE, 0
        font["COLR"].ColorLayers[name].insert(0, LayerRecord(name, 0))
    for table in font["cmap"].tables:
        table.cmap = names if table.format == 12 else {}
    del font["GSUB"], font["GDEF"]
    return font


def _empty_box() -> Any:
    """Two points: a contour without area."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, -64))
    pen.lineTo((512, 448))
    pen.closePath()
    return pen.glyph()
