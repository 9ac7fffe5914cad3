"""Two servers with one PostgreSQL database: the one that monitors is killed, stopped, suspended, and cut off from it."""

import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from cardbeat.database.postgresql.lease import TERM_SECONDS
from tests.kit.artifact import clean_environment, ran, starter
from tests.kit.client import ask, checks_key, metric, new_check
from tests.kit.lists import each
from tests.kit.proxy import Proxy
from tests.kit.receiver import Receiver, answer, hang
from tests.kit.support import wait_until

GIVEN_BACK_SECONDS = 8
"""How soon another server delivers once the lease is given back, on a busy machine too: before it
could have ended by itself."""
ENDED_SECONDS = TERM_SECONDS + 20
"""The same of a lease that is not given back."""


ANSWERED_SECONDS = 25
"""The longest wait of a client: for a statement that is on its way, then for a connection that can't be made."""
LATER_SECONDS = (3, 9, 11, 13)
"""When alerts are due again that were tried before the node is cut off."""


@pytest.fixture
def url(postgresql):
    """Of a database of the test's own."""
    return postgresql.new_schema()


@pytest.fixture
def start(url, pyz, tmp_path):
    """Starts a server, with a data folder of its own."""
    with starter(Path(sys.executable), pyz, tmp_path) as start_one:

        def start(folder, database=url):
            return start_one(
                "--sweep-seconds=1",
                "--allow-private-webhooks",
                f"--data={folder}",
                env=clean_environment(CARDBEAT_DATABASE=database),
            )

        yield start


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def proxy(postgresql):
    with Proxy(postgresql.port) as proxy:
        yield proxy


@pytest.fixture
def behind(postgresql, proxy, url):
    return postgresql.behind(proxy, url)


@pytest.fixture
def nodes(start, behind):
    """Two of them, of which the first monitors, and is behind the proxy."""
    first = start("first", behind)
    wait_until(lambda: has_swept(first))
    return first, start("second")


def last_sweep(server):
    """How long it took: never the same twice."""
    return metric(server, "cardbeat_sweep_duration_seconds")


def has_swept(server):
    return last_sweep(server) > 0


def history(server, check, key):
    path = f"/checks/{check['id']}/alerts"
    return ask(server, "GET", path, key=key).json["alerts"]


def lost_its_lease(server):
    return "another server sends alerts now" in server.log.read_text()


def received(receiver, kind):
    return [
        found for found in receiver.received if found.json["type"] == kind
    ]


def order_alert(server, key, check):
    path = f"/checks/{check['id']}/test-alert"
    assert ask(server, "POST", path, key=key).status == 202


def test_alerts_go_on_after_the_node_that_monitors_was_killed(
    nodes, receiver
):
    first, second = nodes
    key = checks_key(second)
    check = new_check(
        second, key, period_seconds=7, webhook_url=receiver.url
    )
    steady = new_check(second, key, webhook_url=receiver.url)
    assert not has_swept(second)
    assert metric(second, "cardbeat_sweep_age_seconds") < 20
    first.process.kill()
    wait_until(lambda: received(receiver, "check.overdue"), ENDED_SECONDS)
    ask(second, "GET", f"/ping/{check['id']}")
    wait_until(lambda: received(receiver, "check.recovered"))
    assert len(receiver.received) == 2
    wait_until(lambda: has_swept(second))
    assert (
        ask(second, "GET", f"/checks/{steady['id']}", key=key).json[
            "check"
        ]
        == steady
    )
    assert "the deadlines of checks" not in second.log.read_text()


def test_alerts_go_on_at_once_after_the_node_that_monitors_was_stopped(
    nodes, receiver
):
    first, second = nodes
    key = checks_key(second)
    check = new_check(second, key, webhook_url=receiver.url)
    first.process.terminate()
    order_alert(second, key, check)
    wait_until(lambda: receiver.received, GIVEN_BACK_SECONDS)
    assert first.process.wait() == 0


def test_a_node_that_was_suspended_past_its_lease_overwrites_nothing(
    nodes,
):
    first, second = nodes
    with Receiver(hang, answer()) as receiver:
        key = checks_key(second)
        check = new_check(
            second, key, period_seconds=2, webhook_url=receiver.url
        )

        def alerts():
            return history(second, check, key)

        wait_until(lambda: receiver.received)
        swept = last_sweep(first)
        first.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: alerts()[0]["state"] == "delivered")
        first.process.send_signal(signal.SIGCONT)
        # Its post ends without an answer, which would have it tried again.
        receiver.released.set()
        before = alerts()
        # On a busy machine it may have the lease again before it has looked.
        wait_until(
            lambda: lost_its_lease(first) or last_sweep(first) != swept
        )
        ask(first, "GET", f"/ping/{check['id']}")
        wait_until(lambda: each(alerts(), "state") == ["delivered"] * 2)
        assert alerts()[1:] == before
        assert len(set(receiver.ids)) == 2
        for server in nodes:
            assert ask(server, "GET", "/healthz").status == 200


