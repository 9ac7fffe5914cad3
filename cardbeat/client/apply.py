"""Makes a server hold the checks that are declared, by name. Running it again changes nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from cardbeat.client.api import Api, Check, Refused
from cardbeat.client.declared import Settings
from cardbeat.errors import StartupError

_CHANGED_MEANWHILE = (409, 412)
_GONE = 404


class Plan(NamedTuple):
    """What there is to do: settings to create, checks with the settings they lack, checks to delete."""

    create: list[Settings]
    change: list[tuple[Check, Settings]]
    delete: list[Check]
    unchanged: list[Check]


@dataclass
class Outcome:
    """The checks that were created, changed, deleted and found as declared, and a sentence for each that was not done.

    `changes` has the differing fields of each changed check by its name, in the declared values.
    """

    created: list[Check] = field(default_factory=list)
    changed: list[Check] = field(default_factory=list)
    deleted: list[Check] = field(default_factory=list)
    unchanged: list[Check] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    failed: str | None = None
    """Why the rest was left undone."""


def plan(present: Iterable[Check], declared: Mapping[str, Settings], *, prune: bool) -> Plan:
    """What makes the present checks the declared ones; the others go only with `prune`.

    Raises `StartupError` where a declared name is that of several checks.
    """
    present = list(present)
    for name, number in Counter(check["name"] for check in present).items():
        if number > 1 and name in declared:
            raise StartupError(f"the server has {number} checks named {name!r}; rename or delete all of them but one")
    known = {check["name"]: check for check in present}
    pairs = [(known[name], settings) for name, settings in declared.items() if name in known]
    return Plan(
        [settings for name, settings in declared.items() if name not in known],
        [pair for pair in pairs if differences(*pair)],
        [check for check in present if prune and check["name"] not in declared],
        [check for check, settings in pairs if not differences(check, settings)],
    )


def differences(check: Check, settings: Settings) -> Settings:
    """The fields in which a check is not as declared, with the declared values."""
    return {name: value for name, value in settings.items() if check[name] != value}


def perform(api: Api, steps: Plan) -> Outcome:
    """Do it, each step only where the server's check is still as it was planned for."""
    outcome = Outcome(unchanged=steps.unchanged)
    for name, step in _steps(api, steps, outcome):
        try:
            step()
        except (Refused, StartupError) as error:
            outcome.failed = f"{name}: {error}"
            break
    if outcome.created:
        _withdraw_doubles(api, outcome)
    return outcome


def _steps(api: Api, steps: Plan, outcome: Outcome) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is done in turn, each with the name of its check."""
    for check, settings in steps.change:
        yield check["name"], partial(_change, api, check, settings, outcome)
    for settings in steps.create:
        yield settings["name"], partial(_create, api, settings, outcome)
    for check in steps.delete:
        yield check["name"], partial(_delete, api, check, outcome)


def _create(api: Api, settings: Settings, outcome: Outcome) -> None:
    outcome.created.append(api.create(settings))


def _change(api: Api, check: Check, settings: Settings, outcome: Outcome) -> None:
    try:
        outcome.changed.append(api.change(check, differences(check, settings)))
    except Refused as refused:
        if refused.status not in _CHANGED_MEANWHILE:
            raise
        now = api.read(check["id"])
        if differences(now, settings):
            outcome.conflicts.append(f"{check['name']}: somebody else changed it meanwhile; it stays as they made it")
        else:
            outcome.unchanged.append(now)


def _delete(api: Api, check: Check, outcome: Outcome) -> None:
    try:
        api.delete(check)
        outcome.deleted.append(check)
    except Refused as refused:
        if refused.status in _CHANGED_MEANWHILE:
            outcome.conflicts.append(f"{check['name']}: somebody else changed it meanwhile; it is not deleted")
        elif refused.status != _GONE:
            raise


def _withdraw_doubles(api: Api, outcome: Outcome) -> None:
    """Of the checks of one name that several created at the same moment the oldest stays; the others take theirs back.

    Whoever created the newer one sees the older one here, as it was listed before.
    """
    first: dict[str, str] = {}
    for check in api.checks():
        first.setdefault(check["name"], check["id"])
    for check in list(outcome.created):
        if first.get(check["name"]) not in (check["id"], None):
            outcome.created.remove(check)
            api.delete(check)
            outcome.conflicts.append(f"{check['name']}: somebody else created it at the same moment; theirs stays")
