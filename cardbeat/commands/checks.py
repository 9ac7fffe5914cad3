"""The command `checks`: lists, pings, tests, snoozes and applies a key's checks over the API."""

import os
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cardbeat.client.api import Api, CheckJson
from cardbeat.commands.options import KEY_VARIABLE, URL, Parser, actions, integer, tell
from cardbeat.errors import StartupError, refusals_as_startup_errors
from cardbeat.host.output import table

HEADINGS: Final = ("NAME", "STATUS", "LAST PING (UTC)", "DEADLINE (UTC)", "ALERTS", "PING URL")
LEFT: Final = 1
"""The exit status if a check is not as the file has it, or if a test alert was not delivered."""
WAIT_SECONDS: Final = 30
"""How long a test waits for the receiver's answer. An attempt takes up to 10 s."""
_HOST: Final = re.compile(r"(https?://)([^/?#\\]*@)?([^/?#\\@]+)(?=[/?#]|\Z)", re.IGNORECASE)
_NOTE: Final = (
    f"Set the variable {KEY_VARIABLE} to your checks key; {URL.variable} can hold the URL."
)


def parser() -> Parser:
    about = "The checks of a key, on a server near or far."
    made = Parser(prog="cardbeat checks", description=about, epilog=_NOTE)
    add = actions(made, URL)
    add("list", "show all checks", _list)
    apply = add("apply", "create and change checks by their names, as a file has them", _apply)
    apply.add_argument("file", metavar="FILE", help="TOML with a [[check]] for each")
    apply.add_argument(
        "--prune", action="store_true", help="list the checks that the file does not name"
    )
    apply.add_argument("--yes", action="store_true", help="with --prune: delete them")
    apply.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )
    ping = add("ping", "ping a check", _ping)
    test = add("test", "send a test alert, and wait for the receiver's answer", _test)
    snooze = add("snooze", "send no alert of a check for some time", _snooze)
    for action in (ping, test, snooze):
        action.add_argument("name", metavar="NAME", help="of the check")
    test.add_argument(
        "--wait",
        metavar="N",
        type=integer(1, 600),
        default=WAIT_SECONDS,
        help=f"longest wait, in seconds [{WAIT_SECONDS}]",
    )
    snooze.add_argument("time", metavar="TIME", help="such as 7d or 2h30m; off ends it")
    return made


def run(given: Namespace) -> int:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise StartupError(
            f"there is no key; set the variable {KEY_VARIABLE} to your checks key (sk_...)"
        )
    status: int = given.act(Api(given.url, key, keeps_trying=given.act is _ping), given)
    return status


def _list(api: Api, given: Namespace) -> int:
    checks = api.checks()
    tell(given, [*map(_shown, checks)], table(HEADINGS, map(_row, checks)))
    return 0


def _row(check: CheckJson) -> tuple[str, ...]:
    states = [check["status"].replace("_", " ")]
    if check.get("failed_at"):
        states.append("failed")
    if check.get("snoozed_until"):
        states.append("snoozed")
    alerts = "no webhook"
    if check.get("webhook_url"):
        alerts = str(check.get("delivery") or "none yet")
    pinged = str(check.get("last_ping_at") or "never")
    url = str(check.get("ping_url") or "not shown to this key")
    return check["name"], ", ".join(states), pinged, check["deadline_at"], alerts, url


def _apply(api: Api, given: Namespace) -> int:
    # A ping is the last step of a job, and does not wait for these imports.
    from cardbeat.client.apply import Applied, differences, perform, plan  # noqa: PLC0415
    from cardbeat.client.declared import load  # noqa: PLC0415

    declared = load(Path(given.file), prune=given.prune)
    planned = plan(api.checks(), declared, prune=given.prune)
    kept: list[CheckJson] = []
    if not given.yes:
        kept = planned.delete
        planned = planned._replace(delete=[])
    changes: dict[str, str] = {}
    for check, wanted in planned.change:
        new = differences(check, wanted)
        changes[check["id"]] = ", ".join(_change(name, check.get(name), new[name]) for name in new)
    if given.dry_run:
        changed = [check | wanted for check, wanted in planned.change]
        done = Applied(planned.create, changed, planned.delete, planned.unchanged)
    else:
        done = perform(api, planned)
    kinds = ("created", "changed", "deleted", "unchanged")
    listed: dict[str, list[CheckJson]] = {kind: getattr(done, kind) for kind in kinds}
    listed["kept"] = kept
    found: dict[str, Any] = {kind: [*map(_shown, it)] for kind, it in listed.items()}
    found |= {"dry_run": given.dry_run, "conflicts": done.conflicts, "failed": done.failed}
    tell(given, found, _told(listed, done.conflicts, changes, given))
    if done.failed is not None:
        advice = "run apply again, it looks first and does the rest"
        raise StartupError(f"{done.failed.rstrip('.')}; what is printed above was done; {advice}")
    return LEFT if done.conflicts or kept else 0


