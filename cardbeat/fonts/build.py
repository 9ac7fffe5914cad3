"""Makes the font files, their index and their record from packages: `python cardbeat/fonts/build.py`.

Needs npm, fonttools and brotli. The same package versions give the same bytes. Not part of the artifact.
"""

import array
import hashlib
import json
import subprocess
import sys
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont, newTable
from fontTools.ttLib.tables._g_l_y_f import OVERLAP_COMPOUND, Glyph, flagOverlapSimple
from fontTools.ttLib.tables.C_O_L_R_ import LayerRecord
from fontTools.ttLib.tables.ttProgram import Program
from fontTools.varLib.instancer import instantiateVariableFont

HERE = Path(__file__).parent
FONTSOURCE, TWEMOJI = "5.3.0", "15.0.3"
OLDER = {
    "noto-sans-tai-le": "5.2.7",
    "noto-sans-lisu": "4.5.12",
    "noto-sans-tai-tham": "4.5.12",
    "noto-sans-yi": "4.5.12",
}

INTER = ("latin", "latin-ext", "vietnamese", "cyrillic", "cyrillic-ext", "greek", "greek-ext")
INTER_OPTICAL_SIZE = {400: 20, 500: 20, 600: 28, 700: 32, 800: 32}
"""Weight to optical size: light weights set small text, heavy ones titles."""

SERIF = ("latin", "latin-ext", "vietnamese", "cyrillic", "cyrillic-ext", "greek")
SERIF_AXES = {"wght": 700, "opsz": 48}
"""For headlines only."""

INTER_FEATURES = ("kern", "mark", "mkmk", "ccmp", "locl")
"""Not the contextual ones: they turn `->` into an arrow, and only where a shaping engine is at hand."""
EMOJI_ADVANCE = 544
"""Of 512 units an em."""
MARK_FEATURES = ("mark", "mkmk", "abvm", "blwm")

BOTH = (400, 700)
SCRIPTS = tuple(
    (f"noto-sans-{script}", script, weights)
    for weights, scripts in (
        (BOTH, "arabic hebrew devanagari bengali tamil telugu kannada malayalam gujarati gurmukhi sinhala oriya thai"),
        (BOTH, "lao khmer myanmar georgian armenian ethiopic thaana cherokee"),
        ((400,), "syriac nko tifinagh canadian-aboriginal ol-chiki meetei-mayek javanese balinese sundanese vai adlam"),
        ((400,), "cham tai-le new-tai-lue tai-tham lisu yi coptic gothic runic mongolian"),
    )
    for script in scripts.split()
)
"""Package, subset and weights, in the order they are asked for a character after Inter."""
OTHERS = (
    ("noto-serif-tibetan", "tibetan", (400,)),
    ("noto-sans", "latin", BOTH),
    ("noto-sans", "latin-ext", (400,)),
    ("noto-sans", "cyrillic-ext", (400,)),
    ("noto-sans", "vietnamese", (400,)),
)
SYMBOLS = (
    ("noto-sans-symbols", "symbols", BOTH),
    ("noto-sans-math", "latin", (400,)),
    ("noto-sans-symbols-2", "symbols", (400,)),
)
"""Too large to open for one arrow: cut into chunks."""
CHUNK = 300
"""Characters in a file of symbols or emoji: about 40 KB, opened in a millisecond."""
HAN_CHUNK = 150
"""Fewer in one of Han: a text seldom wants more of them, and a line of rare ones a file for nearly each."""

REGIONS = {"j": "jp", "s": "sc", "t": "tc", "k": "kr"}
HAN_WEIGHTS = (400, 700)
"""Every character in the first, the common ones in the second too: all in both would not fit the artifact."""

UNHINTED = Program()
UNHINTED.fromBytecode(b"\xb8\x01\xff\x85\xb0\x04\x8d\xb0\x00\x21")
"""FreeType auto-hints a font whose program is 7 bytes or less; letters then differ with the shaping engine."""


class Slice(NamedTuple):
    """A file in each weight, the codepoints it draws, and for Han the regions whose shapes it holds."""

    name: str
    weights: tuple[int, ...]
    codepoints: list[int]
    shaped: bool = False
    """Letters join, move or carry marks, so that widths need shaping."""
    regions: str = ""


