"""A backup taken while clients write, restored as the documentation says; and one that is stopped."""

import contextlib
import os
import signal
import subprocess

import pytest

from cardbeat.database import open_database
from cardbeat.host.staging import PREFIX
from tests.data.crash.client import Busy, go_on, stop
from tests.kit.artifact import clean_environment, is_refused
from tests.kit.client import ask, checks_key
from tests.kit.lists import times
from tests.kit.support import wait_until


def test_a_backup_under_load_restores_to_a_working_service(start, run):
    server = start()
    key = checks_key(server)
    clients = times(4, Busy, server, key)
    go_on(clients)
    acknowledged = [
        (client.pings[200], client.check["version"]) for client in clients
    ]
    run("backup", "copy.db").check_returncode()
    stop(clients, 200)
    assert (
        "another server uses the data folder"
        in run("restore", "copy.db").stderr
    )
    assert server.stop() == 0
    run("restore", "copy.db").check_returncode()
    again = start()
    for client, (pings, version) in zip(
        clients, acknowledged, strict=True
    ):
        stored = ask(again, "GET", client.path, key=key).json["check"]
        assert pings <= stored["ping_count"] <= client.pings[200]
        assert version <= stored["version"] <= client.check["version"]
    clients = [Busy(again, key)]
    go_on(clients)
    stop(clients, 200)
    assert "sound" in run("doctor").stdout


def test_a_backup_to_a_full_disk_is_one_line_and_leaves_nothing(
    disk, tmp_path, run
):
    open_database(tmp_path / "cardbeat-data").close()
    disk.leave(50 * 1024)
    before = os.listdir(disk.folder)
    refused = run("backup", disk.folder / "copy.db")
    assert is_refused(refused)
    assert "full" in refused.stderr
    assert os.listdir(disk.folder) == before


@pytest.fixture(scope="module")
def much_to_copy(tmp_path_factory):
    """A data folder of 150 MB."""
    folder = tmp_path_factory.mktemp("much")
    with contextlib.closing(open_database(folder)) as database:
        numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)"
        rows = f"{numbers} INSERT INTO monitor SELECT i || hex(zeroblob(50000)), 1 FROM n"
        database.write(lambda connection: connection.execute(rows))
    return folder


STOPPED = "cardbeat: stopped; what was done before is whole\n"


def left(folder):
    """What stands in a folder of what backups make, and of the folders in which they make it."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.name.startswith((PREFIX, "copy"))
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_backup_that_is_stopped_in_the_middle_leaves_nothing_behind(
    python, pyz, run, tmp_path, *, much_to_copy, name
):
    command = ("backup", "copy.db", "--data", much_to_copy)
    backup = subprocess.Popen(
        [python, pyz, *command],
        cwd=tmp_path,
        env=clean_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(
        lambda: any(
            path.stat().st_size
            for path in tmp_path.glob(f"{PREFIX}*/copy")
        )
    )
    backup.send_signal(signal.Signals[name])
    _, told = backup.communicate(timeout=60)
    assert backup.returncode == 130
    assert told == STOPPED
    assert left(tmp_path) == []
