"""Letters and symbols: Inter and Source Serif for Latin, Greek and Cyrillic, Noto for all else but Han and emoji."""

import unicodedata
from collections.abc import Iterator
from typing import Any

from fontTools.varLib.instancer import instantiateVariableFont

from cardbeat.fonts.build.anchors import write_anchors
from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import BuiltSubset, write

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

FEATURES = ("kern", "mark", "mkmk", "ccmp", "locl")
"""Not the contextual ones: they turn `->` into an arrow, and only where a shaping engine is at hand."""

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
OTHERS = (
    ("noto-serif-tibetan", "tibetan", (400,)),
    ("noto-sans", "latin", BOTH),
    ("noto-sans", "latin-ext", (400,)),
    ("noto-sans", "cyrillic-ext", (400,)),
    ("noto-sans", "vietnamese", (400,)),
)
MATH = "noto-sans-math"
SYMBOLS = (
    ("noto-sans-symbols", "symbols", BOTH),
    (MATH, "latin", (400,)),
    ("noto-sans-symbols-2", "symbols", (400,)),
)
"""Too large to open for one arrow: cut into chunks."""
CHUNK = 300
"""Characters in a file of symbols: about 40 KB, opened in a millisecond."""

PACKAGES = {INTER_PACKAGE, SERIF_PACKAGE} | {f"@fontsource/{name}" for name, _, _ in (*SCRIPTS, *OTHERS, *SYMBOLS)}


def serif(packages: Packages) -> Iterator[BuiltSubset]:
    axes = {"wght": SERIF_WEIGHT, "opsz": SERIF_OPTICAL_SIZE}
    for subset in SERIF:
        name = f"source-serif-{subset}"
        font = packages.font(SERIF_PACKAGE, f"files/source-serif-4-{subset}-standard-normal.woff2")
        codepoints = _write_instance(font, f"{name}-{SERIF_WEIGHT}", axes)
        yield BuiltSubset(name, (SERIF_WEIGHT,), codepoints)


def inter(packages: Packages) -> Iterator[BuiltSubset]:
    for subset in INTER:
        name = f"inter-{subset}"
        for weight, optical_size in INTER_OPTICAL_SIZE.items():
            font = packages.font(INTER_PACKAGE, f"files/inter-{subset}-standard-normal.woff2")
            codepoints = _write_instance(font, f"{name}-{weight}", {"wght": weight, "opsz": optical_size})
        yield BuiltSubset(name, tuple(INTER_OPTICAL_SIZE), codepoints)


def for_pages(packages: Packages) -> None:
    """The headlines of the pages, which no card draws."""
    font = packages.font(INTER_PACKAGE, "files/inter-latin-standard-normal.woff2")
    instance = instantiateVariableFont(font, {"wght": PAGES_WEIGHT, "opsz": PAGES_OPTICAL_SIZE})
    write(instance, f"inter-latin-{PAGES_WEIGHT}", instance.getBestCmap(), FEATURES)


def scripts(packages: Packages) -> Iterator[BuiltSubset]:
    """One subset for each script that Inter does not have, and for the rarer letters of those that it has."""
    for package, subset, weights in (*SCRIPTS, *OTHERS):
        name = package.removeprefix("noto-").removesuffix(f"-{subset}") + f"-{subset}"
        for weight in weights:
            font = packages.static(package, subset, weight)
            codepoints = write(font, f"{name}-{weight}", font.getBestCmap())
        write_anchors(font, name)
        yield BuiltSubset(name, weights, codepoints, shaped=any(map(_is_shaped, map(chr, codepoints))))


def marks(packages: Packages) -> Iterator[BuiltSubset]:
    """Letters with any of the combining marks, which the subsets of Inter do not have together."""
    font = packages.static(MATH, "latin", 400)
    codepoints = write(font, "marks-400", [c for c in font.getBestCmap() if c < 0x500])
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


def _write_instance(font: Any, name: str, axes: dict[str, int]) -> list[int]:
    """Writes a variable font with its axes fixed."""
    instance = instantiateVariableFont(font, axes)
    return write(instance, name, instance.getBestCmap(), FEATURES)


def _is_shaped(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc") or unicodedata.bidirectional(character) in ("R", "AL")
