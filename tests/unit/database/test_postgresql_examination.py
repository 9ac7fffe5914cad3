"""What `doctor` and `keys` say of a PostgreSQL server."""

import json
import time
from types import SimpleNamespace

import pytest

from cardbeat import cli
from cardbeat.database import open_database, open_to_look
from cardbeat.database.postgresql import examination
from cardbeat.database.postgresql import schema as postgresql_schema
from cardbeat.database.postgresql.examination import clock_doubts, weaknesses
from cardbeat.errors import StartupError
from tests.postgresql import POSTGRESQL

pytestmark = POSTGRESQL

SOUND = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "ANY 1 (a, b)",
}


class Pretending:
    """A connection to a server that says otherwise of its settings and its standbys.

    `standbys` are how many are connected, of how many more is known, and how many of these commits wait for.
    """

    def __init__(self, connection, standbys=(1, 1, 1), **settings):
        self.connection = connection
        self.standbys = standbys
        self.settings = {**SOUND, **settings}

    def execute(self, sql, values=()):
        if "current_setting" in sql:
            return SimpleNamespace(fetchone=lambda: (self.settings[values[0]],))
        found = self.connection.execute(sql, values)
        return SimpleNamespace(fetchone=lambda: self.standbys) if "pg_stat_replication" in sql else found


@pytest.fixture
def connection(database_url):
    with open_to_look(database_url) as connection:
        yield connection


@pytest.mark.parametrize(
    ("pretended", "found"),
    [
        ({}, []),
        ({"fsync": "off"}, [(True, "fsync is off")]),
        ({"full_page_writes": "off"}, [(False, "full_page_writes is off")]),
        ({"synchronous_commit": "off"}, [(False, "synchronous_commit is off")]),
        ({"synchronous_commit": "remote_apply"}, []),
        ({"synchronous_standby_names": ""}, [(False, "no commit waits for a standby")]),
        ({"standbys": (0, 0, None)}, [(True, "no standby of synchronous_standby_names is connected")]),
        ({"standbys": (1, 1, 0)}, [(True, "no standby of synchronous_standby_names is connected")]),
        # A role without the right to know sees that there are some.
        ({"standbys": (1, 0, 0)}, []),
    ],
)
def test_each_setting_that_can_lose_what_was_confirmed_is_one_sentence_with_what_to_do(connection, pretended, found):
    told = list(weaknesses(Pretending(connection, **pretended)))
    assert [
        (is_problem, sentence.startswith(start)) for (is_problem, sentence), (_, start) in zip(told, found, strict=True)
    ] == [(is_problem, True) for is_problem, _ in found]
    assert all(sentence.count("; ") == 1 for _, sentence in told)


@pytest.mark.parametrize(
    ("hours", "sentence"),
    [(0, None), (1, "clock is 3600 s ahead of the database server's"), (-1, "3600 s behind the database server's")],
)
def test_clocks_that_differ_are_told(connection, hours, sentence):
    told = list(clock_doubts(connection, lambda: time.time() + hours * 3600))
    assert [not is_problem and sentence in told for is_problem, told in told] == [True] * (sentence is not None)


def test_doctor_has_one_line_of_a_clock_that_differs(database_url, tmp_path, capsys, monkeypatch):
    clock = "cardbeat.commands.doctor.time"
    monkeypatch.setattr(clock, SimpleNamespace(time=lambda: time.time() + 3600))
    _, found = examined(capsys, tmp_path, database_url)
    ((level, sentence),) = [it for it in found if "clock" in it[1] or "UTC" in it[1]]
    assert (level, sentence.partition(" s ")[0]) == ("warning", "this host's clock is 3600")


def test_a_server_whose_clock_is_before_what_is_stored_is_a_problem(database, connection):
    later = ("last_sweep_at", int(time.time()) + 3600)
    database.write(lambda transaction: transaction.execute("INSERT INTO monitor VALUES (?, ?)", later).rowcount)
    ((is_problem, sentence),) = clock_doubts(connection, time.time)
    assert is_problem
    assert "which is before" in sentence


