"""The command `import`: takes over checks that Healthchecks lists, also while the server runs.

Each keeps its UUID as its id, so that only the host in the ping URLs of jobs changes.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from cardbeat.client.declared import plain
from cardbeat.commands.keys import no_such_key, opened
from cardbeat.commands.options import DATA, DATABASE, TIERS, Parser, add_options, file_path
from cardbeat.config import Tier
from cardbeat.database import Database, Transaction
from cardbeat.errors import Invalid, StartupError
from cardbeat.heartbeat.check import SHORT_ID_CHARACTERS, Settings, validated
from cardbeat.heartbeat.webhooks.target import refused_url
from cardbeat.host.output import say
from cardbeat.keys.key import CHECKS, Key, require_scope
from cardbeat.keys.store import Keys
from cardbeat.keys.tiers import tiers_from
from cardbeat.toml_file import content_of

LEFT_OUT = 1
"""The exit status if a check of the file was not imported."""

_UUID = re.compile(r"(?:.*/)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/?", re.IGNORECASE)
_FILTERS = ("filter_subject", "filter_body", "filter_http_body", "filter_default_fail", "subject", "subject_fail")
AT_ONCE = 100
"""Checks in one write. Bounds how long a ping waits for it."""
_MOST_BYTES = 16 * 2**20  # of the file: 20,000 checks with usual texts
_MOST_CHECKS = 100_000
_LOST = ("channels", "manual_resume", "methods", "tags", "desc")
"""The members without which a check can be imported: jobs go on pinging as before."""
_ADVICE = """\
FILE is the answer of Healthchecks' GET /api/v3/checks/ with a full-access key.
What has a schedule, a filter of its pings or is paused is named and not
imported: change it in FILE, and import again. What exists already stays as is."""


class Fit(NamedTuple):
    """A check of the file that can be imported, and the names of what it loses."""

    id: str
    settings: Settings
    lost: list[str]


class Unfit(NamedTuple):
    """A check of the file that can't be imported."""

    name: str
    problem: str


Outcome = Fit | Unfit | None
"""A check that was stored, or why it can't be; None if the key has one with its id."""


class _NothingDone(Exception):
    """Undoes the transaction of a dry run. Its argument is what became of each check in it."""


def parser() -> Parser:
    usage = "import FILE --key ID [--webhook-url URL] [--dry-run] [options]"
    made = Parser(usage, "Import checks of Healthchecks; their ids stay.", _ADVICE)
    made.add_argument("file", metavar="FILE", type=file_path, help="JSON with the checks")
    made.add_argument("--key", metavar="ID", required=True, help="of the checks key that gets them; see: keys list")
    webhook = "where all of them alert; $NAME takes it from the environment"
    made.add_argument("--webhook-url", metavar="URL", help=webhook)
    made.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    add_options(made, DATA, DATABASE, TIERS)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse_args(list(argv))
    advice = "run it again: what was imported stays as it is"
    with opened(given, tiers_from(TIERS.value(given)), advice) as (database, keys):
        key = _key(keys, given.key)
        url = plain("webhook_url", given.webhook_url)
        listed = list(_without_twins(_judged(check, key.limits, url) for check in _read(given.file)))
        fit = [it for it in listed if isinstance(it, Fit)]
        outcomes = _import(database, key, fit, dry_run=given.dry_run)
    done = [it for it in outcomes if isinstance(it, Fit)]
    there = [it.settings.name for it, outcome in zip(fit, outcomes, strict=True) if outcome is None]
    unfit = [it for it in (*listed, *outcomes) if isinstance(it, Unfit)]
    if given.json:
        imported = [{"id": it.id, "name": it.settings.name, "lost": it.lost} for it in done]
        shown = {"imported": imported, "present": there, "not_imported": [it._asdict() for it in unfit]}
        say([json.dumps({"dry_run": given.dry_run, **shown})])
    else:
        say(_told(done, there, unfit, "would import" if given.dry_run else "imported"))
    return LEFT_OUT if unfit else 0


def _told(done: list[Fit], there: list[str], unfit: list[Unfit], deed: str) -> Iterator[str]:
    for it in done:
        yield f"{deed} {it.settings.name}" + (f", without its {', '.join(it.lost)}" if it.lost else "")
    yield from (f"left as it is: {name}, whose id is here already" for name in there)
    yield from (f"not imported: {it.name}: {it.problem}" for it in unfit)
    counts = f"{len(done)} imported, {len(there)} left as they are, {len(unfit)} not imported"
    yield counts.replace("imported", "to import") if deed != "imported" else counts
    if silent := sum(1 for it in done if it.settings.webhook_url is None):
        yield f"{silent} of them send no alert yet: they have no webhook_url"


def _key(keys: Keys, key_id: str) -> Key:
    for key in keys.all():
        if key.id == key_id:
            require_scope(key, CHECKS)
            return key
    raise no_such_key(key_id)


def _read(path: Path) -> list[dict[str, Any]]:
    """The checks of a file. Raises `StartupError` for a file that holds no list of them, or not their UUIDs."""
    raw = content_of(path, _MOST_BYTES)
    try:
        content = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        content = None
    checks = content.get("checks") if isinstance(content, dict) else None
    if not isinstance(checks, list) or not all(isinstance(check, dict) for check in checks):
        raise StartupError(f"{path} holds no list of checks; save what GET /api/v3/checks/ of Healthchecks answers")
    if len(checks) > _MOST_CHECKS:
        raise StartupError(f"{path} holds more than {_MOST_CHECKS} checks")
    if any("unique_key" in check and "ping_url" not in check for check in checks):
        raise StartupError(f"{path} was made with a read-only key, so it has no UUIDs; use a full-access key")
    return checks


