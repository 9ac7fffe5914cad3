"""The command `keys`: manages API keys, also while the server runs."""

import os
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final

from cardbeat.clock import time_or_none
from cardbeat.commands.options import (
    DATA,
    TIERS,
    Parser,
    actions,
    database_url,
    tell,
)
from cardbeat.config import Tier
from cardbeat.database import Database, open_database
from cardbeat.database.sqlite.file import FILE_NAME, require_database
from cardbeat.errors import StartupError, refusals_as_startup_errors
from cardbeat.heartbeat.checks import count_by_key
from cardbeat.heartbeat.tidy import removed_after
from cardbeat.host.output import complain
from cardbeat.host.system import keep_files_private
from cardbeat.keys.key import IssuedKey, Key
from cardbeat.keys.routes import valid_email
from cardbeat.keys.store import CACHE_SECONDS, Keys
from cardbeat.keys.tiers import tiers_from

_NOTE: Final = "A change takes a second, and then counts on every server. Times are in UTC."


def parser() -> Parser:
    about = "See, issue and end API keys, also while they are served."
    made = Parser(prog="cardbeat keys", description=about, epilog=_NOTE)
    add = actions(made, DATA, TIERS)
    add("list", "show all keys, without their values", _list)
    create = add(
        "create", "issue a key, and show its value once", _create
    )
    create.add_argument(
        "--email",
        metavar="ADDRESS",
        help="makes a checks key, not a cards key",
    )
    create.add_argument(
        "--tier", metavar="NAME", default="free", help="its limits [free]"
    )
    what = "give a lost key a new value; its read-only key ends"
    add("replace", what, _replace, "id")
    add("revoke", "end a key; a server removes its checks", _revoke, "id")
    add(
        "tier",
        "give a key the limits of another tier",
        _move,
        "id",
        "tier",
    )
    return made


def run(given: Namespace) -> int:
    tiers = tiers_from(given.tiers)
    for value in vars(given).values():
        # Arguments that are not UTF-8 can't be sent to the database.
        if isinstance(value, str) and not value.isprintable():
            raise StartupError(f"no key has {value!r}; see: keys list")
    if getattr(given, "tier", "free") not in tiers:
        known = ", ".join(sorted(tiers))
        raise StartupError(
            f"there is no tier {given.tier!r}; the tiers are {known}"
        )
    makes_one = given.act is _create
    with opened(given, tiers, makes_one=makes_one) as (database, keys):
        given.act(database, keys, given)
    return 0


@contextmanager
def opened(
    given: Namespace,
    tiers: Mapping[str, Tier],
    *,
    makes_one: bool = False,
) -> Iterator[tuple[Database, Keys]]:
    """The database that the options name, and its keys.

    Raises `StartupError` if there is none, unless it `makes_one`.
    """
    keep_files_private()
    path = given.data / FILE_NAME
    url = database_url()
    is_new = url is None and not os.path.lexists(path)
    if url is None and not makes_one:
        require_database(given.data)
    with (
        refusals_as_startup_errors(),
        closing(open_database(given.data, url)) as database,
    ):
        yield database, Keys(database, database.clock, tiers)
    if is_new:
        complain(
            f"there was no database at {path.absolute()}, so a new one was made"
        )


def find_key(keys: Keys, key_id: str) -> Key:
    """The key with this id. Raises `StartupError` if there is none."""
    for key in keys.all():
        if key.id == key_id:
            return key
    raise StartupError(
        f"there is no key with the id {key_id!r}; see: keys list"
    )


def _list(database: Database, keys: Keys, given: Namespace) -> None:
    checks = count_by_key(database)
    rows: list[dict[str, object]] = []
    for key in keys.all():
        count = checks.get(key.id, 0)
        rows.append(
            {
                "id": key.id,
                "prefix": key.prefix,
                # Also where there is none: all rows have the same members.
                "email": None,
                **key.as_json(),
                "checks": count,
                "used_at": time_or_none(key.used_at),
                "removed_after": time_or_none(removed_after(key, count)),
            }
        )
    tell(given, rows)


def _create(_database: Database, keys: Keys, given: Namespace) -> None:
    email = None if given.email is None else valid_email(given.email)
    _show(keys.issue(email, given.tier), given)


def _replace(_database: Database, keys: Keys, given: Namespace) -> None:
    _show(keys.rotate(find_key(keys, given.id)), given)
    time.sleep(CACHE_SECONDS)


def _show(issued: IssuedKey, given: Namespace) -> None:
    shown = {"key": issued.value}
    if issued.webhook_secret:
        shown["webhook_secret"] = issued.webhook_secret
    tell(given, {**shown, "id": issued.key.id, **issued.key.as_json()})


def _revoke(_database: Database, keys: Keys, given: Namespace) -> None:
    find_key(keys, given.id)
    keys.revoke(given.id)
    _changed(given, {"revoked": True})


def _move(_database: Database, keys: Keys, given: Namespace) -> None:
    find_key(keys, given.id)
    keys.set_tier(given.id, given.tier)
    _changed(given, {"tier": given.tier})


def _changed(given: Namespace, shown: Mapping[str, object]) -> None:
    # Each server caches a key for as long. Its checks are removed by a server.
    time.sleep(CACHE_SECONDS)
    tell(
        given, {"id": given.id, **shown, "counts": "now, on every server"}
    )
