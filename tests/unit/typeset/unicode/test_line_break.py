"""Classes of characters for breaking lines."""

from pathlib import Path

import pytest

from cardbeat.typeset.unicode.breaks import line_break
from tests.unicode_files import FOLDER


@pytest.mark.parametrize(
    ("characters", "expected"),
    [("aя한", "AL"), ("א", "HL"), ("ก", "SA"), ("日🎉", "ID"), ("٣7", "NU"), ("」", "CL"), ("ッ々", "NS"), ("€", "PR")],
)
def test_a_class_is_told_by_the_category_or_by_lists(characters: str, expected: str) -> None:
    assert {line_break(character) for character in characters} == {expected}


@pytest.mark.skipif(not FOLDER.exists(), reason="needs Debian's package unicode-data")
def test_nearly_all_punctuation_of_the_first_plane_is_as_unicode_has_it() -> None:
    classes = {c: name for line in data(FOLDER / "LineBreak.txt") for c, name in ranged(line)}
    listed = {"OP", "CL", "CP", "QU", "EX", "IS", "SY", "HY", "IN", "B2", "GL", "WJ", "ZW"}
    wrong = [c for c, name in classes.items() if name in listed and line_break(c) != name]
    assert len(wrong) < 40, [f"{ord(c):04X} {classes[c]} {line_break(c)}" for c in wrong]


def data(file: Path) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def ranged(line: str) -> list[tuple[str, str]]:
    codes, name = line.split(";")
    first, _, last = codes.partition("..")
    return [(chr(code), name) for code in range(int(first, 16), min(int(last or first, 16), 0xFFFF) + 1)]
