"""The index that `typeset.faces.files` reads, and the record of what was made from what."""

import array
import hashlib
import json
import sys
from collections.abc import Iterable

from fontTools.ttLib import TTFont

from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import FOLDER, BuiltSubset, read

SERIF = ("source-serif", "noto-")
LETTERS = ("inter", "source-serif", "noto-", "han", "sans", "serif", "marks")
"""Beginnings of names of fonts with serifs, and of those of letters, which are drawn bolder if they have no bold weight."""


def write_index(subsets: Iterable[BuiltSubset]) -> None:
    """`index.json` has a row for each subset, in the order in which a character is looked for in them.

    `[name, weights, kinds, regions, advance in em, count]`: the next `count` numbers of `index.bin`, of 32 bits
    and little-endian, are its codepoints' boundaries.
    """
    rows = []
    numbers = array.array("I")
    for subset in subsets:
        boundaries = _boundaries(subset.codepoints)
        advance_em = _uniform_advance(subset.name, subset.weights[0])
        row = [subset.name, subset.weights, _kinds(subset), subset.regions, advance_em, len(boundaries)]
        rows.append(json.dumps(row))
        numbers.extend(boundaries)
    if sys.byteorder == "big":
        numbers.byteswap()
    (FOLDER / "index.bin").write_bytes(numbers.tobytes())
    (FOLDER / "index.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", "ascii")


def _kinds(subset: BuiltSubset) -> str:
    kinds = {
        "serif": subset.name.startswith(SERIF),
        "shaped": subset.shaped,
        "emoji": subset.name.startswith("emoji"),
        "letters": subset.name.startswith(LETTERS),
    }
    return " ".join(kind for kind, is_so in kinds.items() if is_so)


def _boundaries(codepoints: Iterable[int]) -> list[int]:
    """Of sorted codepoints: where each range begins, and the first codepoint after it."""
    boundaries: list[int] = []
    for codepoint in codepoints:
        if boundaries and boundaries[-1] == codepoint:
            boundaries[-1] += 1
        else:
            boundaries += [codepoint, codepoint + 1]
    return boundaries


def _uniform_advance(name: str, weight: int) -> float:
    """The advance in em of each of its characters, so that no font is opened to plan lines; 0 where they differ."""
    font = TTFont(read(f"{name}-{weight}"))
    advances = {font["hmtx"][glyph][0] for glyph in font.getBestCmap().values()}
    return advances.pop() / font["head"].unitsPerEm if len(advances) == 1 else 0


def write_record(packages: Packages) -> None:
    """`made.json`: the digests of all files that were written. `build/sources.json`: those of all that were read."""
    made = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(FOLDER.iterdir())
        if file.name != "made.json" and file.suffix in (".gz", ".woff2", ".bin", ".txt", ".json")
    }
    (FOLDER / "made.json").write_text(json.dumps(made, indent=0, separators=(",", ":")) + "\n", "ascii")
    (FOLDER / "build/sources.json").write_text(json.dumps(packages.record(), indent=1) + "\n", "ascii")
