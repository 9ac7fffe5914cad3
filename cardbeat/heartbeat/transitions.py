"""Log lines for checks that turn overdue or recover, and for alerts that are given up."""

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from cardbeat.log import Kind, cut

log = logging.getLogger(__name__)

LINES: Final = 20
"""Most lines of each transition in one batch of the log. For the others it has one line with their number."""


class Transition(NamedTuple):
    """`line` is logged for each check; `kind` limits how many of these lines a batch has."""

    line: str
    kind: Kind


OVERDUE: Final = Transition("%s is overdue", Kind(LINES, "%d more checks are overdue"))
RECOVERED: Final = Transition("%s has recovered", Kind(LINES, "%d more checks have recovered"))
GIVEN_UP: Final = Transition("an alert of %s was given up", Kind(LINES, "%d more alerts were given up"))


class Turned(NamedTuple):
    """A check that a statement has turned, which returns `TURNED`."""

    id: str
    webhook_url: str | None
    outage: int
    deadline_at: int
    repeat_seconds: int | None
    overdue_at: int
    key_prefix: str


TURNED: Final = (
    "RETURNING id, webhook_url, outage, deadline_at, repeat_seconds, overdue_at,"
    " (SELECT prefix FROM keys WHERE keys.id = CAST(api_key_id AS TEXT)) AS key_prefix"
)
"""The end of a statement that changes checks. Without the cast SQLite uses no index there."""


def note(transition: Transition, subjects: Sequence[str]) -> None:
    """Log a transition of each of these checks (`subject_of`). Call it after the commit, in any thread; never waits.

    The lines do not hold checks' names: a client could choose one that looks like a line of the log. A sweep of 10,000
    checks would spend a fifth of its time on as many records, so those beyond `LINES` of one call are one record.
    """
    kind = transition.kind
    for subject in subjects[:LINES]:
        log.info(transition.line, subject, extra={"kind": kind})
    if (more := len(subjects) - LINES) > 0:
        log.info(kind.more, more, extra={"kind": kind, "more": more})


def subject_of(check_id: str, key_prefix: str) -> str:
    """The name of a check in the log. Its id and its key are secrets, so both are cut."""
    return f"check {cut(check_id)} of key {key_prefix}..."
