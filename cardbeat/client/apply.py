"""Makes the checks of a key what a file declares, by name, in one pass. A second run changes nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from cardbeat.client.api import NOT_FOUND, Api, CheckJson, Refused, may_be_done
from cardbeat.client.declared import Declarations, Declared
from cardbeat.clock import utc_text
from cardbeat.errors import StartupError
from cardbeat.heartbeat.check import LONGEST_SECONDS

_CONFLICTS = {NOT_FOUND: "deleted it", 409: "changed it", 412: "changed it"}
"""What somebody else did since the checks were listed, by the status of the answer."""


class Plan(NamedTuple):
    """What to do: declarations to create, checks with the declaration that they differ from, checks to delete."""

    create: list[Declared]
    change: list[tuple[CheckJson, Declared]]
    delete: list[CheckJson]
    unchanged: list[CheckJson]


@dataclass
class Applied:
    """The checks created, changed, deleted and unchanged, and one sentence for each conflict."""

    created: list[CheckJson] = field(default_factory=list)
    changed: list[CheckJson] = field(default_factory=list)
    deleted: list[CheckJson] = field(default_factory=list)
    unchanged: list[CheckJson] = field(default_factory=list)
    kept: list[CheckJson] = field(default_factory=list)
    """Those that were to be deleted, but whose jobs still ping."""
    conflicts: list[str] = field(default_factory=list)
    failed: str | None = None
    """Why the rest was not done."""
    unknown: str | None = None
    """The name of the check at which it failed, if the server may have done that step all the same."""

    def leave(self, check: CheckJson, refused: Refused) -> None:
        """Note that somebody else changed this check at the same time. Raises any other refusal."""
        if refused.status not in _CONFLICTS:
            raise refused
        did = _CONFLICTS[refused.status]
        self.conflicts.append(f"{check['name']}: somebody else {did} at the same time, it stays so; run apply again")


def plan(present: Sequence[CheckJson], declared: Declarations, *, prune: bool) -> Plan:
    """The steps from the present checks to the declared ones. Without `prune`, other checks stay.

    Raises `StartupError` if several checks have one of the declared names, or if one has the new name and another the
    old one.
    """
    names = declared.checks.keys() | declared.renamed.values()
    for name, number in Counter(check["name"] for check in present).items():
        if number > 1 and name in names:
            raise StartupError(f"the server has {number} checks named {name!r}; rename or delete all of them but one")
    known = {check["name"]: check for check in present}
    for name, was in declared.renamed.items():
        if name in known and was in known:
            advice = "delete one of them, or leave out was"
            raise StartupError(f"the server has {name!r} and also {was!r}, its old name; {advice}")
        if was in known:
            known[name] = known.pop(was)
    pairs = [(known[name], wanted) for name, wanted in declared.checks.items() if name in known]
    return Plan(
        [wanted for name, wanted in declared.checks.items() if name not in known],
        [pair for pair in pairs if differences(*pair)],
        [check for check in present if prune and check["name"] not in names],
        [check for check, wanted in pairs if not differences(check, wanted)],
    )


def still_pinged(check: CheckJson, now: float) -> bool:
    """Whether a check's job still runs: it pinged or failed within its period, or it pinged and is on time."""
    last = max(check.get("last_ping_at") or "", check.get("failed_at") or "")
    # Times are compared as texts: those of a server that is not trusted may not exist.
    since = utc_text(now - min(abs(check["period_seconds"]), LONGEST_SECONDS))
    return bool(last) and (last > since or check["status"] == "on_time")


def differences(check: CheckJson, wanted: Declared) -> Declared:
    """The declared values of the fields in which a check differs."""
    return {name: value for name, value in wanted.items() if check.get(name) != value}


def perform(api: Api, planned: Plan) -> Applied:
    """Do the steps one after the other, until one fails. A check that was changed since it was listed is left alone."""
    done = Applied(unchanged=planned.unchanged)
    for name, step in _steps(api, planned, done):
        try:
            step()
        except (Refused, StartupError) as error:
            done.failed = f"{name}: {error}"
            done.unknown = name if may_be_done(error) else None
            break
    return done


def _steps(api: Api, planned: Plan, done: Applied) -> Iterator[tuple[str, Callable[[], None]]]:
    for check, wanted in planned.change:
        yield check["name"], partial(_change, api, check, wanted, done)
    # Deletions come before creations: they make room under the limit of the key's tier.
    for check in planned.delete:
        yield check["name"], partial(_delete, api, check, done)
    for wanted in planned.create:
        yield wanted["name"], partial(_create, api, wanted, done)


def _change(api: Api, check: CheckJson, wanted: Declared, done: Applied) -> None:
    try:
        done.changed.append(api.change(check, differences(check, wanted)))
    except Refused as refused:
        done.leave(check, refused)


def _delete(api: Api, check: CheckJson, done: Applied) -> None:
    try:
        api.delete(check)
        done.deleted.append(check)
    except Refused as refused:
        if refused.status != NOT_FOUND:
            done.leave(check, refused)


def _create(api: Api, wanted: Declared, done: Applied) -> None:
    done.created.append(api.create(wanted))
