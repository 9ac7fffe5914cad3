"""Alerts beside those of strangers whose receivers, addresses and name servers are silent."""

import ipaddress
import threading
import time

import pytest

from cardbeat.heartbeat.alerts.message import TEST
from cardbeat.heartbeat.alerts.post import Sender
from cardbeat.heartbeat.alerts.recording import record
from cardbeat.heartbeat.alerts.target import host_of
from tests.kit.heart import Heart, new_delivery
from tests.kit.receiver import Receiver, hang
from tests.kit.support import wait_until

STRANGERS = 28
CHECKS_EACH = 30
SECONDS = 9.0
"""In which an alert must have come. One that waited for a silent receiver would take 10 s."""
CHECK = """INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url,
    clock_from, created_at, updated_at) VALUES (?, ?, 'x', 60, 0, ?, 0, 0, 0)"""
ALERT = """INSERT INTO alerts (id, check_id, key_id, receiver, type, outage, deadline_at, created_at,
    next_attempt_at) VALUES ('msg ' || ?1, ?1, ?2, ?3, 'check.overdue', 1, 0, 0, 0)"""


def arrive(heart, port):
    """Each of the strangers' checks, at a host of its own, has an alert that is due."""
    keys = [
        heart.keys.issue("stranger@example.com").key.id
        for _ in range(STRANGERS)
    ]

    def insert(connection):
        for number in range(STRANGERS * CHECKS_EACH):
            url = f"http://n{number}.stranger.example:{port}/"
            check = (f"check {number}", keys[number % STRANGERS])
            connection.execute(CHECK, (*check, url))
            connection.execute(ALERT, (*check, host_of(url)))

    heart.database.write(insert)


def seconds_of_an_alert(heart, delivery, check):
    """How long a test alert takes until it is recorded as delivered."""
    began = time.monotonic()
    heart.database.write(
        lambda it: record(it, TEST, [check], int(heart.clock()))
    )
    delivery.wake()
    wait_until(
        lambda: heart.alerts.newest(check.id)[0]["state"] == "delivered"
    )
    return time.monotonic() - began


def names(attack, asked, ended):
    """What looks up hosts; those of strangers lead to one silent address or to many, or nowhere in time."""

    def lookup(host):
        if host == "good.example":
            return [ipaddress.ip_address("127.0.0.1")]
        asked.append(host)
        if attack == "silent names":
            ended.wait(60)
        number = len(asked) if attack == "many addresses" else 0
        return [ipaddress.ip_address("127.8.0.1") + number]

    return lookup


@pytest.mark.parametrize(
    "attack", ["many addresses", "one address", "silent names"]
)
def test_alerts_of_a_check_whose_last_one_was_taken_come_at_once(
    database, clock, attack
):
    asked, ended = [], threading.Event()
    lookup = names(attack, asked, ended)
    with Receiver(hang, host="0.0.0.0") as silent, Receiver() as good:
        heart = Heart(database, clock)
        delivery = new_delivery(
            heart.alerts, clock, Sender(True, lookup=lookup).post
        )
        check = heart.create(webhook_url=f"http://good.example:{good.port}/")
        delivery.start()
        try:
            seconds_of_an_alert(heart, delivery, check)
            arrive(heart, silent.port)
            delivery.wake()
            wait_until(lambda: len(asked) > 80)
            times = [
                seconds_of_an_alert(heart, delivery, check) for _ in range(3)
            ]
        finally:
            ended.set()
            delivery.stop(0)
    # On a busy machine one of them may be late.
    assert sorted(times)[1] < SECONDS
