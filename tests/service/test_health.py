import json
import sqlite3
from contextlib import closing

from cardbeat.database import numbers
from cardbeat.operation.routes import HealthRoutes
from cardbeat.web.message import Request
from cardbeat.web.router import Router
from tests.kit.support import answer_of

ASKED = Request("GET", "/healthz", "/healthz")


def test_health_turns_503_while_the_sweep_stalls_and_back(
    database, clock
):
    sweeping = [True, False, True]
    router = Router(
        HealthRoutes(database, clock, lambda: sweeping.pop(0)).routes()
    )
    assert answer_of(router, ASKED).status == 200
    refused = answer_of(router, ASKED)
    assert refused.status == 503
    assert json.loads(refused.body)["code"] == "sweep_stalled"
    clock.advance(60)
    assert answer_of(router, ASKED).status == 200
    with database.read() as connection:
        assert numbers(connection)["last_health_check_at"] == clock.now


def test_a_database_damaged_while_it_is_served_is_told_as_503(app):
    key = app.json("POST", "/register", {"email": "a@b"})["key"]
    database = app.service.database
    with closing(sqlite3.connect(database.path)) as other:
        # A connection of its own waits for the writer's, which may still end its last write.
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with database.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (database.path.stat().st_size - 4096))
    for target in ("/key", "/checks"):
        answer = app("GET", target, key=key)
        assert answer.status == 503
        assert json.loads(answer.body)["code"] == "database_unavailable"
        assert answer.headers["Retry-After"]
