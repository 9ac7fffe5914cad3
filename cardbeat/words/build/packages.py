"""The PyPI packages that the lists are made from."""

import hashlib
import subprocess
import sys
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

VERSIONS = {"budoux": "0.10.1", "icu4py": "1.2.0"}
_PLATFORM = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11", "--implementation", "cp"]
"""Of the wheel that is read: the data in it are the same on every platform."""


class Packages:
    """Wheels in a folder, and the digest of every file read from them."""

    def __init__(self, folder: Path) -> None:
        wanted = [f"{name}=={version}" for name, version in VERSIONS.items()]
        flags = ["--quiet", "--no-deps", "--only-binary", ":all:", *_PLATFORM, "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", "download", *flags, *wanted], check=True)  # noqa: S603
        self._wheels = {name: zipfile.ZipFile(next(folder.glob(f"{name}-*.whl"))) for name in VERSIONS}
        self._read: dict[str, dict[str, str]] = defaultdict(dict)

    def file(self, package: str, start: str) -> bytes:
        """The one file whose path begins so."""
        wheel = self._wheels[package]
        (path,) = [name for name in wheel.namelist() if name.startswith(start)]
        data = wheel.read(path)
        self._read[package][path] = hashlib.sha256(data).hexdigest()
        return data

    def licence(self, package: str) -> bytes:
        """The text that goes with the data: of several the longest, in which the data are named."""
        wheel = self._wheels[package]
        texts = [wheel.read(name) for name in wheel.namelist() if "/licenses/" in name and not name.endswith("/")]
        return max(texts, key=len)

    def record(self) -> list[dict[str, Any]]:
        return [
            {
                "package": name,
                "version": VERSIONS[name],
                "licence": f"licences/{name}.txt",
                "files": dict(sorted(read.items())),
            }
            for name, read in sorted(self._read.items())
        ]
