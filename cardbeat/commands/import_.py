"""The command `import`: takes over checks that Healthchecks lists, also while the server runs.

Each keeps its UUID as its id, so that only the host in the ping URLs of jobs changes.
"""

import json
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from cardbeat.client.declared import plain
from cardbeat.commands.keys import no_such_key, opened
from cardbeat.commands.options import DATA, TIERS, Parser, command, file_path, tell
from cardbeat.database import Database, Transaction
from cardbeat.errors import Invalid, StartupError
from cardbeat.files import content_of
from cardbeat.heartbeat.alerts.target import refused_url
from cardbeat.heartbeat.check import Settings, validated
from cardbeat.keys.key import CHECKS, Key, require_scope
from cardbeat.keys.store import Keys
from cardbeat.keys.tiers import tiers_from

LEFT_OUT: Final = 1
"""The exit status if a check of the file was not imported."""
MOST_BYTES: Final = 16 * 2**20  # of the file: 20,000 checks with usual texts
_UUID: Final = re.compile("(?:.*/)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/?", re.IGNORECASE)
_JUDGES: Final = re.compile("filter_.*|subject.*")
"""Names of the members with which Healthchecks judges a ping by its text."""
_LOST: Final = ("channels", "manual_resume", "methods", "tags", "desc")
"""The members without which a check can be imported: jobs go on pinging as before."""
_NOTE: Final = """\
FILE is the answer of Healthchecks' GET /api/v3/checks/ with a full-access key.
What has a schedule, a filter of its pings or is paused is named and not
imported: change it in FILE, and import again. What exists already stays as is."""

CheckJson = dict[str, Any]
"""A check as Healthchecks lists it."""


class Found(NamedTuple):
    """The checks of a file as `--json` names them, those to import with their ids and settings."""

    imported: list[dict[str, Any]]
    present: list[str]
    not_imported: list[dict[str, str]]
    settings: dict[str, Settings]


def parser() -> Parser:
    about = "Import checks of Healthchecks; their ids stay."
    made = command("import", about, DATA, TIERS, note=_NOTE)
    add = made.add_argument
    add("file", metavar="FILE", type=file_path, help="JSON with the checks")
    add(
        "--key",
        metavar="ID",
        required=True,
        help="of the checks key that gets them; see: keys list",
    )
    add(
        "--webhook-url",
        metavar="URL",
        help="where all of them alert; $NAME takes it from the environment [none]",
    )
    add("--dry-run", action="store_true", help="say what would be done, and do nothing")
    return made


def run(given: Namespace) -> int:
    with opened(given, tiers_from(given.tiers)) as (database, keys):
        key = _key(keys, given.key)
        found = _sorted(_read(given.file), key, _webhook_url(given), _owners(database))
        if not given.dry_run:
            now = int(database.clock())
            for check_id, settings in found.settings.items():
                database.create(partial(_insert, key, check_id, settings, now))
    report = {name: value for name, value in found._asdict().items() if name != "settings"}
    tell(given, {"dry_run": given.dry_run, **report}, _told(found, given))
    return LEFT_OUT if found.not_imported else 0


def _sorted(checks: list[CheckJson], key: Key, url: str | None, owners: Mapping[str, str]) -> Found:
    """The checks by what is done with each. Raises `StartupError` if the tier has no room."""
    found = Found([], [], [], {})
    for check in checks:
        name, check_id = _name_and_id(check)
        try:
            settings = _settings(check, name, key, url)
            if not check_id:
                raise ValueError("it has no UUID")
            if check_id in found.settings:
                raise ValueError("its UUID is that of a check before it in the file")
            owner = owners.get(check_id, key.id)
            if owner != key.id:
                raise ValueError(
                    f"its id is here already, in the key {owner}; import it into that key"
                )
        except ValueError as error:
            found.not_imported.append({"name": name, "problem": str(error)})
            continue
        if check_id in owners:
            found.present.append(settings.name)
            continue
        found.settings[check_id] = settings
        found.imported.append({"id": check_id, "name": settings.name, "lost": _lost(check)})
    total = [*owners.values()].count(key.id) + len(found.settings)
    most = key.limits.max_checks
    if found.settings and most is not None and total > most:
        raise StartupError(
            f"the key would have {total} checks, and its tier {key.tier} allows {most}"
            "; nothing was imported; see: keys tier"
        )
    return found


