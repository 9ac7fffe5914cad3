"""The command `doctor`: examines this host, and says for each problem what to do."""

import contextlib
import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cardbeat.clock import utc_text
from cardbeat.commands.advice import open_registration, undefined_tiers, unknown_variables, unreachable_base_url
from cardbeat.commands.options import (
    ACCENT,
    BASE_URL,
    DATA,
    DATABASE,
    HOST,
    REGISTRATION,
    TIERS,
    Parser,
    add_options,
    values_of,
)
from cardbeat.config import Config
from cardbeat.database import open_to_look
from cardbeat.database.postgresql import examination
from cardbeat.database.sqlite.file import (
    FILE_NAME,
    FILES,
    LOCKS,
    last_moment_stored,
    lock_path,
    looking,
    open_read_only,
    start_up_errors,
)
from cardbeat.database.sqlite.lock_file import open_lock_file
from cardbeat.database.sqlite.objects import Differences, differences
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.errors import StartupError
from cardbeat.host import ownership, pillow
from cardbeat.host.descriptors import shares
from cardbeat.host.output import say, tell_if_slow
from cardbeat.host.system import HOW_TO_GET_FRIBIDI, MOST_SOCKETS
from cardbeat.keys.tiers import count_by_tier, tiers_from

OK, WARNING, PROBLEM = "ok", "warning", "problem"

LOW_DISK_BYTES = 512 * 1024 * 1024
RELEASED_AT = 1_767_225_600
"""2026-01-01: a clock before it is wrong."""
SAMPLE_TEXT = "Aa Ωω Яя عربي עברית हिन्दी ไทย 日本語 한국어 € → 😀"
OPTIONS = (DATA, DATABASE, HOST, BASE_URL, REGISTRATION, TIERS, ACCENT)
"""The options of `serve` that `doctor` examines."""
FRESH_COPY = "get a fresh copy of cardbeat"


class Finding(NamedTuple):
    """What was found out about one thing.

    `sentence` says what was found and, after "; ", what to do, as in a `StartupError` and in the module `advice`.
    """

    level: str
    name: str
    sentence: str

    def as_json(self) -> dict[str, Any]:
        found, _, advice = self.sentence.partition("; ")
        judged = {"name": self.name, "ok": self.level == OK, "level": self.level}
        return {**judged, "found": found, "advice": advice or None}

    def __str__(self) -> str:
        return f"{self.level:8} {self.name}: {self.sentence}"


def parser() -> Parser:
    made = Parser("doctor [options]", "Check this host, and say what to do about what is wrong.")
    add_options(made, *OPTIONS)
    return made


def run(argv: Sequence[str]) -> int:
    """Print all findings. Returns 1 if one is a problem, else 0; warnings don't count."""
    given = parser().parse_args(list(argv))
    values = values_of(OPTIONS, given)
    is_open = values.pop("registration") == "open"
    setup = Config(tiers=tiers_from(values.pop("tiers")), registration_open=is_open, **values)
    findings = _of_one_clock([finding for name in EXAMINATIONS for finding in _examine(name, setup)])
    healthy = all(finding.level != PROBLEM for finding in findings)
    if given.json:
        say([json.dumps({"ok": healthy, "findings": [finding.as_json() for finding in findings]})])
    else:
        say(map(str, findings))
    return 0 if healthy else 1


def _examine(name: str, setup: Config) -> Iterator[Finding]:
    """The findings of one examination. A `StartupError`, which serving would raise too, is a problem."""
    try:
        yield from EXAMINATIONS[name](setup)
    except StartupError as error:
        yield Finding(PROBLEM, name, str(error))


def _of_one_clock(findings: list[Finding]) -> list[Finding]:
    """The findings without this host's "clock ok", if the database server's clock differs."""
    is_doubted = any(finding.name == "clock" and finding.level != OK for finding in findings)
    return [finding for finding in findings if not (is_doubted and finding.name == "clock" and finding.level == OK)]


def _python(_setup: Config) -> Iterator[Finding]:
    # `__main__` refuses older versions.
    yield Finding(OK, "python", f"{sys.version.split()[0]}, with SQLite {sqlite3.sqlite_version}")


def _pillow(_setup: Config) -> Iterator[Finding]:
    if problem := pillow.problem():
        yield Finding(PROBLEM, "pillow", problem)
    try:
        from PIL import __version__, features  # noqa: PLC0415 - it may be missing
    except ImportError:
        return
    if not problem:
        yield Finding(OK, "pillow", __version__)
    if not features.check("freetype2"):
        yield Finding(PROBLEM, "pillow", "it has no FreeType and can't draw text; install a build that has it")
    elif features.check("raqm"):
        yield Finding(OK, "raqm", "Indic scripts are shaped and text is kerned")
    else:
        yield Finding(WARNING, "raqm", f"it is not usable, so Indic scripts are not shaped; {HOW_TO_GET_FRIBIDI}")


def _fonts(setup: Config) -> Iterator[Finding]:
    try:
        from cardbeat.cards.drawing.render import Renderer  # noqa: PLC0415
        from cardbeat.cards.request import Card  # noqa: PLC0415
        from cardbeat.typeset.faces.fonts import Fonts  # noqa: PLC0415 - importing it needs Pillow

        drawing = Renderer(Fonts(), setup.accent).render(Card(SAMPLE_TEXT))
    except ImportError:
        return
    except Exception as error:
        yield Finding(PROBLEM, "fonts", f"no card can be drawn ({error}); {FRESH_COPY}")
        return
    # What is not shaped is told beside Raqm.
    missing = drawing.missing_glyphs - drawing.unshaped
    lack = f"they lack {missing} characters of a sample; {FRESH_COPY}"
    yield Finding(PROBLEM, "fonts", lack) if missing else Finding(OK, "fonts", "a sample card was drawn")