class Packages:
    """The installed packages, and the digest of every file read from them."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self._modules = folder / "node_modules"
        self._read: dict[str, dict[str, str]] = defaultdict(dict)
        self._copyright: dict[str, str] = {}
        wanted = [f"{name}@{_version(name)}" for name in names]
        flags = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix", str(folder)]
        subprocess.run(["npm", "install", *flags, *wanted], check=True)  # noqa: S603, S607 - fixed arguments

    def font(self, package: str, path: str) -> Any:
        file = self._modules / package / path
        self._read[package][path] = hashlib.sha256(file.read_bytes()).hexdigest()
        font = TTFont(file, recalcTimestamp=False)
        self._copyright[package] = font["name"].getDebugName(0)
        return font

    def static(self, name: str, subset: str, weight: int) -> Any:
        return self.font(f"@fontsource/{name}", f"files/{name}-{subset}-{weight}-normal.woff2")

    def slice_numbers(self, name: str) -> list[int]:
        """A Han font's slices, the most used characters first."""
        files = (self._modules / "@fontsource" / name / "files").glob(f"{name}-[0-9]*-400-normal.woff2")
        return sorted((int(file.name.removeprefix(f"{name}-").split("-")[0]) for file in files), reverse=True)

    def record(self) -> list[dict[str, Any]]:
        return [
            {
                "package": name,
                "version": _version(name),
                "licence": _licence_file(name),
                "files": dict(sorted(read.items())),
            }
            for name, read in sorted(self._read.items())
        ]

    def copy_licences(self) -> None:
        """A few packages only name their licence: theirs is the one of their family, under their own copyright."""
        (HERE / "licences").mkdir(exist_ok=True)
        _, family = (self._modules / "@fontsource/noto-sans/LICENSE").read_text("utf-8").split("\n", 1)
        for name in self._read:
            own = self._modules / name / "LICENSE"
            text = own.read_text("utf-8") if own.exists() else f"{self._copyright[name]}\n{family}"
            (HERE / _licence_file(name)).write_text(text, "utf-8")


def main() -> None:
    for old in [*HERE.glob("*.woff2"), *HERE.glob("*.json"), *HERE.glob("licences/*")]:
        old.unlink()
    names = {f"@fontsource/{name}" for name, _, _ in (*SCRIPTS, *OTHERS, *SYMBOLS)} | {
        f"@fontsource/noto-sans-{r}" for r in REGIONS.values()
    }
    with tempfile.TemporaryDirectory() as folder:
        names |= {"@fontsource-variable/inter", "@fontsource-variable/source-serif-4", "twemoji-colr-font"}
        packages = Packages(Path(folder), sorted(names))
        slices = [
            *serif(packages),
            *inter(packages),
            *scripts(packages),
            *marks(packages),
            *symbols(packages),
            *han(packages),
            *emoji(packages),
        ]
        packages.copy_licences()
        write_index(slices)
        write_record(packages)


def inter(packages: Packages) -> Iterator[Slice]:
    for subset in INTER:
        for weight, optical_size in INTER_OPTICAL_SIZE.items():
            path = f"files/inter-{subset}-standard-normal.woff2"
            font = packages.font("@fontsource-variable/inter", path)
            font = instantiateVariableFont(font, {"wght": weight, "opsz": optical_size})
            codepoints = write(font, f"inter-{subset}-{weight}", font.getBestCmap(), INTER_FEATURES)
        yield Slice(f"inter-{subset}", tuple(INTER_OPTICAL_SIZE), codepoints)


def serif(packages: Packages) -> Iterator[Slice]:
    for subset in SERIF:
        path = f"files/source-serif-4-{subset}-standard-normal.woff2"
        font = instantiateVariableFont(packages.font("@fontsource-variable/source-serif-4", path), SERIF_AXES)
        codepoints = write(font, f"source-serif-{subset}-{SERIF_AXES['wght']}", font.getBestCmap(), INTER_FEATURES)
        yield Slice(f"source-serif-{subset}", (SERIF_AXES["wght"],), codepoints)


def scripts(packages: Packages) -> Iterator[Slice]:
    for package, subset, weights in (*SCRIPTS, *OTHERS):
        name = package.removeprefix("noto-").removesuffix(f"-{subset}") + f"-{subset}"
        for weight in weights:
            font = packages.static(package, subset, weight)
            codepoints = write(font, f"{name}-{weight}", font.getBestCmap())
        write_anchors(font, name)
        yield Slice(name, weights, codepoints, shaped=any(map(is_shaped, map(chr, codepoints))))


