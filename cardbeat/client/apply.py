"""Makes the checks of a key what a file declares, by name. A second run changes nothing."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cardbeat.client.api import Api, CheckJson, Refused
from cardbeat.client.declared import Declarations, Declared
from cardbeat.errors import StartupError

_CONFLICTS: Final = {404: "deleted it", 409: "changed it", 412: "changed it"}
"""What somebody else did since the checks were listed, by the status of the answer."""


class Plan(NamedTuple):
    """What is to be done: the checks to create, to change with their declarations, to delete."""

    create: list[Declared]
    change: list[tuple[CheckJson, Declared]]
    delete: list[CheckJson]
    unchanged: list[CheckJson]


@dataclass
class Applied:
    """The checks by what was done with them, and a sentence for each conflict with others.

    `failed` says why the rest was not done.
    """

    created: list[CheckJson] = field(default_factory=list)
    changed: list[CheckJson] = field(default_factory=list)
    deleted: list[CheckJson] = field(default_factory=list)
    unchanged: list[CheckJson] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    failed: str | None = None


def plan(present: Sequence[CheckJson], declared: Declarations, *, prune: bool) -> Plan:
    """The steps from the present checks to the declared ones. Without `prune`, others stay.

    Raises `StartupError` if several checks have one of the declared names, or if one has the new
    name and another one the old name.
    """
    names = declared.checks.keys() | declared.renamed.values()
    for name, number in Counter(check["name"] for check in present).items():
        if number > 1 and name in names:
            found = f"the server has {number} checks named {name!r}"
            raise StartupError(f"{found}; rename or delete all of them but one")
    known = {check["name"]: check for check in present}
    for name, was in declared.renamed.items():
        if name in known and was in known:
            found = f"the server has {name!r} and also {was!r}, its old name"
            raise StartupError(f"{found}; delete one of them, or leave out was")
        if was in known:
            known[name] = known.pop(was)
    planned = Plan([], [], [], [])
    for name, wanted in declared.checks.items():
        check = known.get(name)
        if check is None:
            planned.create.append(wanted)
        elif differences(check, wanted):
            planned.change.append((check, wanted))
        else:
            planned.unchanged.append(check)
    if prune:
        planned.delete.extend(check for check in present if check["name"] not in names)
    return planned


def differences(check: CheckJson, wanted: Declared) -> Declared:
    """The declared values of the fields in which a check differs."""
    return {name: value for name, value in wanted.items() if check.get(name) != value}


def perform(api: Api, planned: Plan) -> Applied:
    """Do the steps, until one fails. A check that was changed since it was listed stays so."""
    done = Applied(unchanged=planned.unchanged)
    try:
        for check, wanted in planned.change:
            with _conflicts_noted(done, check["name"]):
                done.changed.append(api.change(check, differences(check, wanted)))
        # Deletions come before creations: they make room under the limit of the key's tier.
        for check in planned.delete:
            with _conflicts_noted(done, check["name"]):
                if api.delete(check):
                    done.deleted.append(check)
        for wanted in planned.create:
            with _conflicts_noted(done, wanted["name"]):
                done.created.append(api.create(wanted))
    except StartupError as error:
        done.failed = str(error)
    return done


@contextmanager
def _conflicts_noted(done: Applied, name: str) -> Iterator[None]:
    """Note a conflict over the check of this name. Any other error is raised with the name."""
    try:
        yield
    except StartupError as error:
        conflict = _CONFLICTS.get(error.status) if isinstance(error, Refused) else None
        if conflict is None:
            raise StartupError(f"{name}: {error}") from None
        told = f"{name}: somebody else {conflict} at the same time"
        done.conflicts.append(f"{told}, it stays so; run apply again")
