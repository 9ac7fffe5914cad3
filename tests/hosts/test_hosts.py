"""The whole service, used as on any host."""

import contextlib
import json
import socket
import sqlite3
import threading
import time

import pytest

from cardbeat.config import HttpLimits
from tests.crash.client import ask, checks_key, connect, exchange, new_check
from tests.receiver import NO_CONTENT, Receiver
from tests.support import wait_until

SOON = {"period_seconds": 1, "grace_seconds": 0}


def cards_key(server):
    return ask(server, "POST", "/register").json["key"]


def get(server, path, **headers):
    """Status, headers and body of a GET with headers."""
    with contextlib.closing(connect(server)) as connection:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def test_a_key_is_issued_rotated_and_revoked(server):
    key = checks_key(server)
    assert ask(server, "GET", "/key", key=key).json["tier"] == "free"
    rotated = ask(server, "POST", "/key/rotate", key=key).json["key"]
    assert ask(server, "GET", "/key", key=key).status == 401
    assert ask(server, "DELETE", "/key", key=rotated).status == 204
    assert ask(server, "GET", "/key", key=rotated).status == 401


def test_a_card_is_drawn_once_and_then_stored(server):
    path = f"/og?title=Any+host&key={cards_key(server)}"
    status, headers, png = get(server, path)
    assert (status, headers["X-Cache"], png[:4]) == (200, "MISS", b"\x89PNG")
    # Asked for again and again on one connection: what is large goes out another way than what is small.
    with contextlib.closing(connect(server)) as connection:
        for _ in range(5):
            again = exchange(connection, "GET", path)
            assert (again.status, again.headers["X-Cache"], again.body) == (200, "HIT", png)


def test_a_card_is_given_in_part_or_not_at_all_if_asked_so(server):
    path = f"/og?title=In+part&key={cards_key(server)}"
    _, headers, png = get(server, path)
    assert get(server, path, If_None_Match=headers["ETag"])[::2] == (304, b"")
    assert get(server, path, Range="bytes=100-199")[::2] == (206, png[100:200])
    assert get(server, path, Range="bytes=9000000-")[0] == 416


def test_a_card_is_drawn_anew_while_others_read_it(server):
    """Its file is replaced or read at any moment: whoever asks gets the whole card."""
    key = cards_key(server)
    paths = [f"/og?title=Card+{number}&key={key}" for number in range(4)]
    answers = []

    def read_all():
        with contextlib.closing(connect(server)) as connection:
            answers.extend((path, exchange(connection, "GET", path)) for path in paths * 5)

    readers = [threading.Thread(target=read_all) for _ in range(6)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len(answers) == 120
    assert {answer.status for _, answer in answers} == {200}
    assert len({(path, answer.body) for path, answer in answers}) == len(paths)


def test_pages_and_descriptions_are_served(server):
    for path, content in [("/", "text/html"), ("/dashboard", "text/html"), ("/openapi.json", "application/json")]:
        status, headers, body = get(server, path)
        assert (status, headers["Content-Type"].partition(";")[0]) == (200, content)
        assert len(body) == int(headers["Content-Length"])
    for path in ("/healthz", "/metrics", "/robots.txt"):
        assert get(server, path)[0] == 200


def test_a_check_is_created_changed_listed_pinged_and_deleted(server):
    key = checks_key(server)
    check = new_check(server, key, name="Größe ↑")
    path = f"/checks/{check['id']}"
    assert ask(server, "GET", path, key=key).json["check"] == check
    assert ask(server, "PATCH", path, {"name": "b"}, key).json["check"]["version"] == 2
    assert [one["name"] for one in ask(server, "GET", "/checks", key=key).json["checks"]] == ["b"]
    for method in ("GET", "POST"):
        assert ask(server, method, f"/ping/{check['id']}").status == 200
    assert ask(server, "GET", path, key=key).json["check"]["ping_count"] == 2
    assert ask(server, "DELETE", path, key=key).status == 204
    assert ask(server, "GET", path, key=key).status == 404


def test_a_check_that_somebody_else_has_changed_is_not_changed(server):
    key = checks_key(server)
    path = f"/checks/{new_check(server, key)['id']}"
    with contextlib.closing(connect(server)) as connection:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "If-Match": '"7"'}
        connection.request("PATCH", path, '{"name": "b"}', headers)
        answer = connection.getresponse()
        assert answer.status == 412
        answer.read()
    assert ask(server, "GET", path, key=key).json["check"]["version"] == 1