def _judged(check: dict[str, Any], limits: Tier, webhook_url: str | None) -> Fit | Unfit:
    urls = {name: _UUID.fullmatch(str(check.get(name))) for name in ("uuid", "ping_url", "update_url")}
    uuid = next((found[1] for found in urls.values() if found), "")
    name = check.get("name") or check.get("slug") or uuid[:8]
    if problem := "it has no UUID" if not uuid else _problem(check):
        return Unfit(str(name), problem)
    given = {"period_seconds": check.get("timeout"), "grace_seconds": check.get("grace"), "webhook_url": webhook_url}
    allowed = partial(refused_url, allow_private=True)
    try:
        settings = validated({"name": name, **given}, limits.min_period_seconds, allowed)
    except Invalid as invalid:
        if invalid.field == "webhook_url":
            raise
        return Unfit(str(name), invalid.sentence)
    lost = [field for field in _LOST if check.get(field)]
    pings_by_slug = "ping_url" in check and not urls["ping_url"]
    return Fit(uuid.replace("-", "").lower(), settings, [*lost, "slug"] if pings_by_slug else lost)


def _without_twins(checks: Iterable[Fit | Unfit]) -> Iterator[Fit | Unfit]:
    """These checks, but only the first with each id can be imported."""
    names: dict[str, str] = {}
    for it in checks:
        if isinstance(it, Fit) and it.id in names:
            yield Unfit(it.settings.name, f"it has the UUID of {names[it.id]}, which stands before it in the file")
            continue
        if isinstance(it, Fit):
            names[it.id] = it.settings.name
        yield it


def _problem(check: dict[str, Any]) -> str:
    """Why a check can't be watched as it was; empty if it can."""
    if "schedule" in check:
        schedule = f"{check['schedule']} {check.get('tz') or ''}".strip()
        advice = (
            "in the file, put timeout, the longest time between two runs in seconds, in the place of schedule and tz"
        )
        return f"it has a schedule ({schedule}), and here a check has a period; {advice}"
    if filters := [name for name in _FILTERS if check.get(name)]:
        return f"it judges pings by their text ({', '.join(filters)}), and here each ping counts as a success"
    return "it is paused, and here a check is always watched" if check.get("status") == "paused" else ""


def _import(database: Database, key: Key, checks: list[Fit], *, dry_run: bool) -> list[Outcome]:
    """Store these checks as new ones: all that can be, or none if the key has no room. What exists is left alone.

    In short writes with pauses, in which a server that runs beside it notes pings.
    """

    def store(some: list[Fit], transaction: Transaction) -> list[Outcome]:
        now = int(database.clock())
        outcomes = [_insert(transaction, key, it, now) for it in some]
        if any(isinstance(outcome, Fit) for outcome in outcomes):
            _require_room(transaction, key, 0, "the rest was not imported")
        if dry_run:
            raise _NothingDone(outcomes)
        return outcomes

    parts = [checks[start : start + AT_ONCE] for start in range(0, len(checks), AT_ONCE)]
    with database.read() as connection:
        new = sum(len(part) - _present(connection, part) for part in parts)
        if new:
            _require_room(connection, key, new, "nothing was imported")
    done: list[Outcome] = []
    for part in parts:
        began = monotonic()
        try:
            done += database.create_later(partial(store, part)).wait()
        except _NothingDone as undone:
            done += undone.args[0]
        sleep(monotonic() - began)
    return done


def _present(transaction: Transaction, checks: list[Fit]) -> int:
    """How many of these exist, of any key."""
    among = ", ".join("?" * len(checks))
    sql = f"SELECT count(*) FROM checks WHERE id IN ({among})"
    return int(transaction.execute(sql, [it.id for it in checks]).fetchone()[0])


def _insert(transaction: Transaction, key: Key, check: Fit, now: int) -> Outcome:
    """Store a check, if no key has one with its id, and this key none with its short id."""
    short = check.id[:SHORT_ID_CHARACTERS]
    alike = transaction.execute(
        "SELECT id, name, api_key_id FROM checks WHERE id BETWEEN ? AND ? AND (api_key_id = ? OR id = ?)",
        (short.ljust(32, "0"), short.ljust(32, "f"), key.id, check.id),
    ).fetchall()
    owner = next((row["api_key_id"] for row in alike if row["id"] == check.id), None)
    if owner not in (None, key.id):
        return Unfit(check.settings.name, f"its id is here already, in the key {owner}; import it into that key")
    if alike and owner is None:
        same = f"the first {SHORT_ID_CHARACTERS} digits of its UUID are those of {alike[0]['name']}"
        return Unfit(check.settings.name, f"{same}; a read-only key could not tell them apart")
    inserted = transaction.execute(
        "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from, created_at,"
        " updated_at) SELECT :id, id, :name, :period_seconds, :grace_seconds, :webhook_url, :now, :now, :now FROM keys"
        " WHERE id = :key_id AND revoked_at IS NULL ON CONFLICT (id) DO NOTHING",
        {**check.settings._asdict(), "id": check.id, "key_id": key.id, "now": now},
    )
    return check if inserted.rowcount else None


def _require_room(transaction: Transaction, key: Key, new: int, outcome: str) -> None:
    """Raise `StartupError` if the key would have more checks with so many new ones than its tier allows."""
    row = transaction.execute("SELECT checks FROM totals_by_key WHERE api_key_id = ?", (key.id,)).fetchone()
    checks, most = (row["checks"] if row else 0) + new, key.limits.max_checks
    if most is not None and checks > most:
        told = f"the key would have {checks} checks, and its tier {key.tier} allows {most}"
        raise StartupError(f"{told}; {outcome}; see: keys tier")
