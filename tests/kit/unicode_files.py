"""The test files of Unicode, which Debian's package `unicode-data` has, read for the tests and for `tests.bench`."""

import re
import unicodedata
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from cardbeat.typeset.unicode import bidi

FOLDER = Path("/usr/share/unicode")
_REMOVED = re.compile(r"\b(202[A-E]|206[6-9])\b")
"""Embeddings, overrides and isolates, which `clean` removes from every text."""
SAMPLES = {
    "L": "a", "R": "א", "AL": "ا", "EN": "1", "ES": "+", "ET": "#", "AN": "١", "CS": ",", "NSM": "\u0300",
    "BN": "\u00ad", "B": "\u2029", "S": "\t", "WS": " ", "ON": "!",
}  # fmt: skip
"""A character of each Bidi_Class, but for what `clean` removes."""


class BidiCase(NamedTuple):
    """A paragraph of one line: `rtl` is None where its text decides. Level -1 stands for what X9 takes out."""

    text: str
    rtl: bool | None
    levels: list[int]
    order: list[int]

    def passes(self):
        rtl = bidi.is_rtl(self.text) if self.rtl is None else self.rtl
        found = _white_space_reset(
            self.text, bidi.levels(self.text, rtl), int(rtl)
        )
        kept, wanted, shown = [], [], []
        for place, level in enumerate(self.levels):
            if level >= 0:
                kept.append(place)
                wanted.append(level)
                shown.append(found[place])
        return shown == wanted and self.order == bidi.in_visual_order(
            kept, shown
        )


def character_cases(step=1):
    """Every `step`th line of BidiCharacterTest.txt of a text that `clean` leaves as it is."""
    lines = (
        line
        for line in _lines("BidiCharacterTest.txt")
        if not _REMOVED.search(line.partition(";")[0])
    )
    for line in islice(lines, 0, None, step):
        text, direction, _, levels, order = line.split(";")
        yield BidiCase(
            _text(text.split()),
            (False, True, None)[int(direction)],
            _levels(levels),
            _numbers(order),
        )


def class_cases(step=1):
    """Every `step`th line of BidiTest.txt, in each direction that it names, of those that `clean` leaves as they are."""
    levels = []
    order = []
    for n, line in enumerate(_lines("BidiTest.txt")):
        if line.startswith("@Levels:"):
            levels = _levels(line.partition(":")[2])
        elif line.startswith("@Reorder:"):
            order = _numbers(line.partition(":")[2])
        elif n % step == 0:
            classes, directions = line.split(";")
            if not SAMPLES.keys() >= set(classes.split()):
                continue
            text = "".join(SAMPLES[name] for name in classes.split())
            for bit, rtl in ((1, None), (2, False), (4, True)):
                if int(directions, 16) & bit:
                    yield BidiCase(text, rtl, levels, order)


def boundary_cases(name):
    """Of a file in `auxiliary`: texts, and where each is parted (÷), but for its beginning."""
    for line in _lines(f"auxiliary/{name}"):
        signs = line.split()
        yield (
            _text(signs[1::2]),
            [
                at
                for at, sign in enumerate(signs[::2])
                if at and sign == "÷"
            ],
        )


def _white_space_reset(text, levels, base):
    """L1, which `bidi.levels` leaves out: white space at the end, and before tabs, has the paragraph's level."""
    found, reset = list(levels), True
    for i in range(len(text) - 1, -1, -1):
        kind = unicodedata.bidirectional(text[i])
        if kind in ("B", "S"):
            reset = True
        elif kind not in ("WS", "BN"):
            reset = False
        found[i] = base if reset else found[i]
    return found


def _lines(name):
    with (FOLDER / name).open(encoding="utf-8") as file:
        for line in file:
            if data := line.partition("#")[0].strip():
                yield data


def _text(codes):
    return "".join(chr(int(code, 16)) for code in codes)


def _levels(text):
    return [-1 if level == "x" else int(level) for level in text.split()]


def _numbers(text):
    return [*map(int, text.split())]
