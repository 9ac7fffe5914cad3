"""The schema made at a start, by one node, on a server that may wait for a standby."""

import contextlib
import logging
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from cardbeat import cli
from cardbeat.database import open_database
from cardbeat.database.postgresql import connection as postgresql_connection
from cardbeat.database.postgresql import schema as postgresql_schema
from cardbeat.errors import StartupError
from tests.postgresql import POSTGRESQL
from tests.proxy import Proxy
from tests.support import wait_until

pytestmark = POSTGRESQL

NOT_CONFIRMED = "the commit that makes the tables was not confirmed by a synchronous standby; start one"


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(postgresql_connection, "COMMIT_SECONDS", 0.2)
    monkeypatch.setattr(postgresql_schema, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr("cardbeat.host.output.QUIET_SECONDS", 0.0)


def wait_for(postgresql, names):
    # In sessions that wait for no standby themselves.
    postgresql.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    postgresql.execute("SELECT pg_reload_conf()")
    wait_until(lambda: postgresql.execute("SHOW synchronous_standby_names") == [(names,)])


@pytest.fixture
def url(postgresql):
    """Of a database without tables, on a server whose commits wait for a standby that there is not."""
    made = postgresql.new_schema()
    wait_for(postgresql, "nobody")
    yield made
    wait_for(postgresql, "")


def waiting(postgresql):
    return postgresql.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")[0][0]


def test_tables_whose_commit_waits_for_a_standby_are_one_line_and_are_there_once_it_comes(
    postgresql, url, tmp_path, capsys
):
    command = ["keys", "create", "--database", url, "--data", str(tmp_path)]
    for _ in range(2):
        # The second finds that the commit of the first still waits.
        assert cli.main(command) == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"cardbeat: {NOT_CONFIRMED}"
    # Nothing was cancelled, which would keep what no standby has.
    assert waiting(postgresql) == 1
    wait_for(postgresql, "")
    wait_until(lambda: not waiting(postgresql))
    with contextlib.closing(psycopg.connect(url)) as connection:
        assert connection.execute("SELECT max(version) FROM cardbeat_schema").fetchone()[0] > 0


def test_a_key_whose_commit_is_not_confirmed_is_told_in_one_line(
    postgresql, tmp_path, database_url, capsys, monkeypatch
):
    # Those of the tests take what is logged; without any, it is printed.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    command = ["keys", "create", "--database", database_url, "--data", str(tmp_path)]
    wait_for(postgresql, "nobody")
    try:
        assert cli.main(command) == 2
    finally:
        wait_for(postgresql, "")
    assert capsys.readouterr().err == (
        "cardbeat: the database can't write: a commit was not confirmed within 0.2 s;"
        " look with keys list whether it was done, and try again\n"
    )


def test_a_commit_of_the_tables_whose_wait_was_cancelled_is_not_taken_for_kept(postgresql, url, tmp_path, monkeypatch):
    monkeypatch.setattr(postgresql_connection, "COMMIT_SECONDS", 20)
    quiet = f"{url}%20-cclient_min_messages%3Derror"
    with ThreadPoolExecutor() as pool:
        opened = pool.submit(open_database, tmp_path, quiet)
        wait_until(lambda: waiting(postgresql) or opened.done())
        postgresql.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        with pytest.raises(StartupError, match=NOT_CONFIRMED):
            opened.result(20)


def test_tables_are_made_over_a_slow_network_though_the_role_may_not_pause_in_a_transaction(
    postgresql, tmp_path, monkeypatch
):
    # It may also be busy.
    monkeypatch.setattr(postgresql_connection, "COMMIT_SECONDS", 20)
    schema = postgresql.new_schema().rpartition("%3D")[2]
    options = f"-csearch_path%3D{schema}%20-cidle_in_transaction_session_timeout%3D5"
    with Proxy(postgresql.port) as proxy:
        proxy.delay_seconds = 0.02
        open_database(tmp_path, f"postgresql://cardbeat@127.0.0.1:{proxy.port}/postgres?options={options}").close()


def test_whoever_waits_for_another_node_to_make_the_tables_is_told_for_which_session(postgresql, tmp_path, capsys):
    url = postgresql.new_schema()
    with contextlib.closing(psycopg.connect(postgresql.url())) as another, ThreadPoolExecutor() as pool:
        another.execute(f"SELECT pg_advisory_xact_lock({postgresql_schema.MIGRATION_LOCK})")
        opened, told = pool.submit(open_database, tmp_path, url), []
        still = f"still waiting for the database's process {another.info.backend_pid}, "
        try:
            wait_until(lambda: told.append(capsys.readouterr().err) or still in "".join(told) or opened.done())
        finally:
            another.rollback()
        opened.result(20).close()
    first, second, *_ = "".join(told).splitlines()
    assert first == "cardbeat: waiting for another server that brings the database up to date, please wait ..."
    assert second.startswith(f"cardbeat: {still}")
