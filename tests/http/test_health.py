import json
import threading

from cardbeat import monitor
from cardbeat.health import HealthRoutes
from cardbeat.web.message import Request
from cardbeat.web.router import Router
from tests.support import answer_of

ASKED = Request("GET", "/healthz", "/healthz")


def test_health_turns_503_while_the_sweep_stalls_and_back(database, clock):
    sweeping = [True, False, True]
    router = Router(HealthRoutes(database, clock, lambda: sweeping.pop(0), lambda: True).routes())
    assert answer_of(router, ASKED).status == 200
    refused = answer_of(router, ASKED)
    assert (refused.status, json.loads(refused.body)["code"]) == (503, "sweep_stalled")
    assert answer_of(router, ASKED).status == 200


def test_health_turns_503_while_nobody_works_on_alerts_and_back(database, clock):
    working = [True, False, True]
    router = Router(HealthRoutes(database, clock, lambda: True, lambda: working.pop(0)).routes())
    assert answer_of(router, ASKED).status == 200
    refused = json.loads(answer_of(router, ASKED).body)
    assert (refused["code"], "300 seconds" in refused["error"]) == ("delivery_stalled", True)
    assert answer_of(router, ASKED).status == 200


def test_a_database_damaged_while_it_is_served_is_told_as_503(app):
    key = app.json("POST", "/register", {"email": "a@b"})["key"]
    database = app.service.database
    database.write(lambda connection: None)
    database._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database._readers.close()
    with database.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (database.path.stat().st_size - 4096))
    for target in ("/key", "/checks"):
        answer = app("GET", target, key=key)
        assert (answer.status, json.loads(answer.body)["code"]) == (503, "database_unavailable")
        assert answer.headers["Retry-After"]


def test_health_turns_503_while_the_database_cannot_be_written_and_back(app):
    assert app("GET", "/healthz").status == 200
    writer = app.service.database._writer
    writer.execute("PRAGMA query_only = ON")
    answer = app("GET", "/healthz")
    assert (answer.status, json.loads(answer.body)["code"]) == (503, "database_unavailable")
    assert answer.headers["Retry-After"]
    writer.execute("PRAGMA query_only = OFF")
    assert app("GET", "/healthz").status == 200


def test_all_who_ask_while_a_write_is_under_way_share_it(database, clock):
    routes, started, let_go = (
        HealthRoutes(database, clock, lambda: True, lambda: True),
        threading.Event(),
        threading.Event(),
    )

    def hold(_):
        started.set()
        assert let_go.wait(10)

    held = database.write_later(hold)
    assert started.wait(10)
    asked = [routes.read(ASKED) for _ in range(5)]
    assert len(database._queue) == 1
    let_go.set()
    held.wait()
    assert [answer.wait().status for answer in asked] == [200] * 5
    clock.advance(60)
    assert routes.read(ASKED).wait().status == 200
    with database.read() as connection:
        assert monitor.values(connection)["last_health_check_at"] == clock.now
