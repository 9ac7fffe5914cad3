"""Makes a server hold the checks that are declared, by name. Running it again changes nothing."""

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from cardbeat.client.api import Api, Check, Refused, may_be_done
from cardbeat.client.declared import Settings
from cardbeat.errors import StartupError
from cardbeat.heartbeat.check import CHANGEABLE

_CHANGED_MEANWHILE = (409, 412)
_GONE = 404
_LIMIT = "too_many_checks"
Step = tuple[str, Callable[[], None]]
"""The name of a check, and what is done with it."""
ROUNDS = 3
"""How often it is looked again, and begun again, because of what others do at the same moment."""
LOOK_AGAIN_SECONDS = 1.0


class Plan(NamedTuple):
    """What there is to do: settings to create, checks with the settings they lack, checks to delete."""

    create: list[Settings]
    change: list[tuple[Check, Settings]]
    delete: list[Check]
    unchanged: list[Check]


@dataclass
class Outcome:
    """The checks that were created, changed, deleted or found as declared; a sentence for each that was left undone."""

    created: list[Check] = field(default_factory=list)
    changed: list[Check] = field(default_factory=list)
    deleted: list[Check] = field(default_factory=list)
    unchanged: list[Check] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    disputed: list[Check] = field(default_factory=list)
    """The checks of those conflicts: they stay as others made them."""
    failed: str | None = None
    """Why the rest was left undone."""
    unknown: str | None = None
    """The name of the check with which it failed, where a server may have done what was asked."""
    is_over_limit: bool = False
    """Whether that was the limit of the key's tier. Checks count to it that others take back in a moment."""

    def leave(self, check: Check, why: str) -> None:
        """Leave a check to those who changed it meanwhile."""
        self.conflicts.append(f"{check['name']}: {why}")
        self.disputed.append(check)

    def add(self, more: "Outcome") -> None:
        """Add what a further round did. Each check is listed once: as created, else changed, else unchanged."""
        made = [*self.created, *self.changed, *more.created, *more.changed]
        newest = {check["name"]: check for check in made}
        created = {check["name"] for check in self.created + more.created}
        self.created = [check for name, check in newest.items() if name in created]
        self.changed = [check for name, check in newest.items() if name not in created]
        self.unchanged = [check for check in more.unchanged if check["name"] not in newest]
        for name in ("deleted", "conflicts", "disputed"):
            getattr(self, name).extend(getattr(more, name))
        self.failed, self.unknown, self.is_over_limit = more.failed, more.unknown, more.is_over_limit

    def fail(self, name: str | None, error: Refused | StartupError) -> None:
        """Keep why the rest is left undone: an error with the check of this name, or before any."""
        self.failed = f"{name}: {error}" if name else str(error)
        self.unknown = name if may_be_done(error) else None
        self.is_over_limit = isinstance(error, Refused) and error.code == _LIMIT


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
    return {name: value for name, value in settings.items() if check.get(name) != value}


def apply(
    api: Api, declared: Mapping[str, Settings], *, prune: bool, sleep: Callable[[float], None] = time.sleep
) -> Outcome:
    """Make the server hold these checks. Raises `Refused` and `StartupError` where nothing was done yet."""
    outcome = perform(api, settled_plan(api, declared, prune=prune, sleep=sleep))
    for _ in range(ROUNDS):
        if not outcome.is_over_limit:
            break
        # Not all at the same moment again.
        sleep(LOOK_AGAIN_SECONDS * (0.5 + random.random()))  # noqa: S311
        try:
            steps = settled_plan(api, declared, prune=prune, sleep=sleep, disputed=outcome.disputed)
        except (Refused, StartupError) as error:
            outcome.failed = str(error)
            break
        outcome.add(perform(api, steps))
    return outcome


def settled_plan(
    api: Api,
    declared: Mapping[str, Settings],
    *,
    prune: bool,
    sleep: Callable[[float], None] = time.sleep,
    disputed: Iterable[Check] = (),
) -> Plan:
    """The plan, once nobody has just created a check of the same name: one of the two is taken back in a moment.

    It leaves the disputed checks out, and what is declared by their names.
    """
    for _ in range(ROUNDS):
        with contextlib.suppress(StartupError):
            return plan(*_undisputed(api.checks(), declared, disputed), prune=prune)
        sleep(LOOK_AGAIN_SECONDS)
    return plan(*_undisputed(api.checks(), declared, disputed), prune=prune)


