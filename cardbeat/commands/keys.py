"""The command `keys`: lists, creates, replaces, revokes, moves and prunes API keys, also while the server runs."""

import argparse
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any

from cardbeat.clock import time_or_none, utc_text
from cardbeat.commands.advice import undefined_tiers
from cardbeat.commands.options import DATA, DATABASE, TIERS, Subcommand, SubcommandParser, add_options, integer
from cardbeat.config import Tier
from cardbeat.database import Database, monitor, open_database, open_to_look
from cardbeat.database.postgresql.examination import require_tables
from cardbeat.database.schema import last_moment
from cardbeat.database.sqlite.file import FILE_NAME, require_database
from cardbeat.errors import StartupError, Unavailable, refusals_as_startup_errors
from cardbeat.heartbeat.checks import count_by_key
from cardbeat.heartbeat.removal import Removal
from cardbeat.heartbeat.unused_keys import CHECKS_DAYS, DAY_SECONDS, Terms, UnusedKeys, removed_after
from cardbeat.host.output import complain, say, table, tell_if_slow
from cardbeat.host.system import keep_files_private
from cardbeat.keys.key import IssuedKey, Key
from cardbeat.keys.routes import valid_email
from cardbeat.keys.store import GAP_SECONDS, Keys
from cardbeat.keys.tiers import tiers_from

HEADINGS = ("ID", "KEY", "SCOPE", "TIER", "CREATED (UTC)", "CHECKS", "LAST USED (UTC)", "REMOVED AFTER", "E-MAIL")

_USAGE = (
    "list | create [--email ADDRESS] [--tier NAME]\n       | replace ID | revoke ID | tier ID NAME\n"
    "       | prune [--unused-days N] [--dry-run] [options]"
)
_NOTES = """\
replace gives a lost key a new value; the old one and the read-only key end at
once, and the checks stay. The server removes keys that are not used: a checks
key without a check and a request for 90 days, a cards key never used within a
year. prune removes now those unused for N days, at least 1 if ever used."""


def parser() -> SubcommandParser:
    about = "See, issue and end API keys, also while they are served."
    made = SubcommandParser("keys", SUBCOMMANDS, _USAGE, about, _NOTES)
    made.add_argument("id", nargs="?", metavar="ID", help="of a key, as list shows it")
    made.add_argument("name", nargs="?", metavar="NAME", help="of the tier to move the key to")
    made.add_argument("--email", metavar="ADDRESS", help="create a checks key for it; without it a cards key")
    made.add_argument("--tier", metavar="NAME", help="of the key to create [free]")
    days = partial(integer, 0, 36_500)
    made.add_argument("--unused-days", metavar="N", type=days, help=f"for prune [{CHECKS_DAYS}]")
    made.add_argument("--dry-run", action="store_true", help="only say how many keys prune would remove")
    add_options(made, DATA, DATABASE, TIERS)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse(argv)
    # Arguments that are not UTF-8 can't be sent to the database.
    if given.id is not None and not given.id.isascii():
        raise no_such_key(given.id)
    tiers = tiers_from(TIERS.value(given))
    for name in (given.tier, given.name):
        if name is not None and name not in tiers:
            raise StartupError(f"there is no tier {name!r}; the tiers are {', '.join(sorted(tiers))}")
    advice = "look with keys list whether it was done, and try again"
    if given.action == "list":
        advice = "try again soon"
    # In the usual folder a missing database is a mistake: the server has another folder, or was never started.
    may_be_new = given.action == "create" and (DATABASE.given(given) or DATA.given(given)) is not None
    path = DATA.value(given) / FILE_NAME
    is_new = may_be_new and DATABASE.value(given) is None and not os.path.lexists(path)
    with opened(given, tiers, advice, may_be_new=may_be_new) as (database, keys):
        SUBCOMMANDS[given.action].run(database, keys, given)
        if is_new:
            complain(f"there was no database at {path.absolute()}, so a new one was made")
    return 0


@contextmanager
def opened(
    given: argparse.Namespace, tiers: Mapping[str, Tier], advice: str, *, may_be_new: bool = False
) -> Iterator[tuple[Database, Keys]]:
    """The database that the options name, and its keys. Raises `StartupError`, with this advice if the database fails.

    There must be a database, unless it may be a new one.
    """
    keep_files_private()
    data, url = DATA.value(given), DATABASE.value(given)
    if not may_be_new:
        _require_database(data, url)
    with (
        refusals_as_startup_errors(),
        _trouble_in_one_line(advice),
        closing(open_database(data, url, stores_cards=False)) as database,
    ):
        yield database, Keys(database, database.clock, tiers)


class _Kept(logging.Handler):
    """Keeps the last error that is logged, and shows nothing."""

    sentence = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.sentence = record.getMessage()


@contextmanager
def _trouble_in_one_line(advice: str) -> Iterator[None]:
    """Raise `StartupError` with the logged cause, in place of what else comes if the database fails."""
    kept, database_log = _Kept(logging.ERROR), logging.getLogger("cardbeat.database")
    database_log.addHandler(kept)
    try:
        yield
    except Exception:
        if not kept.sentence:
            raise
        raise StartupError(f"{kept.sentence}; {advice}") from None
    finally:
        database_log.removeHandler(kept)


