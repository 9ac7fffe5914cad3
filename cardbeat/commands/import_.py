"""The command `import`: takes over checks that Healthchecks lists, also while the server runs.

Each keeps its UUID as its id, so that only the host in the ping URLs of jobs changes.
"""

import json
import re
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from cardbeat.client.apply import plain
from cardbeat.commands.keys import no_such_key, opened
from cardbeat.commands.options import (
    DATA,
    TIERS,
    Parser,
    command,
    file_path,
    tell,
)
from cardbeat.database import Transaction
from cardbeat.errors import Invalid, StartupError
from cardbeat.files import content_of
from cardbeat.heartbeat.alerts.target import refused_url
from cardbeat.heartbeat.check import Settings, validated
from cardbeat.keys.key import CHECKS, Key, require_scope
from cardbeat.keys.store import Keys
from cardbeat.keys.tiers import tiers_from

IMPORTED: Final = "imported"
LEFT_OUT: Final = "not imported"
"""If one is, the exit status is 1."""
MOST_BYTES: Final = 16 * 2**20  # of the file: 20,000 checks with usual texts
_UUID: Final = re.compile(
    "(?:.*/)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/?", re.IGNORECASE
)
_NOTE: Final = """\
FILE is the answer of Healthchecks' GET /api/v3/checks/ with a full-access key.
What exists already stays as it is."""


def parser() -> Parser:
    about = "Import checks of Healthchecks; their ids stay."
    made = command("import", about, DATA, TIERS, note=_NOTE)
    add = made.add_argument
    add("file", metavar="FILE", type=file_path, help="JSON with the checks")
    add(
        "--key",
        metavar="ID",
        required=True,
        help="of the checks key; see: keys list",
    )
    add(
        "--webhook-url",
        metavar="URL",
        help="where all alert; $NAME is a variable [none]",
    )
    return made


def run(given: Namespace) -> int:
    rows: list[dict[str, Any]] = []
    new: dict[str, Settings] = {}
    with opened(given, tiers_from(given.tiers)) as (database, keys):
        key = _key(keys, given.key)
        url = plain("webhook_url", given.webhook_url)
        with database.read() as connection:
            owners = dict(
                map(
                    tuple,
                    connection.execute("SELECT id, api_key_id FROM checks"),
                )
            )
        for check in _read(given):
            done = IMPORTED
            why = ""
            check_id = _id_of(check)
            try:
                settings = _settings(check, check_id, key, url)
                if _is_here(check_id, key, owners):
                    done = "here already"
                else:
                    new[check_id] = settings
                    owners[check_id] = key.id
            except ValueError as error:
                done = LEFT_OUT
                why = str(error)
            rows.append({"done": done, "name": check.get("name"), "why": why})
        if new:
            _require_room(key, [*owners.values()].count(key.id))
        now = int(database.clock())
        for check_id, settings in new.items():
            database.create(partial(_insert, key, check_id, settings, now))
    tell(given, rows)
    return int(LEFT_OUT in [row["done"] for row in rows])


def _is_here(check_id: str, key: Key, owners: Mapping[str, str]) -> bool:
    """Whether the key has the check. Raises `ValueError` if another one has it."""
    owner = owners.get(check_id)
    if owner not in (None, key.id):
        raise ValueError(f"its id is here already, in the key {owner}")
    return owner is not None


def _require_room(key: Key, total: int) -> None:
    most = key.limits.max_checks
    if most is not None and total > most:
        found = f"the key would have {total} checks, and its tier {key.tier} allows {most}"
        raise StartupError(f"{found}; nothing was imported; see: keys tier")


def _key(keys: Keys, key_id: str) -> Key:
    for key in keys.all():
        if key.id == key_id:
            require_scope(key, CHECKS)
            return key
    raise no_such_key(key_id)


def _read(given: Namespace) -> list[dict[str, Any]]:
    """The checks of the file. Raises `StartupError` for one that holds no list of them."""
    try:
        content = json.loads(
            content_of(given.file, MOST_BYTES).decode("utf-8-sig")
        )
        return [dict(check) for check in content["checks"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        advice = "save what GET /api/v3/checks/ of Healthchecks answers"
        raise StartupError(
            f"{given.file} holds no list of checks; {advice}"
        ) from None


def _id_of(check: dict[str, Any]) -> str:
    """A check's UUID without dashes; empty without one, as in the list of a read-only key."""
    for member in ("uuid", "ping_url", "update_url"):
        match = _UUID.fullmatch(str(check.get(member)))
        if match:
            return match[1].replace("-", "").lower()
    return ""


def _settings(
    check: dict[str, Any], check_id: str, key: Key, url: str | None
) -> Settings:
    """The check as it is here. Raises `ValueError` with why it can't be watched."""
    if not check_id:
        raise ValueError(
            "it has no UUID; save the list with a full-access key"
        )
    if "schedule" in check:
        raise ValueError(
            "it has a schedule; put timeout, a period, in its place"
        )
    filters = [
        name
        for name in check
        if name.startswith(("filter_", "subject")) and check[name]
    ]
    if filters:
        raise ValueError(
            f"it judges pings by their text ({', '.join(filters)})"
        )
    if check.get("status") == "paused":
        raise ValueError("it is paused")
    fields = {
        "name": check.get("name") or check.get("slug") or check_id[:8],
        "period_seconds": check.get("timeout"),
        "grace_seconds": check.get("grace"),
        "webhook_url": url,
    }
    allowed = partial(refused_url, allow_private=True)
    try:
        return validated(fields, key.limits.min_period_seconds, allowed)
    except Invalid as invalid:
        raise ValueError(
            " ".join(one["error"] for one in invalid.fields)
        ) from None


def _insert(
    key: Key,
    check_id: str,
    settings: Settings,
    now: int,
    transaction: Transaction,
) -> None:
    transaction.execute(
        "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url,"
        " clock_from, created_at, updated_at)"
        " SELECT :id, id, :name, :period_seconds, :grace_seconds, :webhook_url, :now, :now, :now"
        " FROM keys WHERE id = :key_id AND revoked_at IS NULL ON CONFLICT (id) DO NOTHING",
        {**settings._asdict(), "id": check_id, "key_id": key.id, "now": now},
    )
