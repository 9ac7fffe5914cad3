"""The command `checks`: lists, pings, tests, snoozes and applies the checks of a key over the API."""

import argparse
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardbeat.client.api import NOT_FOUND, Api, CheckJson, Refused
from cardbeat.clock import wall_clock
from cardbeat.commands.options import KEY_VARIABLE, URL, Subcommand, SubcommandParser, add_options, integer
from cardbeat.errors import StartupError
from cardbeat.host.output import agreed, say, table

if TYPE_CHECKING:
    from cardbeat.client.apply import Applied, Plan

HEADINGS = ("NAME", "STATUS", "LAST PING (UTC)", "DEADLINE (UTC)", "ALERTS", "PING URL")

_DEEDS = ("created", "changed", "deleted", "unchanged", "kept")

LEFT = 1
"""The exit status if a check is not as the file has it, or if a test alert was not delivered."""
WAIT_SECONDS = 30
"""How long a test waits for the receiver's answer. An attempt takes up to 10 s."""

_USAGE = (
    "list | apply FILE [--prune [--yes]] [--dry-run]\n       | ping NAME | test NAME [--wait N] | snooze NAME TIME"
    "\n       [--url URL] [--json]"
)
_HOST = re.compile(r"https?://[^/?#\\@]+(?=[/?#]|\Z)", re.IGNORECASE)
_PRUNE = "apply: delete the checks that the file does not name; one without any is refused unless it says check = []"
_EPILOG = f"Set the variable {KEY_VARIABLE} to your checks key; {URL.variable} can hold the URL."


def parser() -> SubcommandParser:
    made = SubcommandParser("checks", SUBCOMMANDS, _USAGE, "The checks of a key, on a server near or far.", _EPILOG)
    made.add_argument("subject", nargs="?", metavar="FILE or NAME", help="TOML with the checks, or a check's name")
    made.add_argument("time", nargs="?", metavar="TIME", help="of a snooze, such as 7d or 2h30m; off ends it")
    made.add_argument("--all", action="store_true", help="snooze: all checks, with TIME alone")
    made.add_argument("--prune", action="store_true", help=_PRUNE)
    made.add_argument("--yes", action="store_true", help="with --prune: also checks that are still pinged")
    made.add_argument("--dry-run", action="store_true", help="apply: say what would be done, and do nothing")
    wait = f"test: most seconds to wait for the receiver's answer [{WAIT_SECONDS}]"
    made.add_argument("--wait", metavar="N", type=partial(integer, 1, 600), help=wait)
    add_options(made, URL)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse(argv)
    try:
        api = Api(URL.value(given), _key(), keeps_trying=given.action == "ping")
        status: int = SUBCOMMANDS[given.action].run(api, given)
        return status
    except Refused as refused:
        raise StartupError(str(refused)) from None


def _key() -> str:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise StartupError(f"there is no key; set the variable {KEY_VARIABLE} to your checks key (sk_...)")
    return key


def _list(api: Api, given: argparse.Namespace) -> int:
    checks = api.checks()
    say([json.dumps([*map(_shown, checks)])] if given.json else table(HEADINGS, map(_row, checks)))
    return 0


def _row(check: CheckJson) -> tuple[str, ...]:
    return (
        check["name"],
        ("overdue" if check["status"] == "overdue" else "on time")
        + (", failed" if check.get("failed_at") else "")
        + (", snoozed" if check.get("snoozed_until") else ""),
        check.get("last_ping_at") or "never",
        check["deadline_at"],
        check.get("delivery") or "none yet" if check.get("webhook_url") else "no webhook",
        check.get("ping_url") or "not shown to this key",
    )


def _apply(api: Api, given: argparse.Namespace) -> int:
    # A ping is the last step of a job, and does not wait for these imports.
    from cardbeat.client.apply import Applied, differences, perform, plan, still_pinged  # noqa: PLC0415
    from cardbeat.client.declared import load  # noqa: PLC0415

    declared = load(Path(given.subject), prune=given.prune)
    planned = plan(api.checks(), declared, prune=given.prune)
    now = wall_clock()
    used = [] if given.yes else [check for check in planned.delete if still_pinged(check, now)]
    kept = used if given.dry_run else [check for check in used if not agreed(f"{_used(check)}. Delete it?")]
    ids = {check["id"] for check in kept}
    planned = planned._replace(delete=[check for check in planned.delete if check["id"] not in ids])
    as_if = Applied(planned.create, [check | it for check, it in planned.change], planned.delete, planned.unchanged)
    done = as_if if given.dry_run else perform(api, planned)
    done.kept = kept
    changes = {
        check["id"]: ", ".join(_change(name, check.get(name), it) for name, it in differences(check, wanted).items())
        for check, wanted in planned.change
    }
    if given.json:
        deeds = {deed: [*map(_shown, getattr(done, deed))] for deed in _DEEDS}
        say([json.dumps({"dry_run": given.dry_run, **deeds, "conflicts": done.conflicts, "failed": done.failed})])
    else:
        say(_would(planned, changes, kept) if given.dry_run else _told(done, changes))
    if done.failed is not None:
        raise StartupError(f"{done.failed} ({_rest(done)})")
    return LEFT if done.conflicts or (kept and not given.dry_run) else 0


def _used(check: CheckJson) -> str:
    pinged, failed = check.get("last_ping_at") or "", check.get("failed_at") or ""
    signal = f"was pinged at {pinged}" if pinged >= failed else f"got a failure signal at {failed}"
    return f"{check['name']} {signal} (UTC), so its job still runs"