def marks(packages: Packages) -> Iterator[Slice]:
    """Letters with any of the combining marks, which the slices of Inter do not have together."""
    font = packages.static("noto-sans-math", "latin", 400)
    codepoints = write(font, "marks-400", [c for c in font.getBestCmap() if c < 0x500])
    write_anchors(font, "marks")
    yield Slice("marks", (400,), codepoints, shaped=True)


def write_anchors(font: Any, name: str) -> None:
    """Where marks stand on letters, in em, for hosts without a shaping engine: `name.json`, if there are any.

    `{"marks": {mark: {anchor: [x, y]}}, "bases": {letter or mark: {anchor: [x, y]}}}`: a mark stands where its
    anchor meets the anchor of the same name.
    """
    characters: dict[str, list[str]] = defaultdict(list)
    for codepoint, glyph in font.getBestCmap().items():
        characters[glyph].append(chr(codepoint))
    found: dict[str, dict[str, dict[str, list[float]]]] = {"marks": {}, "bases": {}}
    for kind, glyph, anchor, place in glyph_anchors(font) if "GPOS" in font else ():
        em = font["head"].unitsPerEm
        for character in characters.get(glyph, ()):
            found[kind].setdefault(character, {})[anchor] = [place.XCoordinate / em, place.YCoordinate / em]
    if found["marks"]:
        (HERE / f"{name}.json").write_text(json.dumps(found, separators=(",", ":")) + "\n", "ascii")


def glyph_anchors(font: Any) -> Iterator[tuple[str, str, str, Any]]:
    """Kind, glyph, name and place of each anchor that the mark features use."""
    features = [r.Feature for r in font["GPOS"].table.FeatureList.FeatureRecord if r.FeatureTag in MARK_FEATURES]
    for number in sorted({index for feature in features for index in feature.LookupListIndex}):
        tables = font["GPOS"].table.LookupList.Lookup[number].SubTable
        for part, table in enumerate(getattr(t, "ExtSubTable", t) for t in tables):
            if table.LookupType not in (4, 6):
                continue
            marks, bases = ("Mark", "Base") if table.LookupType == 4 else ("Mark1", "Mark2")
            records = zip(
                getattr(table, f"{marks}Coverage").glyphs, getattr(table, f"{marks}Array").MarkRecord, strict=True
            )
            for glyph, record in records:
                yield "marks", glyph, f"{number}.{part}.{record.Class}", record.MarkAnchor
            places = getattr(getattr(table, f"{bases}Array"), f"{bases}Record")
            for glyph, record in zip(getattr(table, f"{bases}Coverage").glyphs, places, strict=True):
                for class_, place in enumerate(getattr(record, f"{bases}Anchor")):
                    if place:
                        yield "bases", glyph, f"{number}.{part}.{class_}", place


def is_shaped(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc") or unicodedata.bidirectional(character) in ("R", "AL")


def symbols(packages: Packages) -> Iterator[Slice]:
    for package, subset, weights in SYMBOLS:
        font = packages.static(package, subset, weights[0])
        wanted = sorted(c for c in font.getBestCmap() if c >= 0x2000)
        for number, start in enumerate(range(0, len(wanted), CHUNK)):
            name = f"{package.removeprefix('noto-sans-')}-{number:02}"
            for weight in weights:
                font = packages.static(package, subset, weight)
                codepoints = write(font, f"{name}-{weight}", wanted[start : start + CHUNK], features=[])
            yield Slice(name, weights, codepoints)


def write(font: Any, name: str, codepoints: Iterable[int], features: Iterable[str] = ("*",)) -> list[int]:
    """Writes the part of a font that draws these codepoints; an empty `.notdef`, so that no box is ever drawn."""
    options = Options(hinting=False, layout_features=list(features), notdef_outline=False, name_IDs=[0, 13, 14])
    options.drop_tables += ["STAT", "DSIG", "meta", "FFTM", "vhea", "vmtx", "gasp", "MVAR", "HVAR"]
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[c for c in codepoints if c >= 0x20])
    subsetter.subset(font)
    return save(font, name)


