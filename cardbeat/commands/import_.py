"""The command `import`: takes over checks that Healthchecks lists, also while the server runs.

1. Read the file, and the ids of all checks that are here.
2. Note for each check of the file whether it is new, is here already, or can't be taken, and why.
3. Create those that are new, if the key's tier allows so many.

Each keeps its UUID as its id, so that only the host in the ping URLs of jobs changes.
"""

import json
import re
from argparse import Namespace
from functools import partial
from typing import Any, Final

from cardbeat.client.apply import plain, sentences_of
from cardbeat.commands.keys import find_key, opened
from cardbeat.commands.options import (
    DATA,
    TIERS,
    Parser,
    command,
    file_path,
    tell,
)
from cardbeat.errors import Invalid, Refusal, StartupError
from cardbeat.files import content_of
from cardbeat.heartbeat.alerts.target import refused_url
from cardbeat.heartbeat.check import Settings, validated
from cardbeat.heartbeat.checks import Checks
from cardbeat.keys.key import CHECKS, Key, require_scope
from cardbeat.keys.tiers import tiers_from

IMPORTED: Final = "imported"
LEFT_OUT: Final = "not imported"
"""If one is, the exit status is 1."""
MOST_BYTES: Final = (
    16 * 2**20
)  # of the file: 20,000 checks with usual texts
_UUID: Final = re.compile(
    "(?:.*/)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/?",
    re.IGNORECASE,
)
_NOTE: Final = """\
FILE is the answer of Healthchecks' GET /api/v3/checks/ with a full-access key.
What exists already stays as it is."""


def parser() -> Parser:
    about = "Import checks of Healthchecks; their ids stay."
    made = command("import", about, DATA, TIERS, note=_NOTE)
    add = made.add_argument
    add(
        "file",
        metavar="FILE",
        type=file_path,
        help="JSON with the checks",
    )
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
        key = find_key(keys, given.key)
        require_scope(key, CHECKS)
        url = plain("webhook_url", given.webhook_url)
        with database.read() as connection:
            found = connection.execute(
                "SELECT id, api_key_id FROM checks"
            )
            owners = {row["id"]: row["api_key_id"] for row in found}
        for check in _read(given):
            done = IMPORTED
            why = ""
            check_id = _id_of(check)
            try:
                settings = _settings(check, check_id, key, url)
                if _is_new(owners.get(check_id), key):
                    new[check_id] = settings
                    owners[check_id] = key.id
                else:
                    done = "here already"
            except ValueError as error:
                done = LEFT_OUT
                why = str(error)
            rows.append(
                {"done": done, "name": check.get("name"), "why": why}
            )
        most = key.limits.max_checks
        total = list(owners.values()).count(key.id)
        if new and most is not None and total > most:
            raise StartupError(
                f"the key would have {total} checks, and its tier {key.tier} allows {most};"
                " nothing was imported; see: keys tier"
            )
        _create(
            Checks(database, database.clock, wake=lambda: None), key, new
        )
    tell(given, rows)
    return int(LEFT_OUT in [row["done"] for row in rows])


def _create(checks: Checks, key: Key, new: dict[str, Settings]) -> None:
    try:
        for check_id, settings in new.items():
            checks.create(key, settings, check_id)
    except Refusal as refusal:
        # The disk is low, or another import runs.
        raise StartupError(
            f"not all was imported; {refusal}; run it again"
        ) from None


def _is_new(owner: str | None, key: Key) -> bool:
    """Whether no key has the check. Raises `ValueError` if another key has it."""
    if owner not in (None, key.id):
        raise ValueError(f"its id is here already, in the key {owner}")
    return owner is None


def _read(given: Namespace) -> list[dict[str, Any]]:
    """The checks of the file. Raises `StartupError` for one that holds no list of them."""
    content = content_of(given.file, MOST_BYTES)
    try:
        checks = json.loads(content.decode("utf-8-sig"))["checks"]
        return [dict(check) for check in checks]
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
        raise ValueError(sentences_of(invalid)) from None
