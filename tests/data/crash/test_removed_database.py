"""The database is removed or replaced under a running server: it refuses pings, and loses none that it took."""

import pytest

from tests.data.crash.client import Busy, go_on, require_kept, stop
from tests.kit.client import ask, checks_key
from tests.kit.support import wait_until


def move_away(data, moved):
    """The database file first, while all others are still in their place."""
    for end in ("", "-wal", "-shm"):
        (data / f"cardbeat.db{end}").rename(moved / f"cardbeat.db{end}")


def replace(data, moved):
    copy = (data / "cardbeat.db").read_bytes()
    move_away(data, moved)
    (data / "cardbeat.db").write_bytes(copy)


@pytest.mark.parametrize("lose", [move_away, replace])
def test_every_acknowledged_ping_is_in_the_database_that_was_moved_away(
    start, tmp_path, lose
):
    server = start()
    key = checks_key(server)
    clients = [Busy(server, key) for _ in range(4)]
    go_on(clients)
    (tmp_path / "moved").mkdir(0o700)
    lose(tmp_path / "cardbeat-data", tmp_path / "moved")
    go_on(clients, 503, 1)
    stop(clients, 200, 503)
    assert ask(server, "GET", "/healthz").status == 503
    wait_until(
        lambda: (
            "cardbeat.db was removed or replaced while in use"
            in server.log.read_text()
        )
    )
    server.kill()
    require_kept(clients, start("--data", "moved"))
