"""The index of the fonts, and that the files are those of the record."""

import hashlib
import json
from importlib import resources

from cardbeat.typeset.faces.catalogue import read_catalogue

FOLDER = resources.files("cardbeat") / "fonts"
SUBSETS = {subset.name: subset for subset in read_catalogue()}


def test_every_file_is_the_one_in_the_record() -> None:
    made = json.loads((FOLDER / "made.json").read_text())
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in made} == made
    assert {file.name for file in FOLDER.iterdir() if file.name.endswith((".gz", ".woff2"))} <= set(made)


def test_every_package_brings_its_licence() -> None:
    for source in json.loads((FOLDER / "build/sources.json").read_text()):
        licence = (FOLDER / source["licence"]).read_text("utf-8")
        assert "license" in licence.lower(), source["package"]
        assert f"{source['package']} {source['version']}: " in licence


def test_every_subset_has_a_file_in_each_weight() -> None:
    names = {file.name for file in FOLDER.iterdir()}
    for subset in SUBSETS.values():
        assert {subset.file(weight) for weight in subset.weights} <= names
        assert len({subset.file(weight) for weight in subset.weights}) == len(subset.weights)


def test_the_index_tells_how_long_each_file_is() -> None:
    for subset in SUBSETS.values():
        assert subset.lengths == tuple(len((FOLDER / subset.file(weight)).read_bytes()) for weight in subset.weights)


def test_a_weight_that_is_not_there_is_drawn_in_the_nearest() -> None:
    hebrew, lisu = SUBSETS["sans-hebrew"], SUBSETS["sans-lisu"]
    assert (hebrew.file(500), hebrew.file(600)) == ("sans-hebrew-400.ttf.gz", "sans-hebrew-700.ttf.gz")
    assert lisu.file(800) == "sans-lisu-400.ttf.gz"


def test_a_subset_covers_the_ranges_of_the_index() -> None:
    hebrew = SUBSETS["sans-hebrew"]
    assert hebrew.covers("א")
    assert hebrew.covers("ת")
    assert not hebrew.covers("\u05eb")
    assert not hebrew.covers("\u0627")
    assert not hebrew.covers("\U0010ffff")
