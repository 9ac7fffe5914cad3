"""The npm packages that the fonts are made from."""

import hashlib
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from fontTools.ttLib import TTFont

from cardbeat.fonts.build.subsets import FOLDER

FONTSOURCE = "5.3.0"
"""Version of all packages but these."""
VERSIONS = {
    "twemoji-colr-font": "15.0.3",
    "@iconify-json/twemoji": "1.2.5",
    "@expo-google-fonts/noto-sans": "0.4.2",
    "inter-ui": "4.1.1",
    "source-serif": "4.5.1",
    "@fontsource/noto-serif-lao": "5.0.8",
    "@fontsource/noto-sans-tai-le": "5.2.7",
    "@fontsource/noto-sans-lisu": "4.5.12",
    "@fontsource/noto-sans-tai-tham": "4.5.12",
    "@fontsource/noto-sans-yi": "4.5.12",
}
FAMILIES = {"@iconify-json/twemoji": "twemoji-colr-font"}
"""Packages without a licence text, each with the package whose text is used. All others use Noto Sans Arabic's."""
NOTICES = {
    "@iconify-json/twemoji": "Copyright 2014-2021 Twitter, 2022 Jason Sofonia & Justine De Caires"
    " (https://github.com/jdecked/twemoji). Graphics licensed under CC BY 4.0; made into glyphs here."
}
"""Copyright lines of packages that have neither a licence nor a font."""


class Packages:
    """Packages installed into a folder, and the digest of every file read from them."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self._modules = folder / "node_modules"
        self._read: dict[str, dict[str, str]] = defaultdict(dict)
        self._copyright: dict[str, str] = {}
        wanted = [f"{name}@{_version(name)}" for name in names]
        flags = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix", str(folder)]
        subprocess.run(["npm", "install", *flags, *wanted], check=True)  # noqa: S603, S607 - fixed arguments

    def font(self, package: str, path: str) -> Any:
        """A font file, opened again for each call, because callers change it."""
        font = TTFont(self._file(package, path), recalcTimestamp=False)
        self._copyright[package] = font["name"].getDebugName(0)
        return font

    def json(self, package: str, path: str) -> Any:
        """What a JSON file holds."""
        return json.loads(self._file(package, path).read_text("utf-8"))

    def _file(self, package: str, path: str) -> Path:
        """A file of a package, whose digest goes into the record."""
        file = self._modules / package / path
        self._read[package][path] = hashlib.sha256(file.read_bytes()).hexdigest()
        return file

    def static(self, name: str, subset: str, weight: int) -> Any:
        """A subset of a Fontsource font in one weight."""
        return self.font(f"@fontsource/{name}", f"files/{name}-{subset}-{weight}-normal.woff2")

    def numbered_subsets(self, name: str) -> list[int]:
        """The subsets of a Fontsource Han font, those of the most used characters first."""
        files = (self._modules / "@fontsource" / name / "files").glob(f"{name}-[0-9]*-400-normal.woff2")
        return sorted((int(file.name.removeprefix(f"{name}-").split("-")[0]) for file in files), reverse=True)

    def record(self) -> list[dict[str, Any]]:
        file_of = {name: file for file, names in self._shared_licences().items() for name in names}
        return [
            {"package": name, "version": _version(name), "licence": file_of[name], "files": dict(sorted(read.items()))}
            for name, read in sorted(self._read.items())
        ]

    def copy_licences(self) -> None:
        """Each text once, under the copyright lines of all packages that it is the licence of."""
        (FOLDER / "licences").mkdir(exist_ok=True)
        for file, names in self._shared_licences().items():
            notices = [f"{name} {_version(name)}: {self._licence(name)[0]}" for name in names]
            (FOLDER / file).write_text("\n".join([*notices, "", self._licence(names[0])[1]]), "utf-8")

    def _shared_licences(self) -> dict[str, list[str]]:
        """The packages of each text, by the file it is written to: named after the first of them."""
        packages: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self._read):
            packages[self._licence(name)[1]].append(name)
        return {f"licences/{names[0].replace('@', '').replace('/', '-')}.txt": names for names in packages.values()}

    def _licence(self, name: str) -> tuple[str, str]:
        """The copyright line of a package, and the text of its licence.

        A few packages only name their licence: theirs is the one of their family, under their own copyright.
        """
        own = self._licence_file(name)
        file = own or self._licence_file(FAMILIES.get(name, "@fontsource/noto-sans-arabic"))
        notice, _, text = cast(Path, file).read_text("utf-8").partition("\n")
        lines = [line.rstrip().replace("http://", "https://") for line in text.strip().splitlines()]
        return (notice if own else NOTICES.get(name) or self._copyright[name]), "\n".join(lines) + "\n"

    def _licence_file(self, name: str) -> Path | None:
        files = (self._modules / name / file for file in ("LICENSE_FONT", "LICENSE", "LICENSE.txt", "LICENSE.md"))
        return next((file for file in files if file.exists()), None)


def _version(package: str) -> str:
    return VERSIONS.get(package, FONTSOURCE)
