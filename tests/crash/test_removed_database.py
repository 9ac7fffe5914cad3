"""The database is removed or replaced under a running server: it refuses pings, and loses none that it took."""

import signal

import pytest

from tests.crash.client import Busy, ask, checks_key, new_check
from tests.support import wait_until


def move_away(data, moved):
    """The database file first, while all others are still in their place."""
    for end in ("", "-wal", "-shm"):
        (data / f"cardbeat.db{end}").rename(moved / f"cardbeat.db{end}")


def replace(data, moved):
    copy = (data / "cardbeat.db").read_bytes()
    move_away(data, moved)
    (data / "cardbeat.db").write_bytes(copy)


@pytest.mark.parametrize("lose", [move_away, replace])
def test_every_acknowledged_ping_is_in_the_database_that_was_moved_away(start, tmp_path, lose):
    server = start()
    key = checks_key(server)
    clients = [Busy(server, key) for _ in range(4)]
    wait_until(lambda: all(client.pings[200] > 50 for client in clients))
    moved = tmp_path / "moved"
    moved.mkdir(0o700)
    lose(tmp_path / "cardbeat-data", moved)
    wait_until(lambda: all(client.pings[503] for client in clients))
    for client in clients:
        client.stop()
    refused = ask(server, "GET", f"/ping/{clients[0].check['id']}")
    assert (refused.status, refused.json["code"]) == (503, "database_unavailable")
    health = ask(server, "GET", "/healthz")
    assert (health.status, health.json["error"]) == (503, "The database can't be used now; try again soon.")
    wait_until(lambda: "cardbeat.db was removed or replaced while in use" in server.log.read_text())
    server.process.kill()
    server.process.wait()
    again = start("--data", "moved")
    for client in clients:
        client.stored(again)


def test_a_removed_wal_refuses_pings_until_the_restart(start, tmp_path):
    server = start()
    key = checks_key(server)
    ping = f"/ping/{new_check(server, key)['id']}"
    pings = 50
    for _ in range(pings):
        assert ask(server, "GET", ping).status == 200
    (tmp_path / "cardbeat-data" / "cardbeat.db-wal").unlink()
    assert [ask(server, "GET", path).status for path in (ping, "/healthz", ping)] == [503] * 3
    wait_until(lambda: "cardbeat.db-wal was removed or replaced while in use" in server.log.read_text())
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(15) == 0
    again = start()
    (check,) = ask(again, "GET", "/checks", key=key).json["checks"]
    assert check["ping_count"] == pings
    assert ask(again, "GET", "/healthz").status == 200