def _change(name: str, before: object, after: object) -> str:
    if name == "webhook_url":
        before = _host_only(before)
        after = _host_only(after)
    if before == after:
        return f"{name} (another URL at {after})"
    return f"{name} {before} -> {after}"


def _shown(check: Mapping[str, Any]) -> dict[str, Any]:
    """A check as programs see it: of a webhook's URL, to which anyone may post, only the host."""
    return {**check, "webhook_url": _host_only(check.get("webhook_url"))}


def _host_only(url: object) -> str | None:
    if not url:
        return None
    found = _HOST.match(str(url))
    return f"{found[1]}{found[3]}/..." if found else "/..."


def _told(
    listed: Mapping[str, list[CheckJson]],
    conflicts: list[str],
    changes: Mapping[str, str],
    given: Namespace,
) -> Iterator[str]:
    mood = "would be " if given.dry_run else ""
    for check in listed["created"]:
        yield f"{mood}created {check['name']}: {check.get('ping_url', 'a new ping URL')}"
    for check in listed["changed"]:
        yield f"{mood}changed {check['name']}: {changes[check['id']]}"
    for check in listed["deleted"]:
        yield f"{mood}deleted {check['name']}"
    for check in listed["kept"]:
        pinged = check.get("last_ping_at") or "never"
        yield f"not deleted without --yes: {check['name']}, last pinged {pinged} (UTC)"
    for sentence in conflicts:
        yield f"conflict: {sentence}"
    counts = [f"{len(checks)} {kind}, " for kind, checks in listed.items()]
    yield f"{''.join(counts).replace('kept', 'not deleted')}{len(conflicts)} conflicts"


def _ping(api: Api, given: Namespace) -> int:
    check = _named(api, given.name)
    if not check.get("ping_url"):
        raise StartupError(
            f"this is a read-only key, which can't ping; set {KEY_VARIABLE} to the checks key"
        )
    answer = api.ping(check["id"])
    recovered = "recovered, " if answer.get("recovered") else ""
    tell(given, answer, [f"{recovered}on time until {answer['deadline_at']} (UTC)"])
    return 0


def _test(api: Api, given: Namespace) -> int:
    check = _named(api, given.name)
    alert = api.test(check["id"], given.wait)
    is_delivered = alert["state"] == "delivered"
    if is_delivered:
        told = f"delivered, the receiver answered {alert.get('last_status')}"
    elif alert.get("attempts"):
        told = f"not delivered: {alert.get('last_error')}"
    else:
        told = f"not sent within {given.wait} s."
    if alert["state"] == "pending":
        told += f" Next try at {alert.get('next_attempt_at')} (UTC)."
    elif not is_delivered:
        told += " It is not tried again."
    tell(given, alert, [f"{_host_only(check.get('webhook_url'))}: {told}"])
    return 0 if is_delivered else LEFT


def _snooze(api: Api, given: Namespace) -> int:
    from cardbeat.client.declared import seconds_of  # noqa: PLC0415 - as above

    seconds = None
    if given.time != "off":
        with refusals_as_startup_errors():
            # A bare number is seconds, as in the file.
            seconds = seconds_of("TIME", re.sub("^[0-9]+$", r"\g<0>s", given.time))
    check = api.snooze(_named(api, given.name), seconds)
    until = check.get("snoozed_until")
    state = f"snoozed until {until}" if until else f"not snoozed, deadline {check['deadline_at']}"
    tell(given, _shown(check), [f"{check['name']}: {state} (UTC)"])
    return 0


def _named(api: Api, name: str) -> CheckJson:
    named = [check for check in api.checks() if check["name"] == name.strip()]
    if len(named) != 1:
        found = f"are {len(named)} checks" if named else "is no check"
        raise StartupError(f"there {found} named {name!r}; see: checks list")
    return named[0]
