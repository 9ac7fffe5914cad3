"""Colour emoji from Twemoji (COLRv0): every sequence gets a character of its own, so that it draws without shaping.

A font has those up to Emoji 15.0; the newer ones are made into glyphs from the pictures (SVG) of the project's fork.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any
from xml.etree import ElementTree

from fontTools.colorLib.builder import buildCOLR, buildCPAL
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.cu2quPen import Cu2QuPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.svgLib import SVGPath
from fontTools.ttLib.tables._g_l_y_f import Glyph
from fontTools.ttLib.tables.C_O_L_R_ import LayerRecord

from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import FOLDER, BuiltSubset, save, write

PACKAGE = "twemoji-colr-font"
FILE = "twemoji.woff2"
PICTURES = "@iconify-json/twemoji"
PACKAGES = {PACKAGE, PICTURES}
FIRST_CODEPOINT = 0xF0000
ADVANCE = 544
"""Of 512 units an em: a little space keeps an emoji from its neighbours."""
EM, DESCENT, PICTURE = 512, 64, 36
"""Units of the em, those of it below the baseline, and the width and height of a picture."""
CHUNK, PICTURES_CHUNK = 300, 100
"""Sequences in a file: about 40 KB, opened in a millisecond."""
_VARIATION_SELECTOR_16 = 0xFE0F


def subsets(packages: Packages) -> Iterator[BuiltSubset]:
    """`emoji.txt` gets the sequences, each on a line; line `n`, from 0, is drawn by U+F0000 + n."""
    drawn = dict(sorted(_sequences(packages.font(PACKAGE, FILE))))
    pictures = {sequence: body for sequence, body in sorted(_pictures(packages)) if sequence not in drawn}
    lines = "".join(f"{_text(sequence)}\n" for sequence in chain(drawn, pictures))
    (FOLDER / "emoji.txt").write_text(lines, "utf-8", newline="\n")
    for number, chunk in enumerate(_chunks(list(drawn.values()), CHUNK, FIRST_CODEPOINT)):
        name = f"emoji-{number:02}"
        codepoints = write(_mapped(packages.font(PACKAGE, FILE), chunk), f"{name}-400", chunk)
        yield BuiltSubset(name, (400,), codepoints)
    for chunk in _chunks(list(pictures.values()), PICTURES_CHUNK, FIRST_CODEPOINT + len(drawn)):
        number += 1
        yield BuiltSubset(f"emoji-{number:02}", (400,), save(_painted(chunk), f"emoji-{number:02}-400"))


def _chunks(values: list[str], size: int, first: int) -> Iterator[dict[int, str]]:
    """So many of the values at a time, by codepoints that begin at `first`."""
    for start in range(0, len(values), size):
        yield dict(enumerate(values[start : start + size], first + start))


def _pictures(packages: Packages) -> Iterator[tuple[str, str]]:
    """`1f468-200d-...`, without variation selectors, and the elements of SVG that draw it."""
    icons = packages.json(PICTURES, "icons.json")["icons"]
    for sequence, name in packages.json(PICTURES, "chars.json").items():
        codepoints = [int(part, 16) for part in sequence.split("-")]
        if name in icons:
            yield "-".join(f"{c:x}" for c in codepoints if c != _VARIATION_SELECTOR_16), icons[name]["body"]


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


def _painted(bodies: dict[int, str]) -> Any:
    """A font of pictures, each a stack of outlines in one colour each. Those that occur twice are kept once."""
    glyphs: dict[str, Any] = {".notdef": Glyph()}
    layer_names: dict[str, str] = {}
    palette: dict[str, int] = {"#000000": 0}
    colour_layers: dict[str, list[tuple[str, int]]] = {}
    for codepoint, body in bodies.items():
        base = f"u{codepoint:x}"
        glyphs[base] = _empty_box()
        colour_layers[base] = [(base, 0)]
        for element, fill in _elements(ElementTree.fromstring(f"<svg>{body}</svg>"), "#000000"):  # noqa: S314 - of a package whose digest is known
            name = layer_names.setdefault(element, f"l{len(layer_names)}")
            if name not in glyphs:
                glyphs[name] = _outline(element)
            colour_layers[base].append((name, palette.setdefault(fill, len(palette))))
    return _colour_font(glyphs, {codepoint: f"u{codepoint:x}" for codepoint in bodies}, colour_layers, list(palette))


def _elements(parent: ElementTree.Element, fill: str) -> Iterator[tuple[str, str]]:
    """Each shape as SVG, and its colour."""
    for element in parent:
        own = element.attrib.pop("fill", fill)
        if element.tag == "g":
            yield from _elements(element, own)
        else:
            yield ElementTree.tostring(element, "unicode"), own


def _outline(element: str) -> Any:
    """In the box that `_empty_box` has."""
    scale, pen = EM / PICTURE, TTGlyphPen(None)
    picture = SVGPath.fromstring(f"<svg>{element}</svg>", transform=(scale, 0, 0, -scale, 0, EM - DESCENT))
    picture.draw(Cu2QuPen(pen, max_err=0.5))
    return pen.glyph()


def _colour_font(glyphs: dict[str, Any], names: dict[int, str], layers: dict[str, Any], palette: list[str]) -> Any:
    builder = FontBuilder(EM, isTTF=True)
    builder.setupGlyphOrder(list(glyphs))
    builder.setupCharacterMap(names)
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics({name: (ADVANCE, getattr(glyph, "xMin", 0)) for name, glyph in glyphs.items()})
    builder.setupHorizontalHeader(ascent=EM - DESCENT, descent=-DESCENT)
    builder.font["COLR"] = buildCOLR(layers, version=0)
    builder.font["CPAL"] = buildCPAL([[_rgba(colour) for colour in palette]])
    builder.font["head"].created = builder.font["head"].modified = 3_600_000_000
    builder.font.recalcTimestamp = False
    return builder.font


def _rgba(colour: str) -> tuple[float, float, float, float]:
    """Of `#rgb` or `#rrggbb`."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    red, green, blue = bytes.fromhex(digits)
    return red / 255, green / 255, blue / 255, 1.0
