"""The command `doctor`: looks at this host and says what to do about what is wrong."""

import contextlib
import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cardbeat import ownership, pillow
from cardbeat.advice import undefined_tiers, unknown_variables, unreachable_base_url
from cardbeat.clock import utc_text
from cardbeat.config import Tier
from cardbeat.database import Transaction, open_to_look
from cardbeat.database.postgresql_examination import (
    clock_doubts,
    description,
    require_no_foreign_tables,
    require_rights,
    weaknesses,
)
from cardbeat.database.sqlite_file import (
    FILE_NAME,
    FILES,
    integrity_problems,
    last_moment_stored,
    open_read_only,
    start_up_errors,
)
from cardbeat.errors import StartupError
from cardbeat.keys.store import count_by_tier
from cardbeat.keys.tiers import tiers_from
from cardbeat.options import BASE_URL, DATA, DATABASE, HOST, TIERS, Parser, add_json
from cardbeat.output import say
from cardbeat.progress import tell_if_slow
from cardbeat.system import HOW_TO_GET_FRIBIDI, MOST_SOCKETS
from cardbeat.web.listener import connection_limit

OK, WARNING, PROBLEM = "ok", "warning", "problem"

LOW_DISK_BYTES = 512 * 1024 * 1024
RELEASED_AT = 1_767_225_600
"""2026-01-01: a clock before it is wrong."""
SAMPLE_TEXT = "Aa Ωω Яя عربي עברית हिन्दी ไทย 日本語 한국어 € → 😀"
FRESH_COPY = "get a fresh copy of cardbeat"


