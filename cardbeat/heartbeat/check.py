"""A check as a value and in the log, and the validation of the fields that callers set.

Pure: no database, no clock.
"""

import logging
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from cardbeat.clock import time_or_none, utc_text
from cardbeat.errors import Invalid, unknown_fields
from cardbeat.text import first_control_of_direction, first_seen

log = logging.getLogger(__name__)

NAME_CHARACTERS = 100
LONGEST_SECONDS = 31_536_000
"""One year: the largest period and the largest grace."""
REQUIRED = ("name", "period_seconds", "grace_seconds")

REPEAT_SECONDS = range(300, 2_592_001)
"""Time between two reminders: at least 5 minutes, at most 30 days."""
SNOOZE_SECONDS = range(60, 7_776_001)
"""A snooze lasts at most 90 days."""

SHORT_ID_CHARACTERS = 12
"""Of an id where the whole must not be told: enough to tell checks apart, too few to ping."""

TOLD = (
    "id",
    "name",
    "period_seconds",
    "grace_seconds",
    "status",
    "last_ping_at",
    "deadline_at",
    "ping_count",
    "created_at",
    "updated_at",
    "version",
    "failed_at",
    "snoozed_until",
    "repeat_seconds",
)
"""The members of a check that its alerts tell."""

LINES = 20
"""Most checks of one call of `note` that have a line each. One line has the number of the rest."""
NOW_OVERDUE = "%s is overdue"
NOW_RECOVERED = "%s has recovered"
NOW_GIVEN_UP = "an alert of %s was given up"

RefusedUrl = Callable[[str], str | None]
"""Returns a sentence that says why a webhook URL is refused; None for a good URL."""


class Settings(NamedTuple):
    """The fields that a caller sets, validated."""

    name: str
    period_seconds: int
    grace_seconds: int
    webhook_url: str | None
    repeat_seconds: int | None = None


CHANGEABLE = Settings._fields


class Check(NamedTuple):
    """One row of `checks`; all times are Unix seconds.

    `status` is `on_time` or `overdue`. The deadline counts from `clock_from`: the last ping
    (before the first ping, the creation) plus any credit for downtime of the monitor, or the end of
    a snooze if later. `outage` counts how often the check turned overdue; the last time was at
    `overdue_at`, for the reason `late` or `failed`, when the deadline was `overdue_deadline_at`.
    `delivery` is `ok` if the receiver took the last attempt, `failing` if not, None before the
    first attempt. `failed_at` is when the job last signalled failure, None after the next ping.
    Pings, failures and attempts change neither `version` nor `updated_at`.
    """

    seq: int
    id: str
    api_key_id: str
    name: str
    period_seconds: int
    grace_seconds: int
    webhook_url: str | None
    status: str
    outage: int
    clock_from: int
    deadline_at: int
    last_ping_at: int | None
    ping_count: int
    created_at: int
    updated_at: int
    version: int
    delivery: str | None = None
    failed_at: int | None = None
    snoozed_until: int | None = None
    repeat_seconds: int | None = None
    overdue_at: int | None = None
    overdue_deadline_at: int | None = None
    overdue_reason: str | None = None

    @classmethod
    def from_row(cls, row: Any) -> "Check":
        """The check in a row with named columns; the row may have other columns too."""
        return cls._make(_fields_of(row))

    def as_of(self, now: float) -> "Check":
        """The check as it is at this Unix second.

        A snooze ends at `clock_from`, and one that has ended is none.
        """
        until = None
        if now < self.clock_from <= (self.snoozed_until or 0):
            until = self.clock_from
        return self._replace(snoozed_until=until)

    def as_json(self, base_url: str) -> dict[str, Any]:
        """The check as answers show it; times are UTC, `YYYY-MM-DD HH:MM:SS`."""
        return {
            "id": self.id,
            "api_key_id": self.api_key_id,
            "name": self.name,
            "period_seconds": self.period_seconds,
            "grace_seconds": self.grace_seconds,
            "webhook_url": self.webhook_url,
            "status": self.status,
            "last_ping_at": time_or_none(self.last_ping_at),
            "deadline_at": utc_text(self.deadline_at),
            "ping_count": self.ping_count,
            "created_at": utc_text(self.created_at),
            "updated_at": utc_text(self.updated_at),
            "version": self.version,
            "ping_url": f"{base_url}/ping/{self.id}",
            "delivery": None
            if self.webhook_url is None
            else self.delivery,
            "failed_at": time_or_none(self.failed_at),
            "snoozed_until": time_or_none(self.snoozed_until),
            "repeat_seconds": self.repeat_seconds,
        }

    @property
    def short_id(self) -> str:
        return self.id[:SHORT_ID_CHARACTERS]

    @property
    def subject(self) -> str:
        """The check's name in the log. Its id is a secret, so it is cut.

        The name that its owner chose could look like a line of the log.
        """
        return f"check {self.id[:4]}... of key {self.api_key_id}"

    def as_read(self, host_of: Callable[[str], str]) -> dict[str, Any]:
        """The check as a read-only key sees it.

        Nothing in it lets the reader ping, or post to the receiver.
        """
        told = self.as_json("") | {"id": self.short_id, "ping_url": None}
        if self.webhook_url is not None:
            told["webhook_url"] = host_of(self.webhook_url)
        return told

    def as_told(self) -> dict[str, Any]:
        """The check as alerts show it to third parties: these members, and no other."""
        shown = self.as_json("")
        return {name: shown[name] for name in TOLD}


