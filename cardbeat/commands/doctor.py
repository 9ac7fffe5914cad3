"""The command `doctor`: looks at this host and says what to do about what is wrong (CONTRACT 5)."""

import contextlib
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cardbeat.clock import utc_text
from cardbeat.database_file import FILE_NAME, check_writable, integrity_problems, last_moment_stored
from cardbeat.errors import StartupError
from cardbeat.output import say
from cardbeat.patience import patience

OK, WARNING, PROBLEM = "ok", "warning", "problem"

LOW_DISK_BYTES = 512 * 1024 * 1024
RELEASED_AT = 1_767_225_600
"""2026-01-01: a clock before it is wrong."""
SAMPLE_TEXT = "Aa Ωω Яя عربي עברית हिन्दी ไทย 日本語 한국어 € → 😀"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one examination found; `text` names the thing, its state and what to do."""

    level: str
    text: str


def examine(data: Path) -> int:
    """Print every finding. Returns 1 if there is a problem among them, else 0."""
    findings = [finding for examination in EXAMINATIONS for finding in examination(data)]
    say(f"{finding.level:8} {finding.text}" for finding in findings)
    return int(any(finding.level == PROBLEM for finding in findings))


def _python(_data: Path) -> Iterator[Finding]:
    # Older ones have been turned away before this runs.
    yield Finding(OK, f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")


def _pillow(_data: Path) -> Iterator[Finding]:
    try:
        from PIL import __version__, features  # noqa: PLC0415 - it may be missing
    except ImportError:
        yield Finding(PROBLEM, "Pillow is missing: python -m pip install Pillow")
        return
    if tuple(map(int, __version__.split(".")[:2])) < (9, 4):
        yield Finding(PROBLEM, f"Pillow {__version__} is too old: python -m pip install --upgrade Pillow")
    else:
        yield Finding(OK, f"Pillow {__version__}")
    if not features.check("freetype2"):
        yield Finding(PROBLEM, "Pillow has no FreeType and can't draw text: install a build that has it")
    elif features.check("raqm"):
        yield Finding(OK, "raqm: Indic scripts are shaped and text is kerned")
    else:
        yield Finding(WARNING, "raqm is not usable, so Indic scripts are not shaped: install libfribidi0 (or fribidi)")


def _fonts(_data: Path) -> Iterator[Finding]:
    try:
        from cardbeat.cards.fonts import Fonts  # noqa: PLC0415 - importing it needs Pillow
        from cardbeat.cards.render import Renderer  # noqa: PLC0415
        from cardbeat.cards.request import Card  # noqa: PLC0415

        missing = Renderer(Fonts()).render(Card(SAMPLE_TEXT)).missing_glyphs
    except ImportError:
        return
    except Exception as error:
        yield Finding(PROBLEM, f"no card can be drawn ({error}): get a fresh copy of cardbeat.pyz")
        return
    if missing:
        yield Finding(PROBLEM, f"the fonts lack {missing} characters of a sample: get a fresh copy of cardbeat.pyz")
    else:
        yield Finding(OK, "fonts: a sample card was drawn")


def _database(data: Path) -> Iterator[Finding]:
    path = data / FILE_NAME
    try:
        check_writable(data)
        if not os.path.lexists(path):
            yield Finding(OK, f"no database in {data} yet; serving makes one")
            return
        with patience("checking the database"):
            problems = integrity_problems(data)
    except StartupError as error:
        # What serving would say too, and with what to do about it.
        yield Finding(PROBLEM, f"database: {error}")
        return
    for problem in problems:
        yield Finding(PROBLEM, f"database: {problem}")
    if problems:
        yield Finding(PROBLEM, "stop the server, move the database away and put the last backup in its place")
    else:
        yield Finding(OK, f"database {path}: {path.stat().st_size / 1e6:.1f} MB, sound")


def _disk(data: Path) -> Iterator[Finding]:
    existing = next(folder for folder in (data, *data.absolute().parents) if os.path.exists(folder))
    free = shutil.disk_usage(existing).free
    level, advice = (WARNING, ": make room, or lower --store-mb") if free < LOW_DISK_BYTES else (OK, "")
    yield Finding(level, f"{free / 1e9:.1f} GB free for {data}{advice}")


def _clock(data: Path) -> Iterator[Finding]:
    now = time.time()
    latest = RELEASED_AT
    with contextlib.suppress(StartupError):
        latest = max(latest, last_moment_stored(data))
    if now < latest - 60:
        yield Finding(PROBLEM, f"the clock says {utc_text(now)}, before {utc_text(latest)}: set it, and keep it by NTP")
    else:
        yield Finding(OK, f"clock: {utc_text(now)} UTC")


EXAMINATIONS: tuple[Callable[[Path], Iterator[Finding]], ...] = (_python, _pillow, _fonts, _database, _disk, _clock)
