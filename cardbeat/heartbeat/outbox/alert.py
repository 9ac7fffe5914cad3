"""The body, the signature and the outcome of an alert, as values: no rows, no network.

Body, headers and signature follow the Standard Webhooks specification (https://www.standardwebhooks.com).
"""

import base64
import hashlib
import hmac
import json
import time
import unicodedata
from dataclasses import dataclass

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
_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one attempt: delivered if `error` is None, else a sentence for the alert's history.

    `status` is None if there was no answer. `retry_after` is the header as the receiver sent it.
    """

    status: int | None = None
    error: str | None = None
    retry_after: str | None = None


def body_of(alert_type: str, check: Check, created_at: int, outages: int) -> bytes:
    """The JSON body of an alert about `check`; some receivers get another form (`receivers`). Most show `text`.

    `outages` is how many outages begin with this alert, 0 for a mere recovery: an alert before it told of its outage.
    An alert that tells several transitions together was created at the begin of the first outage.
    """
    sentence = _sentence(alert_type, check)
    data: dict[str, object] = {"check": check.as_told()}
    if outages > 1 or (outages and alert_type == RECOVERED):
        since = f"since {utc_text(created_at)} UTC"
        sentence += f" {outages} outages {since} are told together." if outages > 1 else f" It was overdue {since}."
        data["outages"] = outages
    body = {
        "type": alert_type,
        # ISO 8601, as Standard Webhooks asks.
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created_at)),
        "data": data,
        "text": sentence,
        "content": sentence,
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


def to_json(value: object) -> str:
    return _COMPACT.encode(value)


def shown_name(name: str) -> str:
    """A check's name, safe inside a sentence: no mentions, no Markdown links, no effect on the text's direction."""
    # Mentions such as <!channel> and @everyone, and Markdown links, become harmless.
    name = name.translate(_LOOK_ALIKES).replace("@", "@\u200b").replace("](", "]\u200b(")
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in name):
        # Outside an isolate such letters would reorder the sentence.
        return f"\u2068{name}\u2069"
    return name


def _sentence(alert_type: str, check: Check) -> str:
    name, deadline = shown_name(check.name), utc_text(check.deadline_at)
    if alert_type == TEST:
        return f'This is a test alert for "{name}"; its alerts arrive here.'
    if alert_type == RECOVERED:
        return f'"{name}" has recovered: pinged again, next ping expected by {deadline} UTC.'
    last = "no ping yet" if check.last_ping_at is None else f"last ping {utc_text(check.last_ping_at)} UTC"
    return f'"{name}" is overdue: {last}, expected by {deadline} UTC.'


_LOOK_ALIKES = str.maketrans("<>", "\u2039\u203a")
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