def test_of_changes_at_the_same_moment_each_counts_or_is_a_conflict(server):
    key = checks_key(server)
    path = f"/checks/{new_check(server, key)['id']}"
    statuses = []

    def change(number):
        with contextlib.closing(connect(server)) as connection:
            for turn in range(400):
                if 409 in statuses and turn > 5:
                    return
                statuses.append(exchange(connection, "PATCH", path, {"name": f"{number} {turn}"}, key).status)

    clients = [threading.Thread(target=change, args=(number,)) for number in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert set(statuses) == {200, 409}
    assert ask(server, "GET", path, key=key).json["check"]["version"] == 1 + statuses.count(200)


def test_a_missed_ping_and_the_next_one_are_told_to_the_receiver(server):
    key = checks_key(server)
    with Receiver() as receiver:
        check = new_check(server, key, **SOON, webhook_url=receiver.url)
        wait_until(lambda: [one.json["type"] for one in receiver.received] == ["check.overdue"])
        assert ask(server, "GET", f"/ping/{check['id']}").json["recovered"] is True
        wait_until(lambda: len(receiver.received) >= 2)
        assert receiver.received[1].json["type"] == "check.recovered"
        listed = f"/checks/{check['id']}/alerts"
        wait_until(lambda: ask(server, "GET", listed, key=key).json["alerts"][-1]["state"] == "delivered")


def test_a_receiver_that_nobody_runs_is_tried_again(server):
    key = checks_key(server)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        check = new_check(server, key, webhook_url=f"http://127.0.0.1:{unused.getsockname()[1]}/")
        path = f"/checks/{check['id']}"
        assert ask(server, "POST", f"{path}/test-alert", key=key).status == 202
        alerts = f"{path}/alerts"
        wait_until(lambda: ask(server, "GET", alerts, key=key).json["alerts"][0]["attempts"] == 1)
        (alert,) = ask(server, "GET", alerts, key=key).json["alerts"]
        assert (alert["state"], alert["last_error"]) == ("pending", "The connection was refused.")


def test_what_is_no_http_is_refused_and_slow_senders_are_waited_for(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"GET / HTTP/1.1\r\nno header\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        # As a bare load balancer asks.
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        for piece in (b"GET /robots.txt HT", b"TP/1.1\r\nHo", b"st: a\r\nConnection: close\r\n\r\n"):
            client.sendall(piece)
            time.sleep(0.05)
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_more_clients_than_one_call_can_wait_for_are_served(start):
    server = start()
    with contextlib.ExitStack() as idle:
        for _ in range(600):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
        assert get(server, "/robots.txt")[0] == 200


def test_a_second_server_has_no_part_in_the_port(start, run):
    server = start()
    ran = run("--port", str(server.port))
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert str(server.port) in ran.stderr


def test_two_servers_share_a_folder(start):
    first, second = start(), start()
    key = checks_key(first)
    checks = [new_check(server, key) for server in (first, second) * 10]
    assert [ask(first, "GET", f"/ping/{check['id']}").status for check in checks] == [200] * 20
    assert len(ask(second, "GET", "/checks?limit=100", key=key).json["checks"]) == 20


def stops(host):
    return list(host.stops)


def test_a_stop_is_orderly_and_nothing_is_lost(host, start):
    with Receiver(slow) as receiver:
        for way in stops(host):
            server = start()
            key = checks_key(server)
            check = new_check(server, key, webhook_url=receiver.url)
            path = f"/checks/{check['id']}"
            assert ask(server, "GET", f"/ping/{check['id']}").status == 200
            # The post may come before the answer.
            posts = len(receiver.received)
            assert ask(server, "POST", f"{path}/test-alert", key=key).status == 202
            wait_until(lambda posts=posts: len(receiver.received) > posts)
            # A post is under way: it is finished, and recorded.
            began = time.monotonic()
            assert server.stop(way) == 0, server.log
            assert time.monotonic() - began < 20
            assert "INFO stopped" in server.log
            again = start()
            assert ask(again, "GET", path, key=key).json["check"]["ping_count"] == 1
            (alert,) = ask(again, "GET", f"{path}/alerts", key=key).json["alerts"]
            assert (alert["state"], alert["attempts"]) == ("delivered", 1)
            again.kill()


def slow(receiver, connection):
    receiver.read(connection)
    receiver.released.wait(1)
    connection.sendall(NO_CONTENT)


def test_an_idle_server_stops_at_once(host, start):
    for way in stops(host):
        server = start()
        began = time.monotonic()
        assert server.stop(way) == 0
        # It waits for nothing; else it would take all of its time.
        assert time.monotonic() - began < HttpLimits().stop_seconds


def test_what_was_acknowledged_outlives_a_kill(start):
    server = start()
    key = checks_key(server)
    check = new_check(server, key)
    pings = 0
    with contextlib.closing(connect(server)) as connection:
        for _ in range(50):
            pings += exchange(connection, "GET", f"/ping/{check['id']}").status == 200
    server.kill()
    again = start()
    assert ask(again, "GET", f"/checks/{check['id']}", key=key).json["check"]["ping_count"] == pings == 50


def test_a_backup_is_taken_while_serving_and_can_be_served(start, run, tmp_path):
    server = start()
    key = checks_key(server)
    path = f"/checks/{new_check(server, key)['id']}"
    for _ in range(2):
        # The second replaces the first.
        copied = run("backup", "copy.db")
        # On a busy machine it asks for patience.
        assert copied.returncode == 0
        assert copied.stderr in ("", "cardbeat: copying and checking the database, please wait ...\n")
    assert ask(server, "PATCH", path, {"name": "later"}, key).status == 200
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    server.kill()
    (tmp_path / "restored").mkdir()
    (tmp_path / "copy.db").rename(tmp_path / "restored" / "cardbeat.db")
    assert ask(start("--data", "restored"), "GET", path, key=key).json["check"]["name"] == "job"


def test_keys_are_made_listed_and_ended_on_the_command_line_while_serving(start, run):
    server = start()
    value = json.loads(run("keys", "create", "--email", "a@b", "--json").stdout)["key"]
    assert ask(server, "GET", "/key", key=value).json["tier"] == "free"
    assert "a@b" in run("keys", "list").stdout
    [listed] = json.loads(run("keys", "list", "--json").stdout)
    assert run("keys", "tier", listed["id"], "unlimited").returncode == 0
    assert ask(server, "GET", "/key", key=value).json["tier"] == "unlimited"
    assert run("keys", "revoke", listed["id"]).returncode == 0
    assert ask(server, "GET", "/key", key=value).status == 401


def test_a_card_is_drawn_into_a_file(run, tmp_path):
    ran = run("card", "--title", "Größe ↑", "--output", "a.png")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_the_cards_of_a_site_are_drawn_and_its_pages_tagged(run, tmp_path):
    for number in range(6):
        page = tmp_path / "site" / f"page {number}" / "index.html"
        page.parent.mkdir(parents=True)
        page.write_bytes(f"<html>\r\n<head>\r\n<title>Größe {number}</title>\r\n</head>\r\n</html>".encode())
    command = ("cards", "site", "--output", "site/cards", "--write-tags", "--base-url", "https://x.example", "--json")
    for drawn in (6, 0):
        ran = run(*command)
        assert ran.returncode == 0, ran.stderr
        told = json.loads(ran.stdout)
        assert (told["drawn"], told["tagged"]) == (drawn, drawn)
    assert len(list(tmp_path.glob("site/cards/page ?.png"))) == 6
    assert b'/cards/page%203.png">\r\n' in (tmp_path / "site/page 3/index.html").read_bytes()


def test_doctor_finds_a_served_folder_sound(host, start, run):
    start()
    examined = run("doctor")
    assert examined.returncode == 0, examined.stdout
    for thing in ("python", "pillow", "fonts", "sound", "GB free", "clock"):
        assert thing in examined.stdout
    told = json.loads(run("doctor", "--json").stdout)
    assert told["ok"] is True
    found = {finding["name"]: finding for finding in told["findings"]}
    # Windows waits for so few sockets at once, and has none of Debian's packages.
    assert ("sockets" in found) == (host.platform == "win32")
    if host.platform == "win32":
        assert "512" in found["sockets"]["found"]
        assert "510 clients" in found["sockets"]["found"]
        assert "libfribidi" not in examined.stdout


def test_a_restore_waits_for_the_end_of_the_server_and_keeps_what_was_there(start, run, tmp_path):
    server = start()
    key = checks_key(server)
    path = f"/checks/{new_check(server, key)['id']}"
    assert run("backup", "copy.db").returncode == 0
    assert ask(server, "PATCH", path, {"name": "later"}, key).status == 200
    refused = run("restore", "copy.db")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "stop the server" in refused.stderr
    server.kill()
    restored = run("restore", "copy.db")
    # On a slow host it asks for patience on stderr.
    assert restored.returncode == 0, restored.stderr
    assert "keys 1, checks 1" in restored.stdout
    assert ask(start(), "GET", path, key=key).json["check"]["name"] == "job"
    assert len(list((tmp_path / "cardbeat-data").glob("cardbeat.db.before-restore-*"))) == 1


def test_an_address_outside_of_the_consoles_code_page_is_printed(start, run):
    server = start()
    assert ask(server, "POST", "/register", {"email": "größe@例.example"}).status == 201
    listed = run("keys", "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    [key] = json.loads(run("keys", "list", "--json").stdout)
    assert key["email"] == "größe@例.example"


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (("--port", "70000"), "--port"),
        (("--host", "192.0.2.1", "--port", "0"), "192.0.2.1"),
        (("--tiers", "none.toml"), "none.toml"),
        (("backup", "copy.db"), "no database"),
        (("keys", "create", "--tier", "gold"), "gold"),
        (("--port", "0", "--data", "file/data"), "file"),
        (("nonsense",), "nonsense"),
    ],
)
def test_what_an_operator_must_change_is_one_line_and_status_2(run, tmp_path, argv, word):
    (tmp_path / "file").write_text("no folder")
    ran = run(*argv)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1), ran.stderr
    assert word in ran.stderr
