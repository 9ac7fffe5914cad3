"""Log lines for checks that turn overdue or recover, and for alerts that are given up."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from cardbeat.log import cut

log = logging.getLogger(__name__)

LINES = 20
"""Most checks of one call of `note` that have a line each. One line has the number of the rest."""


OVERDUE = "%s is overdue"
RECOVERED = "%s has recovered"
GIVEN_UP = "an alert of %s was given up"


class Turned(NamedTuple):
    """A check that a statement has turned, which returns `TURNED`."""

    id: str
    api_key_id: str
    webhook_url: str | None
    outage: int
    deadline_at: int
    last_ping_at: int | None
    ping_count: int
    delivery: str | None
    repeat_seconds: int | None
    overdue_at: int
    overdue_deadline_at: int | None
    overdue_reason: str | None
    key_prefix: str

    @property
    def subject(self) -> str:
        return subject_of(self.id, self.key_prefix)


TURNED = (
    "RETURNING id, api_key_id, webhook_url, outage, deadline_at, last_ping_at, ping_count,"
    " delivery, repeat_seconds, overdue_at, overdue_deadline_at, overdue_reason,"
    " (SELECT prefix FROM keys WHERE keys.id = CAST(api_key_id AS TEXT)) AS key_prefix"
)
"""The end of a statement that changes checks. Without the cast SQLite uses no index there."""


def note(transition: str, subjects: Sequence[str]) -> None:
    """Log a transition of each of these checks (`subject_of`). Call it after the commit.

    The lines do not hold checks' names: a client could choose one that looks like a line of the
    log. Those beyond `LINES` are one line: 10,000 lines take as long as a fifth of a sweep.
    """
    for subject in subjects[:LINES]:
        log.info(transition, subject)
    if len(subjects) > LINES:
        log.info(transition, f"each of {len(subjects) - LINES} more checks")


def subject_of(check_id: str, key_prefix: str) -> str:
    """The name of a check in the log. Its id and its key are secrets, so both are cut."""
    return f"check {cut(check_id)} of key {key_prefix}..."
