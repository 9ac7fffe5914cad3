"""What is sent for an alert, and what came of it, as values: no rows, no network.

Body, headers and signature follow the Standard Webhooks specification
(https://www.standardwebhooks.com).

Receivers that need a body of their own, such as Slack, are recognized by the shape of their webhook
URL. `receivers.json` has them. `shape` matches `host/path?query`. In `body` a string such as
`"{text}"` is replaced; `escapes` are of the markup that the receiver would find in a check's name.
A shape with `topic` is that of a receiver that is posted to at the root of its server.
"""

import base64
import hashlib
import hmac
import json
import re
import time
import unicodedata
from datetime import tzinfo
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cardbeat import __version__
from cardbeat.clock import minute_text
from cardbeat.files import read_text
from cardbeat.heartbeat.alerts.target import BadTarget, parse
from cardbeat.heartbeat.check import Check

OVERDUE = "check.overdue"
RECOVERED = "check.recovered"
REMINDER = "check.reminder"
TEST = "check.test"

_DATA = json.loads(read_text("heartbeat/alerts/receivers.json"))
RECEIVERS: list[dict[str, Any]] = _DATA["receivers"]

# One encoder for all: `json.dumps` makes one for each call. No escapes: an escaped emoji takes
# three times the bytes.
to_json = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False
).encode


class Outcome(NamedTuple):
    """The outcome of one attempt: delivered if `error` is None, else a sentence for the history.

    `status` is None if there was no answer. `retry_after` is the header as the receiver sent it.
    """

    status: int | None = None
    error: str | None = None
    retry_after: str | None = None


class Facts(NamedTuple):
    """What an alert tells beside the check, as of the Unix second `created_at` when it was stored.

    `late_seconds` counts from the deadline, `overdue_seconds` from when the check turned overdue,
    for the `reason` `late` or `failed`. `outages` is the number of other outages that have no
    alerts of their own and are told with this one.
    """

    type: str
    created_at: int
    outages: int
    reason: str
    late_seconds: int
    overdue_seconds: int


def body_of(
    told: Facts, check: Check, url: str, zone: tzinfo | None = None
) -> bytes:
    """The JSON body of an alert; some receivers get another form (`request_for`). Most show `text`.

    `check` has the state that the alert tells. `url` leads to it; the sentence ends with it. Times
    in the sentence are in UTC, and in `zone` first.
    """
    sentence = _sentence(told, check, zone)
    data: dict[str, Any] = {
        "check": check.as_told(),
        "reason": None if told.type == TEST else told.reason,
        "late_seconds": told.late_seconds,
        "overdue_seconds": told.overdue_seconds,
        "url": url,
    }
    if told.outages:
        data["outages"] = told.outages
        sentence += f" {_number(told.outages, 'more outage')} began and ended unreported before."
    text = f"{sentence} {url}"
    body = {
        "type": told.type,
        # ISO 8601, as Standard Webhooks asks.
        "timestamp": time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime(told.created_at)
        ),
        "data": data,
        "text": text,
        "content": text,
    }
    return to_json(body).encode()


def request_for(url: str, body: bytes) -> tuple[str, bytes]:
    """The URL and the body of the post for a webhook URL and an alert's body.

    The same arguments always give the same result: a retry sends the same bytes.
    """
    try:
        target = parse(url)
    except BadTarget:
        # `Sender.post` reports the reason.
        return url, body
    receiver, found = _receiver_at(f"{target.host}{target.path}")
    if not receiver:
        return url, body
    if "topic" in found:
        url = urlsplit(url)._replace(path="/").geturl()
    words = _words(json.loads(body), receiver) | found
    form = to_json(receiver["body"])
    filled = re.sub(
        r'"\{(\w+)\}"', lambda name: to_json(words[name[1]]), form
    )
    return url, filled.encode()


