"""Alerts from the whole application to real receivers."""

import base64
import time

import pytest
from jsonschema import Draft202012Validator
from standardwebhooks.webhooks import Webhook

from tests.receiver import NO_CONTENT, Receiver, answer, hang, repeat
from tests.support import App, FakeClock, service_of, wait_until

PERIOD_SECONDS = 60


class Customer:
    """Somebody with a key, checks and a receiver, at an application whose alerts are delivered."""

    def __init__(self, app):
        self.app = app
        issued = app.json("POST", "/register", {"email": "ops@example.com"})
        self.key = issued["key"]
        self.secret = issued["webhook_secret"]

    def check(self, webhook_url, name="nightly backup"):
        body = {"name": name, "period_seconds": PERIOD_SECONDS, "grace_seconds": 0, "webhook_url": webhook_url}
        return self.app.json("POST", "/checks", body, key=self.key)["check"]

    def goes_overdue(self):
        self.app.clock.advance(PERIOD_SECONDS + 1)
        self.app.service.sweep.sweep_once()

    def test_alert(self, check):
        assert self.app("POST", f"/checks/{check['id']}/test-alert", key=self.key).status == 202

    def alerts(self, check):
        return self.app.json("GET", f"/checks/{check['id']}/alerts", key=self.key)["alerts"]

    def delivery(self, check):
        """As the list of checks shows it."""
        checks = self.app.json("GET", "/checks", key=self.key)["checks"]
        return next(shown["delivery"] for shown in checks if shown["id"] == check["id"])

    def states(self, check):
        return [alert["state"] for alert in self.alerts(check)]

    def verified(self, received):
        """The body, if an independent verifier accepts it under this key's secret."""
        return Webhook(self.secret).verify(received.body, received.headers)


@pytest.fixture
def customer(config):
    # The verifier compares with its own clock.
    clock = FakeClock(time.time() - PERIOD_SECONDS - 1)
    customer = Customer(delivering(config, clock))
    yield customer
    customer.app.service.close()


def delivering(config, clock):
    service = service_of(config._replace(allow_private_webhooks=True), clock)
    service.delivery.start()
    return App(service, clock)


def test_an_outage_is_told_and_its_end_too_signed_for_any_verifier(customer):
    with Receiver() as receiver:
        check = customer.check(receiver.url)
        customer.goes_overdue()
        wait_until(lambda: len(receiver.received) == 1)
        customer.app("GET", f"/ping/{check['id']}")
        wait_until(lambda: len(receiver.received) == 2)
        wait_until(lambda: customer.states(check) == ["delivered", "delivered"])
    overdue, recovered = map(customer.verified, receiver.received)
    assert (overdue["type"], overdue["data"]["check"]["status"]) == ("check.overdue", "overdue")
    assert (recovered["type"], recovered["data"]["check"]["status"]) == ("check.recovered", "on_time")
    assert overdue["data"]["check"].keys() == check.keys() - {"webhook_url", "ping_url"}
    assert check["ping_url"].rpartition("/")[0].encode() not in receiver.received[0].body
    assert (overdue["data"]["check"]["ping_count"], recovered["data"]["check"]["ping_count"]) == (0, 1)
    assert receiver.ids == [alert["id"] for alert in reversed(customer.alerts(check))]


def test_an_alert_says_why_how_late_and_for_how_long_and_links_to_the_check_as_openapi_describes_it(customer):
    schemas = customer.app.json("GET", "/openapi.json")["components"]["schemas"]
    described = Draft202012Validator({**schemas["Delivery"], "components": {"schemas": schemas}})
    with Receiver() as receiver:
        check = customer.check(receiver.url)
        customer.goes_overdue()
        wait_until(lambda: len(receiver.received) == 1)
        for signal, seconds in (("", 8), ("/1", 9), ("/0", 10)):
            customer.app.clock.advance(seconds)
            customer.app("POST", f"/ping/{check['id']}{signal}")
        wait_until(lambda: len(receiver.received) == 4)
    alerts = [customer.verified(received) for received in receiver.received]
    values = [(told["reason"], told["late_seconds"], told["overdue_seconds"]) for told in map(data_of, alerts)]
    assert values == [("late", 1, 0), ("late", 9, 8), ("failed", 0, 0), ("failed", 0, 10)]
    link = f"https://cards.example/dashboard#{check['id'][:8]}"
    for alert in alerts:
        described.validate(alert)
        assert alert["data"]["url"] == link
        assert alert["text"].endswith(f" {link}")


def data_of(alert):
    return alert["data"]


def test_a_test_alert_is_sent_like_a_real_one(customer):
    with Receiver() as receiver:
        check = customer.check(receiver.url)
        customer.test_alert(check)
        wait_until(lambda: customer.states(check) == ["delivered"])
    assert customer.verified(receiver.received[0])["type"] == "check.test"


