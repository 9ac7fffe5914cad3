"""Alerts beside those of strangers whose receivers, addresses and name servers are silent: real threads and sockets."""

import contextlib
import ipaddress
import selectors
import socket
import threading
import time
from collections import Counter

import pytest

from cardbeat.heartbeat.webhooks.post import Sender
from cardbeat.heartbeat.webhooks.resolver import Resolver
from tests.heart import Heart, new_delivery
from tests.receiver import Receiver
from tests.support import wait_until

STRANGERS = 28
CHECKS_EACH = 100
SECONDS = 5.0
"""In which an alert must have come, whatever strangers do."""


class Silent:
    """Takes every connection to any address of this host at its port, never answers, and counts them by address."""

    def __init__(self):
        self._listener = socket.create_server(("0.0.0.0", 0), backlog=2000)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self.open = Counter()
        self.most_at_once = 0
        self.total = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _run(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._ended.is_set():
                for key, _ in selector.select(0.02):
                    if key.fileobj is self._listener:
                        self._accept(selector)
                    else:
                        self._read(selector, key)
            for key in list(selector.get_map().values()):
                key.fileobj.close()

    def _accept(self, selector):
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                address = connection.getsockname()[0]
                self.open[address] += 1
                self.total += 1
                self.most_at_once = max(self.most_at_once, self.open[address])
                selector.register(connection, selectors.EVENT_READ, address)

    def _read(self, selector, key):
        with contextlib.suppress(ConnectionError):
            if key.fileobj.recv(65536):
                return
        self.open[key.data] -= 1
        selector.unregister(key.fileobj)
        key.fileobj.close()


class Strangers:
    """Keys with checks on hosts of their own, and somebody with a check at a good receiver, with delivery under way."""

    def __init__(self, database, clock, lookup):
        self.database = database
        self.heart = Heart(database, clock)
        self.alerts = self.heart.alerts
        sender = Sender(True, Resolver(lookup))
        self.delivery = new_delivery(self.alerts, clock, sender.post)

    def arrive(self, port):
        """All of their checks have an alert that is due."""
        keys = [self.heart.keys.issue("stranger@example.com").wait().key.id for _ in range(STRANGERS)]
        rows = [
            (f"check {number}", keys[number % STRANGERS], f"http://n{number}.stranger.example:{port}/")
            for number in range(STRANGERS * CHECKS_EACH)
        ]

        def insert(connection):
            connection.executemany(
                "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
                " created_at, updated_at) VALUES (?, ?, 'x', 60, 0, ?, 0, 0, 0)",
                rows,
            )
            connection.executemany(
                "INSERT INTO alerts (id, check_id, type, outage, deadline_at, created_at, next_attempt_at)"
                " VALUES ('msg ' || ?1, ?1, 'check.overdue', 1, 0, 0, 0)",
                [(check_id,) for check_id, _, _ in rows],
            )

        self.database.write(insert)
        self.delivery.wake()

    def seconds_of_an_alert(self, check):
        """How long a test alert takes until it is recorded as delivered."""
        began = time.monotonic()
        self.database.write(lambda connection: self.alerts.record_test(connection, check, int(self.heart.clock())))
        self.delivery.wake()
        wait_until(lambda: self.alerts.newest(check.id)[0]["state"] == "delivered", SECONDS * 2)
        return time.monotonic() - began


@pytest.fixture
def silent_names():
    """Ends the wait for names that no server answers for."""
    ended = threading.Event()
    yield ended
    ended.set()


@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
@pytest.mark.parametrize("attack", ["many addresses", "one address", "silent names"])
def test_an_alert_comes_in_seconds_beside_2800_silent_ones_of_28_keys(database, clock, silent_names, attack, known):
    asked = []

    def lookup(host):
        if host == "good.example":
            return [ipaddress.ip_address("127.0.0.1")]
        number = int(host.partition(".")[0][1:])
        asked.append(number)
        if attack == "silent names":
            silent_names.wait(60)
        if attack == "one address":
            return [ipaddress.ip_address("127.7.0.1")]
        return [ipaddress.ip_address("127.8.0.1") + number]

    with Silent() as silent, Receiver() as good:
        strangers = Strangers(database, clock, lookup)
        check = strangers.heart.create(webhook_url=f"http://good.example:{good.port}/")
        strangers.delivery.start()
        try:
            if known:
                strangers.seconds_of_an_alert(check)
            strangers.arrive(silent.port)
            wait_until(lambda: len(asked) > 90)
            assert [strangers.seconds_of_an_alert(check) < SECONDS for _ in range(3)] == [True] * 3
        finally:
            silent_names.set()
            strangers.delivery.stop(0)
    assert silent.most_at_once <= 4
