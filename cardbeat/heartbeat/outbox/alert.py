"""The body, the signature and the outcome of an alert, as values: no rows, no network.

Body, headers and signature follow the Standard Webhooks specification (https://www.standardwebhooks.com).
"""

import base64
import hashlib
import hmac
import json
import time
import unicodedata
from typing import NamedTuple

from cardbeat import __version__
from cardbeat.clock import utc_text
from cardbeat.heartbeat.check import Check

OVERDUE = "check.overdue"
RECOVERED = "check.recovered"
REMINDER = "check.reminder"
TEST = "check.test"
ALERTS_AN_HOUR = 12
"""Alerts of a check's outages that are told one by one in an hour; the newest that waits then tells what follows."""

# One encoder for all: `json.dumps` makes one for each call. No escapes: an escaped emoji takes three times the bytes.
to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Outcome(NamedTuple):
    """The outcome of one attempt: delivered if `error` is None, else a sentence for the alert's history.

    `status` is None if there was no answer. `retry_after` is the header as the receiver sent it.
    """

    status: int | None = None
    error: str | None = None
    retry_after: str | None = None


class Facts(NamedTuple):
    """What an alert tells beside the check, as of the Unix second `created_at` when it was stored.

    `late_seconds` counts from the deadline, `overdue_seconds` from when the check turned overdue, for the `reason`
    `late` or `failed`. `outages` is how many outages begin with this alert, 0 for a mere recovery or a reminder. An
    alert that tells several transitions together was created at the begin of the first outage; the rest is of the last.
    """

    type: str
    created_at: int
    outages: int
    reason: str
    late_seconds: int
    overdue_seconds: int


def body_of(told: Facts, check: Check, url: str) -> bytes:
    """The JSON body of an alert; some receivers get another form (`receivers`). Most show `text`.

    `check` has the state that the alert tells. `url` leads to it; the sentence ends with it.
    """
    sentence = _sentence(told, check)
    data: dict[str, object] = {
        "check": check.as_told(),
        "reason": None if told.type == TEST else told.reason,
        "late_seconds": told.late_seconds,
        "overdue_seconds": told.overdue_seconds,
        "url": url,
    }
    if told.outages > 1:
        sentence += f" {told.outages} outages since {_minute(told.created_at)} are told together."
    if told.outages > 1 or (told.outages and told.type == RECOVERED):
        data["outages"] = told.outages
    body = {
        "type": told.type,
        # ISO 8601, as Standard Webhooks asks.
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(told.created_at)),
        "data": data,
        "text": f"{sentence} {url}",
        "content": f"{sentence} {url}",
    }
    return to_json(body).encode()


def signed_headers(alert_id: str, timestamp: int, body: bytes, *secrets: str) -> dict[str, str]:
    """The headers of an attempt at the Unix second `timestamp`. Each secret is `whsec_` and base64.

    One signature for each secret, separated by spaces: receivers accept either while a secret is being replaced.
    """
    signed = f"{alert_id}.{timestamp}.".encode() + body
    return {
        "Content-Type": "application/json",
        "User-Agent": f"cardbeat/{__version__}",
        "webhook-id": alert_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(signed, secret) for secret in secrets),
    }


def _signature(signed: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode('ascii')}"


def shown_name(name: str) -> str:
    """A check's name, safe inside a sentence: no mentions, no Markdown links, no effect on the text's direction."""
    # Mentions such as <!channel> and @everyone, and Markdown links, become harmless.
    name = name.translate(_LOOK_ALIKES).replace("@", "@\u200b").replace("](", "]\u200b(")
    if not name.isascii() and any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in name):
        # Outside an isolate such letters would reorder the sentence.
        return f"\u2068{name}\u2069"
    return name


def _sentence(told: Facts, check: Check) -> str:
    name, lasted = f'"{shown_name(check.name)}"', _duration(told.overdue_seconds)
    if told.type == TEST:
        return f"This is a test alert for {name}; its alerts arrive here."
    if told.type == RECOVERED:
        # The last ping is the one that ended the outage.
        began = _minute((check.last_ping_at or told.created_at) - told.overdue_seconds)
        since = f"the job failed at {began}" if told.reason == "failed" else f"overdue since {began}"
        after = f" after {lasted}: {since}" if told.overdue_seconds else ""
        return f"{name} has recovered{after}; next ping expected by {_minute(check.deadline_at)}."
    began = f" at {_minute(told.created_at - told.overdue_seconds)}" if told.outages <= 1 else ""
    late = f"{_duration(told.late_seconds)} late" if told.type == OVERDUE and told.late_seconds else "late"
    # A snooze or a change during the outage has moved the deadline.
    due_at = told.created_at - told.late_seconds if told.type == REMINDER else check.deadline_at
    why = f"the job failed{began}" if told.reason == "failed" else f"{late} since {_minute(due_at)}"
    last = "no ping yet" if check.last_ping_at is None else f"last ping {_minute(check.last_ping_at)}"
    return f"{name} is {f'still overdue, for {lasted}' if told.type == REMINDER else 'overdue'}: {why}; {last}."


def _minute(seconds: int) -> str:
    return f"{utc_text(seconds)[:16]} UTC"


def _duration(seconds: int) -> str:
    """In words and rounded down: `53 seconds`, `1 minute`, `2 hours 14 minutes`, `3 days 1 hour`."""
    minutes = seconds // 60
    units = (minutes // 1440, "day"), (minutes // 60 % 24, "hour"), (minutes % 60, "minute")
    said = [f"{number} {unit}{'s' * (number > 1)}" for number, unit in units if number]
    return " ".join(said[:2]) or f"{seconds} second{'s' * (seconds != 1)}"


_LOOK_ALIKES = str.maketrans("<>", "\u2039\u203a")
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
