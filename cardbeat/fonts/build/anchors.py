"""Where marks stand on letters, read from a font's GPOS table, for hosts without a shaping engine."""

import json
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from cardbeat.fonts.build.subsets import FOLDER, gzipped

MARK_FEATURES = ("mark", "mkmk", "abvm", "blwm")
MARK_TO_BASE, MARK_TO_MARK = 4, 6
"""Types of GPOS lookups."""


class _Anchor(NamedTuple):
    kind: str
    """"marks" or "bases"."""
    glyph: str
    name: str
    place: Any
    """An OpenType Anchor table."""


def marks_in_every_script(font: Any) -> None:
    """Inter places marks in Latin only, by lookups that know the letters of Cyrillic and Greek too."""
    gpos = font["GPOS"].table
    features = gpos.FeatureList.FeatureRecord
    placing = [number for number, record in enumerate(features) if record.FeatureTag in MARK_FEATURES]
    for record in gpos.ScriptList.ScriptRecord:
        languages = [record.Script.DefaultLangSys, *(other.LangSys for other in record.Script.LangSysRecord)]
        for language in filter(None, languages):
            language.FeatureIndex = sorted({*language.FeatureIndex, *placing})
            language.FeatureCount = len(language.FeatureIndex)


def anchor_like(font: Any, letters: dict[str, str]) -> None:
    """Gives letters the anchors of another letter each, of the same height, and moves them to their own middle."""
    names, widths = font.getBestCmap(), font["hmtx"]
    for lookup in font["GPOS"].table.LookupList.Lookup:
        for table in (getattr(t, "ExtSubTable", t) for t in lookup.SubTable):
            if table.LookupType != MARK_TO_BASE:
                continue
            bases = dict(zip(table.BaseCoverage.glyphs, table.BaseArray.BaseRecord, strict=True))
            for letter, like in ((names[ord(pair[0])], names[ord(pair[1])]) for pair in letters.items()):
                if letter not in bases and like in bases:
                    bases[letter] = deepcopy(bases[like])
                    for anchor in filter(None, bases[letter].BaseAnchor):
                        anchor.XCoordinate += (widths[letter][0] - widths[like][0]) // 2
            table.BaseCoverage.glyphs = sorted(bases, key=font.getGlyphID)
            table.BaseArray.BaseRecord = [bases[name] for name in table.BaseCoverage.glyphs]
            table.BaseArray.BaseCount = len(bases)


def write_anchors(font: Any, name: str) -> None:
    """Writes the anchors in em as `name.json.gz`, if there are any.

    `{"marks": {mark: {anchor: [x, y]}}, "bases": {letter or mark: {anchor: [x, y]}}}`: a mark stands where its
    anchor meets the anchor of the same name.
    """
    characters: dict[str, list[str]] = defaultdict(list)
    for codepoint, glyph in font.getBestCmap().items():
        characters[glyph].append(chr(codepoint))
    em = font["head"].unitsPerEm
    found: dict[str, dict[str, dict[str, list[float]]]] = {"marks": {}, "bases": {}}
    for anchor in _anchors(font) if "GPOS" in font else ():
        for character in characters.get(anchor.glyph, ()):
            point = [round(anchor.place.XCoordinate / em, 3), round(anchor.place.YCoordinate / em, 3)]
            found[anchor.kind].setdefault(character, {})[anchor.name] = point
    if found["marks"]:
        data = json.dumps(found, separators=(",", ":")).encode("ascii")
        (FOLDER / f"{name}.json.gz").write_bytes(gzipped(data))


def _anchors(font: Any) -> Iterator[_Anchor]:
    """Every anchor that the mark features use."""
    gpos = font["GPOS"].table
    features = [record.Feature for record in gpos.FeatureList.FeatureRecord if record.FeatureTag in MARK_FEATURES]
    for number in sorted({index for feature in features for index in feature.LookupListIndex}):
        tables = gpos.LookupList.Lookup[number].SubTable
        for part, table in enumerate(getattr(t, "ExtSubTable", t) for t in tables):
            if table.LookupType == MARK_TO_BASE:
                yield from _of_subtable(table, f"{number}.{part}", "Mark", "Base")
            elif table.LookupType == MARK_TO_MARK:
                yield from _of_subtable(table, f"{number}.{part}", "Mark1", "Mark2")


def _of_subtable(table: Any, prefix: str, marks: str, bases: str) -> Iterator[_Anchor]:
    """The class of a mark, with the lookup it is from, is the name of its anchor."""
    records = getattr(table, f"{marks}Array").MarkRecord
    for glyph, record in zip(getattr(table, f"{marks}Coverage").glyphs, records, strict=True):
        yield _Anchor("marks", glyph, f"{prefix}.{record.Class}", record.MarkAnchor)
    records = getattr(getattr(table, f"{bases}Array"), f"{bases}Record")
    for glyph, record in zip(getattr(table, f"{bases}Coverage").glyphs, records, strict=True):
        for class_, place in enumerate(getattr(record, f"{bases}Anchor")):
            if place:
                yield _Anchor("bases", glyph, f"{prefix}.{class_}", place)
