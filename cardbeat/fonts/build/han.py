"""Han, kana and Hangul: each shape once, although four regions draw many characters alike."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from fontTools.fontBuilder import FontBuilder
from fontTools.misc.roundTools import otRound
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables._g_l_y_f import Glyph, GlyphCoordinates
from fontTools.ttLib.tables.ttProgram import Program

from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import BuiltSubset, save

LAST_OF_PACKAGE = {"j": "jp", "s": "sc", "t": "tc", "k": "kr"}
"""How packages are named, by the letters that stand for regions in `typeset.han.REGIONS`."""
CHARACTER_SETS = {"j": "cp932", "s": "gb2312", "t": "big5hkscs", "k": "euc_kr"}
"""Encodings (of Python) that hold what each region writes."""
NAMES_AND_DIALECTS = frozenset(
    "佢哋喺嘅咗嘢㗎啲冇嚟乜嗰噉咁嚿嘥嗌攞揸揾搵睇瞓諗啱畀乸冧冚凼劏嘞嚡嚤埞孖孭屙㩒搣攰曱甴氹睺砵糭罉脷腍膶艔踎躝"
    "軚邨靚餸骲啫嗱吖喎噃嘜哣唥啩㖭噚喐噏嚫喆镕珺赟堃晟琰瑄瑀璇璐珏玮旻旼晗晙晖暐曌炅炜炘烜煊熠燊燚灏淏湉溦滢潇澍"
    "沄洺浠淼鑫垚犇骉芮芃芊荞菡蘅翀翊翾彧彣祎禛箐纾绮缇缦舸莜诩谧贇赪跶轶郗郦酆铄铎锟锴镠镡闫闵霁靓颉颢飒驿骁骐骞"
    "鸢鹄龑龢妧姝姮娅婕婧婳嬿岚峤崟嵘嶙嶷帏忞恺愔斓儁冼凇劭勐勖厍埕塬墉𠮷髙﨑濵邉𣘺𡈽𠀋穰彅鰺眞槇煕燁菫"
)
"""Common too, although in the first level of no set: what Cantonese is written with, and names."""
FIRST_LEVELS = {
    "j": ("euc_jp", 0xB0, 0xCF),
    "s": ("gb2312", 0xB0, 0xD7),
    "t": ("big5", 0xA4, 0xC6),
    "k": ("euc_kr", 0xB0, 0xC8),
}
"""By region the encoding of its character set, and the first and the last leading byte of what is most used in it."""
BOLD_SHARE = 1 / 3
"""Of a file's characters: with fewer in the first levels of its regions it is there in one weight, and made bolder."""


class Family(NamedTuple):
    """What is made of a family's four fonts."""

    package: str
    name: str
    weights: tuple[int, ...]
    """All in both would not fit the artifact."""
    chunk: int
    """Characters in a file: few, for a line of rare ones opens a file for nearly each of them."""
    ranges: tuple[tuple[int, int], ...]


SANS = Family("noto-sans", "han", (400, 700), 150, ((0x2000, 0x110000),))
SERIF = Family(
    "noto-serif",
    "noto-serif-han",
    (700,),
    100,
    ((0x2E80, 0x3130), (0x3190, 0x3200), (0x3400, 0xA000), (0xAC00, 0xD7A4), (0xFF00, 0xFF61), (0x20000, 0x30000)),
)
"""For headlines: what the regions write most, without signs."""
PACKAGES = {f"@fontsource/{family.package}-{last}" for family in (SANS, SERIF) for last in LAST_OF_PACKAGE.values()}
UNITS_PER_EM = 500
SCALE = UNITS_PER_EM / 1000
"""The packages have 1,000 units an em: half as many move no point by more than a tenth of a pixel in any title, and
make the files an eighth shorter."""

Metrics = tuple[int, int]
"""Advance and left side bearing."""
Outline = tuple[Any, Metrics]
Group = tuple[str, bool]
"""Regions that draw its characters alike, and whether these are common."""


def subsets(packages: Packages, family: Family) -> Iterator[BuiltSubset]:
    """Characters grouped by the regions that draw them alike, the most used first."""
    fonts = {region: _RegionFont(packages, family, last) for region, last in LAST_OF_PACKAGE.items()}
    for (regions, common), ranks in sorted(_groups(fonts).items(), key=lambda item: (not item[0][1], item[0][0])):
        wanted = [c for c in ranks if family is SANS or (common and _is_often_written(c, regions))]
        ordered = sorted(wanted, key=lambda c: (ranks[c], c))
        for number, start in enumerate(range(0, len(ordered), family.chunk)):
            chunk = sorted(ordered[start : start + family.chunk])
            name = f"{family.name}-{regions}-{'common' if common else 'rare'}-{number:02}"
            weights = family.weights if common and _are_in_first_levels(chunk, regions) else family.weights[:1]
            for weight in weights:
                save(fonts[regions[0]].part(chunk, weight), f"{name}-{weight}")
            yield BuiltSubset(name, weights, chunk, regions=regions)


