"""The command `checks test`: an alert that is really sent, and what its receiver answered."""

import json
import re
import threading
import time
from functools import partial

import pytest

from cardbeat.client.api import Api
from tests.artifact import free_port
from tests.http.test_delivery import Customer, delivering
from tests.receiver import Receiver, answer, hang
from tests.support import FakeClock, wait_until

NEXT = r" Next try at [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} \(UTC\)\.\n"


@pytest.fixture
def customer(config, monkeypatch):
    customer = Customer(delivering(config, FakeClock(time.time())))
    server = customer.app.service.server
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("CARDBEAT_URL", server.url)
    monkeypatch.setenv("CARDBEAT_KEY", customer.key)
    yield customer
    server.stop()
    thread.join()
    customer.app.service.close()


@pytest.mark.parametrize("status", [200, 204])
def test_a_delivered_one_is_told_with_its_status(customer, checks, status):
    with Receiver(answer(status)) as receiver:
        job = customer.check(f"{receiver.url}/SECRET", "job")
        told = f"http://127.0.0.1:{receiver.port}/...: delivered, the receiver answered {status}\n"
        assert checks("test", " job ") == (0, told, "")
        status, out, _ = checks("test", "job", "--json")
    assert (status, json.loads(out)) == (0, customer.alerts(job)[0])
    assert [received.json["type"] for received in receiver.received] == ["check.test"] * 2


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        (answer(404), f"not delivered: The receiver answered 404\\.{NEXT}"),
        (answer(301), f"not delivered: The receiver answered 301; redirects are not followed\\.{NEXT}"),
        (answer(410), r"not delivered: The receiver answered 410\. It is not tried again\.\n"),
        (hang, f"not sent within 1 s\\.{NEXT}"),
    ],
)
def test_a_failing_one_is_status_1_with_the_reason_and_the_next_try(customer, checks, behaviour, says):
    with Receiver(behaviour) as receiver:
        customer.check(f"{receiver.url}/SECRET", "job")
        status, out, err = checks("test", "job", "--wait", "1" if behaviour is hang else "60")
        assert (status, err) == (1, "")
        assert re.fullmatch(f"http://127.0.0.1:{receiver.port}/\\.\\.\\.: {says}", out), out


def test_a_receiver_that_is_not_there_is_told(customer, checks):
    customer.check(f"http://127.0.0.1:{free_port()}/", "job")
    status, out, _ = checks("test", "job", "--json")
    assert (status, json.loads(out)["last_error"]) == (1, "The connection was refused.")


def test_one_that_waits_for_its_next_try_is_tried_before_it_at_once(customer, checks, monkeypatch):
    monkeypatch.setattr("cardbeat.heartbeat.delivery.retries.SCHEDULE_SECONDS", (9000,) * 9)
    with Receiver(answer(500), answer(502), answer(204)) as receiver:
        check = customer.check(receiver.url, "job")
        customer.test_alert(check)
        wait_until(lambda: customer.alerts(check)[0]["attempts"] == 1)
        status, out, _ = checks("test", "job")
        assert (status, "not delivered: The receiver answered 502." in out) == (1, True)
        # The receiver was repaired.
        status, out, _ = checks("test", "job")
        assert (status, "delivered, the receiver answered 204" in out) == (0, True)
        assert customer.states(check) == ["delivered"] * 3
    # The first one fails twice and is taken then, before the two after it.
    assert len(receiver.ids) == 5
    assert receiver.ids[:3] == receiver.ids[:1] * 3


def test_what_can_not_be_tested_is_one_line_and_status_2(customer, checks, monkeypatch):
    slept = []
    monkeypatch.setattr("cardbeat.commands.checks.Api", partial(Api, sleep=slept.append))
    customer.check(None, "quiet")
    no_webhook = "This check has no webhook_url to send an alert to; set one with PATCH first."
    assert checks("test", "quiet") == (2, "", f"cardbeat: {no_webhook}\n")
    assert checks("test", "none") == (2, "", "cardbeat: there is no check named 'none'; see: checks list\n")
    with Receiver(hang) as receiver:
        check = customer.check(receiver.url, "job")
        for _ in range(5):
            customer.test_alert(check)
        status, out, err = checks("test", "job")
    assert (status, out) == (2, "")
    assert err == "cardbeat: 5 test alerts of this check wait for its receiver already; try again in 10 s.\n"
    assert slept == []


@pytest.mark.parametrize("wait", ["0", "601", "1.5", ""])
def test_the_time_to_wait_has_limits(checks, monkeypatch, wait):
    status, out, err = checks("test", "job", "--wait", wait)
    assert (status, out) == (2, "")
    assert "must be an integer from 1 to 600" in err
