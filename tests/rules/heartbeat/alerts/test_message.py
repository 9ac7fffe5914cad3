"""What an alert says, in which form, and how it is signed."""

import base64
import hashlib
import hmac
import json

import pytest

from cardbeat.heartbeat.alerts.message import (
    Facts,
    body_of,
    signed_headers,
)
from cardbeat.heartbeat.check import Check

NOW = 1_800_000_000
URL = "https://beats.example/dashboard#0123abcd"


def check_with(name="nightly backup", last_ping_at=None):
    times = {
        "clock_from": NOW,
        "deadline_at": NOW + 60,
        "last_ping_at": last_ping_at,
        "created_at": NOW,
    }
    return Check(
        seq=1,
        id="c1",
        api_key_id="key_1",
        name=name,
        period_seconds=60,
        grace_seconds=0,
        webhook_url="https://hooks.example/x",
        status="on_time",
        outage=1,
        ping_count=0,
        updated_at=NOW,
        version=1,
        **times,
    )


def told_with(
    alert_type,
    reason="late",
    late_seconds=0,
    overdue_seconds=0,
    outages=0,
):
    return Facts(
        alert_type, NOW, outages, reason, late_seconds, overdue_seconds
    )


def body(check, alert_type, **told):
    return json.loads(body_of(told_with(alert_type, **told), check, URL))


def said(alert_type, pinged=None, **told):
    """The sentence without name, link, the date and the zone of today; the last ping was so many seconds ago."""
    last_ping_at = None if pinged is None else NOW - pinged
    text = body(
        check_with(last_ping_at=last_ping_at),
        f"check.{alert_type}",
        **told,
    )["text"]
    assert text.endswith(f". {URL}")
    return (
        text.removesuffix(f" {URL}")
        .removeprefix('"nightly backup" ')
        .replace("2027-01-15 ", "")
        .replace(" UTC", "")
    )


def test_the_body_has_type_time_check_values_link_and_sentence():
    check = check_with()
    sent = body(check, "check.overdue", late_seconds=53)
    assert list(sent) == ["type", "timestamp", "data", "text", "content"]
    assert sent["type"] == "check.overdue"
    assert sent["timestamp"] == "2027-01-15T08:00:00Z"
    values = {
        "reason": "late",
        "late_seconds": 53,
        "overdue_seconds": 0,
        "url": URL,
    }
    assert sent["data"] == {"check": check.as_told(), **values}
    assert sent["content"] == sent["text"]
    assert "since 2027-01-15 08:01 UTC; no ping yet." in sent["text"]
    assert body(check, "check.test")["data"]["reason"] is None
    assert (
        body(check, "check.recovered", outages=1)["data"]["outages"] == 1
    )


FAILED = {"reason": "failed"}


