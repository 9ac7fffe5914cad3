"""The service as on another host. What every host does alike is tested on one of them."""

import contextlib
import json
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

from cardbeat.config import HttpLimits
from tests.kit.artifact import is_refused
from tests.kit.client import (
    ask,
    cards_key,
    checks_key,
    connect,
    exchange,
    new_check,
)
from tests.kit.lists import each, times
from tests.kit.receiver import NO_CONTENT, Receiver
from tests.kit.support import wait_until


def test_what_is_asked_for_is_answered(server):
    """Cards are asked for again on one connection: what is large goes out another way than what is small."""
    for path in (
        "/",
        "/dashboard",
        "/openapi.json",
        "/healthz",
        "/metrics",
    ):
        page = ask(server, "GET", path)
        assert page.status == 200
        assert len(page.body) == int(page.headers["Content-Length"])
    path = f"/og?title=Any+host&key={cards_key(server)}"
    with contextlib.closing(connect(server)) as connection:
        drawn, *again = times(5, exchange, connection, "GET", path)
    assert drawn.status == 200
    assert drawn.headers["X-Cache"] == "MISS"
    assert drawn.body[:4] == b"\x89PNG"
    assert {(card.headers["X-Cache"], card.body) for card in again} == {
        ("HIT", drawn.body)
    }


def test_a_card_is_drawn_anew_while_others_read_it(server):
    """Its file is replaced or read at any moment: each answer is the whole card."""
    key = cards_key(server)
    paths = [
        f"/og?title=Card+{number}&key={key}" for number in range(4)
    ] * 30
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda path: ask(server, "GET", path), paths)
        )
    assert set(each(answers, "status")) == {200}
    assert len(set(each(answers, "body"))) == 4


def test_a_missed_ping_and_the_next_one_are_told_to_the_receiver(server):
    key = checks_key(server)
    with Receiver() as receiver:
        check = new_check(
            server, key, period_seconds=1, webhook_url=receiver.url
        )
        wait_until(lambda: receiver.received)
        assert (
            ask(server, "GET", f"/ping/{check['id']}").json["recovered"]
            is True
        )
        wait_until(lambda: len(receiver.received) > 1)
        told = [one.json["type"] for one in receiver.received[:2]]
        assert told == ["check.overdue", "check.recovered"]


def test_a_receiver_that_does_not_listen_is_tried_again(server):
    key = checks_key(server)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        path = (
            f"/checks/{new_check(server, key, webhook_url=nowhere)['id']}"
        )
        assert (
            ask(server, "POST", f"{path}/test-alert", key=key).status
            == 202
        )

        def alert():
            return ask(server, "GET", f"{path}/alerts", key=key).json[
                "alerts"
            ][0]

        wait_until(lambda: alert()["attempts"] == 1)
        assert alert()["state"] == "pending"
        assert alert()["last_error"] == "The connection was refused."


def test_more_clients_than_one_call_can_wait_for_are_served(start):
    server = start()
    address = ("127.0.0.1", server.port)
    with contextlib.ExitStack() as idle:
        for _ in range(600):
            idle.enter_context(
                socket.create_connection(address, timeout=60)
            )
        assert ask(server, "GET", "/robots.txt").status == 200


def test_a_second_server_has_no_part_in_the_folder_nor_in_the_port(
    start, run
):
    port = str(start().port)
    refused = run("--port", "0")
    assert is_refused(refused)
    assert "another server uses the data folder" in refused.stderr
    refused = run("--data", "other", "--port", port)
    assert is_refused(refused)
    assert port in refused.stderr


def slow(receiver, connection):
    receiver.read(connection)
    receiver.released.wait(1)
    connection.sendall(NO_CONTENT)


def test_a_stop_is_orderly_and_nothing_is_lost(host, start):
    with Receiver(slow) as receiver:
        for way in host.stops:
            server = start()
            key = checks_key(server)
            check_id = new_check(server, key, webhook_url=receiver.url)[
                "id"
            ]
            assert ask(server, "GET", f"/ping/{check_id}").status == 200
            # The post may come before the answer. It is finished, and recorded.
            posts = len(receiver.received)
            ask(server, "POST", f"/checks/{check_id}/test-alert", key=key)
            wait_until(lambda posts=posts: len(receiver.received) > posts)
            assert server.stop(way) == 0, server.log
            assert "INFO stopped" in server.log
            again = start()
            assert stored_pings(again, check_id, key) == 1
            (alert,) = ask(
                again, "GET", f"/checks/{check_id}/alerts", key=key
            ).json["alerts"]
            assert alert["state"] == "delivered"
            assert alert["attempts"] == 1
            # An idle server waits for nothing; else it would take all of its time.
            began = time.monotonic()
            assert again.stop(way) == 0
            assert time.monotonic() - began < HttpLimits().stop_seconds


