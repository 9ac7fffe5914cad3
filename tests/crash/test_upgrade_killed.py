"""`kill -9` at many points of the upgrade from schema 7, while pings arrive: none that was answered is lost."""

import contextlib
import http.client
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cardbeat.database.schema import newest
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.database.sqlite.rows import why_refused
from tests.support import wait_until

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests/unit/database/schema_7_sqlite.sql"
CHECKS, PINGERS = 500, 4

SERVER = """
import os, signal, sys
from cardbeat import cli
from cardbeat.database.sqlite import database

folder, port, steps = sys.argv[1:]
whole = database.migrate


def migrate(connection):
    # Pages go to the disk before the commit too.
    connection.execute("PRAGMA cache_size = 5")
    connection.set_progress_handler(lambda: os.kill(os.getpid(), signal.SIGKILL), int(steps))
    whole(connection)
    connection.set_progress_handler(None, 0)


database.migrate = migrate
sys.exit(cli.main(["serve", "--port", port, "--data", folder, "--sweep-seconds", "3600"]))
"""
MANY_CHECKS = """
WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 999 + {count})
INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, status, outage, clock_from,
    created_at, updated_at)
SELECT printf('%032x', i), 'key_c58407bb2083cf06', 'check ' || i, 60, 0, 'https://hooks.example/y', 'overdue', 1,
    1800000000, 1800000000, 1800000000 FROM n;
INSERT INTO alerts (id, check_id, type, outage, body, created_at, next_attempt_at)
SELECT 'msg_' || checks.id, checks.id, 'check.overdue', 1, replace(alerts.body, alerts.check_id, checks.id),
    1800000010, 4000000000 FROM checks JOIN alerts ON alerts.seq = 2 WHERE checks.seq > 3 ORDER BY checks.seq;
"""


class Pinger(threading.Thread):
    """Pings one check over and over, and counts what was answered."""

    def __init__(self, port: int, check_id: str) -> None:
        super().__init__(daemon=True)
        self.port, self.check_id, self.answered = port, check_id, 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.001):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", f"/ping/{self.check_id}")
                self.answered += connection.getresponse().status == 200


def ask(folder, sql):
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        return connection.execute(sql).fetchall()


def free_port():
    """Below those that the system gives to clients: one that calls a closed port can be given that port itself."""
    for port in range(20_000 + os.getpid() % 5000, 32_000):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError


def start(folder, port, steps):
    return subprocess.Popen([sys.executable, "-c", SERVER, folder, str(port), str(steps)], cwd=ROOT)


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_an_upgrade_that_is_killed_again_and_again_is_finished_by_the_next_start(tmp_path, mode):
    """A backup that was put in place by hand is in the mode DELETE."""
    folder = tmp_path / "data"
    folder.mkdir(0o700)
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.executescript(SCRIPT.read_text() + MANY_CHECKS.format(count=CHECKS))
    alerts = ask(folder, "SELECT id FROM alerts ORDER BY seq")
    counts = dict(ask(folder, "SELECT id, ping_count FROM checks"))
    port = free_port()
    pingers = [Pinger(port, check_id) for check_id in list(counts)[-PINGERS:]]
    for pinger in pingers:
        pinger.start()
    steps, killed, version = 10, 0, 7
    while True:
        server = start(folder, port, steps)
        wait_until(lambda server=server: server.poll() is not None or all(p.answered for p in pingers), seconds=60)
        if server.poll() is None:
            break
        assert server.wait() == -signal.SIGKILL
        assert why_refused(folder / FILE_NAME) == []
        # Each step of the upgrade is a transaction.
        reached = ask(folder, "PRAGMA user_version")[0][0]
        assert version <= reached < newest("sqlite")
        version = reached
        steps, killed = steps * 3 // 2, killed + 1
    # Once more with the upgrade done: killed while it serves.
    server.kill()
    server.wait()
    server = start(folder, port, 1_000_000_000)
    before = [pinger.answered for pinger in pingers]
    wait_until(lambda: all(p.answered > n for p, n in zip(pingers, before, strict=True)), seconds=60)
    for pinger in pingers:
        pinger.done.set()
        pinger.join()
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    assert killed >= 10
    assert ask(folder, "PRAGMA user_version") == [(newest("sqlite"),)]
    assert why_refused(folder / FILE_NAME) == []
    found = dict(ask(folder, "SELECT id, ping_count FROM checks"))
    for pinger in pingers:
        # A ping whose answer was lost with the server may count too: one for each time that it was killed.
        assert pinger.answered <= found[pinger.check_id] <= pinger.answered + killed + 1
    assert ask(folder, "SELECT id FROM alerts ORDER BY seq")[: len(alerts)] == alerts
    told = ask(folder, "SELECT DISTINCT last_ping_at, deadline_at, ping_count, outages FROM alerts WHERE seq > 4")
    assert (None, 1_800_000_002, 0, 1) in told
    assert ask(folder, "SELECT count(*) FROM totals_by_key WHERE checks <> (SELECT count(*) FROM checks)") == [(0,)]
