"""Clients of several nodes that go on whatever fails, and what must be there of all that was acknowledged to them."""

import contextlib
import http.client
import itertools
import random
import sqlite3
import threading
import time
from collections import Counter, defaultdict

from cardbeat.database.sqlite.file import FILE_NAME
from tests.kit.client import ask, exchange, new_check
from tests.kit.lists import each
from tests.kit.receiver import Receiver
from tests.kit.support import wait_until

PAUSES_SECONDS = (0.0, 0.02, 0.1)
"""Between the requests of a client."""
SILENCES_SECONDS = (0.1, 0.5, 2.5)
"""Between the pings of a check whose period is a second, so that it turns overdue now and then."""
TESTS = 20
"""Test alerts that a client orders at the most: a key has 30 an hour."""


class File:
    """A server's own database, whose schema is `main`."""

    def __init__(self, data):
        self._file = data / FILE_NAME

    def execute(self, sql):
        with contextlib.closing(
            sqlite3.connect(self._file, timeout=60)
        ) as connection:
            return connection.execute(sql).fetchall()


class Client(threading.Thread):
    """Asks any node, with a key and two checks of its own, until it is stopped.

    The steady check is pinged and renamed all the time. The other one turns overdue now and then, and recovers.
    """

    def __init__(self, nodes, receiver, seed):
        super().__init__(daemon=True)
        self._nodes = nodes
        self._random = random.Random(seed)
        self.key = str(
            ask(
                nodes[0],
                "POST",
                "/register",
                {"email": "ops@example.com"},
            ).json["key"]
        )
        self.steady = new_check(
            nodes[0], self.key, name="0", webhook_url=receiver.url
        )
        """As last acknowledged."""
        self.flapping = new_check(
            nodes[0], self.key, period_seconds=1, webhook_url=receiver.url
        )["id"]
        self.acknowledged = Counter()
        self.refused = 0
        self.lost = 0
        """Requests without an answer."""
        self.answered_at = 0.0
        """When something was acknowledged the last time, by the monotonic clock."""
        self._connections = {}
        self._stopping = threading.Event()

    def run(self):
        flaps_at = 0.0
        for number in itertools.count(1):
            if self._stopping.wait(self._random.choice(PAUSES_SECONDS)):
                break
            self._ping_steady()
            self._rename(str(number))
            if time.monotonic() >= flaps_at:
                self._ping_flapping()
                self._order_test()
                flaps_at = time.monotonic() + self._random.choice(
                    SILENCES_SECONDS
                )
        for connection in self._connections.values():
            connection.close()

    def stop(self):
        """Let it end; `join` waits for that."""
        self._stopping.set()

    def _ping_steady(self):
        if self._ask("GET", f"/ping/{self.steady['id']}"):
            self.acknowledged["pings"] += 1

    def _rename(self, name):
        if changed := self._ask(
            "PATCH",
            f"/checks/{self.steady['id']}",
            {"name": name},
            self.key,
        ):
            self.steady = changed.json["check"]
            self.acknowledged["changes"] += 1

    def _ping_flapping(self):
        if pinged := self._ask("GET", f"/ping/{self.flapping}"):
            self.acknowledged["pings of what flaps"] += 1
            self.acknowledged["recoveries"] += pinged.json["recovered"]

    def _order_test(self):
        path = f"/checks/{self.steady['id']}/test-alert"
        if self.acknowledged["tests"] < TESTS and self._ask(
            "POST", path, key=self.key
        ):
            self.acknowledged["tests"] += 1

    def _ask(self, method, path, body=None, key=None):
        """The answer of any node if it is an acknowledgement."""
        # Not in turn: else one that hangs would get all requests of a kind.
        node = self._random.choice(self._nodes)
        if node not in self._connections:
            self._connections[node] = http.client.HTTPConnection(
                node.host, node.port, timeout=20
            )
        try:
            answer = exchange(
                self._connections[node], method, path, body, key
            )
        except (OSError, http.client.HTTPException):
            self._connections.pop(node).close()
            self.lost += 1
            return None
        if answer.status // 100 != 2:
            self.refused += 1
            return None
        self.answered_at = time.monotonic()
        return answer


