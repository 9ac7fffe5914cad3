"""Letters and symbols: Inter and Source Serif for Latin, Greek and Cyrillic, Noto for all else but Han and emoji."""

import unicodedata
from collections.abc import Iterator
from typing import Any

from fontTools.varLib.instancer import instantiateVariableFont

from cardbeat.fonts.build.anchors import (
    anchor_like,
    marks_in_every_script,
    write_anchors,
)
from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import BuiltSubset, write

Ranges = tuple[tuple[int, int], ...]
"""First codepoint of each range, and the first after it."""

INTER_PACKAGE = "@fontsource-variable/inter"
INTER = ("latin", "latin-ext", "vietnamese", "cyrillic", "cyrillic-ext", "greek", "greek-ext")
INTER_OPTICAL_SIZE = {400: 20, 500: 20, 600: 28, 700: 32}
"""Weight to optical size: light weights set small text, heavy ones titles."""
PAGES_WEIGHT, PAGES_OPTICAL_SIZE = 800, 32
"""Of the headlines on the pages."""

SERIF_PACKAGE = "@fontsource-variable/source-serif-4"
SERIF = ("latin", "latin-ext", "vietnamese", "cyrillic", "cyrillic-ext", "greek")
SERIF_WEIGHT, SERIF_OPTICAL_SIZE = 700, 48
"""For headlines only."""
TRACKED_WEIGHT, TRACKING_EM = 700, -0.02
"""Titles are set in this weight: fonts are spaced for smaller sizes. Capitals would look crowded."""
SERIF_UNANCHORED = {"ẹ": "e", "ọ": "o", "ṣ": "s", "Ẹ": "E", "Ọ": "O", "Ṣ": "S"}
"""Letters of Yoruba and Igbo that it has no place for an accent on, and letters as high that it has one on."""
FULL_SERIF = ("source-serif", "VAR/SourceSerif4Variable-Roman.ttf")
WITH_SERIF = (
    "hebrew devanagari bengali tamil telugu malayalam gujarati sinhala thai lao khmer myanmar georgian armenian"
)
SERIF_SCRIPTS = (
    ("noto-naskh-arabic", "arabic"),
    *((f"noto-serif-{script}", script) for script in WITH_SERIF.split()),
)
"""Package and subset of other scripts' faces for headlines."""

FEATURES = ("kern", "mark", "mkmk", "ccmp", "locl")
"""Not the contextual ones: they turn `->` into an arrow, and only where a shaping engine is at hand."""

FULL_INTER = ("inter-ui", "variable/InterVariable.woff2")
"""All of Inter in one file: letters, marks and their anchors, which the subsets above tear apart."""
FULL_INTER_OPTICAL_SIZE = {weight: INTER_OPTICAL_SIZE[weight] for weight in (400, 700)}
MARKED = ((0x20, 0x250), (0x250, 0x2B0), (0x300, 0x370), (0x386, 0x3CF), (0x400, 0x530), (0x1E00, 0x1F00))
"""Letters that carry marks, and the marks."""
UNANCHORED = {"я": "э", "Ю": "О", "Я": "О"}
"""Vowels of Russian that Inter has no place for an accent on, and letters as high that it has one on."""
FRACTIONS = ((0x2150, 0x215F), (0x2189, 0x218A))
SIGNS = ((0x2022, 0x2023), (0x2070, 0x209D), (0x20A0, 0x20D0), (0x2190, 0x2400), (0x25A0, 0x2600), (0x27F0, 0x2800), (0x2900, 0x2C00))
"""Raised and lowered digits, currencies, arrows, operators, keys and shapes, which are as heavy as the letters of their font."""

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
"""Package, subset and weights, in the order in which a character is looked for after Inter."""
OTHERS = (("noto-serif-tibetan", "tibetan", (400,)),)
WIDEST_SPACE_EM, SPACE_EM = 0.35, 0.26
"""A space wider than the first, which looks like two, gets the width that it has in Noto Sans."""
FULL_NOTO = "@expo-google-fonts/noto-sans"
FULL_NOTO_FILES = {400: "400Regular/NotoSans_400Regular.ttf", 700: "700Bold/NotoSans_700Bold.ttf"}
"""The rarer letters of Latin, Greek and Cyrillic, and nearly every mark with its anchors."""
COMBINING = ((0x300, 0x370), (0x1AB0, 0x1B00), (0x1DC0, 0x1E00), (0x20D0, 0x2100), (0xFE20, 0xFE30))
NOTO_PARTS = {
    "greek": ((0x370, 0x400), (0x1F00, 0x2000)),
    "cyrillic": ((0x400, 0x530), (0x1C80, 0x1C90), (0x2DE0, 0x2E00), (0xA640, 0xA6A0)),
    "latin-ext": ((0x1D00, 0x1DC0), (0x2C60, 0x2C80), (0xA700, 0xA800), (0xAB30, 0xAB70)),
}
"""Cut so that a letter with a mark opens no more than it needs. All else is in the part "latin"."""
NOTO_UNWANTED = ((0x900, 0x980), (0x1CD0, 0x1D00), (0x2070, 0x20A0), (0xA830, 0xA900))
"""Devanagari, which has its own font, and the superscripts and subscripts, which Inter's digits match better."""
MATH = "noto-sans-math"
SYMBOLS = (
    ("noto-sans-symbols", "symbols", BOTH),
    (MATH, "latin", (400,)),
    ("noto-sans-symbols-2", "symbols", (400,)),
)
"""Too large to open for one arrow: cut into chunks."""
CHUNK = 300
"""Characters in a file of symbols: about 40 KB, opened in a millisecond."""

