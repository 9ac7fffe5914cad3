"""Alerts from the whole application to real receivers."""

import pytest
from jsonschema import Draft202012Validator

from tests.kit.lists import each
from tests.kit.receiver import Receiver, answer
from tests.kit.support import wait_until
from tests.service.customer import Customer

SENT = (
    ("check.overdue", "late", 1, 0),
    ("check.recovered", "late", 9, 8),
    ("check.overdue", "failed", 0, 0),
    ("check.recovered", "failed", 0, 10),
)
HIDDEN = {"webhook_url", "ping_url", "delivery", "api_key_id"}


@pytest.fixture
def described(customer):
    schemas = customer.app.json("GET", "/openapi.json")["components"][
        "schemas"
    ]
    return Draft202012Validator(
        {**schemas["Delivery"], "components": {"schemas": schemas}}
    )


def test_outages_are_told_as_described_and_signed_for_any_verifier(
    customer, described
):
    with Receiver() as receiver:
        check = customer.check(receiver.url)
        customer.goes_overdue()
        wait_until(lambda: len(receiver.received) == 1)
        for signal, seconds in (("", 8), ("/1", 9), ("/0", 10)):
            customer.app.clock.advance(seconds)
            check.ping(signal, "POST")
        wait_until(lambda: check.states() == ["delivered"] * 4)
    assert receiver.ids == each(reversed(check.alerts()), "id")
    for received, wanted in zip(receiver.received, SENT, strict=True):
        alert = customer.verified(received)
        described.validate(alert)
        data = alert["data"]
        told = (
            alert["type"],
            data["reason"],
            data["late_seconds"],
            data["overdue_seconds"],
        )
        assert told == wanted
        assert data["check"].keys() == check.check.keys() - HIDDEN


def test_without_the_flag_a_private_receiver_gets_nothing(app):
    app.service.delivery.start()
    customer = Customer(app)
    with Receiver() as receiver:
        check = customer.check(
            f"http://receiver.invalid:{receiver.port}/"
        )
        app.service.database.write(
            lambda connection: connection.execute(
                "UPDATE checks SET webhook_url = ?", (receiver.url,)
            )
        )
        check("POST", "/test-alert")
        wait_until(lambda: check.alerts()[0]["attempts"] == 1)
    shown = check.alerts()[0]
    assert shown["state"] == "pending"
    assert shown["last_status"] is None
    assert "private or reserved" in shown["last_error"]
    assert receiver.connections == 0


def test_while_the_secret_is_replaced_verifiers_with_either_one_accept(
    customer,
):
    with Receiver() as receiver:
        check = customer.check(receiver.url)
        new = customer.app.json(
            "POST", "/key/webhook-secret", key=customer.key
        )["webhook_secret"]
        check("POST", "/test-alert")
        wait_until(lambda: check.states() == ["delivered"])
    before = customer.verified(receiver.received[0])
    customer.secret = new
    assert customer.verified(receiver.received[0]) == before


def test_each_gets_its_form_at_its_url_signed_and_nothing_tells_the_url(
    customer, caplog
):
    caplog.set_level(0)
    path = "/workflows/6a/triggers/manual/paths/invoke?sig=A-secret-token"
    with Receiver(answer(404)) as receiver:
        check = customer.check(f"http://127.0.0.1:{receiver.port}{path}")
        check("POST", "/test-alert")
        wait_until(lambda: check.alerts()[0]["last_status"] == 404)
    (received,) = receiver.received
    assert received.head == f"POST {path} HTTP/1.1"
    assert customer.verified(received) == received.json
    assert received.json.keys() == {"type", "attachments"}
    assert "secret" not in f"{check.alerts()} {caplog.text}"