def stored_pings(server, check_id, key):
    return ask(server, "GET", f"/checks/{check_id}", key=key).json[
        "check"
    ]["ping_count"]


def test_a_backup_is_taken_while_serving_and_restored_after_the_end(
    start, run, tmp_path
):
    server = start()
    key = checks_key(server)
    path = f"/checks/{new_check(server, key)['id']}"
    for _ in range(2):
        # The second replaces the first.
        assert run("backup", "copy.db").returncode == 0
    with contextlib.closing(
        sqlite3.connect(tmp_path / "copy.db")
    ) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == (
            "ok",
        )
    assert (
        ask(server, "PATCH", path, {"name": "later"}, key).status == 200
    )
    refused = run("restore", "copy.db")
    assert is_refused(refused)
    assert "another server uses" in refused.stderr
    server.kill()
    restored = run("restore", "copy.db")
    assert restored.returncode == 0
    assert restored.stderr == ""
    assert "keys: 1\nchecks: 1\n" in restored.stdout
    assert (
        ask(start(), "GET", path, key=key).json["check"]["name"] == "job"
    )
    assert (
        len(
            list(
                tmp_path.glob(
                    "cardbeat-data/cardbeat.db.before-restore-*"
                )
            )
        )
        == 1
    )


def test_keys_are_managed_on_the_command_line_while_serving(start, run):
    server = start()
    # No code page of a Windows console has all of it.
    email = "größe@例.example"
    made = ask(server, "POST", "/register", {"email": email})
    (key,) = json.loads(run("keys", "list", "--json").stdout)
    assert key["email"] == email
    assert key["id"] in run("keys", "list").stdout
    assert run("keys", "revoke", key["id"]).returncode == 0
    value = made.json["key"]
    wait_until(
        lambda: ask(server, "GET", "/key", key=value).status == 401
    )


def test_cards_are_drawn_into_files_and_the_pages_of_a_site_tagged(
    run, tmp_path
):
    done = run("card", "--title", "Größe ↑", "--output", "a.png")
    assert done.returncode == 0
    assert done.stderr == ""
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    for number in range(6):
        page = tmp_path / f"site/page {number}/index.html"
        page.parent.mkdir(parents=True)
        page.write_bytes(
            f"<html>\r\n<head>\r\n<title>Größe {number}</title>\r\n</head>\r\n".encode()
        )
    options = (
        "--output",
        "site/cards",
        "--write-tags",
        "--base-url",
        "https://x.example",
    )
    for count in (6, 0):
        done = run("cards", "site", *options, "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert len(told["drawn"]) == count
        assert len(told["tagged"]) == count
    assert len(list(tmp_path.glob("site/cards/page ?.png"))) == 6
    assert (
        b'/cards/page%203.png">\r\n'
        in (tmp_path / "site/page 3/index.html").read_bytes()
    )


def test_doctor_finds_a_served_folder_sound(start, run):
    start()
    examined = run("doctor", "--json")
    assert examined.returncode == 0, examined.stdout
    names = set(each(json.loads(examined.stdout), "name"))
    assert {"python", "pillow", "fonts", "database", "clock"} <= names


def test_an_address_of_another_host_is_one_line_and_status_2(run):
    refused = run("--host", "192.0.2.1", "--port", "0")
    assert is_refused(refused), refused.stderr
    assert "192.0.2.1" in refused.stderr


def test_what_was_acknowledged_outlives_a_kill(start):
    """The last one: from then on wine keeps a core busy with the connections of the killed server."""
    server = start()
    key = checks_key(server)
    check_id = new_check(server, key)["id"]
    with contextlib.closing(connect(server)) as connection:
        for _ in range(50):
            assert (
                exchange(connection, "GET", f"/ping/{check_id}").status
                == 200
            )
    server.kill()
    assert stored_pings(start(), check_id, key) == 50
