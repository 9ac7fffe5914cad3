"""The -wal is removed under a running server: it says so, acknowledges nothing more, and has lost nothing."""

from tests.crash.client import ask, checks_key, new_check
from tests.support import wait_until


def test_it_is_told_and_what_was_acknowledged_is_found_after_a_crash(start, tmp_path):
    server = start()
    key = checks_key(server)
    check = new_check(server, key)
    pings = 50
    for _ in range(pings):
        assert ask(server, "GET", f"/ping/{check['id']}").status == 200
    data = tmp_path / "cardbeat-data"
    (data / "cardbeat.db-wal").unlink()
    refused = ask(server, "GET", f"/ping/{check['id']}")
    assert (refused.status, refused.json["code"]) == (503, "database_unavailable")
    assert ask(server, "GET", "/healthz").status == 503
    wait_until(lambda: "cardbeat.db-wal was removed while in use" in server.log.read_text())
    server.process.kill()
    server.process.wait()
    again = start()
    assert ask(again, "GET", f"/checks/{check['id']}", key=key).json["check"]["ping_count"] >= pings
    assert ask(again, "GET", "/healthz").status == 200
