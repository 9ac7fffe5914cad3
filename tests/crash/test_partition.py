"""Two nodes, of which the one that monitors is cut off from the database: what it sends there is dropped, not refused.

Clients and webhook receivers still reach it.
"""

import sys
import threading
import time

import pytest

from cardbeat.database.row_lease import HELD_SECONDS, TERM_SECONDS
from tests.crash.client import ask, checks_key, metric, new_check
from tests.crash.cluster import Node, Postgres, folder_for_all
from tests.crash.network import Network, Refused
from tests.receiver import Receiver
from tests.support import wait_until

TAKEN_OVER_SECONDS = 2
"""How soon another node delivers once the lease is free."""
PATIENCE_SECONDS = 1.0
"""For what a machine has to do that has much else to do."""
ANSWERED_SECONDS = 16.0
"""The longest wait of a client: for a statement that is on its way, then for a connection that can't be made."""
LATER_SECONDS = (3, 9, 11, 13)
"""When the alerts are due again that are tried before the cut."""


@pytest.fixture
def network():
    try:
        network = Network()
    except Refused as error:
        pytest.skip(f"the system grants no network namespaces: {error}")
    yield network
    network.close()


@pytest.fixture
def postgres(network, postgresql_programs):
    with folder_for_all() as folder:
        postgres = Postgres(folder / "postgres", postgresql_programs, f"127.0.0.1,{network.behind_router}")
        postgres.create()
        postgres.allow(network.addresses)
        postgres.start()
        yield postgres
        postgres.kill()


@pytest.fixture
def new_node(network, postgres, pyz, tmp_path):
    nodes = []

    def new_node(name, *, is_far):
        within, host, database = (
            (network.far.command, network.there, network.behind_router) if is_far else ((), "127.0.0.1", "127.0.0.1")
        )
        url = f"postgresql://cardbeat@{database}:{postgres.port}/postgres"
        command = (*within, sys.executable, str(pyz))
        nodes.append(Node(tmp_path / name, command, url, "--sweep-seconds", "0.5", host=host))
        return nodes[-1]

    yield new_node
    for node in nodes:
        node.kill()


class Posts:
    """What arrives: when, from which address, and what. Those of checks in `later` are to come again, in seconds."""

    def __init__(self, host):
        self.found = []
        self.later = {}
        self.receiver = Receiver(self._answer, host=host)

    def _answer(self, receiver, connection):
        found = receiver.read(connection)
        name = found.json["data"]["check"]["name"]
        again = self.later.pop(name, None)
        self.found.append((time.monotonic(), connection.getpeername()[0], found.id, found.json["type"], again))
        head = "204 x" if again is None else f"503 x\r\nRetry-After: {again}"
        connection.sendall(f"HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n".encode())

    def of(self, kind):
        return [post for post in self.found if post[3] == kind]

    def by(self, address):
        return [post for post in self.found if post[1] == address]


@pytest.fixture
def posts(network):
    posts = Posts(network.here)
    yield posts
    posts.receiver.__exit__()


class Callers:
    """Ask a node again and again until they are told to stop; what came of it, and how long each answer took."""

    def __init__(self, node, *requests):
        self.statuses = set()
        self.longest_seconds = 0.0
        self._node = node
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=request) for request in requests]
        for thread in self._threads:
            thread.start()

    def _run(self, path, key):
        while not self._stopping.wait(0.2):
            began = time.monotonic()
            self.statuses.add(ask(self._node, "GET", path, key=key).status)
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)

    def stop(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join()


def test_a_node_that_is_cut_off_lets_another_take_over_and_comes_back(network, postgres, new_node, posts):
    far, near = new_node("far", is_far=True), new_node("near", is_far=False)
    far.start()
    near.start()
    key = checks_key(near)
    checks = [new_check(near, key, name=str(seconds), webhook_url=posts.receiver.url) for seconds in LATER_SECONDS]
    wait_until(lambda: metric(far, "cardbeat_sweep_duration_seconds") > 0)
    posts.later = {str(seconds): seconds for seconds in LATER_SECONDS}
    for check in checks:
        assert ask(near, "POST", f"/checks/{check['id']}/test-alert", key=key).status == 202
    silent = new_check(near, key, period_seconds=2, webhook_url=posts.receiver.url)
    wait_until(lambda: len(posts.of("check.test")) == len(checks))
    with network.cut():
        cut_at = time.monotonic()
        ((last,),) = postgres.execute("SELECT now()")
        path = f"/checks/{silent['id']}"
        callers = Callers(far, *((asked, key) for asked in (f"/ping/{checks[0]['id']}", path, path, "/healthz")))
        starting = new_node("starting", is_far=True)
        starting.begin()
        wait_until(lambda: posts.of("check.overdue"))
        assert time.monotonic() - cut_at < TERM_SECONDS + TAKEN_OVER_SECONDS
        # It can't be reached at the start: one line, instead of a process that hangs.
        assert starting.process.wait(10) == 2
        assert len(starting.log.splitlines()) == 1
        wait_until(lambda: len(posts.of("check.test")) == 2 * len(checks))
        # Silent no longer: from here on there is nothing to alert for.
        assert ask(near, "PATCH", f"/checks/{silent['id']}", {"period_seconds": 3600}, key).status == 200
        assert ask(near, "GET", f"/ping/{silent['id']}").json["recovered"]
        wait_until(lambda: posts.of("check.recovered"))
        callers.stop()
    assert callers.statuses == {503}
    assert callers.longest_seconds < ANSWERED_SECONDS
    # It sends for as long as it may have the lease, and not a moment longer.
    assert max(at for at, *_ in posts.by(network.there)) < cut_at + HELD_SECONDS + PATIENCE_SECONDS
    wait_until(lambda: ask(far, "GET", "/healthz").status == 200)
    assert ask(far, "GET", f"/ping/{silent['id']}").status == 200
    wait_until(lambda: "another server sends alerts now" in far.log)
    assert len({post[2] for post in posts.of("check.overdue")}) == 1
    assert len({post[2] for post in posts.of("check.recovered")}) == 1
    assert len({post[2] for post in posts.of("check.test")}) == len(checks)
    # The server lets go of the connections of which nobody could tell it that they have ended.
    ended = f"SELECT pid FROM pg_stat_activity WHERE client_addr = '{network.behind_cut}' AND state_change < '{last}'"
    wait_until(lambda: postgres.execute(ended) == [])
