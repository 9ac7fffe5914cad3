"""Receivers that need a body of their own, such as Slack, each recognized by the shape of its
webhook URL.

Every other receiver gets the alert's JSON body. Each form follows the receiver's documentation,
which is linked; markup in a check's name is escaped as documented there.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from cardbeat.heartbeat.alerts.message import (
    OVERDUE,
    RECOVERED,
    REMINDER,
    TEST,
    shown_name,
    to_json,
)
from cardbeat.heartbeat.alerts.target import BadTarget, Target, parse

Json = dict[str, Any]


class Receiver(NamedTuple):
    """`shape` matches `host/path?query` of its webhook URLs; `form` turns the alert's body into the
    one that is sent.

    If `shape` has named groups, they become members of the body, which is posted to the root of the
    same server.
    """

    name: str
    shape: re.Pattern[str]
    form: Callable[[Json], Json]

    def request(self, target: Target, body: bytes) -> tuple[str, bytes] | None:
        """URL and body of the post; None if the target is not this receiver."""
        match = self.shape.fullmatch(f"{target.host}{target.path}")
        if match is None:
            return None
        members = match.groupdict()
        if members:
            query = target.path.partition("?")[2]
            target = target._replace(path=f"/?{query}" if query else "/")
        form = {**members, **self.form(json.loads(body))}
        return target.whole_url, to_json(form).encode()


def request_for(url: str, body: bytes) -> tuple[str, bytes]:
    """The URL and the body of the post for a webhook URL and an alert's body.

    The same arguments always give the same result: a retry sends the same bytes.
    """
    try:
        target = parse(url)
    except BadTarget:
        # `Sender.post` reports the reason.
        return url, body
    for receiver in RECEIVERS:
        request = receiver.request(target, body)
        if request is not None:
            return request
    return url, body


def _slack(alert: Json) -> Json:
    """https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks"""
    # Without mrkdwn the only markup is `<...>`, whose characters are written as entities.
    return {"text": alert["text"].translate(_ENTITIES), "mrkdwn": False}


def _discord(alert: Json) -> Json:
    """https://docs.discord.com/developers/resources/webhook#execute-webhook"""
    return {
        "content": _escaped(alert, str),
        "allowed_mentions": {"parse": []},
        "flags": _SUPPRESS_EMBEDS,
    }


def _mattermost(alert: Json) -> Json:
    """https://developers.mattermost.com/integrate/webhooks/incoming: a `type` must begin with
    "custom_".

    The server decodes character references (`&#64;channel`) before it looks for mentions, so `&`
    becomes a reference. A backslash before `&` would be shown by its web client.
    """
    return {"text": _escaped(alert, lambda text: text.replace("&", "&amp;"))}


def _telegram(alert: Json) -> Json:
    """https://core.telegram.org/bots/api#sendmessage: `chat_id` is in the query; without
    `parse_mode` text is plain.
    """
    return {"text": alert["text"], "link_preview_options": {"is_disabled": True}}


def _google_chat(alert: Json) -> Json:
    """https://developers.google.com/workspace/chat/format-messages: no escape is documented for the
    four markers.

    A single marker formats nothing and stays; two or more are replaced by look-alikes. Unknown
    members are refused.
    """
    text, url = _parted(alert)
    for marker, twin in _TWINS.items():
        text = text.replace(marker, twin) if text.count(marker) > 1 else text
    return {"text": text + url}


def _teams(alert: Json) -> Json:
    """https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using

    A `TextRun` has no Markdown and no links, only functions for times, such as `{{DATE(...)}}`: the
    link is a button.
    """
    text, url = _parted(alert)
    inline = {"type": "TextRun", "text": re.sub(r"\{(?=\{)", "{\u200b", text.rstrip())}
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "RichTextBlock", "inlines": [inline]}],
        "actions": [{"type": "Action.OpenUrl", "title": "Open the check", "url": url}],
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _gotify(alert: Json) -> Json:
    """https://gotify.net/api-docs, `POST /message`: plain text unless
    https://gotify.net/docs/msgextras say otherwise.

    Priorities, from the README of its Android app: 0 no notification, 4 to 7 sound, 8 to 10 sound
    and vibration.
    """
    priority = 8 if alert["type"] in (OVERDUE, REMINDER) else 5
    extras = {"client::notification": {"click": {"url": alert["data"]["url"]}}}
    return {**_titled(alert, "message"), "priority": priority, "extras": extras}


