"""The command `doctor`: examines this host, and says for each problem what to do."""

import os
import shutil
import sqlite3
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Final

from cardbeat.clock import utc_text
from cardbeat.commands.options import SERVE_OPTIONS, Parser, command, tell
from cardbeat.commands.serve import config_of, mistakes
from cardbeat.config import Config
from cardbeat.database import open_to_look
from cardbeat.database.postgresql import schema
from cardbeat.database.sqlite.copies import require_sound
from cardbeat.database.sqlite.file import (
    FILE_NAME,
    FILES,
    last_moment_stored,
    served_version,
)
from cardbeat.errors import StartupError
from cardbeat.host import ownership, surroundings
from cardbeat.host.system import UNSHAPED, rights_of_strangers

OK: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"
LOW_DISK_BYTES: Final = 512 * 1024 * 1024
SAMPLE_TEXT: Final = "Aa Ωω Яя عربي עברית हिन्दी ไทย 日本語 한국어 € → 😀"

Finding = tuple[str, str, str]
"""The level, the name of the thing, and what was found with, behind "; ", what to do."""


def parser() -> Parser:
    about = "Examine this host. Give it the server's options."
    return command("doctor", about, *SERVE_OPTIONS)


def run(given: Namespace) -> int:
    """Print all findings. Returns 1 if one is a problem, else 0; warnings don't count."""
    config = config_of(given)
    findings: list[Finding] = []
    for examine in EXAMINATIONS:
        try:
            findings += examine(config)
        except StartupError as error:  # serving raises it too
            findings.append((PROBLEM, examine.__name__[1:], str(error)))
    names = ("level", "name", "found")
    rows = [
        dict(zip(names, finding, strict=True)) for finding in findings
    ]
    tell(given, rows)
    return int(PROBLEM in [row["level"] for row in rows])


def _python(_config: Config) -> Iterator[Finding]:
    # `__main__` refuses older versions.
    version = sys.version.split()[0]
    yield OK, "python", f"{version}, with SQLite {sqlite3.sqlite_version}"


def _pillow(config: Config) -> Iterator[Finding]:
    surroundings.require_pillow()
    from PIL import __version__, features  # noqa: PLC0415 - it may be missing

    from cardbeat.cards.drawing.render import Renderer  # noqa: PLC0415
    from cardbeat.cards.request import Card  # noqa: PLC0415
    from cardbeat.typeset.faces.fonts import Fonts  # noqa: PLC0415

    yield OK, "pillow", __version__
    if features.check("raqm"):
        yield OK, "raqm", "usable"
    else:
        yield WARNING, "raqm", UNSHAPED
    drawing = Renderer(Fonts(), config.accent).render(Card(SAMPLE_TEXT))
    # What is not shaped is told beside Raqm.
    missing = drawing.missing_glyphs - drawing.unshaped
    if missing:
        found = f"they lack {missing} characters of a sample"
        yield PROBLEM, "fonts", f"{found}; get a fresh copy of cardbeat"
    else:
        yield OK, "fonts", "a sample card was drawn"


def _database(config: Config) -> Iterator[Finding]:
    ownership.check_writable(config.data, FILES)
    if rights_of_strangers(config.data):
        found = f"others can write in the data folder {config.data}"
        yield WARNING, "folder", f"{found}; run: chmod go-w"
    path = config.data / FILE_NAME
    if config.database is not None:
        with open_to_look(config.database) as connection:
            for level, sentence in schema.findings(connection):
                yield level, "database", sentence
    elif os.path.lexists(path):
        served_version(path)
        require_sound(path)
        size = path.stat().st_size / 1e6
        yield OK, "database", f"{path}, {size:.1f} MB, sound"
    else:
        found = f"no database in {config.data} yet, serving makes one"
        yield OK, "database", found


def _setup(config: Config) -> Iterator[Finding]:
    for sentence in mistakes(config):
        yield WARNING, "setup", sentence


def _disk(config: Config) -> Iterator[Finding]:
    folder = config.data
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    found = f"{free / 1e9:.1f} GB free for {config.data}"
    if free < LOW_DISK_BYTES:
        yield WARNING, "disk", f"{found}; make room, or lower --store-mb"
    else:
        yield OK, "disk", found


def _certificates(_config: Config) -> Iterator[Finding]:
    if surroundings.trusts_some():
        yield OK, "certificates", "certificate authorities are trusted"
    else:
        yield WARNING, "certificates", surroundings.NONE_TRUSTED


def _clock(config: Config) -> Iterator[Finding]:
    now = time.time()
    latest = (
        last_moment_stored(config.data) if config.database is None else 0
    )
    found = f"{utc_text(now)} UTC"
    if now < latest - 60:
        found += (
            f", before {utc_text(latest)}; set it, and keep it by NTP"
        )
        yield PROBLEM, "clock", found
    else:
        yield OK, "clock", found


EXAMINATIONS: Final = (
    _python,
    _pillow,
    _database,
    _setup,
    _disk,
    _certificates,
    _clock,
)