@pytest.mark.parametrize("hour", [3600, -3600])
def test_a_node_whose_clock_is_an_hour_off_alerts_nobody_wrongly(
    start, receiver, faults, monkeypatch, hour
):
    faults.set_clock(hour)
    wrong = start("wrong")
    with monkeypatch.context() as patch:
        patch.delenv("LD_PRELOAD")
        right = start("right")
    key = checks_key(wrong)
    kept, silent = (
        new_check(
            wrong, key, period_seconds=period, webhook_url=receiver.url
        )
        for period in (600, 3)
    )
    for server in (wrong, right, wrong):
        ask(server, "GET", f"/ping/{kept['id']}")
    wait_until(lambda: received(receiver, "check.overdue"))
    wrong.process.terminate()
    ask(right, "GET", f"/ping/{silent['id']}")
    wait_until(lambda: received(receiver, "check.recovered"))
    (told,) = {
        found.json["data"]["check"]["id"] for found in receiver.received
    }
    assert told == silent["id"]
    assert (
        "the deadlines of checks"
        not in right.log.read_text() + wrong.log.read_text()
    )


def test_a_node_that_is_cut_off_sends_nothing_after_its_lease_and_refuses_in_time(
    nodes, proxy, receiver
):
    """What it sends to the database is dropped, not refused."""
    far, near = nodes
    key = checks_key(near)
    alerts_that_wait(near, key, receiver)
    silent = new_check(
        near, key, period_seconds=5, webhook_url=receiver.url
    )
    ping = f"/ping/{silent['id']}"
    path = f"/checks/{silent['id']}"
    proxy.dropped |= {"there", "back"}
    with refused_in_time(far, key, ping, path, "/checks", "/healthz"):
        sent = taken_over_from(far, receiver)
        change = {"period_seconds": 3600}
        assert ask(near, "PATCH", path, change, key).status == 200
        assert ask(near, "GET", ping).json["recovered"]
        wait_until(lambda: received(receiver, "check.recovered"))
    proxy.dropped.clear()
    wait_until(lambda: ask(far, "GET", "/healthz").status == 200)
    assert ask(far, "GET", ping).status == 200
    goes_on_alone(far, near)
    assert sent_by(far, receiver) == sent
    # Of the tests, and of what was overdue and recovered.
    assert len(set(receiver.ids)) == len(LATER_SECONDS) + 2


def alerts_that_wait(server, key, receiver):
    """Each was tried once, and is due again later."""
    receiver.behaviours[:0] = [
        answer(503, f"Retry-After: {n}\r\n") for n in LATER_SECONDS
    ]
    for _ in LATER_SECONDS:
        check = new_check(server, key, webhook_url=receiver.url)
        order_alert(server, key, check)
    wait_until(lambda: len(receiver.received) == len(LATER_SECONDS))


@contextmanager
def refused_in_time(node, key, *paths):
    """Requests that are on their way meanwhile."""

    def refused(path):
        began = time.monotonic()
        assert ask(node, "GET", path, key=key).status == 503
        assert time.monotonic() - began < ANSWERED_SECONDS

    with ThreadPoolExecutor() as pool:
        asked = pool.map(refused, paths, timeout=120)
        yield
        list(asked)


def taken_over_from(far, receiver):
    """How many alerts the far one, just cut off, had sent when its lease ended."""
    time.sleep(TERM_SECONDS)
    sent = sent_by(far, receiver)
    wait_until(lambda: received(receiver, "check.overdue"), ENDED_SECONDS)
    wait_until(lambda: len(received(receiver, "check.test")) == 8)
    return sent


def sent_by(node, receiver):
    told = [found.json["data"]["url"] for found in receiver.received]
    return sum(link.startswith(f"{node.url}/") for link in told)


def goes_on_alone(far, near):
    """It knows that its lease was lost, and sweeps again once the near one has stopped."""
    wait_until(lambda: lost_its_lease(far))
    assert near.stop() == 0
    before = last_sweep(far)
    wait_until(lambda: last_sweep(far) != before)


def test_no_node_starts_while_its_database_does_not_answer(
    behind, proxy, pyz, tmp_path
):
    proxy.dropped |= {"there", "back"}
    command = (sys.executable, pyz, "--port", "0", "--data", "starting")
    environment = clean_environment(CARDBEAT_DATABASE=behind)
    refused = ran(*command, cwd=tmp_path, env=environment)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