def _told(found: Found, given: Namespace) -> Iterator[str]:
    deed = "would import" if given.dry_run else "imported"
    silent = "" if given.webhook_url else "; it sends no alert: it has no webhook_url"
    for it in found.imported:
        lost = f", without its {', '.join(it['lost'])}" if it["lost"] else ""
        yield f"{deed} {it['name']}{lost}{silent}"
    for name in found.present:
        yield f"left as it is: {name}, whose id is here already"
    for refused in found.not_imported:
        yield f"not imported: {refused['name']}: {refused['problem']}"
    counts = f"{len(found.imported)}, left {len(found.present)} as they are"
    yield f"{deed} {counts}, not imported {len(found.not_imported)}"


def _key(keys: Keys, key_id: str) -> Key:
    for key in keys.all():
        if key.id == key_id:
            require_scope(key, CHECKS)
            return key
    raise no_such_key(key_id)


def _webhook_url(given: Namespace) -> str | None:
    url: str | None = plain("webhook_url", given.webhook_url)
    sentence = refused_url(url, allow_private=True) if url else None
    if sentence:
        raise StartupError(sentence)
    return url


def _owners(database: Database) -> dict[str, str]:
    """The ids of the keys by the ids of their checks."""
    with database.read() as connection:
        rows = connection.execute("SELECT id, api_key_id FROM checks")
        return dict(map(tuple, rows))


def _read(path: Path) -> list[CheckJson]:
    """The checks of a file. Raises `StartupError` for one that holds no list of them with UUIDs."""
    try:
        content = json.loads(content_of(path, MOST_BYTES).decode("utf-8-sig"))
        checks: list[CheckJson] = [dict(check) for check in content["checks"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        advice = "save what GET /api/v3/checks/ of Healthchecks answers"
        raise StartupError(f"{path} holds no list of checks; {advice}") from None
    if any("unique_key" in check and "ping_url" not in check for check in checks):
        raise StartupError(
            f"{path} was made with a read-only key, so it has no UUIDs; use a full-access key"
        )
    return checks


def _name_and_id(check: CheckJson) -> tuple[str, str]:
    """A check's name, as far as it has one, and its UUID without dashes; empty without one."""
    name = str(check.get("name") or check.get("slug") or "")
    for member in ("uuid", "ping_url", "update_url"):
        match = _UUID.fullmatch(str(check.get(member)))
        if match:
            return name or match[1][:8], match[1].replace("-", "").lower()
    return name, ""


def _settings(check: CheckJson, name: str, key: Key, url: str | None) -> Settings:
    """The check as it is here. Raises `ValueError` with what it can't be watched for."""
    if "schedule" in check:
        schedule = f"{check['schedule']} {check.get('tz') or ''}".strip()
        found = f"it has a schedule ({schedule}), and here a check has a period"
        advice = "put timeout, the longest time between two runs in seconds, in the place of"
        raise ValueError(f"{found}; in the file, {advice} schedule and tz")
    filters = [member for member in check if check[member] and _JUDGES.fullmatch(member)]
    if filters:
        raise ValueError(
            f"it judges pings by their text ({', '.join(filters)})"
            ", and here each ping counts as a success"
        )
    if check.get("status") == "paused":
        raise ValueError("it is paused, and here a check is always watched")
    fields = {
        "name": check.get("name") or name,
        "period_seconds": check.get("timeout"),
        "grace_seconds": check.get("grace"),
        "webhook_url": url,
    }
    allowed = partial(refused_url, allow_private=True)
    try:
        return validated(fields, key.limits.min_period_seconds, allowed)
    except Invalid as invalid:
        raise ValueError(" ".join(one["error"] for one in invalid.fields)) from None


def _lost(check: CheckJson) -> list[str]:
    lost = [member for member in _LOST if check.get(member)]
    if "ping_url" in check and not _UUID.fullmatch(str(check["ping_url"])):
        lost.append("slug")
    return lost


def _insert(
    key: Key, check_id: str, settings: Settings, now: int, transaction: Transaction
) -> None:
    transaction.execute(
        "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url,"
        " clock_from, created_at, updated_at)"
        " SELECT :id, id, :name, :period_seconds, :grace_seconds, :webhook_url, :now, :now, :now"
        " FROM keys WHERE id = :key_id AND revoked_at IS NULL ON CONFLICT (id) DO NOTHING",
        {**settings._asdict(), "id": check_id, "key_id": key.id, "now": now},
    )