def _rest(done: "Applied") -> str:
    if done.unknown is None:
        return "what is printed above was done, the rest was not"
    return f"what is printed above was done, {done.unknown} may be; run apply again: it looks first, and does the rest"


def _would(planned: "Plan", changes: Mapping[str, str], kept: list[CheckJson]) -> Iterator[str]:
    yield from (f"would create {wanted['name']}" for wanted in planned.create)
    yield from (f"would change {check['name']}: {changes[check['id']]}" for check, _ in planned.change)
    yield from (f"would delete {check['name']}" for check in planned.delete)
    yield from (f"would ask: {_used(check)}" for check in kept)
    counts = (len(planned.create), len(planned.change), len(planned.delete), len(planned.unchanged))
    told = "{} to create, {} to change, {} to delete, {} unchanged".format(*counts)
    yield f"{told}, {len(kept)} to ask about" if kept else told


def _change(name: str, before: object, after: object) -> str:
    if name == "webhook_url":
        before, after = _host_only(before), _host_only(after)
    return f"{name} (another URL at {after})" if before == after else f"{name} {before} -> {after}"


def _shown(check: Mapping[str, Any]) -> dict[str, Any]:
    """A check as programs see it. Who knows a webhook's URL may post to it, so only its host is shown."""
    return {**check, "webhook_url": _host_only(check.get("webhook_url"))}


def _host_only(url: object) -> str | None:
    host = _HOST.match(str(url))
    return f"{host[0] if host else ''}/..." if url else None


def _told(done: "Applied", changes: Mapping[str, str]) -> Iterator[str]:
    yield from (f"created {check['name']}: {check.get('ping_url')}" for check in done.created)
    yield from (f"changed {check['name']}: {changes.get(check['id'], '')}" for check in done.changed)
    yield from (f"deleted {check['name']}" for check in done.deleted)
    yield from (f"kept: {_used(check)}; --yes deletes it" for check in done.kept)
    yield from (f"conflict: {sentence}" for sentence in done.conflicts)
    counts = [f"{len(getattr(done, deed))} {deed}" for deed in _DEEDS if deed != "kept" or done.kept]
    yield ", ".join([*counts, f"{len(done.conflicts)} conflicts"] if done.conflicts else counts)


def _ping(api: Api, given: argparse.Namespace) -> int:
    check = _named(api, given.subject)
    if check.get("ping_url", "") is None:
        raise StartupError("this is a read-only key, which can't ping; set CARDBEAT_KEY to the checks key")
    answer = api.ping(check["id"])
    told = f"{'recovered, ' if answer['recovered'] else ''}on time until {answer['deadline_at']} (UTC)"
    say([json.dumps(answer) if given.json else told])
    return 0


def _test(api: Api, given: argparse.Namespace) -> int:
    check, seconds = _named(api, given.subject), given.wait or WAIT_SECONDS
    alert = api.test(check["id"], seconds)
    told = f"{_host_only(check.get('webhook_url'))}: {_outcome(alert, seconds)}"
    say([json.dumps(alert) if given.json else told])
    return 0 if alert["state"] == "delivered" else LEFT


def _outcome(alert: Mapping[str, Any], seconds: int) -> str:
    """What happened to a test alert within these seconds."""
    if alert["state"] == "delivered":
        return f"delivered, the receiver answered {alert.get('last_status')}"
    known = f"not delivered: {alert.get('last_error')}" if alert["attempts"] else f"not sent within {seconds} s."
    if alert["state"] == "pending":
        next_at = alert.get("next_attempt_at")
        return f"{known} Next try at {next_at} (UTC)." if next_at else known
    return f"{known} It is not tried again."


def _snooze(api: Api, given: argparse.Namespace) -> int:
    from cardbeat.client.declared import seconds_of  # noqa: PLC0415 - as above

    time = given.subject if given.all else given.time
    seconds = 0 if time == "off" else seconds_of(time)
    if not seconds and time != "off":
        raise StartupError(f"the time of a snooze must be a duration such as 7d or 2h30m, or off, not {time!r}")
    done = []
    for check in api.checks() if given.all else [_named(api, given.subject)]:
        try:
            done.append(api.snooze(check, seconds or 0))
            told = _snoozed(done[-1])
        except Refused as refused:
            if not given.all or refused.status != NOT_FOUND:
                raise
            told = f"{check['name']}: no longer exists"
        if not given.json:
            say([told])
    if given.json:
        say([json.dumps([*map(_shown, done)] if given.all else _shown(done[0]))])
    return 0


def _snoozed(check: CheckJson) -> str:
    until = check.get("snoozed_until")
    state = f"snoozed until {until}" if until else f"not snoozed, deadline {check['deadline_at']}"
    return f"{check['name']}: {state} (UTC)"


def _named(api: Api, name: str) -> CheckJson:
    named = [check for check in api.checks() if check["name"] == name.strip()]
    if len(named) != 1:
        found = f"are {len(named)} checks" if named else "is no check"
        raise StartupError(f"there {found} named {name!r}; see: checks list")
    return named[0]


SUBCOMMANDS = {
    "list": Subcommand(_list),
    "apply": Subcommand(_apply, ("FILE",), ("--prune", "--yes", "--dry-run")),
    "ping": Subcommand(_ping, ("NAME",)),
    "test": Subcommand(_test, ("NAME",), ("--wait",)),
    "snooze": Subcommand(_snooze, ("NAME", "TIME"), ("--all",)),
}
