"""Two servers with one PostgreSQL database: the one that monitors is killed, stopped, and stopped past its lease."""

import signal
import sys
import time
from pathlib import Path

import pytest

from cardbeat.database.postgresql.lease import TERM_SECONDS
from tests.kit.artifact import starter
from tests.kit.client import ask, checks_key, metric, new_check
from tests.kit.receiver import Receiver, answer, hang
from tests.kit.support import wait_until

TAKEN_OVER_SECONDS = 8
"""How soon another server delivers once the lease is free, on a busy machine too: before it could
have ended by itself."""


@pytest.fixture
def start(postgresql, pyz, tmp_path):
    """Starts a server that has all to do with a database of the test's own; each has a data folder of its own."""
    url = postgresql.new_schema()
    with starter(
        Path(sys.executable), pyz, tmp_path, CARDBEAT_DATABASE=url
    ) as start_one:

        def start(folder):
            options = (
                "--sweep-seconds",
                "1",
                "--allow-private-webhooks",
                "--data",
                folder,
            )
            return start_one(*options)

        yield start


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def nodes(start):
    """Two of them, of which the first monitors."""
    first = start("first")
    wait_until(lambda: has_swept(first))
    return first, start("second")


def has_swept(server):
    return metric(server, "cardbeat_sweep_duration_seconds") > 0


def received(receiver, kind):
    return [found for found in receiver.received if found.json["type"] == kind]


def test_alerts_go_on_after_the_node_that_monitors_was_killed(nodes, receiver):
    first, second = nodes
    key = checks_key(second)
    check = new_check(second, key, period_seconds=7, webhook_url=receiver.url)
    steady = new_check(second, key, webhook_url=receiver.url)
    assert not has_swept(second)
    assert metric(second, "cardbeat_sweep_age_seconds") < 5
    first.process.kill()
    killed_at = time.monotonic()
    wait_until(lambda: received(receiver, "check.overdue"))
    assert time.monotonic() - killed_at < TERM_SECONDS + TAKEN_OVER_SECONDS
    ask(second, "GET", f"/ping/{check['id']}")
    wait_until(lambda: received(receiver, "check.recovered"))
    assert len(receiver.received) == 2
    wait_until(lambda: has_swept(second))
    assert (
        ask(second, "GET", f"/checks/{steady['id']}", key=key).json["check"]
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
    stopped_at = time.monotonic()
    assert (
        ask(
            second, "POST", f"/checks/{check['id']}/test-alert", key=key
        ).status
        == 202
    )
    wait_until(lambda: receiver.received)
    assert time.monotonic() - stopped_at < TAKEN_OVER_SECONDS
    assert first.process.wait() == 0


def test_a_node_that_was_suspended_past_its_lease_overwrites_nothing(nodes):
    first, second = nodes
    with Receiver(hang, answer()) as receiver:
        key = checks_key(second)
        check = new_check(
            second, key, period_seconds=2, webhook_url=receiver.url
        )

        def alerts():
            return ask(
                second, "GET", f"/checks/{check['id']}/alerts", key=key
            ).json["alerts"]

        wait_until(lambda: receiver.received)
        first.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: alerts()[0]["state"] == "delivered")
        first.process.send_signal(signal.SIGCONT)
        # Its post ends without an answer, which would have it tried again.
        receiver.released.set()
        before = alerts()
        wait_until(
            lambda: "another server sends alerts now" in first.log.read_text()
        )
        ask(first, "GET", f"/ping/{check['id']}")
        wait_until(
            lambda: [alert["state"] for alert in alerts()] == ["delivered"] * 2
        )
        assert alerts()[1:] == before
        assert len(set(receiver.ids)) == 2
        assert [ask(server, "GET", "/healthz").status for server in nodes] == [
            200,
            200,
        ]


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
        new_check(wrong, key, period_seconds=period, webhook_url=receiver.url)
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