@pytest.mark.parametrize(
    ("kind", "told", "sentence"),
    [
        (
            "test",
            {},
            'This is a test alert for "nightly backup"; its alerts arrive here.',
        ),
        (
            "overdue",
            {"late_seconds": 53},
            "is overdue: 53 seconds late since 08:01; no ping yet.",
        ),
        (
            "overdue",
            {"late_seconds": 7859, "pinged": 86_400},
            "is overdue: 2 hours 10 minutes late since 08:01; last ping 2027-01-14 08:00.",
        ),
        # Of an alert from before schema 9 only the deadline is known.
        ("overdue", {}, "is overdue: late since 08:01; no ping yet."),
        (
            "overdue",
            {**FAILED, "pinged": 3600},
            "is overdue: the job failed at 08:00; last ping 07:00.",
        ),
        (
            "overdue",
            {**FAILED, "outages": 3},
            "is overdue: the job failed at 08:00; no ping yet. 3 more outages began and ended unreported before.",
        ),
        (
            "reminder",
            {"late_seconds": 10_810, "overdue_seconds": 10_800},
            "is still overdue, for 3 hours: late since 04:59; no ping yet.",
        ),
        (
            "reminder",
            {**FAILED, "overdue_seconds": 10_800, "pinged": 14_400},
            "is still overdue, for 3 hours: the job failed at 05:00; last ping 04:00.",
        ),
        (
            "recovered",
            {"overdue_seconds": 840, "late_seconds": 867, "pinged": 0},
            "has recovered after 14 minutes: overdue since 07:46; next ping expected by 08:01.",
        ),
        (
            "recovered",
            {**FAILED, "overdue_seconds": 60, "pinged": 0},
            "has recovered after 1 minute: the job failed at 07:59; next ping expected by 08:01.",
        ),
        # Within the second, or of an alert from before schema 9.
        (
            "recovered",
            {"pinged": 0, "outages": 1},
            "has recovered; next ping expected by 08:01. 1 more outage began and ended unreported before.",
        ),
    ],
)
def test_the_sentence_says_how_late_since_when_in_utc_and_for_how_long(
    kind, told, sentence
):
    assert said(kind, **told) == sentence


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *(
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (3599, "59 minutes"),
            (3600, "1 hour"),
        ),
        *(
            (3661, "1 hour 1 minute"),
            (86_399, "23 hours 59 minutes"),
            (86_400, "1 day"),
            (86_460, "1 day 1 minute"),
        ),
        (400 * 86_400 + 7325, "400 days 2 hours"),
    ],
)
def test_a_time_is_told_in_at_most_two_units_and_never_longer_than_it_was(
    seconds, words
):
    assert f"overdue: {words} late since" in said(
        "overdue", late_seconds=seconds
    )


KINDS = (
    "check.overdue",
    "check.reminder",
    "check.recovered",
    "check.test",
)


@pytest.mark.parametrize(
    "name",
    [
        "@everyone @here",
        "<!channel> <@U1> <@&1234>",
        "[bank](https://evil.example)",
    ],
)
def test_a_name_mentions_and_links_nothing_in_a_chat_and_is_whole_in_the_data(
    name,
):
    sent = body(check_with(name), "check.test")
    assert sent["data"]["check"]["name"] == name
    for sign in ("@e", "@h", "@U", "@&", "<", ">", "]("):
        assert sign not in sent["text"]


@pytest.mark.parametrize(
    "name",
    ["\u05d2\u05d9\u05d1", "nightly \u0627\u062d", 'Sicherung "Ü" 夜 🌙'],
)
def test_a_name_of_any_script_is_told_and_one_from_right_to_left_does_not_turn_the_sentence(
    name,
):
    sent = body(check_with(name), "check.overdue")
    isolated = name if "Ü" in name else f"\u2068{name}\u2069"
    assert sent["text"].startswith(f'"{isolated}" is overdue: ')
    assert sent["data"]["check"]["name"] == name


def test_a_further_field_of_a_check_must_be_named_here_before_a_third_party_gets_it():
    check = check_with()
    shown = body(check, "check.overdue")["data"]["check"]
    told = set(
        "id name period_seconds grace_seconds status last_ping_at deadline_at ping_count created_at updated_at version"
        " failed_at snoozed_until repeat_seconds".split()
    )
    assert shown.keys() == told
    assert shown.items() <= check.as_json("").items()


def test_the_signatures_are_those_of_standard_webhooks_one_for_each_secret():
    keys = b"0123456789abcdef01234567", b"another one of 24 bytes."
    secrets = [f"whsec_{base64.b64encode(key).decode()}" for key in keys]
    digests = [
        hmac.new(key, b"msg_1.1800000000.{}", hashlib.sha256).digest()
        for key in keys
    ]
    headers = signed_headers("msg_1", NOW, b"{}", *secrets)
    assert headers.pop("User-Agent").startswith("cardbeat/")
    assert headers == {
        "Content-Type": "application/json",
        "webhook-id": "msg_1",
        "webhook-timestamp": "1800000000",
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(digest).decode()}"
            for digest in digests
        ),
    }