def test_a_check_shows_how_its_delivery_goes_also_in_the_alerts_themselves(customer, monkeypatch):
    monkeypatch.setattr("cardbeat.heartbeat.delivery.retries.SCHEDULE_SECONDS", (0.1,))
    with Receiver(answer(500), answer(500), answer()) as receiver:
        check = customer.check(receiver.url)
        assert customer.delivery(check) is None
        customer.test_alert(check)
        wait_until(lambda: customer.states(check) == ["failed"])
        assert customer.delivery(check) == "failing"
        customer.test_alert(check)
        wait_until(lambda: customer.states(check) == ["delivered", "failed"])
        assert customer.delivery(check) == "ok"
        shown = [received.json["data"]["check"]["delivery"] for received in receiver.received]
    # A retry tells what came of the attempt before it.
    assert shown == [None, "failing", "failing"]
    shown = customer.app.json("GET", f"/checks/{check['id']}", key=customer.key)["check"]
    assert (shown["version"], shown["updated_at"]) == (check["version"], check["updated_at"])


def test_every_attempt_is_signed_anew_under_the_same_id(customer, monkeypatch):
    monkeypatch.setattr("cardbeat.heartbeat.delivery.retries.SCHEDULE_SECONDS", (0.1, 0.1))
    with Receiver(answer(500), answer(302, "Location: /x\r\n"), answer()) as receiver:
        check = customer.check(receiver.url)
        customer.test_alert(check)
        wait_until(lambda: customer.states(check) == ["delivered"])
    assert customer.alerts(check)[0]["attempts"] == 3
    assert len(set(receiver.ids)) == 1
    assert [customer.verified(received)["type"] for received in receiver.received] == ["check.test"] * 3


@pytest.mark.parametrize("stream", [repeat(b"HTTP"), repeat(b"x", first=b"HTTP/1.1 200 OK\r\n\r\n"), hang])
def test_a_receiver_that_holds_on_holds_up_nobody(customer, stream):
    with Receiver(stream, host="127.0.0.2") as bad, Receiver() as good:
        held = [customer.check(bad.url) for _ in range(10)]
        checks = [customer.check(good.url) for _ in range(10)]
        customer.goes_overdue()
        wait_until(lambda: len(good.received) == 10)
        assert bad.connections <= 3
        assert all(customer.states(check) == ["pending"] for check in held)
        wait_until(lambda: all(customer.states(check) == ["delivered"] for check in checks))


def test_at_most_four_posts_at_a_time_go_to_one_host_on_any_port(customer):
    running, counts = [], []

    def slow(receiver, connection):
        running.append(connection)
        receiver.read(connection)
        # Long enough for others to come beside it, if they would.
        receiver.released.wait(0.05)
        counts.append(len(running))
        running.remove(connection)
        connection.sendall(NO_CONTENT)

    with Receiver(slow) as one, Receiver(slow) as two:
        for number in range(30):
            customer.check((one, two)[number % 2].url)
        customer.goes_overdue()
        wait_until(lambda: len(one.received) == len(two.received) == 15)
    assert 1 < max(counts) <= 4


def test_a_checks_alerts_arrive_in_order(customer):
    with Receiver() as receiver:
        check = customer.check(receiver.url)
        for _ in range(5):
            customer.test_alert(check)
        wait_until(lambda: customer.states(check) == ["delivered"] * 5)
    assert receiver.ids == [alert["id"] for alert in reversed(customer.alerts(check))]


def test_after_a_restart_what_was_pending_arrives_under_the_same_id(customer, config):
    with Receiver(answer(500), answer()) as receiver:
        check = customer.check(receiver.url)
        customer.test_alert(check)
        wait_until(lambda: customer.alerts(check)[0]["attempts"] == 1)
        customer.app.service.close()
        customer.app.clock.advance(60)
        customer.app = delivering(config, customer.app.clock)
        wait_until(lambda: customer.states(check) == ["delivered"])
    assert len(receiver.received) == 2
    assert len(set(receiver.ids)) == 1


def test_without_the_flag_a_private_receiver_gets_nothing(app):
    app.service.delivery.start()
    customer = Customer(app)
    with Receiver() as receiver:
        check = customer.check(f"http://receiver.invalid:{receiver.port}/")
        app.service.database.write(
            lambda connection: connection.execute("UPDATE checks SET webhook_url = ?", (receiver.url,))
        )
        customer.test_alert(check)
        wait_until(lambda: customer.alerts(check)[0]["attempts"] == 1)
    shown = customer.alerts(check)[0]
    assert (shown["state"], shown["last_status"]) == ("pending", None)
    assert "private or reserved" in shown["last_error"]
    assert receiver.connections == 0


def test_the_secret_is_standard_webhooks_own_form(customer):
    prefix, _, encoded = customer.secret.partition("_")
    assert prefix == "whsec"
    assert 24 <= len(base64.b64decode(encoded, validate=True)) <= 64


def test_while_the_secret_is_replaced_verifiers_with_either_one_accept(customer):
    with Receiver() as receiver:
        check = customer.check(receiver.url)
        new = customer.app.json("POST", "/key/webhook-secret", key=customer.key)["webhook_secret"]
        customer.test_alert(check)
        wait_until(lambda: customer.states(check) == ["delivered"])
    before = customer.verified(receiver.received[0])
    customer.secret = new
    assert customer.verified(receiver.received[0]) == before
