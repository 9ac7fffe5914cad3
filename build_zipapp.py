"""Bundle the package into one file that any Python with Pillow runs: `python cardbeat.pyz`.

The same commit gives the same bytes: names are sorted, times and modes fixed, and nothing is compressed, so that
no version of zlib has a say. Uncompressed code also imports faster, and the fonts are compressed already.
"""

import argparse
import os
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
SHEBANG = b"#!/usr/bin/env python3\n"
SUFFIXES = {".py", ".sql", ".json", ".txt", ".html", ".css", ".js", ".svg", ".png", ".gz", ".woff2", ".bin"}
LEFT_OUT = ("cardbeat/fonts/build/", "cardbeat/words/build/")
"""Tools for developers, which need more than the standard library and Pillow."""


def contents() -> dict[str, bytes]:
    """Archive name -> bytes: the package, its start at the root, and the licence."""
    package = ROOT / "cardbeat"
    found = {
        path.relative_to(ROOT).as_posix(): path
        for path in package.rglob("*")
        if path.suffix in SUFFIXES and path.is_file() and "__pycache__" not in path.parts
    }
    files = {name: path.read_bytes() for name, path in found.items() if not name.startswith(LEFT_OUT)}
    files["__main__.py"] = files["cardbeat/__main__.py"]
    files["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return files


def build(target: Path) -> None:
    """Write the artifact, which appears whole or not at all. Raises `OSError` when it can't be written."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(SHEBANG)
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, data in sorted(contents().items()):
                    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                    entry.create_system = 3
                    entry.external_attr = 0o100644 << 16
                    archive.writestr(entry, data)
        partial.chmod(0o755)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Build cardbeat.pyz, the whole service in one file.")
    parser.add_argument("--output", type=Path, default=Path("cardbeat.pyz"), help="default: %(default)s")
    target: Path = parser.parse_args().output
    try:
        build(target)
    except OSError as error:
        print(f"build_zipapp: can't write {target}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