def _require_database(data: Path, url: str | None) -> None:
    """Raise `StartupError` if there is no database yet: only `serve` and `keys create --data` make one."""
    if url is None:
        require_database(data)
        return
    with open_to_look(url) as connection:
        require_tables(connection)


def _list(database: Database, keys: Keys, given: argparse.Namespace) -> None:
    checks = count_by_key(database)
    found = [(key, checks.get(key.id, 0)) for key in keys.all()]
    say([json.dumps(list(starmap(_as_json, found)))] if given.json else table(HEADINGS, starmap(_row, found)))
    for sentence in undefined_tiers(keys.count_by_tier(), keys.tiers):
        complain(sentence)


def _as_json(key: Key, checks: int) -> dict[str, Any]:
    times = {"used_at": time_or_none(key.used_at), "removed_after": time_or_none(removed_after(key, checks))}
    return {"id": key.id, "prefix": key.prefix, **key.as_json(), "email": key.email, "checks": checks, **times}


def _row(key: Key, checks: int) -> tuple[str, ...]:
    shown = (key.id, f"{key.prefix}...", key.scope, key.tier, utc_text(key.created_at), str(checks))
    end = (time_or_none(removed_after(key, checks)) or "kept")[:10]
    return *shown, time_or_none(key.used_at) or "never", end, key.email or ""


def _create(_database: Database, keys: Keys, given: argparse.Namespace) -> None:
    email = None if given.email is None else valid_email(given.email)
    issued = keys.issue(email, given.tier or "free").wait()
    try:
        _show(issued, given)
    except StartupError:
        # The value was not shown, so the key is of no use to anyone.
        keys.revoke(issued.key.id).wait()
        raise


def _replace(_database: Database, keys: Keys, given: argparse.Namespace) -> None:
    issued = keys.replace(given.id).wait()
    if issued is None:
        raise no_such_key(given.id)
    try:
        _show(issued, given)
    except StartupError as error:
        raise StartupError(f"{error}; the old value has ended, so replace the key again") from None


def _show(issued: IssuedKey, given: argparse.Namespace) -> None:
    secret = {} if issued.webhook_secret is None else {"webhook_secret": issued.webhook_secret}
    shown = {"key": issued.value, **secret, "id": issued.key.id, **issued.key.as_json()}
    lines = [f"{name + ':':16}{value}" for name, value in shown.items()]
    say([json.dumps(shown)] if given.json else lines, must_arrive=True)


def _revoke(database: Database, keys: Keys, given: argparse.Namespace) -> None:
    if not keys.revoke(given.id).wait():
        raise no_such_key(given.id)
    try:
        with tell_if_slow("the key is revoked, removing its checks"):
            Removal(database).finish()
    except Unavailable:
        complain("the key is revoked; some of its checks remain, the server will remove them")
    if given.json:
        say([json.dumps({"id": given.id, "revoked": True})])


def _move(_database: Database, keys: Keys, given: argparse.Namespace) -> None:
    if not keys.set_tier(given.id, given.name).wait():
        raise no_such_key(given.id)
    if given.json:
        say([json.dumps({"id": given.id, "tier": given.name})])


def _prune(database: Database, _keys: Keys, given: argparse.Namespace) -> None:
    days = CHECKS_DAYS if given.unused_days is None else given.unused_days
    now = int(database.clock())
    _require_clock(database, now, days)
    terms, unused, removal = Terms.of_days(now, days), UnusedKeys(database), Removal(database)
    with tell_if_slow("looking for keys that are not used"):
        count = (unused.count if given.dry_run else unused.remove)(terms, removal)
    keys = "1 key" if count == 1 else f"{count} keys"
    told = {"dry_run": True, "would_remove": count} if given.dry_run else {"removed": count}
    say([json.dumps(told) if given.json else f"{'would remove' if given.dry_run else 'removed'} {keys}"])


def _require_clock(database: Database, now: int, days: int) -> None:
    """Raise `StartupError` if keys may look unused: the clock is wrong, or uses are not known for so long."""
    with database.read() as connection:
        served, since = last_moment(connection), monitor.values(connection).get("keys_watched_since", 0)
    if served and abs(now - served) > GAP_SECONDS:
        found = f"the clock says {utc_text(now)} UTC, but the server last ran at {utc_text(served)} UTC"
        raise StartupError(f"{found}; if the clock is right, start the server once, then prune; nothing was removed")
    if since > now - days * DAY_SECONDS:
        known = f"uses of keys are known since {utc_text(since)} UTC"
        least = (now - since) // DAY_SECONDS
        raise StartupError(f"{known}; give at most --unused-days {least}; nothing was removed")


def no_such_key(key_id: str) -> StartupError:
    return StartupError(f"there is no key with the id {key_id!r}; see: keys list")


SUBCOMMANDS = {
    "list": Subcommand(_list),
    "create": Subcommand(_create, options=("--email", "--tier")),
    "replace": Subcommand(_replace, ("ID",)),
    "revoke": Subcommand(_revoke, ("ID",)),
    "tier": Subcommand(_move, ("ID", "NAME")),
    "prune": Subcommand(_prune, options=("--unused-days", "--dry-run")),
}
