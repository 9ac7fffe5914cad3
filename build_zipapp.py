"""Bundle the package into one file that any Python with Pillow runs: `python cardbeat.pyz`.

The same commit and the same Python give the same bytes: names are sorted, times and modes fixed,
and nothing is compressed, so that no version of zlib has a say. Uncompressed code also imports
faster, and the fonts are compressed already. Beside each module is its bytecode, so that a start
compiles nothing. A Python of another version takes the source.
"""

import argparse
import importlib.util
import marshal
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parent
SHEBANG = b"#!/usr/bin/env python3\n"
SUFFIXES = {
    ".py",
    ".sql",
    ".json",
    ".txt",
    ".md",
    ".html",
    ".css",
    ".js",
    ".bin",
    ".gz",
    ".woff2",
}
SUFFIXES |= {".svg", ".png", ".jpg", ".conf", ".cfg", ".yaml", ".service"}
NAMES = {"Caddyfile", "Dockerfile"}
"""Files without a suffix."""
LEFT_OUT = (
    "cardbeat/fonts/build/",
    "cardbeat/light/build/",
    "cardbeat/words/build/",
)
"""Tools for developers, which need more than the standard library and Pillow."""
IMPORTED = re.compile(r"cardbeat/(?!__main__).*\.py")
UNCHECKED = (1).to_bytes(4, "little")
"""The flags of a .pyc with a hash of the source that is not compared."""
CODE = ["code", "consts", "names", "varnames", "cellvars", "freevars"]
CODE += ["filename", "name", "qualname", "linetable", "exceptiontable"]
"""All that `marshal` writes of a code object, but for numbers."""


def contents() -> dict[str, bytes]:
    """Archive name -> bytes: the package, its start at the root, and the licence."""
    package = ROOT / "cardbeat"
    found = {
        path.relative_to(ROOT).as_posix(): path
        for path in package.rglob("*")
        if (path.suffix in SUFFIXES or path.name in NAMES)
        and path.is_file()
        and "__pycache__" not in path.parts
    }
    files = {
        name: path.read_bytes()
        for name, path in found.items()
        if not name.startswith(LEFT_OUT)
    }
    files["__main__.py"] = files["cardbeat/__main__.py"]
    files["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return files


def bytecode(sources: dict[str, bytes]) -> dict[str, bytes]:
    """Archive name -> bytes of the .pyc for each module.

    The start stays source, which any Python 3 reads.
    """
    return {
        f"{name}c": compiled(name, data)
        for name, data in sources.items()
        if IMPORTED.fullmatch(name)
    }


def compiled(name: str, source: bytes) -> bytes:
    """A .pyc that depends on the source and the version of Python alone.

    Imports do not compare it with the source. Tracebacks show the names of files in the artifact.
    """
    code = compile(
        source,
        f"cardbeat.pyz/{name}",
        "exec",
        dont_inherit=True,
        optimize=0,
    )
    # `marshal` counts references, and writes an object in another way if it has one only. Other
    # modules of this process use some of the same strings, so hold each object.
    held = list(parts_of(code))
    data = marshal.dumps(code)
    del held
    return (
        importlib.util.MAGIC_NUMBER
        + UNCHECKED
        + importlib.util.source_hash(source)
        + data
    )


def parts_of(part: object) -> Iterator[object]:
    """A constant, and all that it holds."""
    # `marshal` tells interned strings from others. A process has each string of one character once,
    # and any module may have interned it.
    yield (
        sys.intern(part)
        if isinstance(part, str) and len(part) == 1
        else part
    )
    inner = (
        [getattr(part, f"co_{name}") for name in CODE]
        if isinstance(part, CodeType)
        else part
    )
    if isinstance(inner, list | tuple | frozenset):
        for one in inner:
            yield from parts_of(one)


def build(target: Path) -> None:
    """Write the artifact, whole or not at all. Raises `OSError` when it can't be written."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(SHEBANG)
            with zipfile.ZipFile(
                file, "w", zipfile.ZIP_STORED
            ) as archive:
                files = contents()
                for name, data in sorted(
                    (files | bytecode(files)).items()
                ):
                    entry = zipfile.ZipInfo(
                        name, date_time=(1980, 1, 1, 0, 0, 0)
                    )
                    entry.create_system = 3
                    entry.external_attr = 0o100644 << 16
                    archive.writestr(entry, data)
        partial.chmod(0o755)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Build cardbeat.pyz, the whole service in one file."
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("cardbeat.pyz"),
        help="default: %(default)s",
    )
    target: Path = parser.parse_args().output
    try:
        build(target)
    except OSError as error:
        print(
            f"build_zipapp: can't write {target}: {error.strerror}",
            file=sys.stderr,
        )
        return 2
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
