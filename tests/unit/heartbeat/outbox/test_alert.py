"""What an alert says, in which form, and how it is signed."""

import base64
import dataclasses
import hashlib
import hmac
import json

import pytest

from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.outbox.alert import body_of, signed_headers

NOW = 1_800_000_000


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


def body(check, alert_type):
    return json.loads(body_of(alert_type, check, NOW, outages=alert_type != "check.recovered"))


def test_the_body_has_type_time_check_and_sentence():
    check = check_with()
    sent = body(check, "check.overdue")
    assert list(sent) == ["type", "timestamp", "data", "text", "content"]
    assert sent["type"] == "check.overdue"
    assert sent["timestamp"] == "2027-01-15T08:00:00Z"
    assert sent["data"] == {"check": check.as_told()}
    assert sent["content"] == sent["text"]


def test_each_type_has_a_sentence():
    sentences = [body(check_with(), kind)["text"] for kind in ("check.overdue", "check.recovered", "check.test")]
    assert sentences == [
        '"nightly backup" is overdue: no ping yet, expected by 2027-01-15 08:01:00 UTC.',
        '"nightly backup" has recovered: pinged again, next ping expected by 2027-01-15 08:01:00 UTC.',
        'This is a test alert for "nightly backup"; its alerts arrive here.',
    ]
    pinged = body(check_with(last_ping_at=NOW + 30), "check.overdue")
    assert "last ping 2027-01-15 08:00:30 UTC" in pinged["text"]


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
    check = dataclasses.replace(check_with("\U0001f4be" * 100), webhook_url="https://x.example/" + "\U0001f4be" * 495)
    assert len(check.webhook_url.encode()) == 1998
    assert len(body_of("check.overdue", check, NOW, 1)) < 2048


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
