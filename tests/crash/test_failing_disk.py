"""A disk that fails at random: no acknowledged ping is lost, no command leaves half of its work, and all heals."""

import contextlib
import itertools
import os
import shutil
import sqlite3
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

from cardbeat.database.schema import newest
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.host.staging import PREFIX
from tests.artifact import clean_environment
from tests.crash.client import ask, checks_key, connect, exchange, new_check
from tests.support import wait_until

FIRST, COUNT = (int(os.environ.get(name, default)) for name, default in (("FIRST_SEED", "506"), ("SEEDS", "6")))
SEEDS = range(FIRST, FIRST + COUNT)
"""With 510 a new database was once damaged. The variables choose others."""
SCHEMA_7 = Path(__file__).parents[1] / "unit" / "database" / "schema_7_sqlite.sql"


class Pings(threading.Thread):
    """Pings a check until it is stopped or the server dies."""

    def __init__(self, server, check):
        super().__init__()
        self.check = check
        self.answers = Counter()
        self.asked = 0
        self._server = server
        self._stopping = threading.Event()
        self.start()

    def run(self):
        with contextlib.closing(connect(self._server)) as connection, contextlib.suppress(OSError):
            while not self._stopping.is_set():
                self.asked += 1
                self.answers[exchange(connection, "GET", f"/ping/{self.check['id']}").status] += 1

    def stop(self):
        self._stopping.set()
        self.join()


def go_on(pings):
    before = [ping.answers[200] for ping in pings]
    wait_until(lambda: all(ping.answers[200] > count + 10 for ping, count in zip(pings, before, strict=True)))


def test_no_acknowledged_ping_is_lost_and_all_goes_on_when_the_disk_heals(start, faults, tmp_path):
    data = tmp_path / "data"
    server = start("--data", str(data))
    key = checks_key(server)
    checks = [new_check(server, key) for _ in range(4)]
    acknowledged, asked = Counter(), Counter()
    for seed in SEEDS:
        pings = [Pings(server, check) for check in checks]
        go_on(pings)
        with faults.failing_disk(data, seed, every=1 + 7 * (seed % 5)):
            before = sum(ping.asked for ping in pings)
            wait_until(lambda: sum(ping.asked for ping in pings) > before + 40)  # noqa: B023
        go_on(pings)
        wait_until(lambda: ask(server, "GET", "/healthz").status == 200)  # noqa: B023
        assert ask(server, "PATCH", f"/checks/{checks[0]['id']}", {"name": f"{seed}"}, key).status == 200
        if seed % 2:
            server.process.kill()
            server.process.wait()
        for ping in pings:
            ping.stop()
            assert set(ping.answers) <= {200, 503}
            acknowledged[ping.check["id"]] += ping.answers[200]
            asked[ping.check["id"]] += ping.asked
        if seed % 2:
            assert why_refused(data / FILE_NAME) == []
            server = start("--data", str(data))
        for check in checks:
            stored = ask(server, "GET", f"/checks/{check['id']}", key=key).json["check"]
            assert acknowledged[check["id"]] <= stored["ping_count"] <= asked[check["id"]]


@pytest.fixture
def run(python, pyz, tmp_path):
    """Runs a command, which must work or end with one clear line and status 2."""

    def run(*argv):
        ended = subprocess.run(
            [python, pyz, *argv], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False
        )
        assert "Traceback" not in ended.stderr, ended.stderr
        assert ended.returncode in (0, 2), (argv, ended.stderr)
        if ended.returncode:
            assert "cardbeat: " in ended.stderr.splitlines()[-1], ended.stderr
        return ended

    return run


