"""Two nodes, of which the one that monitors is cut off from the database: what it sends there is dropped, not refused.

Clients and webhook receivers still reach it. It is cut off once, for all tests here.
"""

import contextlib
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from cardbeat.database.postgresql.lease import TERM_SECONDS
from tests.data.crash.cluster import Node, folder_for_all
from tests.data.crash.network import Network, Refused
from tests.kit import interfaces
from tests.kit.client import ask, checks_key, metric, new_check
from tests.kit.nodes import HOURS_APART
from tests.kit.postgresql import Postgres
from tests.kit.receiver import Receiver
from tests.kit.support import wait_until

TAKEN_OVER_SECONDS = 10
"""How soon another node delivers once the lease is free, on a busy machine too."""
ANSWERED_SECONDS = 25.0
"""The longest wait of a client: for a statement that is on its way, then for a connection that can't be made."""
LATER_SECONDS = (3, 9, 11, 13)
"""When the alerts are due again that are tried before the cut."""
RAN_LONGER = ("unshare", "--time", "--monotonic", str(HOURS_APART))
"""In front of a command: it sees a machine that has run for so much longer."""


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
        self.found.append(
            (
                time.monotonic(),
                connection.getpeername()[0],
                found.id,
                found.json["type"],
                again,
            )
        )
        head = "204 x" if again is None else f"503 x\r\nRetry-After: {again}"
        connection.sendall(
            f"HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n".encode()
        )

    def of(self, kind):
        return [post for post in self.found if post[3] == kind]

    def by(self, address):
        return [post for post in self.found if post[1] == address]


