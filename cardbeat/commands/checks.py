"""The command `checks`: lists, pings, tests, snoozes and applies a key's checks over the API."""

import os
import re
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from cardbeat.client.api import (
    Api,
    CheckJson,
    list_in,
    path_of,
    quoted,
    with_texts,
)
from cardbeat.commands.options import (
    KEY_VARIABLE,
    URL,
    Parser,
    actions,
    tell,
)
from cardbeat.errors import StartupError, refusals_as_startup_errors

COLUMNS: Final = (
    "name",
    "status",
    "last_ping_at",
    "deadline_at",
    "failed_at",
    "snoozed_until",
    "delivery",
    "ping_url",
)
KEPT: Final = "not deleted without --yes"
LEFT: Final = 1
"""The exit status if a check was not deleted, or if a test alert was not delivered."""
RETRY_SECONDS: Final = (1, 2, 4, 8, 16)
"""The pauses between the tries of a ping: the server may be restarting."""
WAIT_SECONDS: Final = 30
"""How long a test waits for the receiver's answer. An attempt takes up to 10 s."""
LOOK_SECONDS: Final = 0.5
"""The pause before each look whether a test alert was sent."""
_NOTE: Final = (
    f"Set the variable {KEY_VARIABLE} to your checks key; "
    f"{URL.variable} can hold the URL."
)


def parser() -> Parser:
    about = "The checks of a key, on a server near or far."
    made = Parser(prog="cardbeat checks", description=about, epilog=_NOTE)
    add = actions(made, URL)
    add("list", "show all checks", _list)
    what = "make the checks what a TOML FILE has"
    apply = add("apply", what, _apply, "file")
    what = "list the checks it does not name"
    apply.add_argument("--prune", action="store_true", help=what)
    what = "with --prune: delete them"
    apply.add_argument("--yes", action="store_true", help=what)
    add("ping", "ping a check", _ping, "name")
    what = "send a test alert, and wait for the receiver's answer"
    add("test", what, _test, "name")
    what = "send no alert for a TIME such as 2h30m; off ends it"
    add("snooze", what, _snooze, "name", "time")
    return made


def run(given: Namespace) -> int:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise StartupError(
            f"there is no key; set the variable {KEY_VARIABLE} to your checks key (sk_...)"
        )
    pauses = RETRY_SECONDS if given.act is _ping else ()
    status: int = given.act(Api(given.url, key, pauses), given)
    return status


def _list(api: Api, given: Namespace) -> int:
    checks = [_shown(check) for check in api.checks()]
    rows = [
        {name: check.get(name) for name in COLUMNS} for check in checks
    ]
    tell(given, checks, rows)
    return 0


def _shown(check: CheckJson) -> CheckJson:
    """A check as it is printed: of a webhook's URL, to which anyone may post, only the host."""
    from cardbeat.heartbeat.alerts.target import shown_of  # noqa: PLC0415 - not for a ping

    url = check.get("webhook_url")
    return {**check, "webhook_url": url and shown_of(str(url))}


def _apply(api: Api, given: Namespace) -> int:
    # A ping is the last step of a job, and does not wait for these imports.
    from cardbeat.client import apply  # noqa: PLC0415

    checks, renamed = apply.load(Path(given.file))
    if given.prune and not checks:
        raise StartupError(
            f"{given.file}: without any [[check]], --prune would delete all checks"
        )
    steps = apply.steps(api.checks(), checks, renamed, prune=given.prune)
    done: list[dict[str, str]] = []
    status = 0
    try:
        for step in steps:
            deed, check, _ = step
            if deed == apply.DELETED and not given.yes:
                deed = KEPT
                more = (
                    f"last pinged {check.get('last_ping_at') or 'never'}"
                )
                status = LEFT
            else:
                more = apply.perform(api, step)
            done.append(
                {"done": deed, "name": check["name"], "more": more}
            )
    except StartupError as error:
        advice = "what is printed was done; run apply again for the rest"
        raise StartupError(
            f"{check['name']}: {str(error).rstrip('.')}; {advice}"
        ) from None
    finally:
        tell(given, done)
    return status


def _ping(api: Api, given: Namespace) -> int:
    check = _named(api, given.name)
    answer = api.ask("GET", f"/ping/{quoted(check['id'])}")
    tell(given, with_texts(answer, "deadline_at"))
    return 0


def _test(api: Api, given: Namespace) -> int:
    check = _named(api, given.name)
    api.ask("POST", path_of(check, "/test-alert"))
    ends = time.monotonic() + WAIT_SECONDS
    alert = _newest_test(api, check)
    while not alert.get("attempts") and time.monotonic() < ends:
        time.sleep(LOOK_SECONDS)
        alert = _newest_test(api, check)
    tell(given, alert)
    return 0 if alert["state"] == "delivered" else LEFT


def _newest_test(api: Api, check: CheckJson) -> dict[str, Any]:
    newest = None
    for alert in list_in(
        api.ask("GET", path_of(check, "/alerts")), "alerts"
    ):
        if with_texts(alert, "type", "state")["type"] == "check.test":
            newest = newest or alert
    return with_texts(newest)


def _snooze(api: Api, given: Namespace) -> int:
    from cardbeat.client.apply import seconds_of  # noqa: PLC0415 - as above

    path = path_of(_named(api, given.name), "/snooze")
    if given.time == "off":
        answer = api.ask("DELETE", path)
    else:
        # A bare number is seconds, as in the file.
        duration = re.sub("^[0-9]+$", r"\g<0>s", given.time)
        with refusals_as_startup_errors():
            seconds = seconds_of("TIME", duration)
        answer = api.ask("PUT", path, {"seconds": seconds})
    tell(given, _shown(with_texts(answer.get("check"), "deadline_at")))
    return 0


def _named(api: Api, name: str) -> CheckJson:
    named = [
        check for check in api.checks() if check["name"] == name.strip()
    ]
    if len(named) != 1:
        raise StartupError(
            f"there are {len(named)} checks named {name!r}; see: checks list"
        )
    return named[0]
