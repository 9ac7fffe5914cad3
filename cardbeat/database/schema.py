"""The schema of each engine, as the numbered scripts in `cardbeat/schema` write it, one after the other."""

import contextlib

from cardbeat.resources import read_text


def numbered_scripts(engine: str) -> list[str]:
    """The scripts of an engine's folder, as far as their numbers go; there are as many as the schema has versions."""
    scripts: list[str] = []
    with contextlib.suppress(OSError):
        while True:
            scripts.append(read_text(f"schema/{engine}/{len(scripts) + 1:03}.sql"))
    return scripts
