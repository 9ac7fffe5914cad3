import json
import sqlite3
import threading
from contextlib import closing
from functools import partial
from unittest.mock import Mock

from cardbeat.database import monitor
from cardbeat.operation.health import HealthRoutes
from cardbeat.web.message import Request
from cardbeat.web.router import Router
from tests.support import answer_of

ASKED = Request("GET", "/healthz", "/healthz")


def test_health_turns_503_while_the_sweep_stalls_and_back(database, clock):
    sweeping = [True, False, True]
    router = Router(HealthRoutes(database, clock, lambda: sweeping.pop(0)).routes())
    assert answer_of(router, ASKED).status == 200
    refused = answer_of(router, ASKED)
    assert (refused.status, json.loads(refused.body)["code"]) == (503, "sweep_stalled")
    assert answer_of(router, ASKED).status == 200


def test_a_sign_of_life_is_given_only_while_health_is_200(app, database, clock):
    signs = []
    for sweeps in (True, False, True):
        HealthRoutes(database, clock, lambda: sweeps).call_if_healthy(partial(signs.append, sweeps))  # noqa: B023
        database.write(lambda _: None)
    app.service.database.close()
    HealthRoutes(app.service.database, clock, lambda: True).call_if_healthy(lambda: signs.append("closed"))
    assert signs == [True, True]


def test_a_database_damaged_while_it_is_served_is_told_as_503(app):
    key = app.json("POST", "/register", {"email": "a@b"})["key"]
    database = app.service.database
    with closing(sqlite3.connect(database.path)) as other:
        # A connection of its own waits for the writer's, which may still end its last write.
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
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
    writers = []
    app.service.database.write(writers.append)
    writers[0].execute("PRAGMA query_only = ON")
    answer = app("GET", "/healthz")
    assert (answer.status, json.loads(answer.body)["code"]) == (503, "database_unavailable")
    assert answer.headers["Retry-After"]
    writers[0].execute("PRAGMA query_only = OFF")
    assert app("GET", "/healthz").status == 200


def test_all_who_ask_while_a_write_is_under_way_share_it(database, clock, monkeypatch):
    routes = HealthRoutes(database, clock, lambda: True)
    started, let_go = threading.Event(), threading.Event()

    def hold(_):
        started.set()
        assert let_go.wait(10)

    held = database.write_later(hold)
    assert started.wait(10)
    with monkeypatch.context() as patch:
        patch.setattr(database, "write_later", Mock(wraps=database.write_later))
        asked = [routes.read(ASKED) for _ in range(5)]
        assert database.write_later.call_count == 1
    let_go.set()
    held.wait()
    assert [answer.wait().status for answer in asked] == [200] * 5
    clock.advance(60)
    assert routes.read(ASKED).wait().status == 200
    with database.read() as connection:
        assert monitor.values(connection)["last_health_check_at"] == clock.now
