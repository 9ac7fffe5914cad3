"""The command `keys`: sees, issues and ends API keys, also while they are being served."""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from cardbeat.advice import undefined_tiers
from cardbeat.clock import utc_text
from cardbeat.database import Database, open_database, open_to_look
from cardbeat.database.postgresql_examination import require_tables
from cardbeat.database.sqlite_file import require_database
from cardbeat.errors import StartupError, Unavailable, refusals_as_startup_errors
from cardbeat.heartbeat.checks import count_by_key
from cardbeat.heartbeat.removal import Removal
from cardbeat.keys.key import IssuedKey, Key
from cardbeat.keys.routes import valid_email
from cardbeat.keys.store import Keys
from cardbeat.keys.tiers import tiers_from
from cardbeat.options import DATA, DATABASE, TIERS, Subcommand, SubcommandParser, add_json
from cardbeat.output import printable, say, table
from cardbeat.progress import tell_if_slow

HEADINGS = ("ID", "KEY", "SCOPE", "TIER", "CREATED (UTC)", "CHECKS", "E-MAIL")

SUBCOMMANDS = {
    "list": Subcommand(),
    "create": Subcommand(options=("--email", "--tier")),
    "revoke": Subcommand(("ID",)),
    "tier": Subcommand(("ID", "NAME")),
}

_USAGE = "list | create [--email ADDRESS] [--tier NAME] | revoke ID\n       | tier ID NAME [options]"


def parser() -> SubcommandParser:
    made = SubcommandParser("keys", SUBCOMMANDS, _USAGE, "See, issue and end API keys, also while they are served.")
    made.add_argument("id", nargs="?", metavar="ID", help="of a key, as list shows it")
    made.add_argument("name", nargs="?", metavar="NAME", help="of the tier to move the key to")
    made.add_argument("--email", metavar="ADDRESS", help="create a checks key for it; without it a cards key")
    made.add_argument("--tier", metavar="NAME", help="of the key to create [free]")
    add_json(made)
    for option in (DATA, DATABASE, TIERS):
        option.add_to(made)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse(argv)
    # Bytes that are no text can't even be looked for.
    if given.id is not None and not given.id.isascii():
        raise _no_such_key(given.id)
    tiers = tiers_from(TIERS.value(given))
    for name in (given.tier, given.name):
        if name is not None and name not in tiers:
            raise StartupError(f"there is no tier {name!r}; the tiers are {', '.join(sorted(tiers))}")
    data, url = DATA.value(given), DATABASE.value(given)
    if given.action != "create":
        _require_database(data, url)
    with (
        refusals_as_startup_errors(),
        _trouble_in_one_line(given.action),
        closing(open_database(data, url, stores_cards=False)) as database,
    ):
        keys = Keys(database, database.clock, tiers)
        if given.action == "list":
            _list(keys, count_by_key(database), as_json=given.json)
            _warn(undefined_tiers(keys.count_by_tier(), tiers))
        else:
            _CHANGES[given.action](keys, given)
        if given.action == "revoke":
            _remove_checks(database)
    if given.json and given.action in _DONE:
        say([json.dumps({"id": given.id, **_DONE[given.action](given)})])
    return 0


class _Kept(logging.Handler):
    """Keeps the last error that is logged instead of showing it."""

    sentence = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.sentence = record.getMessage()


@contextmanager
def _trouble_in_one_line(action: str) -> Iterator[None]:
    """Say of a database that can't be used what serving has in its log, where the refusal that clients get stands too.

    Raises `StartupError`.
    """
    kept, database_log = _Kept(logging.ERROR), logging.getLogger("cardbeat.database")
    database_log.addHandler(kept)
    try:
        yield
    except Unavailable:
        if not kept.sentence:
            raise
        advice = "try again soon" if action == "list" else "look with keys list whether it was done, and try again"
        raise StartupError(f"{kept.sentence}; {advice}") from None
    finally:
        database_log.removeHandler(kept)


def _require_database(data: Path, url: str | None) -> None:
    """Raise `StartupError` where there is none yet: only serving and creating a key make one."""
    if url is None:
        require_database(data)
        return
    with open_to_look(url) as connection:
        require_tables(connection)


def _list(keys: Keys, checks: dict[str, int], *, as_json: bool) -> None:
    found = keys.all()
    if as_json:
        say([json.dumps([{**_as_json(key), "checks": checks.get(key.id, 0)} for key in found])])
    else:
        say(table(HEADINGS, [_row(key, checks.get(key.id, 0)) for key in found]))


def _row(key: Key, checks: int) -> tuple[str, ...]:
    created_at = utc_text(key.created_at)
    return key.id, f"{key.prefix}...", key.scope, key.tier, created_at, str(checks), printable(key.email or "")


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print(f"cardbeat: {sentence}", file=sys.stderr)


def _create(keys: Keys, given: argparse.Namespace) -> None:
    email = None if given.email is None else valid_email(given.email)
    issued = keys.issue(email, given.tier or "free").wait()
    lines = [json.dumps(_issued_as_json(issued))] if given.json else _labelled(issued)
    try:
        say(lines, must_arrive=True)
    except StartupError:
        # Nobody will ever know the value, nor which key of the list it was.
        keys.revoke(issued.key.id)
        raise


def _labelled(issued: IssuedKey) -> Iterator[str]:
    for name, value in _issued_as_json(issued).items():
        yield f"{name + ':':16}{printable(value)}"


def _issued_as_json(issued: IssuedKey) -> dict[str, Any]:
    """The value and the secret, which are shown this once, and what the list will show."""
    secret = {} if issued.webhook_secret is None else {"webhook_secret": issued.webhook_secret}
    return {"key": issued.value, **secret, "id": issued.key.id, **issued.key.as_json()}


def _as_json(key: Key) -> dict[str, Any]:
    return {"id": key.id, "prefix": key.prefix, **key.as_json(), "email": key.email}


def _revoke(keys: Keys, given: argparse.Namespace) -> None:
    if not keys.revoke(given.id):
        raise _no_such_key(given.id)


def _remove_checks(database: Database) -> None:
    """Remove what revoked keys leave behind, in steps between which a running server works."""
    try:
        with tell_if_slow("the key is revoked, removing its checks"):
            Removal(database).finish()
    except Unavailable:
        _warn(["the key is revoked; its checks could not all be removed now, the server goes on with it"])


def _move(keys: Keys, given: argparse.Namespace) -> None:
    if not keys.set_tier(given.id, given.name):
        raise _no_such_key(given.id)


_DONE: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "revoke": lambda _given: {"revoked": True},
    "tier": lambda given: {"tier": given.name},
}
"""What JSON says of a change that prints nothing otherwise."""
_CHANGES: dict[str, Callable[[Keys, argparse.Namespace], None]] = {"create": _create, "revoke": _revoke, "tier": _move}


def _no_such_key(key_id: str) -> StartupError:
    return StartupError(f"there is no key with the id {key_id!r}; see: keys list")
