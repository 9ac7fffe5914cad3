"""What an alert says, in which form, and how it is signed."""

import base64
import hashlib
import hmac
import json

import pytest

from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.outbox.alert import Facts, body_of, signed_headers

NOW = 1_800_000_000
URL = "https://beats.example/dashboard#0123abcd"


def check_with(name="nightly backup", last_ping_at=None):
    times = {"clock_from": NOW, "deadline_at": NOW + 60, "last_ping_at": last_ping_at, "created_at": NOW}
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


def told_with(alert_type, reason="late", late_seconds=0, overdue_seconds=0, outages=None):
    begins = alert_type == "check.overdue" if outages is None else outages
    return Facts(alert_type, NOW, int(begins), reason, late_seconds, overdue_seconds)


def body(check, alert_type, **told):
    return json.loads(body_of(told_with(alert_type, **told), check, URL))


def said(alert_type, *, last_ping_at=None, **told):
    """The sentence without its link."""
    text = body(check_with(last_ping_at=last_ping_at), alert_type, **told)["text"]
    assert text.endswith(f". {URL}")
    return text.removesuffix(f" {URL}")


def test_the_body_has_type_time_check_values_link_and_sentence():
    check = check_with()
    sent = body(check, "check.overdue", late_seconds=53)
    assert list(sent) == ["type", "timestamp", "data", "text", "content"]
    assert sent["type"] == "check.overdue"
    assert sent["timestamp"] == "2027-01-15T08:00:00Z"
    values = {"reason": "late", "late_seconds": 53, "overdue_seconds": 0, "url": URL}
    assert sent["data"] == {"check": check.as_told(), **values}
    assert sent["content"] == sent["text"]
    assert body(check, "check.test")["data"]["reason"] is None


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"alert_type": "check.test"}, 'This is a test alert for "nightly backup"; its alerts arrive here.'),
        (
            {"alert_type": "check.overdue", "late_seconds": 53},
            '"nightly backup" is overdue: 53 seconds late since 2027-01-15 08:01 UTC; no ping yet.',
        ),
        (
            {"alert_type": "check.overdue", "late_seconds": 7859, "last_ping_at": NOW - 86_400},
            '"nightly backup" is overdue: 2 hours 10 minutes late since 2027-01-15 08:01 UTC; '
            "last ping 2027-01-14 08:00 UTC.",
        ),
        # Of an alert that was merged before schema 9 only the deadline is known.
        (
            {"alert_type": "check.overdue"},
            '"nightly backup" is overdue: late since 2027-01-15 08:01 UTC; no ping yet.',
        ),
        (
            {"alert_type": "check.overdue", "reason": "failed", "last_ping_at": NOW - 3600},
            '"nightly backup" is overdue: the job failed at 2027-01-15 08:00 UTC; last ping 2027-01-15 07:00 UTC.',
        ),
        (
            {"alert_type": "check.overdue", "reason": "failed", "outages": 3},
            '"nightly backup" is overdue: the job failed; no ping yet. 3 outages since 2027-01-15 08:00 UTC are told '
            "together.",
        ),
        (
            {"alert_type": "check.reminder", "late_seconds": 10_810, "overdue_seconds": 10_800},
            '"nightly backup" is still overdue, for 3 hours: late since 2027-01-15 04:59 UTC; no ping yet.',
        ),
        (
            {
                "alert_type": "check.reminder",
                "reason": "failed",
                "overdue_seconds": 90_061,
                "last_ping_at": NOW - 99_999,
            },
            '"nightly backup" is still overdue, for 1 day 1 hour: the job failed at 2027-01-14 06:58 UTC; last ping '
            "2027-01-14 04:13 UTC.",
        ),
        (
            {"alert_type": "check.recovered", "overdue_seconds": 840, "late_seconds": 867, "last_ping_at": NOW},
            '"nightly backup" has recovered after 14 minutes: overdue since 2027-01-15 07:46 UTC; next ping expected '
            "by 2027-01-15 08:01 UTC.",
        ),
        (
            {"alert_type": "check.recovered", "reason": "failed", "overdue_seconds": 60, "last_ping_at": NOW},
            '"nightly backup" has recovered after 1 minute: the job failed at 2027-01-15 07:59 UTC; next ping expected '
            "by 2027-01-15 08:01 UTC.",
        ),
        # Within the second, or of an alert from before schema 9.
        (
            {"alert_type": "check.recovered", "last_ping_at": NOW},
            '"nightly backup" has recovered; next ping expected by 2027-01-15 08:01 UTC.',
        ),
    ],
)
def test_the_sentence_says_how_late_since_when_in_utc_and_for_how_long(told, sentence):
    assert said(**told) == sentence


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (3599, "59 minutes"),
        (3600, "1 hour"),
        (3661, "1 hour 1 minute"),
        (86_399, "23 hours 59 minutes"),
        (86_400, "1 day"),
        (86_460, "1 day 1 minute"),
        (400 * 86_400 + 7325, "400 days 2 hours"),
    ],
)
def test_a_time_is_told_in_at_most_two_units_and_never_longer_than_it_was(seconds, words):
    assert f"overdue: {words} late since" in said("check.overdue", late_seconds=seconds)