def save(font: Any, name: str) -> list[int]:
    unflag_overlaps(font["glyf"])
    font["prep"] = newTable("prep")
    font["prep"].program = UNHINTED
    font.flavor = "woff2"
    font.save(HERE / f"{name}.woff2")
    return sorted(font.getBestCmap())


def unflag_overlaps(glyphs: Any) -> None:
    """FreeType draws a glyph that is flagged as overlapping itself in 16 times the pixels, for no visible gain."""
    for name in glyphs.keys():  # noqa: SIM118 - a table of glyphs is not a mapping
        glyph = glyphs[name]
        if glyph.numberOfContours > 0:
            glyph.flags[0] &= ~flagOverlapSimple
        elif glyph.isComposite():
            glyph.components[0].flags &= ~OVERLAP_COMPOUND


def han(packages: Packages) -> Iterator[Slice]:
    """Each shape once: characters grouped by which regions draw them alike, the most used first."""
    outlines = {region: Outlines(packages, f"noto-sans-{code}") for region, code in REGIONS.items()}
    groups: dict[tuple[str, bool], dict[int, int]] = defaultdict(dict)
    for codepoint in sorted(set().union(*(o.rank for o in outlines.values()))):
        alike: dict[Any, str] = defaultdict(str)
        for region, has in outlines.items():
            if codepoint in has.rank:
                alike[has.shape(codepoint)] += region
        for regions in alike.values():
            rank = min(outlines[region].rank[codepoint] for region in regions)
            groups[regions, is_common(codepoint)][codepoint] = rank
    for (regions, common), ranks in sorted(groups.items(), key=lambda item: (not item[0][1], item[0][0])):
        ordered = sorted(ranks, key=lambda c: (ranks[c], c))
        for number, start in enumerate(range(0, len(ordered), HAN_CHUNK)):
            chunk = sorted(ordered[start : start + HAN_CHUNK])
            name = f"han-{regions}-{'common' if common else 'rare'}-{number:02}"
            weights = HAN_WEIGHTS if common else HAN_WEIGHTS[:1]
            for weight in weights:
                save(outlines[regions[0]].font(chunk, weight), f"{name}-{weight}")
            yield Slice(name, weights, chunk, regions=regions)


class Outlines:
    """The glyphs of one region's Han font, read slice by slice."""

    def __init__(self, packages: Packages, name: str) -> None:
        self.rank: dict[int, int] = {}
        self._glyphs: dict[int, dict[int, tuple[Any, tuple[int, int]]]] = {weight: {} for weight in HAN_WEIGHTS}
        for rank, number in enumerate(packages.slice_numbers(name)):
            for weight in HAN_WEIGHTS:
                font = packages.static(name, str(number), weight)
                self._add(font, rank, self._glyphs[weight])
        self._copyright = font["name"].getDebugName(0)

    def _add(self, font: Any, rank: int, glyphs: dict[int, Any]) -> None:
        outlines = font.getGlyphSet()
        for codepoint, glyph_name in font.getBestCmap().items():
            if codepoint >= 0x2000:
                self.rank.setdefault(codepoint, rank)
                glyph = font["glyf"][glyph_name]
                if glyph.isComposite():
                    pen, flat = TTGlyphPen(None), DecomposingRecordingPen(outlines)
                    outlines[glyph_name].draw(flat)
                    flat.replay(pen)
                    glyph = pen.glyph()
                glyphs[codepoint] = glyph, font["hmtx"][glyph_name]

    def shape(self, codepoint: int) -> Any:
        glyph, metrics = self._glyphs[HAN_WEIGHTS[0]][codepoint]
        return (tuple(glyph.coordinates) if glyph.numberOfContours else ()), metrics

    def font(self, codepoints: list[int], weight: int) -> Any:
        names = {codepoint: f"u{codepoint:x}" for codepoint in codepoints}
        glyphs = {names[c]: self._glyphs[weight][c] for c in codepoints}
        return build_font(
            {name: glyph for name, (glyph, _) in glyphs.items()},
            {n: m for n, (_, m) in glyphs.items()},
            names,
            self._copyright,
        )


def build_font(glyphs: dict[str, Any], metrics: dict[str, Any], names: dict[int, str], copyright_: str) -> Any:
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


def is_common(codepoint: int) -> bool:
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