def emails(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return sorted(row[0] for row in connection.execute("SELECT email FROM keys WHERE email IS NOT NULL"))


def test_a_start_and_a_migration_work_or_say_why(run, faults, tmp_path):
    for seed in SEEDS:
        data = tmp_path / f"data-{seed}"
        data.mkdir(mode=0o700)
        if seed % 2:
            with contextlib.closing(sqlite3.connect(data / FILE_NAME)) as connection:
                connection.executescript(SCHEMA_7.read_text())
        with faults.failing_disk(data, seed, every=2 + 4 * (seed % 7)):
            made = run("keys", "create", "--email", "a@b", "--data", str(data))
        if (data / FILE_NAME).exists():
            emails(data / FILE_NAME)
        run("keys", "create", "--email", "c@d", "--data", str(data)).check_returncode()
        assert why_refused(data / FILE_NAME) == []
        after = emails(data / FILE_NAME)
        assert after.count("c@d") == 1
        if made.returncode == 0:
            assert after.count("a@b") == 1
        with contextlib.closing(sqlite3.connect(data / FILE_NAME)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (newest("sqlite"),)


def test_backup_and_restore_do_all_or_nothing(run, faults, tmp_path):
    data, copies = tmp_path / "data", tmp_path / "copies"
    copies.mkdir()
    run("keys", "create", "--email", "a@b", "--data", str(data)).check_returncode()
    run("backup", str(tmp_path / "old.db"), "--data", str(data)).check_returncode()
    run("keys", "create", "--email", "c@d", "--data", str(data)).check_returncode()
    for seed in SEEDS:
        shutil.copy(tmp_path / "old.db", copies / "copy.db")
        with faults.failing_disk(copies, seed, every=2 + 4 * (seed % 7)):
            made = run("backup", str(copies / "copy.db"), "--data", str(data))
        assert emails(copies / "copy.db") in ([["a@b", "c@d"]] if made.returncode == 0 else [["a@b"], ["a@b", "c@d"]])
        # What the disk did not let go is removed by a later backup.
        assert {name for name in os.listdir(copies) if not name.startswith(PREFIX)} == {"copy.db"}
        with faults.failing_disk(data, seed, every=2 + 4 * (seed % 7)):
            made = run("restore", str(tmp_path / "old.db"), "--data", str(data))
        assert why_refused(data / FILE_NAME) == []
        found = emails(data / FILE_NAME)
        assert found == ["a@b"] or (made.returncode == 2 and found == ["a@b", "c@d"])
        if "c@d" not in found:
            run("keys", "create", "--email", "c@d", "--data", str(data)).check_returncode()


def test_a_card_is_whole_or_not_stored(start, faults, tmp_path):
    data = tmp_path / "data"
    server = start("--data", str(data))
    for seed in SEEDS:
        key = ask(server, "POST", "/register").json["key"]
        urls = [f"/og?title=card{number}&key={key}" for number in range(6)]
        with faults.failing_disk(data, seed, every=1 + seed % 4):
            drawn = [ask(server, "GET", url) for url in urls for _ in range(2)]
        assert {answer.status for answer in drawn} <= {200, 503}
        for url in urls:
            first, again = ask(server, "GET", url), ask(server, "GET", url)
            assert (first.status, again.headers["X-Cache"]) == (200, "HIT")
            assert first.body == again.body
            shown = [a.body for a, u in zip(drawn, [u for u in urls for _ in range(2)], strict=True) if u == url]
            assert {body for body in shown if body.startswith(b"\x89PNG")} <= {first.body}


def test_a_quota_that_is_used_up_is_a_full_disk(start, faults, tmp_path):
    """Of quotas neither SQLite nor the system tells: pings were refused after some hundreds, and the start failed."""
    data = tmp_path / "data"
    server = start("--data", str(data), "--allow-private-webhooks")
    key = checks_key(server)
    checks = [new_check(server, key, webhook_url="http://127.0.0.1:9/") for _ in range(40)]
    cards = ask(server, "POST", "/register").json["key"]
    faults.quota.write_text(str(data))
    with contextlib.closing(connect(server)) as connection:
        for check, signal in itertools.product(checks, ["", "/fail"] * 5):
            assert exchange(connection, "GET", f"/ping/{check['id']}{signal}").status == 200
        assert exchange(connection, "GET", f"/og?title=a&key={cards}").status == 200
    assert ask(server, "POST", "/register").json["code"] == "disk_low"
    server.process.kill()
    server.process.wait()
    again = start("--data", str(data))
    assert ask(again, "GET", f"/ping/{checks[0]['id']}").status == 200