class Callers:
    """Ask a node again and again until they are told to stop; what came of it, and how long each answer took."""

    def __init__(self, node, *requests):
        self.statuses = set()
        self.longest_seconds = 0.0
        self._node = node
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=request)
            for request in requests
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, path, key):
        while not self._stopping.wait(0.2):
            began = time.monotonic()
            self.statuses.add(ask(self._node, "GET", path, key=key).status)
            self.longest_seconds = max(
                self.longest_seconds, time.monotonic() - began
            )

    def stop(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join()


class Story:
    """What is to be judged: two nodes, the alerts that arrived, and when what happened, by the monotonic clock."""

    def __init__(self, network, postgres, posts, pyz, folder):
        self.network, self.postgres, self.posts = network, postgres, posts
        self._pyz, self._folder = pyz, folder
        self.nodes = []
        self.far = self.new_node(
            "far", network.behind_router, network.far.command, network.there
        )
        self.clocks_are_apart = (
            subprocess.run([*RAN_LONGER, "true"], check=False).returncode == 0
        )
        self.near = self.new_node(
            "near", "127.0.0.1", RAN_LONGER if self.clocks_are_apart else ()
        )
        self.far.start()
        self.near.start()
        self.key = checks_key(self.near)

    def new_node(self, name, database, within, host="127.0.0.1"):
        url = f"postgresql://cardbeat@{database}:{self.postgres.port}/postgres"
        command = (*within, sys.executable, str(self._pyz))
        self.nodes.append(
            Node(
                self._folder / name,
                command,
                url,
                "--sweep-seconds",
                "0.5",
                host=host,
            )
        )
        return self.nodes[-1]

    def new_check(self, name, period_seconds=3600):
        url = self.posts.receiver.url
        return new_check(
            self.near,
            self.key,
            name=name,
            period_seconds=period_seconds,
            webhook_url=url,
        )

    def begin(self):
        """Until the far node monitors, and has tried alerts that are due again later."""
        wait_until(
            lambda: metric(self.far, "cardbeat_sweep_duration_seconds") > 0
        )
        self.posts.later = {str(seconds): seconds for seconds in LATER_SECONDS}
        self.tested = [
            self.new_check(str(seconds)) for seconds in LATER_SECONDS
        ]
        for check in self.tested:
            assert (
                ask(
                    self.near,
                    "POST",
                    f"/checks/{check['id']}/test-alert",
                    key=self.key,
                ).status
                == 202
            )
        self.silent = self.new_check("silent", 2)
        wait_until(
            lambda: len(self.posts.of("check.test")) == len(self.tested)
        )

    def fall_apart(self):
        """Until the near node has sent all alerts that were due."""
        self.cut_at = time.monotonic()
        ((self.cut_at_by_server,),) = self.postgres.execute("SELECT now()")
        check, ping = (
            f"/{what}/{self.silent['id']}" for what in ("checks", "ping")
        )
        self.callers = Callers(
            self.far,
            *(
                (path, self.key)
                for path in (ping, check, "/checks", "/healthz")
            ),
        )
        self.starting = self.new_node(
            "starting", self.network.behind_router, self.network.far.command
        )
        self.starting.begin()
        wait_until(lambda: self.posts.of("check.overdue"))
        self.taken_over_at = time.monotonic()
        wait_until(
            lambda: len(self.posts.of("check.test")) == 2 * len(self.tested)
        )
        # Silent no longer: from here on there is nothing to alert for.
        assert (
            ask(
                self.near, "PATCH", check, {"period_seconds": 3600}, self.key
            ).status
            == 200
        )
        assert ask(self.near, "GET", ping).json["recovered"]
        wait_until(lambda: self.posts.of("check.recovered"))
        self.callers.stop()

    def end(self):
        """Until the far node monitors again."""
        wait_until(lambda: ask(self.far, "GET", "/healthz").status == 200)
        self.healed = ask(self.far, "GET", f"/ping/{self.silent['id']}").status
        wait_until(
            lambda: (
                "another server sends alerts now" in self.far.log.read_text()
            )
        )
        assert self.near.stop() == 0
        before = metric(self.far, "cardbeat_sweep_duration_seconds")
        wait_until(
            lambda: (
                metric(self.far, "cardbeat_sweep_duration_seconds") != before
            )
        )


@pytest.fixture(scope="module")
def network():
    try:
        with interfaces.they_change():
            network = Network()
    except Refused as error:
        pytest.skip(f"the system grants no network namespaces: {error}")
    yield network
    with interfaces.they_change():
        network.close()


@pytest.fixture(scope="module")
def postgres(network, postgresql_programs):
    with folder_for_all() as folder:
        postgres = Postgres(
            folder / "postgres",
            postgresql_programs,
            f"127.0.0.1,{network.behind_router}",
        )
        postgres.create()
        postgres.allow(network.addresses)
        postgres.start()
        yield postgres
        postgres.kill()


@pytest.fixture(scope="module")
def story(network, postgres, pyz, tmp_path_factory):
    posts = Posts(network.here)
    with contextlib.ExitStack() as ends:
        ends.callback(posts.receiver.__exit__)
        story = Story(
            network, postgres, posts, pyz, tmp_path_factory.mktemp("cut")
        )
        for node in story.nodes:
            ends.callback(node.kill)
        story.begin()
        with network.cut():
            story.fall_apart()
        story.end()
        yield story


def test_another_node_takes_over_and_the_one_that_is_cut_off_sends_nothing_after_its_lease(
    story,
):
    assert (
        story.taken_over_at - story.cut_at < TERM_SECONDS + TAKEN_OVER_SECONDS
    )
    # From then on another node may send.
    assert (
        max(at for at, *_ in story.posts.by(story.network.there))
        < story.cut_at + TERM_SECONDS
    )


def test_no_alert_is_told_twice_but_under_its_id(story):
    told = Counter(
        kind for _, kind in {post[2:4] for post in story.posts.found}
    )
    assert told == {
        "check.overdue": 1,
        "check.recovered": 1,
        "check.test": len(LATER_SECONDS),
    }


def test_what_a_node_that_is_cut_off_is_asked_is_refused_in_time_until_the_cut_heals(
    story,
):
    assert story.callers.statuses == {503}
    assert story.callers.longest_seconds < ANSWERED_SECONDS
    assert story.healed == 200


def test_a_node_that_starts_cut_off_ends_with_one_line(story):
    assert story.starting.process.wait(60) == 2
    assert story.starting.log.read_text().count("\n") == 1


def test_machines_whose_monotonic_clocks_are_apart_credit_each_other_nothing(
    story,
):
    """The far one has noted moments before and after those of the other, which has run for a day longer."""
    if not story.clocks_are_apart:
        pytest.skip("the system grants no time namespaces")
    deadline = story.tested[0]["deadline_at"]
    check = ask(
        story.far, "GET", f"/checks/{story.tested[0]['id']}", key=story.key
    ).json["check"]
    assert check["deadline_at"] == deadline
    assert (
        "the deadlines of checks"
        not in story.far.log.read_text() + story.near.log.read_text()
    )


def test_the_server_lets_go_of_the_sessions_of_a_host_that_was_cut_off(story):
    of_far = f"SELECT pid FROM pg_stat_activity WHERE client_addr = '{story.network.behind_cut}'"
    left = f"{of_far} AND state_change < '{story.cut_at_by_server}'"
    # 15 s, or a minute for a session that was being opened just then.
    wait_until(lambda: story.postgres.execute(left) == [], 90)