class Setup(NamedTuple):
    """The options of `serve` that are examined."""

    data: Path
    database: str | None
    host: str
    base_url: str | None
    tiers: dict[str, Tier]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one examination found of the thing `name`; `advice` says what to do, and is empty where nothing is."""

    level: str
    name: str
    found: str
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        advice = self.advice or None
        return {"name": self.name, "ok": self.level == OK, "level": self.level, "found": self.found, "advice": advice}

    def __str__(self) -> str:
        return f"{self.level:8} {self.name}: {self.found}" + (f"; {self.advice}" if self.advice else "")


def parser() -> Parser:
    made = Parser("doctor [options]", "Check this host, and say what to do about what is wrong.")
    add_json(made)
    for option in (DATA, DATABASE, HOST, BASE_URL, TIERS):
        option.add_to(made)
    return made


def run(argv: Sequence[str]) -> int:
    """Print every finding. Returns 1 if there is a problem among them, else 0, also when there are warnings."""
    given = parser().parse_args(list(argv))
    data, database, host, base_url = (option.value(given) for option in (DATA, DATABASE, HOST, BASE_URL))
    setup = Setup(data, database, host, base_url, tiers_from(TIERS.value(given)))
    findings = _of_one_clock([finding for examination in EXAMINATIONS for finding in examination(setup)])
    healthy = all(finding.level != PROBLEM for finding in findings)
    if given.json:
        say([json.dumps({"ok": healthy, "findings": [finding.as_json() for finding in findings]})])
    else:
        say(map(str, findings))
    return 0 if healthy else 1


def _of_one_clock(findings: list[Finding]) -> list[Finding]:
    """Without what is well by this host's clock alone, where the database server's says otherwise."""
    is_doubted = any(finding.name == "clock" and finding.level != OK for finding in findings)
    return [finding for finding in findings if not (is_doubted and finding.name == "clock" and finding.level == OK)]


def _from_sentence(level: str, name: str, sentence: str) -> Finding:
    """Of "what is wrong; what to do", as `StartupError` and the module `advice` word it."""
    found, _, advice = sentence.partition("; ")
    return Finding(level, name, found, advice)


def _python(_setup: Setup) -> Iterator[Finding]:
    # Older ones have been turned away before this runs.
    yield Finding(OK, "python", f"{sys.version.split()[0]}, with SQLite {sqlite3.sqlite_version}")


def _pillow(_setup: Setup) -> Iterator[Finding]:
    if problem := pillow.problem():
        yield _from_sentence(PROBLEM, "pillow", problem)
    try:
        from PIL import __version__, features  # noqa: PLC0415 - it may be missing
    except ImportError:
        return
    if not problem:
        yield Finding(OK, "pillow", __version__)
    if not features.check("freetype2"):
        yield Finding(PROBLEM, "pillow", "it has no FreeType and can't draw text", "install a build that has it")
    elif features.check("raqm"):
        yield Finding(OK, "raqm", "Indic scripts are shaped and text is kerned")
    else:
        found = "it is not usable, so Indic scripts are not shaped"
        yield Finding(WARNING, "raqm", found, HOW_TO_GET_FRIBIDI)


def _fonts(_setup: Setup) -> Iterator[Finding]:
    try:
        from cardbeat.cards.render import Renderer  # noqa: PLC0415
        from cardbeat.cards.request import Card  # noqa: PLC0415
        from cardbeat.typeset.fonts import Fonts  # noqa: PLC0415 - importing it needs Pillow

        missing = Renderer(Fonts()).render(Card(SAMPLE_TEXT)).missing_glyphs
    except ImportError:
        return
    except Exception as error:
        yield Finding(PROBLEM, "fonts", f"no card can be drawn ({error})", FRESH_COPY)
        return
    if missing:
        yield Finding(PROBLEM, "fonts", f"they lack {missing} characters of a sample", FRESH_COPY)
    else:
        yield Finding(OK, "fonts", "a sample card was drawn")


def _database(setup: Setup) -> Iterator[Finding]:
    return _file(setup) if setup.database is None else _server(setup.database)


def _server(url: str) -> Iterator[Finding]:
    try:
        with open_to_look(url) as connection:
            found = description(connection)
            require_rights(connection)
            require_no_foreign_tables(connection)
            yield Finding(OK, "database", found)
            for is_problem, sentence in weaknesses(connection):
                yield _from_sentence(PROBLEM if is_problem else WARNING, "database", sentence)
            for is_problem, sentence in clock_doubts(connection, time.time):
                yield _from_sentence(PROBLEM if is_problem else WARNING, "clock", sentence)
    except StartupError as error:
        yield _from_sentence(PROBLEM, "database", str(error))


def _file(setup: Setup) -> Iterator[Finding]:
    path = setup.data / FILE_NAME
    try:
        ownership.check_writable(setup.data, FILES)
        if not os.path.lexists(path):
            yield Finding(OK, "database", f"no database in {setup.data} yet, serving makes one")
            return
        with tell_if_slow("checking the database"):
            problems = integrity_problems(setup.data)
    except StartupError as error:
        # What serving would say too, and with what to do about it.
        yield _from_sentence(PROBLEM, "database", str(error))
        return
    for problem in problems:
        yield Finding(PROBLEM, "database", problem, "stop the server and put back the last backup: restore FILE")
    if not problems:
        yield Finding(OK, "database", f"{path}, {path.stat().st_size / 1e6:.1f} MB, sound")


def _folder(setup: Setup) -> Iterator[Finding]:
    if ownership.others_may_write(setup.data):
        found = f"others may write to the data folder {setup.data}"
        yield Finding(WARNING, "folder", found, "serving takes that from them, as does: chmod go-w")
    if setup.database is not None:
        try:
            ownership.check_writable(setup.data)
        except StartupError as error:
            yield _from_sentence(PROBLEM, "folder", str(error))
    elif sentence := ownership.foreign_file(setup.data, FILES):
        yield _from_sentence(PROBLEM, "folder", sentence)


def _tiers(setup: Setup) -> Iterator[Finding]:
    # What is wrong with the database was said already.
    with contextlib.suppress(StartupError), _keys_of(setup) as connection:
        for sentence in undefined_tiers(count_by_tier(connection), setup.tiers):
            yield _from_sentence(WARNING, "tiers", sentence)


@contextlib.contextmanager
def _keys_of(setup: Setup) -> Iterator[Transaction]:
    if setup.database is not None:
        with open_to_look(setup.database) as connection:
            yield connection
        return
    path = setup.data / FILE_NAME
    with start_up_errors(path), open_read_only(path) as connection:
        yield connection


def _base_url(setup: Setup) -> Iterator[Finding]:
    for sentence in unreachable_base_url(setup.host, setup.base_url):
        yield _from_sentence(WARNING, "base_url", sentence)


def _variables(_setup: Setup) -> Iterator[Finding]:
    for sentence in unknown_variables(os.environ):
        yield _from_sentence(WARNING, "variables", sentence)


def _sockets(_setup: Setup) -> Iterator[Finding]:
    if MOST_SOCKETS is not None:
        found = f"this system waits for {MOST_SOCKETS} at most, so {connection_limit()} clients are held at once"
        yield Finding(OK, "sockets", found)


def _disk(setup: Setup) -> Iterator[Finding]:
    existing = next(folder for folder in (setup.data, *setup.data.absolute().parents) if os.path.exists(folder))
    free = shutil.disk_usage(existing).free
    found = f"{free / 1e9:.1f} GB free for {setup.data}"
    if free < LOW_DISK_BYTES:
        yield Finding(WARNING, "disk", found, "make room, or lower --store-mb")
    else:
        yield Finding(OK, "disk", found)


def _clock(setup: Setup) -> Iterator[Finding]:
    now = time.time()
    latest = RELEASED_AT
    if setup.database is None:
        with contextlib.suppress(StartupError):
            latest = max(latest, last_moment_stored(setup.data))
    if now < latest - 60:
        found = f"it says {utc_text(now)} UTC, which is before {utc_text(latest)}"
        yield Finding(PROBLEM, "clock", found, "set it, and keep it by NTP")
    else:
        yield Finding(OK, "clock", f"{utc_text(now)} UTC")


EXAMINATIONS: tuple[Callable[[Setup], Iterator[Finding]], ...] = (
    _python,
    _pillow,
    _fonts,
    _folder,
    _database,
    _tiers,
    _base_url,
    _variables,
    _sockets,
    _disk,
    _clock,
)
