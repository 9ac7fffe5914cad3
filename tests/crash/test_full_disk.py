"""A disk that is full for real: pings and deletions go on, nothing new is taken, and it heals by itself."""

import contextlib
import errno
import os
import shutil
import signal
import sqlite3
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from cardbeat.database import open_database
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.database.sqlite.room import CHECK_BYTES, ROOM
from cardbeat.database.sqlite.rows import why_refused
from cardbeat.host.disk import SMALL_DISK_SHARE
from tests.artifact import clean_environment
from tests.crash.client import Busy, ask, checks_key, connect, exchange, metric, new_check
from tests.support import wait_until

MIB = 1024 * 1024
DISK_BYTES = 16 * MIB
"""Several times what the database and its log come to, so that there is the reserve when room is made."""


class Disk:
    def __init__(self, folder):
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self):
        """Take what is left, to the last byte, and what is freed meanwhile too."""
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for block in (bytes(4096), b"0"):
                while os.write(descriptor, block) == len(block):
                    pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        finally:
            os.close(descriptor)

    def leave(self, free):
        """Take all but so many bytes."""
        with self._ballast.open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, shutil.disk_usage(self.folder).free - free)

    def make_room(self):
        self._ballast.unlink()


@pytest.fixture
def disk(request, tmp_path):
    """Of `DISK_BYTES`, or as many as the test is parametrized with."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = f"size={getattr(request, 'param', DISK_BYTES)}"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here; tests/http/test_checks_full_disk.py limits the file size instead")
    yield Disk(folder)
    subprocess.run(["umount", folder], check=True)


def pinged(server, check, count=1):
    """The statuses of so many pings of a check, over one connection."""
    with contextlib.closing(connect(server)) as connection:
        return {exchange(connection, "GET", f"/ping/{check['id']}").status for _ in range(count)}


def room_bytes(disk):
    return (disk.folder / "data" / ROOM).stat().st_size


@pytest.mark.parametrize("disk", [128 * MIB], indirect=True)
def test_a_server_starts_again_and_again_though_another_program_takes_what_each_stop_frees(disk, start):
    """Each start took 1 MiB of the room, of 6: then the server did not start until there was space."""
    data = ("--data", str(disk.folder / "data"))
    server = start(*data)
    check = new_check(server, checks_key(server))
    for _ in range(12):
        assert pinged(server, check) == {200}
        server.process.terminate()
        server.process.wait(15)
        disk.fill()
        server = start(*data)


@pytest.mark.parametrize("disk", [64 * MIB], indirect=True)
def test_every_check_has_room_for_its_first_ping_and_its_alerts_on_a_full_disk(disk, start):
    server = start("--data", str(disk.folder / "data"), "--sweep-seconds", "1", "--allow-private-webhooks")
    # Two rows of this size fill a page: as soon as one is longer, it needs a page of its own.
    url = f"http://127.0.0.1:1/{'x' * 1910}"

    def made(key):
        return [new_check(server, key, webhook_url=url)["id"] for _ in range(100)]

    def each(function):
        with ThreadPoolExecutor(4) as pool:
            return Counter(pool.map(function, ((key, check) for key, ids in checks.items() for check in ids)))

    with ThreadPoolExecutor(4) as pool:
        keys = [checks_key(server) for _ in range(20)]
        checks = dict(zip(keys, pool.map(made, keys), strict=True))
    wait_until(lambda: room_bytes(disk) >= 2000 * CHECK_BYTES)
    disk.fill()
    path = "/checks/{}".format
    late, all_well = {"period_seconds": 1}, Counter({200: 2000})
    assert each(lambda of: ask(server, "PATCH", path(of[1]), late, of[0]).status) == all_well
    wait_until(lambda: metric(server, 'cardbeat_checks{status="overdue"}') == 2000, seconds=60)
    assert each(lambda of: ask(server, "GET", f"/ping/{of[1]}").status) == all_well
    wait_until(lambda: metric(server, 'cardbeat_checks{status="overdue"}') == 2000, seconds=60)
    assert ask(server, "GET", "/healthz").status == 200
    assert each(lambda of: ask(server, "DELETE", path(of[1]), key=of[0]).status) == Counter({204: 2000})


@pytest.mark.parametrize("disk", [128 * MIB], indirect=True)
def test_pings_and_deletions_have_room_on_a_full_disk(disk, start):
    server = start("--data", str(disk.folder / "data"))
    keys = [checks_key(server) for _ in range(2)]
    checks = [new_check(server, keys[0]) for _ in range(100)]
    new_check(server, keys[1])
    disk.fill()
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda check: pinged(server, check, 100), checks))
    assert statuses == [{200}] * len(checks)
    assert ask(server, "POST", "/register").json["code"] == "disk_low"
    kept, others = checks[:50], checks[50:]
    deleted = {ask(server, "DELETE", f"/checks/{check['id']}", key=keys[0]).status for check in others}
    assert deleted == {204}
    assert ask(server, "DELETE", "/key", key=keys[1]).status == 204
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        server.process.send_signal(signal_number)
        server.process.wait(15)
        # A stop removes the -wal, and another program takes its place.
        disk.fill()
        server = start("--data", str(disk.folder / "data"))
        assert pinged(server, kept[0]) == {200}
        assert ask(server, "DELETE", f"/checks/{kept.pop()['id']}", key=keys[0]).status == 204
    disk.make_room()
    field = {"name": "new", "period_seconds": 60, "grace_seconds": 0}
    wait_until(lambda: ask(server, "POST", "/checks", field, keys[0]).status == 201)
    wait_until(lambda: room_bytes(disk) == 128 * MIB // SMALL_DISK_SHARE + (len(kept) + 1) * CHECK_BYTES)
    assert ask(server, "GET", f"/checks/{kept[0]['id']}", key=keys[0]).json["check"]["ping_count"] == 102


def test_a_full_disk_costs_stored_cards_and_nothing_afterwards(disk, start):
    server = start("--data", str(disk.folder / "data"))
    card = f"/og?title=full&key={ask(server, 'POST', '/register').json['key']}"
    clients = [Busy(server, checks_key(server)) for _ in range(3)]

    def go_on():
        before = [client.pings[200] for client in clients]
        wait_until(lambda: all(client.pings[200] > count + 100 for client, count in zip(clients, before, strict=True)))

    go_on()
    disk.fill()
    go_on()
    drawn = [ask(server, "GET", card) for _ in range(2)]
    assert [(answer.status, answer.headers["X-Cache"]) for answer in drawn] == [(200, "MISS")] * 2
    assert drawn[0].body.startswith(b"\x89PNG")
    # The first, where the server has not looked for a second how much is free.
    told = ("can't store a card", "which is less than the reserve")
    wait_until(lambda: any(line in server.log.read_text() for line in told))
    assert ask(server, "GET", "/healthz").status == 200
    disk.make_room()
    go_on()
    wait_until(lambda: ask(server, "GET", card).headers["X-Cache"] == "HIT")
    for client in clients:
        client.stop()
        assert set(client.pings) == {200}
        assert client.stored(server)["ping_count"] == client.pings[200]
    server.process.kill()
    server.process.wait()
    assert why_refused(disk.folder / "data" / FILE_NAME) == []
    again = start("--data", str(disk.folder / "data"))
    for client in clients:
        assert client.stored(again)["ping_count"] == client.pings[200]


@pytest.mark.parametrize("disk", [64 * MIB], indirect=True)
def test_a_reader_that_stayed_while_the_disk_became_full_leaves_room_to_empty_the_wal(disk, start):
    server = start("--data", str(disk.folder / "data"), "--register-per-minute", "100")
    keys = [checks_key(server) for _ in range(5)]
    wait_until(lambda: room_bytes(disk) >= 64 * MIB // SMALL_DISK_SHARE)
    with contextlib.closing(sqlite3.connect(disk.folder / "data" / FILE_NAME, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM monitor").fetchall()
        # What these need of the database file is missing there until the -wal is emptied.
        url = f"https://example.com/{'x' * 1900}"
        checks = [new_check(server, key, webhook_url=url) for key in keys for _ in range(100)]
        disk.fill()
        wait_until(lambda: pinged(server, checks[0]) == {503})
        disk.fill()
        assert pinged(server, checks[0]) == {503}
        wait_until(lambda: "because a reader stays" in server.log.read_text())
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda check: pinged(server, check, 10), checks)) == [{200}] * len(checks)


def test_a_backup_to_a_full_disk_is_one_line_and_leaves_nothing(disk, tmp_path, python, pyz):
    open_database(tmp_path / "cardbeat-data").close()
    disk.leave(50 * 1024)
    before = os.listdir(disk.folder)
    command = [python, pyz, "backup", disk.folder / "copy.db"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=clean_environment(), check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "full" in ended.stderr
    assert os.listdir(disk.folder) == before


def test_stored_cards_give_way_to_new_checks(disk, start):
    server = start("--data", str(disk.folder / "data"))
    key, cards_key = checks_key(server), ask(server, "POST", "/register").json["key"]
    wait_until(lambda: room_bytes(disk) >= DISK_BYTES // SMALL_DISK_SHARE)
    # One that runs may learn a second later that so much is gone, and until then stores all that is drawn.
    server.process.terminate()
    server.process.wait(15)
    disk.leave(DISK_BYTES // SMALL_DISK_SHARE + 2 * MIB)
    server = start("--data", str(disk.folder / "data"))
    drawn = 0
    for first in range(0x1F400, 0x1F430):
        title = "".join(chr(first + step) for step in range(60))
        drawn += len(ask(server, "GET", f"/og?title={quote(title)}&key={cards_key}").body)
        if first % 8 == 0:
            new_check(server, key)
    assert drawn > 3 * MIB
    assert ask(server, "POST", "/register").status == 201
    assert "less than the reserve" not in server.log.read_text()


@pytest.mark.parametrize("disk", [100 * MIB], indirect=True)
def test_below_its_reserve_nothing_new_is_taken_and_the_rest_goes_on(disk, start):
    server = start("--data", str(disk.folder / "data"), "--sweep-seconds", "1")
    key, other = checks_key(server), checks_key(server)
    checks = [new_check(server, key, period_seconds=1) for _ in range(30)]
    disk.leave(5 * MIB - 4096)
    # Refused for another reason, so that nothing is stored, until the server has looked at its disk.
    wait_until(lambda: ask(server, "POST", f"/checks/{checks[0]['id']}/test-alert", key=key).status == 503)
    assert ask(server, "POST", "/register").json["code"] == "disk_low"
    fields = {"name": "a", "period_seconds": 60, "grace_seconds": 0}
    refused = ask(server, "POST", "/checks", fields, key)
    assert (refused.status, refused.json["code"]) == (503, "disk_low")
    wait_until(lambda: ask(server, "GET", f"/checks/{checks[0]['id']}", key=key).json["check"]["status"] == "overdue")
    assert ask(server, "GET", f"/ping/{checks[0]['id']}").json["recovered"]
    assert ask(server, "PATCH", f"/checks/{checks[1]['id']}", {"name": "b"}, key).status == 200
    for check in checks[:15]:
        assert ask(server, "DELETE", f"/checks/{check['id']}", key=key).status == 204
    assert ask(server, "DELETE", "/key", key=key).status == 204
    disk.make_room()
    # A refused registration counts for the address's limit, so this does not wait for one that is taken.
    wait_until(lambda: ask(server, "POST", "/checks", fields, other).status == 201)
    assert ask(server, "POST", "/register").status == 201
    assert server.log.read_text().count("less than the reserve") == 1
