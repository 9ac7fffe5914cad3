"""The index of the fonts, and that the files are those of the record."""

import hashlib
import json
from importlib import resources

from cardbeat.typeset.faces.files import read_catalogue
from tests.kit.lists import each

FOLDER = resources.files("cardbeat") / "fonts"
SUBSETS = {subset.name: subset for subset in read_catalogue()}


def test_every_file_is_the_one_in_the_record():
    made = json.loads((FOLDER / "made.json").read_text())
    assert {
        name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        for name in made
    } == made
    assert {
        file.name
        for file in FOLDER.iterdir()
        if file.name.endswith((".gz", ".woff2"))
    } <= set(made)


def test_every_package_brings_its_licence():
    for source in json.loads((FOLDER / "build/sources.json").read_text()):
        licence = (FOLDER / source["licence"]).read_text("utf-8")
        assert "license" in licence.lower(), source["package"]
        assert f"{source['package']} {source['version']}: " in licence


def test_every_subset_has_a_file_in_each_weight():
    names = set(each(FOLDER.iterdir(), "name"))
    for subset in SUBSETS.values():
        assert {*map(subset.path, subset.weights)} <= names
        assert len({*map(subset.path, subset.weights)}) == len(
            subset.weights
        )


def test_a_weight_that_is_not_there_is_drawn_in_the_nearest():
    hebrew, lisu = SUBSETS["sans-hebrew"], SUBSETS["sans-lisu"]
    assert hebrew.path(500) == "sans-hebrew-400.ttf.gz"
    assert hebrew.path(600) == "sans-hebrew-700.ttf.gz"
    assert lisu.path(800) == "sans-lisu-400.ttf.gz"
