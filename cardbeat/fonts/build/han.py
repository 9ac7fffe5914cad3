"""Han, kana and Hangul: each shape once, although four regions draw many characters alike."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables._g_l_y_f import Glyph

from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import BuiltSubset, save

PACKAGE_OF_REGION = {"j": "noto-sans-jp", "s": "noto-sans-sc", "t": "noto-sans-tc", "k": "noto-sans-kr"}
"""By the letters that stand for regions in `typeset.han.REGIONS`."""
PACKAGES = {f"@fontsource/{name}" for name in PACKAGE_OF_REGION.values()}
WEIGHTS = (400, 700)
"""Every character in the first, the common ones in the second too: all in both would not fit the artifact."""
CHUNK = 150
"""Characters in a file: few, for a line of rare ones opens a file for nearly each of them."""

Metrics = tuple[int, int]
"""Advance and left side bearing."""
Outline = tuple[Any, Metrics]
Group = tuple[str, bool]
"""Regions that draw its characters alike, and whether these are common."""


def subsets(packages: Packages) -> Iterator[BuiltSubset]:
    """Characters grouped by the regions that draw them alike, the most used first."""
    fonts = {region: _RegionFont(packages, name) for region, name in PACKAGE_OF_REGION.items()}
    for (regions, common), ranks in sorted(_groups(fonts).items(), key=lambda item: (not item[0][1], item[0][0])):
        ordered = sorted(ranks, key=lambda c: (ranks[c], c))
        for number, start in enumerate(range(0, len(ordered), CHUNK)):
            chunk = sorted(ordered[start : start + CHUNK])
            name = f"han-{regions}-{'common' if common else 'rare'}-{number:02}"
            weights = WEIGHTS if common else WEIGHTS[:1]
            for weight in weights:
                save(fonts[regions[0]].part(chunk, weight), f"{name}-{weight}")
            yield BuiltSubset(name, weights, chunk, regions=regions)


class _RegionFont:
    """The glyphs of one region's font, read from all of its subsets. `rank` is 0 for the most used characters."""

    def __init__(self, packages: Packages, name: str) -> None:
        self.rank: dict[int, int] = {}
        self._outlines: dict[int, dict[int, Outline]] = {weight: {} for weight in WEIGHTS}
        for rank, number in enumerate(packages.numbered_subsets(name)):
            for weight in WEIGHTS:
                font = packages.static(name, str(number), weight)
                self._add(font, rank, self._outlines[weight])
        self._copyright = font["name"].getDebugName(0)

    def _add(self, font: Any, rank: int, outlines: dict[int, Outline]) -> None:
        for codepoint, name in font.getBestCmap().items():
            if codepoint >= 0x2000:
                self.rank.setdefault(codepoint, rank)
                outlines[codepoint] = _simple_glyph(font, name), font["hmtx"][name]

    def shape(self, codepoint: int) -> Any:
        """Equal for characters that look alike in the first weight."""
        glyph, metrics = self._outlines[WEIGHTS[0]][codepoint]
        return (tuple(glyph.coordinates) if glyph.numberOfContours else ()), metrics

    def part(self, codepoints: list[int], weight: int) -> Any:
        """A font of these characters alone."""
        outlines = {f"u{c:x}": self._outlines[weight][c] for c in codepoints}
        glyphs = {name: glyph for name, (glyph, _) in outlines.items()}
        metrics = {name: metrics for name, (_, metrics) in outlines.items()}
        return _font(glyphs, metrics, {c: f"u{c:x}" for c in codepoints}, self._copyright)


def _groups(fonts: dict[str, _RegionFont]) -> dict[Group, dict[int, int]]:
    """For each group its characters and their ranks."""
    groups: dict[Group, dict[int, int]] = defaultdict(dict)
    for codepoint in sorted(set().union(*(font.rank for font in fonts.values()))):
        alike: dict[Any, str] = defaultdict(str)
        for region, font in fonts.items():
            if codepoint in font.rank:
                alike[font.shape(codepoint)] += region
        for regions in alike.values():
            rank = min(fonts[region].rank[codepoint] for region in regions)
            groups[regions, _is_common(codepoint)][codepoint] = rank
    return groups


def _simple_glyph(font: Any, name: str) -> Any:
    """A glyph whose outline is its own, not composed of others'."""
    glyph = font["glyf"][name]
    if not glyph.isComposite():
        return glyph
    glyph_set, pen = font.getGlyphSet(), TTGlyphPen(None)
    recording = DecomposingRecordingPen(glyph_set)
    glyph_set[name].draw(recording)
    recording.replay(pen)
    return pen.glyph()


def _font(glyphs: dict[str, Any], metrics: dict[str, Metrics], names: dict[int, str], copyright_: str) -> Any:
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", *glyphs])
    builder.setupCharacterMap(names)
    builder.setupGlyf({".notdef": Glyph(), **glyphs})
    builder.setupHorizontalMetrics({".notdef": (500, 0), **metrics})
    builder.setupHorizontalHeader(ascent=880, descent=-120)
    builder.setupOS2(sTypoAscender=880, sTypoDescender=-120, usWinAscent=1160, usWinDescent=288)
    builder.setupNameTable({"copyright": copyright_})
    builder.setupPost(keepGlyphNames=False)
    builder.font["head"].created = builder.font["head"].modified = 3_600_000_000
    builder.font.recalcTimestamp = False
    return builder.font


def _is_common(codepoint: int) -> bool:
    """In the first level of a national character set, or not Han and not a rare syllable."""
    character = chr(codepoint)
    levels = (("euc_jp", 0xB0, 0xCF), ("gb2312", 0xB0, 0xD7), ("big5", 0xA4, 0xC6), ("euc_kr", 0xB0, 0xC8))
    if not 0x3400 <= codepoint <= 0x9FFF and not 0xAC00 <= codepoint <= 0xD7A3:
        return codepoint < 0xF900 or 0xFF00 <= codepoint < 0x10000
    for encoding, first, last in levels:
        encoded = character.encode(encoding, "ignore")
        if len(encoded) == 2 and first <= encoded[0] <= last:
            return True
    return False
