"""`kill -9` in the middle of work: what was answered is there after the restart."""

from cardbeat.database.sqlite.copies import require_sound
from cardbeat.database.sqlite.file import FILE_NAME
from tests.crash.client import Busy, ask, checks_key, go_on, new_check
from tests.receiver import Receiver
from tests.support import wait_until

CLIENTS, KILLS = 16, 4


def test_what_was_answered_survives_a_kill_over_and_over(start, tmp_path):
    server = start("--data", "data")
    key = checks_key(server)
    clients = []
    for _ in range(KILLS):
        busy = [Busy(server, key) for _ in range(CLIENTS)]
        go_on(busy, more=100)
        server.kill()
        for client in busy:
            client.join()
        require_sound(tmp_path / "data" / FILE_NAME)
        server = start("--data", "data", port=server.port)
        clients += busy
        for client in clients:
            stored = client.stored(server)
            # The kill may have cut off the answer to one more.
            assert stored["ping_count"] - client.pings[200] in (0, 1)
            assert stored["version"] - client.check["version"] in (0, 1)


def test_an_answered_snooze_holds_after_a_kill(start):
    with Receiver() as receiver:
        options = ("--data", "data", "--sweep-seconds", "0.2", "--allow-private-webhooks")
        server = start(*options)
        key = checks_key(server)
        hook = {"period_seconds": 1, "webhook_url": receiver.url}
        path = f"/checks/{new_check(server, key, **hook)['id']}"
        answered = ask(server, "PUT", f"{path}/snooze", {"seconds": 3600}, key).json
        server.kill()
        again = start(*options, port=server.port)
        assert ask(again, "GET", path, key=key).json == answered
        other = new_check(again, key, **hook)
        wait_until(lambda: receiver.received)
        assert ask(again, "GET", path, key=key).json == answered
    assert {received.json["data"]["check"]["id"] for received in receiver.received} == {other["id"]}
