"""A client that keeps a server busy and remembers what was acknowledged."""

import contextlib
import http.client
import itertools
import threading
from collections import Counter

from tests.kit.client import ask, connect, exchange, new_check
from tests.kit.support import wait_until


class Busy(threading.Thread):
    """Pings a check of its own and renames it, by turns, until it is stopped or the server dies."""

    def __init__(self, server, key):
        super().__init__()
        self.key = key
        self.check = new_check(server, key)
        """As last acknowledged."""
        self.path = f"/checks/{self.check['id']}"
        self.pings = Counter()
        """Answers by status."""
        self._connection = connect(server)
        self._stopping = threading.Event()
        self.start()

    def run(self):
        with (
            contextlib.closing(self._connection),
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            for number in itertools.count():
                if self._stopping.is_set():
                    return
                self.pings[
                    exchange(
                        self._connection,
                        "GET",
                        f"/ping/{self.check['id']}",
                    ).status
                ] += 1
                changed = exchange(
                    self._connection,
                    "PATCH",
                    self.path,
                    {"name": f"job {number}"},
                    self.key,
                )
                if changed.status == 200:
                    self.check = changed.json["check"]

    def stop(self):
        self._stopping.set()
        self.join()

    def stored(self, server):
        """Its check as a server has it, which must hold all that was acknowledged."""
        stored = dict(
            ask(server, "GET", self.path, key=self.key).json["check"]
        )
        assert stored["ping_count"] >= self.pings[200]
        assert stored["version"] >= self.check["version"]
        if stored["version"] == self.check["version"]:
            assert stored["name"] == self.check["name"]
        return stored


def go_on(clients, status=200, more=20):
    """Wait until each client got so many more answers of this status to its pings."""
    enough = [client.pings[status] + more for client in clients]
    wait_until(
        lambda: all(
            client.pings[status] >= count
            for client, count in zip(clients, enough, strict=True)
        ),
        120,
    )


def stop(clients, *statuses):
    """Let them end; all answers to their pings had one of these statuses."""
    for client in clients:
        client.stop()
        assert set(client.pings) <= set(statuses)


def require_kept(clients, server):
    """Of clients that have ended, every ping that was answered with 200 is stored, and no other."""
    for client in clients:
        assert client.stored(server)["ping_count"] == client.pings[200]