def _ntfy(alert: Json) -> Json:
    """https://docs.ntfy.sh/publish/#publish-as-json: to the root, with the topic in the body;
    Markdown is off.
    """
    return {**_titled(alert, "message"), "click": alert["data"]["url"]}


def _apprise(alert: Json) -> Json:
    """https://github.com/caronc/apprise-api#persistent-stateful-storage-solution"""
    kind = _APPRISE_TYPES[alert["type"]]
    return {"type": kind, **_titled(alert, "body"), "format": "text"}


def _titled(alert: Json, rest_name: str) -> Json:
    """The title, and as another member the rest of the sentence: a closed notification shows one
    line of it.
    """
    has_failed = alert["type"] == OVERDUE and alert["data"]["reason"] == "failed"
    pattern = '"{}" is overdue: the job failed' if has_failed else _TITLES[alert["type"]]
    title = pattern.format(shown_name(alert["data"]["check"]["name"]))
    rest = alert["text"].removeprefix(title).lstrip(":;, ")
    return {"title": title, rest_name: rest[0].upper() + rest[1:]}


def _escaped(alert: Json, prepared: Callable[[str], str]) -> str:
    text, url = _parted(alert)
    return _MARKDOWN.sub(r"\\\g<0>", prepared(text)) + url


def _parted(alert: Json) -> tuple[str, str]:
    """The sentence, and the link at its end, which markup must not be looked for in."""
    url = alert["data"]["url"]
    return alert["text"].removesuffix(url), url


_TITLES = {
    OVERDUE: '"{}" is overdue',
    REMINDER: '"{}" is still overdue',
    RECOVERED: '"{}" has recovered',
    TEST: 'Test alert for "{}"',
}
_APPRISE_TYPES = {OVERDUE: "failure", REMINDER: "failure", RECOVERED: "success", TEST: "info"}
_SUPPRESS_EMBEDS = 1 << 2
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKDOWN = re.compile(r"[\\`*_~|\[\]]")
"""Characters that can begin formatting or a link within a line, in Discord and Mattermost."""
_TWINS = {"*": "\u2217", "_": "\u02cd", "~": "\u223c", "`": "\u02cb"}


def _shape(host: str, path: str, query: str = r"(?:\?.*)?") -> re.Pattern[str]:
    return re.compile(f"(?:{host}){path}{query}")


_ANY = "[^/]+"
_BELOW = r"(?:/[^?]*)?"
_NTFY_TEMPLATE = r"(?:.*&)?(?:x-template|template|tpl)="

RECEIVERS = (
    Receiver("Slack", _shape(r"hooks\.slack(?:-gov)?\.com", r"/services(?:/\w+){3}/?"), _slack),
    Receiver(
        "Discord",
        _shape(r"(?:\w+\.)?discord(?:app)?\.com", r"/api/(?:v\d+/)?webhooks/\d+/[\w-]+/?"),
        _discord,
    ),
    Receiver("Mattermost", _shape(_ANY, rf"{_BELOW}/hooks/[a-z0-9]{{26}}/?"), _mattermost),
    # A URL with a template of the user gets the alert's body.
    Receiver(
        "ntfy",
        _shape(
            r"ntfy(?:\.[^/]+)?", r"/(?P<topic>[\w-]{1,64})/?", rf"(?:\?(?!{_NTFY_TEMPLATE}).*)?"
        ),
        _ntfy,
    ),
    Receiver("Gotify", _shape(_ANY, rf"{_BELOW}/message", r"\?(?:.*&)?token=.*"), _gotify),
    Receiver(
        "Telegram", _shape(_ANY, r"/bot\d+(?::|%3[Aa])[\w-]+/(?:test/)?(?i:sendMessage)"), _telegram
    ),
    Receiver(
        "Google Chat", _shape(r"chat\.googleapis\.com", r"/v1/spaces/[\w-]+/messages"), _google_chat
    ),
    Receiver(
        "Microsoft Teams",
        _shape(_ANY, rf"{_BELOW}/workflows/[\w-]+/triggers/manual/paths/invoke"),
        _teams,
    ),
    Receiver("Apprise API", _shape(_ANY, rf"{_BELOW}/notify/[\w-]{{1,128}}/?"), _apprise),
)
