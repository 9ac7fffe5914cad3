"""The npm packages that the fonts are made from."""

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fontTools.ttLib import TTFont

from cardbeat.fonts.build.subsets import FOLDER

FONTSOURCE = "5.3.0"
"""Version of all packages but these."""
VERSIONS = {
    "twemoji-colr-font": "15.0.3",
    "@fontsource/noto-sans-tai-le": "5.2.7",
    "@fontsource/noto-sans-lisu": "4.5.12",
    "@fontsource/noto-sans-tai-tham": "4.5.12",
    "@fontsource/noto-sans-yi": "4.5.12",
}


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
        """A font file, opened anew each time: callers change it."""
        file = self._modules / package / path
        self._read[package][path] = hashlib.sha256(file.read_bytes()).hexdigest()
        font = TTFont(file, recalcTimestamp=False)
        self._copyright[package] = font["name"].getDebugName(0)
        return font

    def static(self, name: str, subset: str, weight: int) -> Any:
        """A subset of a Fontsource font in one weight."""
        return self.font(f"@fontsource/{name}", f"files/{name}-{subset}-{weight}-normal.woff2")

    def numbered_subsets(self, name: str) -> list[int]:
        """The subsets of a Fontsource Han font, those of the most used characters first."""
        files = (self._modules / "@fontsource" / name / "files").glob(f"{name}-[0-9]*-400-normal.woff2")
        return sorted((int(file.name.removeprefix(f"{name}-").split("-")[0]) for file in files), reverse=True)

    def record(self) -> list[dict[str, Any]]:
        return [
            {
                "package": name,
                "version": _version(name),
                "licence": _licence_file(name),
                "files": dict(sorted(read.items())),
            }
            for name, read in sorted(self._read.items())
        ]

    def copy_licences(self) -> None:
        """A few packages only name their licence: theirs is the one of their family, under their own copyright."""
        (FOLDER / "licences").mkdir(exist_ok=True)
        _, family = (self._modules / "@fontsource/noto-sans/LICENSE").read_text("utf-8").split("\n", 1)
        for name in self._read:
            own = self._modules / name / "LICENSE"
            text = own.read_text("utf-8") if own.exists() else f"{self._copyright[name]}\n{family}"
            (FOLDER / _licence_file(name)).write_text(text, "utf-8")


def _version(package: str) -> str:
    return VERSIONS.get(package, FONTSOURCE)


def _licence_file(package: str) -> str:
    return f"licences/{package.replace('@', '').replace('/', '-')}.txt"
