"""`kill -9` in the middle of work: what was answered is there after the restart."""

import http.client
import itertools
import json
import threading

from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.database.sqlite.rows import why_refused
from tests.support import wait_until

CLIENTS = 16
PINGS = 10_000


def call(server, method, path, body=None, key=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def new_check(server, key, name="job"):
    body = {"name": name, "period_seconds": 3600, "grace_seconds": 0}
    return call(server, "POST", "/checks", body, key)[1]["check"]


def ping_until_it_dies(server, path, answered, number):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        while True:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                answered[number] += 1
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()


def rename_until_it_dies(server, path, key, acknowledged):
    try:
        for number in itertools.count():
            status, answer = call(server, "PATCH", path, {"name": f"job {number}"}, key)
            assert status == 200
            acknowledged.append(answer["check"])
    except (OSError, http.client.HTTPException):
        pass


def test_no_answered_ping_is_missing_after_a_kill(start, tmp_path):
    server = start("--data", "data")
    key = call(server, "POST", "/register", {"email": "ops@example.com"})[1]["key"]
    checks = [new_check(server, key) for _ in range(CLIENTS)]
    answered = [0] * CLIENTS
    threads = [
        threading.Thread(target=ping_until_it_dies, args=(server, f"/ping/{check['id']}", answered, number))
        for number, check in enumerate(checks)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(answered) >= PINGS, seconds=120)
    server.process.kill()
    for thread in threads:
        thread.join()
    server.process.wait()
    assert why_refused(tmp_path / "data" / FILE_NAME) == []
    again = start("--data", "data")
    for check, number in zip(checks, answered, strict=True):
        stored = call(again, "GET", f"/checks/{check['id']}", key=key)[1]["check"]
        # One more may have been stored for each client whose answer the kill cut off.
        assert number <= stored["ping_count"] <= number + 1


def test_every_acknowledged_change_survives_a_kill_over_and_over(start, tmp_path):
    server = start("--data", "data")
    key = call(server, "POST", "/register", {"email": "ops@example.com"})[1]["key"]
    acknowledged = [new_check(server, key)]
    path = f"/checks/{acknowledged[0]['id']}"
    for _ in range(5):
        thread = threading.Thread(target=rename_until_it_dies, args=(server, path, key, acknowledged))
        thread.start()
        enough = len(acknowledged) + 20
        wait_until(lambda enough=enough: len(acknowledged) > enough)
        server.process.kill()
        thread.join()
        server.process.wait()
        assert why_refused(tmp_path / "data" / FILE_NAME) == []
        server = start("--data", "data", port=server.port)
        stored = call(server, "GET", path, key=key)[1]["check"]
        # The kill may have cut off the answer to one more change.
        assert stored["version"] - acknowledged[-1]["version"] in (0, 1)
        assert stored["version"] > acknowledged[-1]["version"] or stored == acknowledged[-1]
        acknowledged.append(stored)
