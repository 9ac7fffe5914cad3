"""Replaces all files of `cardbeat/words`, their licences and their record."""

import gzip
import json
import tempfile
from itertools import groupby
from pathlib import Path

from cardbeat.typeset.unicode.words import (
    JOINERS,
    MODELS,
    SCRIPTS,
    encoded,
)
from cardbeat.words.build.packages import VERSIONS, Packages
from cardbeat.words.build.tries import packed_files, words

FOLDER = Path(__file__).resolve().parents[1]


def listed(found: list[str]) -> bytes:
    """The words as `typeset.unicode.words` reads them: a line for all that begin with the same two letters."""
    every = sorted({encoded(word) for word in (w.translate(JOINERS) for w in found) if word})
    return b"\n".join(_line(key, list(group)) for key, group in groupby(every, key=lambda word: word[:2]))


def _line(key: bytes, group: list[bytes]) -> bytes:
    return b" ".join([key, *(word[2:] for word in group if len(key) == 2)])


def main() -> None:
    for old in [*FOLDER.glob("*.gz"), FOLDER / "sources.json", *FOLDER.glob("licences/*")]:
        old.unlink()
    (FOLDER / "licences").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        packages = Packages(Path(folder))
        icu = packed_files(packages.file("icu4py", "icu4py.libs/libicudata"))
        for name in SCRIPTS.values():
            lines = listed(words(icu[f"brkitr/{name}dict.dict"]))
            (FOLDER / f"{name}.gz").write_bytes(gzip.compress(lines, 9, mtime=0))
        for model in map(str.lower, MODELS):
            weights = packages.file("budoux", f"budoux/models/{model}.json")
            (FOLDER / f"{model}.json.gz").write_bytes(gzip.compress(weights, 9, mtime=0))
        for package in VERSIONS:
            (FOLDER / f"licences/{package}.txt").write_bytes(packages.licence(package))
        record = {"sources": packages.record()}
        (FOLDER / "sources.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
