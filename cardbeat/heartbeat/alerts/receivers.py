"""Receivers that need a body of their own, such as Slack, each recognized by the shape of its
webhook URL. `receivers.json` has them; every other receiver gets the alert's JSON body.

`shape` matches `host/path?query`. In `body` a string such as `"{text}"` is replaced; `escapes` are
of the markup that the receiver would find in a check's name. A shape with `topic` is that of a
receiver that is posted to at the root of its server.
"""

import functools
import json
import re
from typing import Any
from urllib.parse import urlsplit

from cardbeat.files import read_text
from cardbeat.heartbeat.alerts.message import shown_name, to_json
from cardbeat.heartbeat.alerts.target import REMEMBERED, BadTarget, parse

_DATA = json.loads(read_text("heartbeat/alerts/receivers.json"))
RECEIVERS: list[dict[str, Any]] = _DATA["receivers"]


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
    return url, _fill(to_json(receiver["body"]), words)


@functools.lru_cache(REMEMBERED)
def _receiver_at(place: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A receiver of this shape, with what the shape finds; both empty for other URLs."""
    for receiver in RECEIVERS:
        match = re.fullmatch(receiver["shape"], place)
        if match:
            return receiver, match.groupdict()
    return {}, {}


def _fill(form: str, words: dict[str, Any]) -> bytes:
    """A body with its words in place of `"{name}"`."""
    filled = re.sub(
        r'"\{(\w+)\}"', lambda found: to_json(words[found[1]]), form
    )
    return filled.encode()


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