class _RegionFont:
    """The glyphs of one region's font, read from all of its subsets. `rank` is 0 for the most used characters."""

    def __init__(self, packages: Packages, family: Family, last: str) -> None:
        self.rank: dict[int, int] = {}
        self._outlines: dict[int, dict[int, Outline]] = {weight: {} for weight in family.weights}
        self._ranges = family.ranges
        name = f"{family.package}-{last}"
        for rank, number in enumerate(packages.numbered_subsets(name)):
            for weight in family.weights:
                font = packages.static(name, str(number), weight)
                self._add(font, rank, self._outlines[weight])

    def _add(self, font: Any, rank: int, outlines: dict[int, Outline]) -> None:
        for codepoint, name in font.getBestCmap().items():
            if any(start <= codepoint < stop for start, stop in self._ranges):
                self.rank.setdefault(codepoint, rank)
                outlines[codepoint] = _simple_glyph(font, name), font["hmtx"][name]

    def shape(self, codepoint: int) -> Any:
        """Equal for characters that look alike in the first weight."""
        glyph, metrics = next(iter(self._outlines.values()))[codepoint]
        return (tuple(glyph.coordinates) if glyph.numberOfContours else ()), metrics

    def part(self, codepoints: list[int], weight: int) -> Any:
        """A font of these characters alone."""
        outlines = {f"u{c:x}": self._outlines[weight][c] for c in codepoints}
        glyphs = {name: _in_units(glyph) for name, (glyph, _) in outlines.items()}
        metrics = {name: (otRound(advance * SCALE), 0) for name, (_, (advance, _)) in outlines.items()}
        return _font(glyphs, metrics, {c: f"u{c:x}" for c in codepoints})


def _groups(fonts: dict[str, _RegionFont]) -> dict[Group, dict[int, int]]:
    """For each group its characters and their ranks."""
    groups: dict[Group, dict[int, int]] = defaultdict(dict)
    for codepoint in sorted(set().union(*(font.rank for font in fonts.values()))):
        alike: dict[Any, str] = defaultdict(str)
        for region, font in fonts.items():
            if codepoint in font.rank:
                alike[font.shape(codepoint)] += region
        for regions in _drawn(chr(codepoint), list(alike.values())):
            rank = min(fonts[region].rank[codepoint] for region in regions)
            groups[regions, _is_common(codepoint)][codepoint] = rank
    return groups


def _drawn(character: str, shapes: list[str]) -> list[str]:
    """Of the regions' shapes those to keep: of a rare character only the shapes of regions that write it."""
    written = [regions for regions in shapes if any(character.encode(CHARACTER_SETS[r], "ignore") for r in regions)]
    return shapes if _is_common(ord(character)) else written or [max(shapes, key=len)]


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


def _font(glyphs: dict[str, Any], metrics: dict[str, Metrics], names: dict[int, str]) -> Any:
    """A font with what FreeType needs: it takes a glyph's box from its outline, and its place from the difference of
    the box that is written and its bearing, both of which are 0 here."""
    builder = FontBuilder(UNITS_PER_EM, isTTF=True)
    builder.setupGlyphOrder([".notdef", *glyphs])
    builder.setupCharacterMap(names)
    builder.setupGlyf({".notdef": Glyph(), **glyphs}, calcGlyphBounds=False)
    builder.setupHorizontalMetrics({".notdef": (UNITS_PER_EM // 2, 0), **metrics})
    builder.setupHorizontalHeader(ascent=round(0.88 * UNITS_PER_EM), descent=round(-0.12 * UNITS_PER_EM))
    builder.font["maxp"].recalc(builder.font)
    builder.font["head"].created = builder.font["head"].modified = 3_600_000_000
    builder.font.recalcTimestamp = builder.font.recalcBBoxes = False
    return builder.font


def _in_units(glyph: Any) -> Any:
    """A glyph on the grid of the files that are written, in a box of no size."""
    scaled = Glyph()
    scaled.numberOfContours = glyph.numberOfContours
    if glyph.numberOfContours:
        points = [(otRound(x * SCALE), otRound(y * SCALE)) for x, y in glyph.coordinates]
        scaled.coordinates, scaled.flags = GlyphCoordinates(points), glyph.flags
        scaled.endPtsOfContours, scaled.program = glyph.endPtsOfContours, Program()
        scaled.program.fromBytecode(b"")
    scaled.xMin = scaled.yMin = scaled.xMax = scaled.yMax = 0
    return scaled


def _is_common(codepoint: int) -> bool:
    """In the first level of a national character set, or not Han and not a rare syllable."""
    if chr(codepoint) in NAMES_AND_DIALECTS:
        return True
    if not _is_han_or_syllable(codepoint):
        return codepoint < 0xF900 or 0xFF00 <= codepoint < 0x10000
    return any(_is_in_first_level(codepoint, region) for region in FIRST_LEVELS)


def _are_in_first_levels(codepoints: list[int], regions: str) -> bool:
    """Whether enough of some characters are in the first level of a region whose shapes they have."""
    count = sum(_is_in_first_levels(codepoint, regions) for codepoint in codepoints)
    return count >= len(codepoints) * BOLD_SHARE


def _is_in_first_levels(codepoint: int, regions: str) -> bool:
    return not _is_han_or_syllable(codepoint) or any(_is_in_first_level(codepoint, region) for region in regions)


def _is_often_written(codepoint: int, regions: str) -> bool:
    return chr(codepoint) in NAMES_AND_DIALECTS or _is_in_first_levels(codepoint, regions)


def _is_han_or_syllable(codepoint: int) -> bool:
    return 0x3400 <= codepoint <= 0x9FFF or 0xAC00 <= codepoint <= 0xD7A3


def _is_in_first_level(codepoint: int, region: str) -> bool:
    encoding, first, last = FIRST_LEVELS[region]
    encoded = chr(codepoint).encode(encoding, "ignore")
    return len(encoded) == 2 and first <= encoded[0] <= last
