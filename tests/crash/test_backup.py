"""A backup taken while clients write, restored as the README says."""

import signal
import subprocess

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