_fields_of = itemgetter(*Check._fields)
COLUMNS = ", ".join(Check._fields)
"""The columns of a statement whose rows are checks: `Check(*row)`."""


def note(transition: str, subjects: Sequence[str]) -> None:
    """Log a transition of each of these checks (`Check.subject`). Call it after the commit.

    Those beyond `LINES` are one line: 10,000 lines take as long as a fifth of a sweep.
    """
    for subject in subjects[:LINES]:
        log.info(transition, subject)
    if len(subjects) > LINES:
        log.info(
            transition, f"each of {len(subjects) - LINES} more checks"
        )


def validated(
    values: Mapping[str, Any],
    min_period_seconds: int,
    refused_url: RefusedUrl,
) -> Settings:
    """The fields in `values`, validated: a POST's body, or a check's fields with a PATCH merged in.

    Raises `Invalid`, which names all wrong fields.
    """
    periods = range(min_period_seconds, LONGEST_SECONDS + 1)
    graces = range(LONGEST_SECONDS + 1)
    rules: dict[str, Callable[[Any], Any]] = {
        "name": _name,
        "period_seconds": partial(
            _whole_number, "period_seconds", periods
        ),
        "grace_seconds": partial(_whole_number, "grace_seconds", graces),
        "webhook_url": partial(_webhook_url, refused_url),
        "repeat_seconds": partial(
            _whole_number, "repeat_seconds", REPEAT_SECONDS
        ),
    }
    return Settings(**_all_valid(values, rules, REQUIRED))


def validated_snooze(values: Mapping[str, Any]) -> int:
    """The seconds of a snooze in the body of a PUT. Raises `Invalid`."""
    rules = {"seconds": partial(_whole_number, "seconds", SNOOZE_SECONDS)}
    return int(_all_valid(values, rules, ["seconds"])["seconds"])


def _all_valid(
    values: Mapping[str, Any],
    rules: Mapping[str, Callable[[Any], Any]],
    required: Collection[str],
) -> dict[str, Any]:
    """What the rule of each field makes of its value; None where that is null or missing."""
    valid: dict[str, Any] = {}
    wrong: list[Invalid] = []
    for field, rule in rules.items():
        value = values.get(field)
        if value is None and field in required:
            wrong.append(Invalid("missing_field", field=field))
            continue
        try:
            valid[field] = None if value is None else rule(value)
        except Invalid as invalid:
            wrong.append(invalid)
    wrong += unknown_fields(values, rules)
    if wrong:
        raise Invalid.of_all(wrong)
    return valid


def _name(value: Any) -> str:
    if not isinstance(value, str):
        wrong = "be a string"
    elif not 1 <= len(name := value.strip()) <= NAME_CHARACTERS:
        wrong = f"have 1 to {NAME_CHARACTERS} characters, not counting spaces around it"
    # Line and paragraph separators also break lines, and names appear in one-line messages.
    elif any(
        unicodedata.category(character) in ("Cc", "Zl", "Zp")
        for character in name
    ):
        wrong = "not hold control characters"
    elif any("\ud800" <= character <= "\udfff" for character in name):
        wrong = "not hold half a surrogate pair"
    elif first_control_of_direction(name):
        wrong = "not hold characters that control the direction of text"
    elif not first_seen(name):
        wrong = "hold a visible character"
    else:
        return name
    raise Invalid(
        "invalid_field", f"The field name must {wrong}.", field="name"
    )


def _whole_number(field: str, among: range, value: Any) -> int:
    # `type`, because True is an int to isinstance.
    if type(value) is not int or value not in among:
        raise Invalid(
            "invalid_field", field=field, least=among[0], most=among[-1]
        )
    return int(value)


def _webhook_url(refused_url: RefusedUrl, value: Any) -> str:
    if not isinstance(value, str):
        raise Invalid(
            "invalid_field",
            "The field webhook_url must be a string or null.",
            field="webhook_url",
        )
    if sentence := refused_url(value):
        raise Invalid("invalid_field", sentence, field="webhook_url")
    return value
