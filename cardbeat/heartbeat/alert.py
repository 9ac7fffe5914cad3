"""What an alert says, how it is signed, and what came of sending it: values and rules, no rows and no network.

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
TEST = "check.test"

# One encoder for all: `json.dumps` with separators makes a new one each time, and a sweep records thousands.
# Characters stay themselves: escaped, those of an emoji take three times the bytes.
_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one attempt: delivered if `error` is None, else a sentence for the alert's history.

    `status` is None where there was no answer. `retry_after` is the answer's header as sent.
    """

    status: int | None = None
    error: str | None = None
    retry_after: str | None = None


def body_of(alert_type: str, check: Check, base_url: str, now: int) -> str:
    """The JSON body, as it is stored; to some receivers another is sent (`receivers`).

    `text` is where most programs look for a message, `content` where those made for Discord do.
    """
    sentence = _SENTENCES[alert_type](shown_name(check.name), check)
    body = {
        "type": alert_type,
        # ISO 8601, as the specification has it.
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        "data": {"check": check.as_json(base_url)},
        "text": sentence,
        "content": sentence,
    }
    return to_json(body)


def signed_headers(alert_id: str, timestamp: int, body: bytes, *secrets: str) -> dict[str, str]:
    """All headers of an attempt made at the Unix second `timestamp`; each secret is `whsec_` and base64.

    There is one signature by each, a space between them: so receivers go on while a secret is replaced.
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
    """A check's name as a sentence can hold it: it calls nobody, hides no address and turns nothing round."""
    return _isolated(_disarmed(name))


def _overdue(name: str, check: Check) -> str:
    last = "no ping yet" if check.last_ping_at is None else f"last ping {utc_text(check.last_ping_at)} UTC"
    return f'"{name}" is overdue: {last}, expected by {utc_text(check.deadline_at)} UTC.'


def _recovered(name: str, check: Check) -> str:
    return f'"{name}" has recovered: pinged again, next ping expected by {utc_text(check.deadline_at)} UTC.'


def _test(name: str, check: Check) -> str:
    return f'This is a test alert for "{name}"; its alerts arrive here.'


_SENTENCES = {OVERDUE: _overdue, RECOVERED: _recovered, TEST: _test}


def _disarmed(name: str) -> str:
    """A name that notifies nobody in any chat, as <!channel> or @everyone do, and is no Markdown link's text."""
    return name.translate(_LOOK_ALIKES).replace("@", "@\u200b").replace("](", "]\u200b(")


def _isolated(name: str) -> str:
    """A name whose direction stays its own: one that runs from right to left must not turn the sentence round it."""
    if not any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in name):
        return name
    return f"\u2068{name}\u2069"


_LOOK_ALIKES = str.maketrans("<>", "\u2039\u203a")
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