def signed_headers(
    alert_id: str, timestamp: int, body: bytes, *secrets: str
) -> dict[str, str]:
    """The headers of an attempt at the Unix second `timestamp`. Each secret is `whsec_` and base64.

    One signature for each secret, separated by spaces: receivers accept either while a secret is
    being replaced.
    """
    signed = f"{alert_id}.{timestamp}.".encode() + body
    signatures = []
    for secret in secrets:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.digest(key, signed, hashlib.sha256)
        signatures.append(f"v1,{base64.b64encode(digest).decode()}")
    return {
        "Content-Type": "application/json",
        "User-Agent": f"cardbeat/{__version__}",
        "webhook-id": alert_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }


def shown_name(name: str) -> str:
    """A check's name, safe inside a sentence: no mentions, no Markdown links, no turned text."""
    # Mentions such as <!channel> and @everyone, and Markdown links, become harmless.
    name = name.replace("<", "\u2039").replace(">", "\u203a")
    name = name.replace("@", "@\u200b").replace("](", "]\u200b(")
    if any(
        unicodedata.bidirectional(character) in ("R", "AL", "AN")
        for character in name
    ):
        # Outside an isolate such letters would reorder the sentence.
        return f"\u2068{name}\u2069"
    return name


def _sentence(told: Facts, check: Check, zone: tzinfo | None) -> str:
    name = f'"{shown_name(check.name)}"'
    lasted = _duration(told.overdue_seconds)
    if told.type == TEST:
        return f"This is a test alert for {name}; its alerts arrive here."
    if told.type == RECOVERED:
        # The last ping is the one that ended the outage.
        ended_at = check.last_ping_at or told.created_at
        began = minute_text(ended_at - told.overdue_seconds, zone)
        since = (
            "the job failed at"
            if told.reason == "failed"
            else "overdue since"
        )
        after = (
            f" after {lasted}: {since} {began}"
            if told.overdue_seconds
            else ""
        )
        expected = minute_text(check.deadline_at, zone)
        return f"{name} has recovered{after}; next ping expected by {expected}."
    last = "no ping yet"
    if check.last_ping_at is not None:
        last = f"last ping {minute_text(check.last_ping_at, zone)}"
    still = (
        f"still overdue, for {lasted}"
        if told.type == REMINDER
        else "overdue"
    )
    return f"{name} is {still}: {_cause(told, check, zone)}; {last}."


def _cause(told: Facts, check: Check, zone: tzinfo | None) -> str:
    """Why the check is overdue."""
    if told.reason == "failed":
        return f"the job failed at {minute_text(told.created_at - told.overdue_seconds, zone)}"
    if told.type == REMINDER:
        # A snooze or a change during the outage has moved the deadline of the check.
        return f"late since {minute_text(told.created_at - told.late_seconds, zone)}"
    late = (
        f"{_duration(told.late_seconds)} late"
        if told.late_seconds
        else "late"
    )
    return f"{late} since {minute_text(check.deadline_at, zone)}"


def _duration(seconds: int) -> str:
    """In words, rounded down: `53 seconds`, `1 minute`, `2 hours 14 minutes`, `3 days 1 hour`."""
    minutes = seconds // 60
    units = {
        "day": minutes // 1440,
        "hour": minutes // 60 % 24,
        "minute": minutes % 60,
    }
    said = [
        _number(number, unit) for unit, number in units.items() if number
    ]
    return " ".join(said[:2]) or _number(seconds, "second")


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _receiver_at(place: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A receiver of this shape, with what the shape finds; both empty for other URLs."""
    for receiver in RECEIVERS:
        match = re.fullmatch(receiver["shape"], place)
        if match:
            return receiver, match.groupdict()
    return {}, {}


def _words(
    alert: dict[str, Any], receiver: dict[str, Any]
) -> dict[str, Any]:
    """What can stand in a body."""
    about: dict[str, Any] = _DATA["alerts"][alert["type"]]
    link = alert["data"]["url"]
    escapes = str.maketrans(receiver.get("escapes", {}))
    # Markup must not be looked for in the link.
    sentence = alert["text"].removesuffix(link).translate(escapes)
    title = about["title"].format(
        shown_name(alert["data"]["check"]["name"])
    )
    text = sentence + link
    return about | {
        "title": title,
        "sentence": sentence.rstrip(),
        "link": link,
        "text": text,
    }