PACKAGES = {INTER_PACKAGE, SERIF_PACKAGE, FULL_INTER[0], FULL_SERIF[0], FULL_NOTO} | {
    f"@fontsource/{name}" for name, *_ in (*SCRIPTS, *OTHERS, *SYMBOLS, *SERIF_SCRIPTS)
}


def serif(packages: Packages) -> Iterator[BuiltSubset]:
    axes = {"wght": SERIF_WEIGHT, "opsz": SERIF_OPTICAL_SIZE}
    for subset in SERIF:
        name = f"source-serif-{subset}"
        font = packages.font(SERIF_PACKAGE, f"files/source-serif-4-{subset}-standard-normal.woff2")
        instance = tracked(instantiateVariableFont(font, axes))
        codepoints = write(instance, f"{name}-{SERIF_WEIGHT}", instance.getBestCmap(), FEATURES)
        write_anchors(instance, name)
        yield BuiltSubset(name, (SERIF_WEIGHT,), codepoints)
    name = "source-serif-marks"
    instance = tracked(instantiateVariableFont(packages.font(*FULL_SERIF), axes))
    anchor_like(instance, SERIF_UNANCHORED)
    codepoints = write(instance, f"{name}-{SERIF_WEIGHT}", _within(instance, MARKED), FEATURES)
    write_anchors(instance, name)
    yield BuiltSubset(name, (SERIF_WEIGHT,), codepoints, shaped=True)
    for package, subset in SERIF_SCRIPTS:
        yield _script(packages, package, package, subset, (SERIF_WEIGHT,))


def tracked(font: Any) -> Any:
    """The font with less space after small letters and between words."""
    units = round(TRACKING_EM * font["head"].unitsPerEm)
    glyphs = {glyph for code, glyph in font.getBestCmap().items() if chr(code).islower() or chr(code) == " "}
    for glyph in glyphs:
        advance, left = font["hmtx"][glyph]
        font["hmtx"][glyph] = max(0, advance + units), left
    return font


def inter(packages: Packages) -> Iterator[BuiltSubset]:
    for subset in INTER:
        name = f"inter-{subset}"
        for weight, optical_size in INTER_OPTICAL_SIZE.items():
            font = packages.font(INTER_PACKAGE, f"files/inter-{subset}-standard-normal.woff2")
            instance = instantiateVariableFont(font, {"wght": weight, "opsz": optical_size})
            if weight == TRACKED_WEIGHT:
                tracked(instance)
            codepoints = write(instance, f"{name}-{weight}", instance.getBestCmap(), FEATURES)
        yield BuiltSubset(name, tuple(INTER_OPTICAL_SIZE), codepoints)
    for weight, optical_size in INTER_OPTICAL_SIZE.items():
        instance = instantiateVariableFont(packages.font(*FULL_INTER), {"wght": weight, "opsz": optical_size})
        codepoints = write(instance, f"inter-signs-{weight}", _within(instance, SIGNS), FEATURES)
    yield BuiltSubset("inter-signs", tuple(INTER_OPTICAL_SIZE), codepoints)


def for_pages(packages: Packages) -> None:
    """The headlines of the pages, which no card draws."""
    font = packages.font(INTER_PACKAGE, "files/inter-latin-standard-normal.woff2")
    instance = instantiateVariableFont(font, {"wght": PAGES_WEIGHT, "opsz": PAGES_OPTICAL_SIZE})
    write(instance, f"inter-latin-{PAGES_WEIGHT}", instance.getBestCmap(), FEATURES)


