"""A backup taken while clients write, restored as the documentation says; and one that is stopped."""

import contextlib
import shutil
import signal
import subprocess

import pytest

from cardbeat.database import open_database
from cardbeat.host.staging import PREFIX
from tests.artifact import clean_environment
from tests.crash.client import Busy, ask, checks_key
from tests.support import wait_until


def test_a_backup_under_load_restores_to_a_working_service(start, python, pyz, tmp_path):
    def run(*argv):
        return subprocess.run(
            [python, pyz, *argv], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False
        )

    server = start()
    key = checks_key(server)
    clients = [Busy(server, key) for _ in range(4)]
    wait_until(lambda: all(client.pings[200] > 50 for client in clients))
    acknowledged = [(client.pings[200], client.check["version"]) for client in clients]
    copied = run("backup", "copy.db")
    assert copied.returncode == 0, copied.stderr
    for client in clients:
        client.stop()
    refused = run("restore", "copy.db")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "in use; stop the server" in refused.stderr
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(15) == 0
    restored = run("restore", "copy.db")
    assert restored.returncode == 0, restored.stderr
    again = start()
    for client, (pings, version) in zip(clients, acknowledged, strict=True):
        stored = ask(again, "GET", client.path, key=key).json["check"]
        assert pings <= stored["ping_count"] <= client.pings[200]
        assert version <= stored["version"] <= client.check["version"]
        assert ask(again, "GET", f"/ping/{stored['id']}").status == 200
        assert ask(again, "PATCH", client.path, {"name": "restored"}, key).status == 200
    examined = run("doctor")
    assert examined.returncode == 0, examined.stdout
    assert "sound" in examined.stdout


@pytest.fixture(scope="module")
def much_to_copy(tmp_path_factory):
    """A data folder of 150 MB, which rows had that are gone."""
    folder = tmp_path_factory.mktemp("much")
    with contextlib.closing(open_database(folder)) as database:
        database.write(lambda connection: connection.execute("INSERT INTO monitor VALUES (hex(zeroblob(75000000)), 1)"))
        database.write(lambda connection: connection.execute("DELETE FROM monitor WHERE length(name) > 5000000"))
    return folder


@pytest.fixture
def slow_to_copy(much_to_copy, tmp_path):
    shutil.copytree(much_to_copy, tmp_path / "cardbeat-data")


def left(folder):
    """What stands in a folder of what backups make, and of the folders in which they make it."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith((PREFIX, "copy")))


@pytest.mark.usefixtures("slow_to_copy")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_backup_that_is_stopped_in_the_middle_leaves_nothing_behind(python, pyz, tmp_path, name):
    number = signal.Signals[name]
    command = [python, pyz, "backup", "copy.db"]
    backup = subprocess.Popen(command, cwd=tmp_path, env=clean_environment(), stderr=subprocess.PIPE, text=True)
    wait_until(lambda: any(path.stat().st_size for path in tmp_path.glob(f"{PREFIX}*/copy")))
    backup.send_signal(number)
    _, told = backup.communicate(timeout=30)
    if number == signal.SIGKILL:
        assert backup.returncode == -number
        assert len(left(tmp_path)) == 1
        again = subprocess.run(command, cwd=tmp_path, env=clean_environment(), capture_output=True, check=False)
        assert again.returncode == 0, again.stderr
        assert left(tmp_path) == ["copy.db"]
    else:
        assert backup.returncode == 2
        assert told.splitlines()[-1] == f"cardbeat: stopped by {number.name}; copy.db was not written"
        assert "Traceback" not in told
        assert left(tmp_path) == []
