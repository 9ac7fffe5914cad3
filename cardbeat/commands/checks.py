"""The command `checks`: a client of the API, for checks that are kept in a file."""

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cardbeat.client import apply
from cardbeat.client.api import Api, Check, Refused
from cardbeat.client.declared import load
from cardbeat.errors import StartupError
from cardbeat.options import KEY_VARIABLE, URL, Subcommand, SubcommandParser, add_json
from cardbeat.output import printable, say, table

HEADINGS = ("NAME", "STATUS", "LAST PING (UTC)", "DEADLINE (UTC)", "ALERTS", "PING URL")

CONFLICT = 1
"""The exit status where something was not done because somebody else changed it meanwhile."""

SUBCOMMANDS = {
    "list": Subcommand(),
    "apply": Subcommand(("FILE",), ("--prune", "--dry-run")),
    "ping": Subcommand(("NAME",)),
}

_USAGE = "list | apply FILE [--prune] [--dry-run] | ping NAME\n       [--url URL] [--json]"
_PRUNE = "apply: delete the checks that the file does not name; one without any is refused unless it says check = []"
_EPILOG = f"The checks key stands in the variable {KEY_VARIABLE}, the URL in {URL.variable}."


def parser() -> SubcommandParser:
    made = SubcommandParser("checks", SUBCOMMANDS, _USAGE, "The checks of a key, on a server near or far.", _EPILOG)
    made.add_argument("subject", nargs="?", metavar="FILE or NAME", help="TOML with the checks, or a check's name")
    made.add_argument("--prune", action="store_true", help=_PRUNE)
    made.add_argument("--dry-run", action="store_true", help="apply: say what would be done, and do nothing")
    add_json(made)
    URL.add_to(made)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse(argv)
    try:
        return _ACTIONS[given.action](Api(URL.value(given), _key(), is_patient=given.action == "ping"), given)
    except Refused as refused:
        raise StartupError(refused.sentence) from None


def _key() -> str:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise StartupError(f"there is no key; set the variable {KEY_VARIABLE} to your checks key (sk_...)")
    return key


def _list(api: Api, given: argparse.Namespace) -> int:
    checks = api.checks()
    say([json.dumps(checks)] if given.json else table(HEADINGS, map(_row, checks)))
    return 0


def _row(check: Check) -> tuple[str, ...]:
    return (
        printable(check["name"]),
        "overdue" if check["status"] == "overdue" else "on time",
        check.get("last_ping_at") or "never",
        check["deadline_at"],
        check.get("delivery") or "none yet" if check.get("webhook_url") else "no webhook",
        check["ping_url"],
    )


def _apply(api: Api, given: argparse.Namespace) -> int:
    declared = load(Path(given.subject), prune=given.prune)
    if given.dry_run:
        steps = apply.settled_plan(api, declared, prune=given.prune)
        say([json.dumps(_as_json(_planned(steps), dry_run=True))] if given.json else _would(steps))
        return 0
    outcome = apply.apply(api, declared, prune=given.prune)
    say([json.dumps(_as_json(outcome, dry_run=False))] if given.json else _told(outcome))
    if outcome.failed is not None:
        raise StartupError(printable(f"{outcome.failed} ({_rest(outcome)})"))
    return CONFLICT if outcome.conflicts else 0


def _rest(outcome: apply.Outcome) -> str:
    if outcome.unknown is None:
        return "what is printed above was done, the rest was not"
    return (
        f"what is printed above was done; whether {outcome.unknown} was done is not known, what comes after it was not"
    )


def _planned(steps: apply.Plan) -> apply.Outcome:
    """As if all of it were done."""
    changed = [check | settings for check, settings in steps.change]
    return apply.Outcome(steps.create, changed, steps.delete, steps.unchanged)


def _as_json(outcome: apply.Outcome, *, dry_run: bool) -> dict[str, Any]:
    names = ("created", "changed", "deleted", "unchanged", "conflicts", "failed")
    return {"dry_run": dry_run, **{name: getattr(outcome, name) for name in names}}


def _would(steps: apply.Plan) -> Iterator[str]:
    yield from (f"would create {printable(settings['name'])}" for settings in steps.create)
    for check, settings in steps.change:
        changes = (f"{name} {check[name]} -> {value}" for name, value in apply.differences(check, settings).items())
        yield printable(f"would change {check['name']}: {', '.join(changes)}")
    yield from (f"would delete {printable(check['name'])}" for check in steps.delete)
    counts = (len(steps.create), len(steps.change), len(steps.delete), len(steps.unchanged))
    yield "{} to create, {} to change, {} to delete, {} unchanged".format(*counts)


def _told(outcome: apply.Outcome) -> Iterator[str]:
    done = {"created": outcome.created, "changed": outcome.changed, "deleted": outcome.deleted}
    for deed, checks in done.items():
        yield from (f"{deed} {printable(check['name'])}" for check in checks)
    yield from (f"conflict: {printable(sentence)}" for sentence in outcome.conflicts)
    counts = [f"{len(checks)} {deed}" for deed, checks in (done | {"unchanged": outcome.unchanged}).items()]
    yield ", ".join([*counts, f"{len(outcome.conflicts)} conflicts"] if outcome.conflicts else counts)


def _ping(api: Api, given: argparse.Namespace) -> int:
    named = [check for check in api.checks() if check["name"] == given.subject.strip()]
    if len(named) != 1:
        raise StartupError(f"there are {len(named)} checks named {given.subject!r}; see: checks list")
    answer = api.ping(named[0]["id"])
    if given.json:
        say([json.dumps(answer)])
    else:
        say([f"{'recovered, ' if answer['recovered'] else ''}on time until {answer['deadline_at']} (UTC)"])
    return 0


_ACTIONS: dict[str, Callable[[Api, argparse.Namespace], int]] = {"list": _list, "apply": _apply, "ping": _ping}