def _accent(setup: Config) -> Iterator[Finding]:
    found = f"{setup.accent}, text keeps a contrast of 4.5 or more" if setup.accent else "none, colours as designed"
    yield Finding(OK, "accent", found)


def _folder(setup: Config) -> Iterator[Finding]:
    if ownership.others_may_write(setup.data):
        found = f"others may write to the data folder {setup.data}"
        yield Finding(WARNING, "folder", f"{found}; serving takes that from them, as does: chmod go-w")
    if os.path.lexists(cards := setup.data / ownership.CARDS) and not cards.is_dir():
        yield Finding(WARNING, "folder", f"{cards} is not a folder, so no cards are stored; move it away")
    if setup.database is not None:
        ownership.check_writable(setup.data)
    elif sentence := ownership.foreign_file(setup.data, FILES):
        yield Finding(PROBLEM, "folder", sentence)


def _file(data: Path) -> Iterator[Finding]:
    path = data / FILE_NAME
    ownership.check_writable(data, FILES)
    for lock in (lock_path(path, name) for name in LOCKS):
        if os.path.lexists(lock):
            os.close(open_lock_file(lock))
    if not os.path.lexists(path):
        yield Finding(OK, "database", f"no database in {data} yet, serving makes one")
        return
    with looking(path) as connection:
        foreign = differences(connection).foreign
    if foreign:
        # The check of the file would compute what a foreign index computes, however long that takes.
        left_out = "backup leaves it out, and restore refuses it, so drop it if you can; its file was not checked"
        yield Finding(WARNING, "database", f"{path} has {Differences([], foreign)}; {left_out}")
        return
    with tell_if_slow("checking the database"):
        reasons = why_refused(path)
    for reason in reasons:
        advice = "mend it as docs/backup.md says, or stop the server and put back a backup: restore FILE"
        yield Finding(PROBLEM, "database", f"{reason}, so restore would refuse a backup of it; {advice}")
    if not reasons:
        yield Finding(OK, "database", f"{path}, {path.stat().st_size / 1e6:.1f} MB, sound")


def _server(url: str) -> Iterator[Finding]:
    with open_to_look(url) as connection:
        found = examination.description(connection)
        examination.require_rights(connection)
        examination.require_no_foreign_tables(connection)
        yield Finding(OK, "database", found)
        weaknesses, doubts = examination.weaknesses(connection), examination.clock_doubts(connection, time.time)
        for name, told in (("database", weaknesses), ("clock", doubts)):
            yield from (Finding(PROBLEM if is_problem else WARNING, name, sentence) for is_problem, sentence in told)


def _tiers(setup: Config) -> Iterator[Finding]:
    path = setup.data / FILE_NAME
    # The examination of the database tells why it can't be opened.
    with contextlib.suppress(StartupError), start_up_errors(path), contextlib.ExitStack() as stack:
        opened = open_read_only(path) if setup.database is None else open_to_look(setup.database)
        keys_by_tier = count_by_tier(stack.enter_context(opened))
        yield from _warnings("tiers", undefined_tiers(keys_by_tier, setup.tiers))


def _warnings(name: str, sentences: Iterable[str]) -> Iterator[Finding]:
    return (Finding(WARNING, name, sentence) for sentence in sentences)


def _sockets(_setup: Config) -> Iterator[Finding]:
    if MOST_SOCKETS is not None:
        found = f"this system waits for {MOST_SOCKETS} at most, so {shares().clients} clients are held at once"
        yield Finding(OK, "sockets", found)


def _disk(setup: Config) -> Iterator[Finding]:
    try:
        folders = (setup.data, *setup.data.absolute().parents)
    except OSError:
        # The working folder was removed; the examination of the database tells that nothing can be written.
        return
    free = shutil.disk_usage(next(folder for folder in folders if os.path.exists(folder))).free
    found = f"{free / 1e9:.1f} GB free for {setup.data}"
    low = Finding(WARNING, "disk", f"{found}; make room, or lower --store-mb")
    yield low if free < LOW_DISK_BYTES else Finding(OK, "disk", found)


def _clock(setup: Config) -> Iterator[Finding]:
    now, latest = time.time(), RELEASED_AT
    if setup.database is None:
        with contextlib.suppress(StartupError):
            latest = max(latest, last_moment_stored(setup.data))
    if now < latest - 60:
        found = f"it says {utc_text(now)} UTC, which is before {utc_text(latest)}"
        yield Finding(PROBLEM, "clock", f"{found}; set it, and keep it by NTP")
    else:
        yield Finding(OK, "clock", f"{utc_text(now)} UTC")


EXAMINATIONS: dict[str, Callable[[Config], Iterator[Finding]]] = {
    "python": _python,
    "pillow": _pillow,
    "fonts": _fonts,
    "accent": _accent,
    "folder": _folder,
    "database": lambda setup: _file(setup.data) if setup.database is None else _server(setup.database),
    "tiers": _tiers,
    "base_url": lambda setup: _warnings("base_url", unreachable_base_url(setup.host, setup.base_url)),
    "registration": lambda setup: _warnings("registration", open_registration(setup.registration_open, setup.base_url)),
    "variables": lambda _setup: _warnings("variables", unknown_variables(os.environ)),
    "sockets": _sockets,
    "disk": _disk,
    "clock": _clock,
}