def _undisputed(
    present: list[Check], declared: Mapping[str, Settings], disputed: Iterable[Check]
) -> tuple[list[Check], dict[str, Settings]]:
    """The present and the declared checks without the disputed ones, by the names these had and have now."""
    names = {check["id"]: check["name"] for check in disputed}
    left = {*names.values(), *(check["name"] for check in present if check["id"] in names)}
    return (
        [check for check in present if check["name"] not in left],
        {name: settings for name, settings in declared.items() if name not in left},
    )


def perform(api: Api, steps: Plan) -> Outcome:
    """Do it, each step only where the server's check is still as it was planned for."""
    outcome = Outcome(unchanged=steps.unchanged)
    _do(_steps(api, steps, outcome), outcome)
    _do(_withdrawals(api, outcome), outcome)
    return outcome


def _do(steps: Iterable[Step], outcome: Outcome) -> None:
    """Do what comes in turn, until something fails."""
    reached = None
    try:
        for name, step in steps:
            reached = name
            step()
    except (Refused, StartupError) as error:
        if outcome.failed is None:
            outcome.fail(reached, error)


def _steps(api: Api, steps: Plan, outcome: Outcome) -> Iterator[Step]:
    for check, settings in steps.change:
        yield check["name"], partial(_change, api, check, settings, outcome)
    # Before others are created, as there may be room for no more.
    for check in steps.delete:
        yield check["name"], partial(_delete, api, check, outcome)
    for settings in steps.create:
        yield settings["name"], partial(_create, api, settings, outcome)


def _create(api: Api, settings: Settings, outcome: Outcome) -> None:
    outcome.created.append(api.create(settings))


def _change(api: Api, check: Check, settings: Settings, outcome: Outcome) -> None:
    try:
        outcome.changed.append(api.change(check, differences(check, settings)))
    except Refused as refused:
        if refused.status == _GONE:
            outcome.leave(check, "somebody else deleted it meanwhile")
        elif refused.status in _CHANGED_MEANWHILE:
            _look_at_changed(api, check, settings, outcome)
        else:
            raise


def _look_at_changed(api: Api, check: Check, settings: Settings, outcome: Outcome) -> None:
    try:
        now = api.read(check["id"])
    except Refused as refused:
        if refused.status != _GONE:
            raise
        outcome.leave(check, "somebody else deleted it meanwhile")
        return
    if differences(now, settings):
        outcome.leave(check, "somebody else changed it meanwhile; it stays as they made it")
    else:
        outcome.unchanged.append(now)


def _delete(api: Api, check: Check, outcome: Outcome) -> None:
    try:
        api.delete(check)
        outcome.deleted.append(check)
    except Refused as refused:
        if refused.status in _CHANGED_MEANWHILE:
            outcome.leave(check, "somebody else changed it meanwhile; it is not deleted")
        elif refused.status != _GONE:
            raise


def _withdrawals(api: Api, outcome: Outcome) -> Iterator[Step]:
    """Of the checks of one name that several created at the same moment the oldest stays; the others take theirs back.

    Whoever created the newer one sees the older one here, as it was listed before.
    """
    first: dict[str, Check] = {}
    for check in api.checks() if outcome.created else ():
        first.setdefault(check["name"], check)
    for check in list(outcome.created):
        older = first.get(check["name"], check)
        if older["id"] != check["id"]:
            yield check["name"], partial(_withdraw, api, check, older, outcome)


def _withdraw(api: Api, check: Check, older: Check, outcome: Outcome) -> None:
    api.delete(check)
    outcome.created.remove(check)
    if differences(older, {name: check.get(name) for name in CHANGEABLE}):
        outcome.leave(older, "somebody else created it at the same moment; theirs stays")
    else:
        outcome.unchanged.append(older)
