"""A disk that fails to sync, and a power cut: a ping is acknowledged only when it is on disk."""

import shutil
import signal

from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.database.sqlite.rows import why_refused
from tests.crash.client import Busy, ask, checks_key
from tests.support import wait_until

CLIENTS = 4


def test_nothing_is_acknowledged_while_the_disk_fails_to_sync(start, faults, tmp_path):
    server = start("--data", "data")
    key = checks_key(server)
    clients = [Busy(server, key) for _ in range(CLIENTS)]
    ping = f"/ping/{clients[0].check['id']}"
    wait_until(lambda: all(client.pings[200] > 20 for client in clients))
    with faults.failing_syncs():
        refused = [ask(server, method, ping) for method in ("GET", "HEAD", "POST") * 5]
        assert ask(server, "GET", "/healthz").status == 503
        before = [client.pings[503] for client in clients]
        wait_until(lambda: all(client.pings[503] > count + 5 for client, count in zip(clients, before, strict=True)))
    assert {answer.status for answer in refused} == {503}
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    assert ask(server, "GET", "/healthz").status == 200
    before = [client.pings[200] for client in clients]
    wait_until(lambda: all(client.pings[200] > count + 20 for client, count in zip(clients, before, strict=True)))
    for client in clients:
        client.stop()
        assert set(client.pings) == {200, 503}
        assert client.stored(server)["ping_count"] == client.pings[200]
    server.process.kill()
    server.process.wait()
    assert why_refused(tmp_path / "data" / FILE_NAME) == []
    again = start("--data", "data")
    for client in clients:
        assert client.stored(again)["ping_count"] == client.pings[200]


def test_a_power_cut_loses_nothing_acknowledged(start, faults, monkeypatch, tmp_path):
    first = start("--data", "data")
    key = checks_key(first)
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(15) == 0
    faults.synced.mkdir()
    shutil.copy(tmp_path / "data" / "cardbeat.db", faults.synced)
    with monkeypatch.context() as patch:
        patch.setenv("SYNCED_FOLDER", str(faults.synced))
        server = start("--data", "data")
    created = (faults.synced / "cardbeat.db").stat().st_mtime_ns
    clients = [Busy(server, key) for _ in range(CLIENTS)]
    # The log has been written into the database at least once.
    wait_until(lambda: (faults.synced / "cardbeat.db").stat().st_mtime_ns > created, seconds=60)
    before = [client.pings[200] for client in clients]
    wait_until(lambda: all(client.pings[200] > count + 20 for client, count in zip(clients, before, strict=True)))
    server.process.kill()
    for client in clients:
        client.join()
    assert why_refused(faults.synced / FILE_NAME) == []
    again = start("--data", str(faults.synced))
    for client in clients:
        # The cut may have taken the answer to one more ping.
        assert client.stored(again)["ping_count"] - client.pings[200] in (0, 1)