class Load:
    """Some clients that work at once, and the receiver of their alerts."""

    def __init__(self, nodes, clients):
        self.receiver = Receiver()
        self._nodes = nodes
        self.clients = [
            Client(nodes, self.receiver, seed) for seed in range(clients)
        ]

    def __enter__(self):
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.receiver.__exit__()

    def stop(self):
        for client in self.clients:
            client.stop()
        for client in self.clients:
            client.join()

    def wait(self, seconds=120):
        """Until something was acknowledged to each client from now on; how long that took."""
        began = time.monotonic()
        wait_until(
            lambda: all(
                client.answered_at > began for client in self.clients
            ),
            seconds,
        )
        return time.monotonic() - began

    def wait_for_outages(self, count, seconds=120):
        """Until so many more outages were told."""
        before = len(self.receiver.received)
        wait_until(lambda: _told(self.receiver, before) >= count, seconds)

    def settle(self, database, schema):
        """Stop the clients, and wait until what nobody pings is overdue, and every alert was taken."""
        self.stop()
        left = (
            f"SELECT id FROM {schema}.alerts WHERE state <> 'delivered'"
            f" UNION ALL SELECT id FROM {schema}.checks WHERE period_seconds = 1 AND status = 'on_time'"
        )
        wait_until(lambda: database.execute(left) == [], 120)

    def missing(self, database, schema):
        """What is wrong with what is stored and what has arrived, after `settle`: a sentence each."""
        found = []
        first = {
            received.id: received.json
            for received in self.receiver.received
        }
        stored = {
            row[0]
            for row in database.execute(f"SELECT id FROM {schema}.alerts")
        }
        if stored - set(first):
            found.append(f"alerts did not arrive: {stored - set(first)}")
        told = defaultdict(list)
        for alert in first.values():
            told[alert["data"]["check"]["id"]].append(alert)
        for client in self.clients:
            found += _missing_of(
                client, _stored(database, schema, client), told
            )
        return found

    def totals(self):
        return sum(each(self.clients, "acknowledged"), Counter())

    def summary(self):
        """What was acknowledged and told."""
        counts = ", ".join(
            f"{number:,} {what}" for what, number in self.totals().items()
        )
        doubles = len(self.receiver.received) - len(
            set(self.receiver.ids)
        )
        told = f"{_told(self.receiver):,} outages told; {doubles} alerts arrived twice under one id"
        return f"acknowledged: {counts}\n{told}"


def outages_in(alert):
    """How many outages begin with an alert."""
    return int(
        alert["data"].get("outages", alert["type"] == "check.overdue")
    )


def _told(receiver, start=0):
    """How many outages."""
    arrived = receiver.received[start:]
    return len(
        {
            received.id
            for received in arrived
            if received.json["type"] == "check.overdue"
        }
    )


def _stored(database, schema, client):
    """The rows of its two checks, by their ids."""
    columns = ("id", "ping_count", "version", "name", "status", "outage")
    ids = f"('{client.steady['id']}', '{client.flapping}')"
    rows = database.execute(
        f"SELECT {', '.join(columns)} FROM {schema}.checks WHERE id IN {ids}"
    )
    return {row[0]: dict(zip(columns, row, strict=True)) for row in rows}


def _missing_of(client, rows, told):
    if len(rows) < 2:
        return ["a check is missing"]
    acknowledged = client.acknowledged
    demands = _of_steady(
        client, rows[client.steady["id"]], told[client.steady["id"]]
    )
    demands |= _of_flapping(
        client, rows[client.flapping], told[client.flapping]
    )
    state = f"{rows}, {told}, acknowledged {dict(acknowledged)}, last {client.steady}"
    return [
        f"{demand}: {state}" for demand, met in demands.items() if not met
    ]


def _of_steady(client, row, told):
    tests = each(told, "type")
    return {
        "pings": row["ping_count"] >= client.acknowledged["pings"],
        "versions": row["version"] >= client.steady["version"],
        "the name": row["version"] != client.steady["version"]
        or row["name"] == client.steady["name"],
        "tests": len(tests) >= client.acknowledged["tests"],
        "alerts of the steady check": set(tests) <= {"check.test"},
    }


def _of_flapping(client, row, told):
    types = [alert["type"].removeprefix("check.") for alert in told]
    is_overdue = row["status"] == "overdue"
    turns = ["overdue", "recovered"] * row["outage"]
    return {
        "pings of what flaps": row["ping_count"]
        >= client.acknowledged["pings of what flaps"],
        "recoveries": row["outage"] - is_overdue
        >= client.acknowledged["recoveries"],
        "the order of outages": types == turns[: len(types)],
        "each outage is told once": sum(map(outages_in, told))
        == row["outage"],
        "the last alert": types[-1:]
        == turns[: len(turns) - is_overdue][-1:],
    }


def stored_pings(database, schema, check_id):
    ((count,),) = database.execute(
        f"SELECT ping_count FROM {schema}.checks WHERE id = '{check_id}'"
    )
    return int(count)