KINDS = ("check.overdue", "check.reminder", "check.recovered", "check.test")


@pytest.mark.parametrize("reason", ["late", "failed"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_is_longer_than_one_screen_of_a_phone(kind, reason):
    longest = {"late_seconds": 35_999_999, "overdue_seconds": 35_999_999, "outages": 9999, "reason": reason}
    link = f"https://{'monitor.' * 10}example.com/dashboard#01234567"
    sent = json.loads(body_of(told_with(kind, **longest), check_with("W" * 100, last_ping_at=NOW), link))
    # A phone shows some 30 lines of 40 characters.
    assert len(sent["text"]) < 12 * 40


@pytest.mark.parametrize(
    "name", ["@everyone", "<!channel>", "@here <@U1> <!here|x>", "<@&1234>", "<https://evil.example|x>"]
)
def test_a_name_calls_nobody_in_a_chat(name):
    sent = body(check_with(name), "check.test")
    assert sent["data"]["check"]["name"] == name
    for called in ("@e", "@h", "@U", "@&", "<", ">"):
        assert called not in sent["text"]


def test_a_name_gives_no_address_other_words():
    assert "](" not in body(check_with("[your bank](https://evil.example)"), "check.test")["text"]


def test_a_name_of_any_script_arrives_as_it_is():
    name = 'Sicherung "Ü" 夜 🌙'
    assert body(check_with(name), "check.test")["data"]["check"]["name"] == name


@pytest.mark.parametrize(
    "name", ["\u05d2\u05d9\u05d1\u05d5\u05d9", "nightly \u0627\u062d\u062a\u064a\u0627\u0637\u064a"]
)
def test_a_name_that_runs_from_right_to_left_does_not_turn_the_sentence(name):
    sent = body(check_with(name), "check.overdue")
    assert sent["text"].startswith(f'"\u2068{name}\u2069" is overdue: ')
    assert sent["data"]["check"]["name"] == name


def test_an_alert_shows_the_check_without_its_urls():
    check = check_with()
    shown = body(check, "check.overdue")["data"]["check"]
    private = {"webhook_url": check.webhook_url, "ping_url": "https://beats.example/ping/c1"}
    assert {**shown, **private} == check.as_json("https://beats.example")
    assert not private.keys() & shown.keys()


def test_the_largest_body_stays_small():
    check = check_with("\U0001f4be" * 100)._replace(webhook_url="https://x.example/" + "\U0001f4be" * 495)
    assert len(check.webhook_url.encode()) == 1998
    longest = told_with("check.reminder", overdue_seconds=35_999_999)
    assert len(body_of(longest, check, f"https://{'x' * 250}/dashboard#01234567")) < 3072


def test_while_a_secret_is_replaced_there_is_a_signature_by_each():
    secrets = [f"whsec_{base64.b64encode(bytes(24)[:-1] + end).decode()}" for end in (b"1", b"2")]
    both, *each = (signed_headers("msg_1", NOW, b"{}", *used)["webhook-signature"] for used in (secrets, *zip(secrets)))
    assert both == " ".join(each)
    assert len(set(each)) == 2


def test_the_signature_is_the_one_of_standard_webhooks():
    secret = b"0123456789abcdef01234567"
    headers = signed_headers("msg_1", NOW, b"{}", f"whsec_{base64.b64encode(secret).decode()}")
    expected = base64.b64encode(hmac.new(secret, b"msg_1.1800000000.{}", hashlib.sha256).digest()).decode()
    assert headers.pop("User-Agent").startswith("cardbeat/")
    assert headers == {
        "Content-Type": "application/json",
        "webhook-id": "msg_1",
        "webhook-timestamp": "1800000000",
        "webhook-signature": f"v1,{expected}",
    }