def emoji(packages: Packages) -> Iterator[Slice]:
    """Every sequence gets a private-use codepoint of its own, so that it draws without shaping.

    `emoji.txt` holds the sequences in hexadecimal, line `n` for U+F0000 + n.
    """
    sequences = dict(sorted(emoji_sequences(packages.font("twemoji-colr-font", "twemoji.woff2"))))
    (HERE / "emoji.txt").write_text("".join(f"{sequence}\n" for sequence in sequences), "ascii")
    names = {0xF0000 + number: name for number, name in enumerate(sequences.values())}
    for number, start in enumerate(range(0, len(names), CHUNK)):
        font = packages.font("twemoji-colr-font", "twemoji.woff2")
        chunk = dict(list(names.items())[start : start + CHUNK])
        yield Slice(f"emoji-{number:02}", (400,), write(mapped_emoji(font, chunk), f"emoji-{number:02}-400", chunk))


def mapped_emoji(font: Any, names: dict[int, str]) -> Any:
    """A colour glyph needs an outline to be drawn at all, and is placed by its first layer: both are an empty box,
    as large as the em. A little space keeps it from its neighbours."""
    for name in names.values():
        font["glyf"][name] = empty_box()
        font["hmtx"][name] = EMOJI_ADVANCE, 0
        font["COLR"].ColorLayers[name].insert(0, LayerRecord(name, 0))
    for table in font["cmap"].tables:
        table.cmap = names if table.format == 12 else {}
    del font["GSUB"], font["GDEF"]
    return font


def empty_box() -> Any:
    pen = TTGlyphPen(None)
    pen.moveTo((0, -64))
    pen.lineTo((512, 448))
    pen.closePath()
    return pen.glyph()


def emoji_sequences(font: Any) -> Iterator[tuple[str, str]]:
    """`1f468-200d-...`, without variation selectors, and the glyph that draws it."""
    drawn, names = font["COLR"].ColorLayers, font.getBestCmap()
    codepoints = {name: codepoint for codepoint, name in names.items()}
    for codepoint, name in names.items():
        if name in drawn:
            yield f"{codepoint:x}", name
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            for first, ligatures in table.ligatures.items():
                for ligature in ligatures:
                    parts = [codepoints.get(name) for name in (first, *ligature.Component)]
                    yield "-".join(f"{part:x}" for part in parts if part and part != 0xFE0F), ligature.LigGlyph


def write_index(slices: list[Slice]) -> None:
    """`index.json` lists the slices in the order they are asked; last, how many numbers of `index.bin` are theirs:
    where covered and uncovered stretches of codepoints begin, in turn, little-endian, 32 bits each."""
    rows, numbers = [], array.array("I")
    for name, weights, codepoints, shaped, regions in slices:
        starts: list[int] = []
        for codepoint in codepoints:
            if starts and starts[-1] == codepoint:
                starts[-1] += 1
            else:
                starts += [codepoint, codepoint + 1]
        rows.append([name, weights, shaped, regions, uniform_advance(name, weights[0]), len(starts)])
        numbers.extend(starts)
    if sys.byteorder == "big":
        numbers.byteswap()
    (HERE / "index.bin").write_bytes(numbers.tobytes())
    (HERE / "index.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", "ascii")


def uniform_advance(name: str, weight: int) -> float:
    """The width in em of each of its characters, so that no font is opened to plan lines; 0 where they differ."""
    font = TTFont(HERE / f"{name}-{weight}.woff2")
    advances = {font["hmtx"][glyph][0] for glyph in font.getBestCmap().values()}
    return advances.pop() / font["head"].unitsPerEm if len(advances) == 1 else 0


def write_record(packages: Packages) -> None:
    made = {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(HERE.iterdir())
        if p.name != "sources.json" and p.suffix in (".woff2", ".bin", ".txt", ".json")
    }
    record = {"sources": packages.record(), "made": made}
    (HERE / "sources.json").write_text(json.dumps(record, indent=1) + "\n", "ascii")


def _version(package: str) -> str:
    return TWEMOJI if package == "twemoji-colr-font" else OLDER.get(package.rpartition("/")[2], FONTSOURCE)


def _licence_file(package: str) -> str:
    return f"licences/{package.replace('@', '').replace('/', '-')}.txt"


if __name__ == "__main__":
    main()