def examined(capsys, folder, url):
    """The exit status of `doctor`, and what it finds of the database by level."""
    status = cli.main(["doctor", "--json", "--data", str(folder), "--database", url])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return status, {(it["level"], it["found"]): it["advice"] for it in findings if it["name"] in ("database", "clock")}


def test_doctor_tells_what_it_found_with_the_status_of_the_worst(postgresql, tmp_path, capsys, monkeypatch):
    url = postgresql.emptied(tmp_path)
    status, found = examined(capsys, tmp_path, url)
    # The server of the tests keeps nothing over a power cut, and has no standby.
    assert [level for level, _ in found] == ["ok", "problem", "warning", "ok"]
    assert all(advice for (level, _), advice in found.items() if level != "ok")
    assert status == 1
    monkeypatch.setattr(examination, "weaknesses", lambda _: iter([(False, "it is odd; look")]))
    assert examined(capsys, tmp_path, url)[0] == 0
    monkeypatch.setattr(postgresql_schema, "OLDEST_SERVER", 99)
    status, found = examined(capsys, tmp_path, url)
    assert status == 1
    assert found[next(iter(found))] == "use version 99 or newer"


def test_doctor_tells_of_tables_that_a_newer_version_has_made(postgresql, tmp_path, capsys):
    url = postgresql.new_schema()
    open_database(tmp_path, url).close()
    with open_to_look(url) as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone()
    postgresql.execute(f"INSERT INTO {schema}.cardbeat_schema (version) VALUES (99)")
    assert (("problem", "the database was written by a newer cardbeat (schema 99)")) in examined(capsys, tmp_path, url)[
        1
    ]


def test_tables_of_another_program_are_told_by_serving_as_by_doctor(postgresql, tmp_path, capsys):
    url = postgresql.new_schema("of_another")
    postgresql.execute("CREATE TABLE of_another.keys (a INTEGER)")
    told = "the database has a table keys that is not cardbeat's"
    advice = "give cardbeat a database of its own, or a schema"
    with pytest.raises(StartupError, match=f"^{told}; {advice}$"):
        open_database(tmp_path, url)
    assert cli.main(["keys", "list", "--database", url]) == 2
    assert capsys.readouterr().err == f"cardbeat: {told}; {advice}\n"
    status, found = examined(capsys, tmp_path, url)
    assert (status, found["problem", told]) == (1, advice)
    assert not any(what.startswith("PostgreSQL") for _, what in found)
    # In a schema of its own, with the other one behind it.
    beside = postgresql.new_schema("beside_another") + ",of_another"
    assert any(level == "ok" and "no tables yet" in what for level, what in examined(capsys, tmp_path, beside)[1])
    open_database(tmp_path, beside).close()


@pytest.mark.parametrize("action", [["list"], ["revoke", "key_1"], ["tier", "key_1", "free"]])
def test_only_serving_and_creating_a_key_make_tables(postgresql, tmp_path, capsys, action):
    url = postgresql.new_schema()
    command = ["--database", url, "--data", str(tmp_path / "none")]
    assert cli.main(["keys", *action, *command]) == 2
    assert capsys.readouterr().err == "cardbeat: the database has no tables of cardbeat yet; serving makes them\n"
    with open_to_look(url) as connection:
        assert connection.execute("SELECT to_regclass('keys')").fetchone() == (None,)
    assert not (tmp_path / "none").exists()


def test_keys_are_issued_listed_moved_and_ended_as_in_a_file(database_url, tmp_path, capsys):
    def keys(*action):
        assert cli.main(["keys", *action, "--json", "--database", database_url, "--data", str(tmp_path)]) == 0
        return json.loads(capsys.readouterr().out)

    issued = keys("create", "--email", "ops@example.com")
    assert keys("tier", issued["id"], "unlimited") == {"id": issued["id"], "tier": "unlimited"}
    (listed,) = keys("list")
    assert (listed["id"], listed["tier"], listed["checks"]) == (issued["id"], "unlimited", 0)
    assert keys("revoke", issued["id"]) == {"id": issued["id"], "revoked": True}
    assert keys("list") == []
