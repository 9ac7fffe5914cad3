"""The index that `typeset.catalogue` reads, and the record of what was made from what."""

import array
import hashlib
import json
import sys
from collections.abc import Iterable

from fontTools.ttLib import TTFont
from PIL import ImageFont

from cardbeat.fonts.build.packages import Packages
from cardbeat.fonts.build.subsets import FOLDER, BuiltSubset, read
from cardbeat.typeset.faces.catalogue import ADVANCE_UNITS, FontSubset, read_subsets


def write_index(subsets: Iterable[BuiltSubset]) -> None:
    """`index.json` has a row for each subset, in the order in which a character is looked for in them.

    `[name, weights, shaped, regions, advance in em, lengths of the files, count, is wide]`: the next `count` numbers
    of `index.bin` are its codepoints' boundaries, or those of `index-wide.bin` if any of them takes more than the
    16 bits that these have: they have 32. All are little-endian.
    """
    rows, numbers, wide = [], array.array("H"), array.array("I")
    for name, weights, codepoints, shaped, regions in subsets:
        boundaries = _boundaries(codepoints)
        lengths = [(FOLDER / f"{name}-{weight}.ttf.gz").stat().st_size for weight in weights]
        is_wide = boundaries[-1] >= 1 << 16
        advance_em = _uniform_advance(name, weights[0])
        rows.append([name, weights, shaped, regions, advance_em, lengths, len(boundaries), is_wide])
        (wide if is_wide else numbers).extend(boundaries)
    for file, values in (("index.bin", numbers), ("index-wide.bin", wide)):
        if sys.byteorder == "big":
            values.byteswap()
        (FOLDER / file).write_bytes(values.tobytes())
    (FOLDER / "index.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", "ascii")


def write_advances() -> None:
    """`advances.bin`: how wide the characters of each subset in the index are, where they differ.

    In the order of the index, weight after weight and character after character: numbers of 16 bits, little-endian,
    in parts of the size, so that no font is opened to plan lines.
    """
    advances = array.array("H")
    for subset in read_subsets():
        for weight in () if subset.advance_em else subset.weights:
            advances.extend(_advances(subset, weight))
    if sys.byteorder == "big":
        advances.byteswap()
    (FOLDER / "advances.bin").write_bytes(advances.tobytes())


def _advances(subset: FontSubset, weight: int) -> list[int]:
    font = ImageFont.truetype(read(f"{subset.name}-{weight}"), ADVANCE_UNITS, layout_engine=ImageFont.Layout.BASIC)
    return [round(font.getlength(character)) for character in subset.characters()]


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
