"""A disk that takes seconds for each commit: that is no outage of the monitor, but one in the midst of it is."""

import contextlib
import signal
import sqlite3
import time
from datetime import datetime

import pytest

from tests.crash.client import ask, checks_key, new_check
from tests.support import wait_until

SWEEP = ("--data", "data", "--sweep-seconds", "0.5")
OUTAGE_SECONDS = 6
HOUR = 3600


def read(server, key, check):
    return ask(server, "GET", f"/checks/{check['id']}", key=key).json["check"]


def deadline(check):
    return datetime.fromisoformat(check["deadline_at"]).timestamp()


def test_a_check_is_told_overdue_though_each_commit_takes_longer_than_an_outage(start, faults):
    server = start(*SWEEP)
    key = checks_key(server)
    silent, steady = new_check(server, key, period_seconds=3), new_check(server, key, period_seconds=HOUR)
    with faults.slow_syncs(3):
        wait_until(lambda: read(server, key, silent)["status"] == "overdue", 25)
        before = read(server, key, steady)
        time.sleep(7)  # more than two commits, each longer than two sweeps
        assert read(server, key, steady) == before == steady
    assert "no ping could be taken" not in server.log.read_text()


@contextlib.contextmanager
def suspended(server):
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGCONT)


def killed(start, server):
    server.process.kill()
    server.process.wait()
    time.sleep(OUTAGE_SECONDS)
    return start(*SWEEP)


@pytest.mark.parametrize("is_killed", [False, True])
def test_an_outage_in_the_middle_of_a_slow_sweep_is_credited_once(start, faults, tmp_path, is_killed):
    server = start(*SWEEP)
    key = checks_key(server)
    steady, first = new_check(server, key, period_seconds=HOUR), new_check(server, key, period_seconds=HOUR)
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "cardbeat.db", isolation_level=None)) as connection:

        def overdue():
            return connection.execute("SELECT count(*) FROM checks WHERE status = 'overdue'").fetchone()[0]

        with faults.slow_syncs(1):
            make_due(connection, first["id"], 1000)
            wait_until(lambda: 250 <= overdue() < 1000)
            began = time.monotonic()
            if is_killed:
                server = killed(start, server)
            else:
                with suspended(server):
                    time.sleep(OUTAGE_SECONDS)
            outage_seconds = time.monotonic() - began
            wait_until(lambda: overdue() == 1000)
        moved = deadline(read(server, key, steady)) - deadline(steady)
        assert OUTAGE_SECONDS - 1 <= moved <= outage_seconds + 4
    assert server.log.read_text().count("no ping could be taken") == 1


def make_due(connection, check_id, count):
    """So many checks like one, all overdue at once."""
    connection.execute(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
        "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, clock_from, created_at, updated_at) "
        "SELECT id || '-' || n, api_key_id, name, 1, 0, clock_from - 100, created_at, updated_at "
        "FROM numbers, checks WHERE id = ?",
        (count, check_id),
    )