def inter_with_marks(packages: Packages) -> Iterator[BuiltSubset]:
    """Its letters that carry marks once more, with all marks."""
    name = "inter-marks"
    for weight, optical_size in FULL_INTER_OPTICAL_SIZE.items():
        font = packages.font(*FULL_INTER)
        wanted = _within(font, (*MARKED, *FRACTIONS))
        instance = instantiateVariableFont(font, {"wght": weight, "opsz": optical_size})
        if weight == TRACKED_WEIGHT:
            tracked(instance)
        marks_in_every_script(instance)
        anchor_like(instance, UNANCHORED)
        codepoints = write(instance, f"{name}-{weight}", wanted, FEATURES)
    write_anchors(instance, name)
    yield BuiltSubset(name, tuple(FULL_INTER_OPTICAL_SIZE), codepoints, shaped=True)


def scripts(packages: Packages) -> Iterator[BuiltSubset]:
    """One subset for each script that Inter does not have, and for the rarer letters of those that it has."""
    for package, subset, weights in (*SCRIPTS, *OTHERS):
        name = package.removeprefix("noto-").removesuffix(f"-{subset}") + f"-{subset}"
        yield _script(packages, name, package, subset, weights)


def _script(packages: Packages, name: str, package: str, subset: str, weights: tuple[int, ...]) -> BuiltSubset:
    for weight in weights:
        font = packages.static(package, subset, weight)
        _narrow_space(font)
        codepoints = write(font, f"{name}-{weight}", font.getBestCmap())
    write_anchors(font, name)
    return BuiltSubset(name, weights, codepoints, shaped=any(map(_is_shaped, map(chr, codepoints))))


def _narrow_space(font: Any) -> None:
    glyph, em = font.getBestCmap().get(0x20), font["head"].unitsPerEm
    if glyph and font["hmtx"][glyph][0] > WIDEST_SPACE_EM * em:
        font["hmtx"][glyph] = round(SPACE_EM * em), 0


def rarer_letters(packages: Packages) -> Iterator[BuiltSubset]:
    """Those of Latin, Greek and Cyrillic that Inter lacks, all of them with all marks."""
    everything = _within(packages.font(FULL_NOTO, FULL_NOTO_FILES[400]), ((0x20, 0x110000),))
    combining = {c for c in everything if _is_in(c, COMBINING)}
    in_parts = {name: {c for c in everything if _is_in(c, ranges)} for name, ranges in NOTO_PARTS.items()}
    unwanted = {c for c in everything if _is_in(c, NOTO_UNWANTED)}
    latin = set(everything).difference(unwanted, *in_parts.values())
    for name, letters in ({"latin": latin} | in_parts).items():
        weights = (400,) if name == "latin-ext" else BOTH
        for weight in weights:
            font = packages.font(FULL_NOTO, FULL_NOTO_FILES[weight])
            codepoints = write(font, f"sans-{name}-{weight}", letters | combining, FEATURES)
        write_anchors(font, f"sans-{name}")
        yield BuiltSubset(f"sans-{name}", weights, codepoints, shaped=True)


def math_marks(packages: Packages) -> Iterator[BuiltSubset]:
    """Latin and Greek letters with the marks of mathematics, such as the arrow of a vector."""
    font = packages.static(MATH, "latin", 400)
    codepoints = write(font, "marks-400", _within(font, ((0x41, 0x5B), (0x61, 0x7B), (0x391, 0x3CA), (0x20D0, 0x2100))))
    write_anchors(font, "marks")
    yield BuiltSubset("marks", (400,), codepoints, shaped=True)


def symbols(packages: Packages) -> Iterator[BuiltSubset]:
    for package, subset, weights in SYMBOLS:
        wanted = sorted(c for c in packages.static(package, subset, weights[0]).getBestCmap() if c >= 0x2000)
        for number, start in enumerate(range(0, len(wanted), CHUNK)):
            name = f"{package.removeprefix('noto-sans-')}-{number:02}"
            for weight in weights:
                font = packages.static(package, subset, weight)
                codepoints = write(font, f"{name}-{weight}", wanted[start : start + CHUNK], features=[])
            yield BuiltSubset(name, weights, codepoints)


def _within(font: Any, ranges: Ranges) -> list[int]:
    """The font's characters that are in one of the ranges."""
    return sorted(codepoint for codepoint in font.getBestCmap() if _is_in(codepoint, ranges))


def _is_in(codepoint: int, ranges: Ranges) -> bool:
    return any(start <= codepoint < stop for start, stop in ranges)


def _is_shaped(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc") or unicodedata.bidirectional(character) in ("R", "AL")
