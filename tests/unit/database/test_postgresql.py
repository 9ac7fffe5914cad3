"""What PostgreSQL alone needs: a server that goes away and comes back, and commits that wait for a standby."""

import contextlib
import os
import re
import stat
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from cardbeat import cli
from cardbeat.database import OLDEST_DRIVER, monitor, open_database
from cardbeat.database.postgresql import connection as postgresql_connection
from cardbeat.database.postgresql import database as engine_module
from cardbeat.database.postgresql import schema as postgresql_schema
from cardbeat.database.postgresql import server as postgresql_server
from cardbeat.database.postgresql.connection import STATEMENT_SECONDS, connect, in_its_own_sql
from cardbeat.database.postgresql.errors import is_trouble, may_be_repeated
from cardbeat.database.schema import NUMBERED, newest
from cardbeat.errors import MaybeDone, NotFound, StartupError, Unavailable
from cardbeat.operation.health import HealthRoutes
from tests.artifact import ROOT
from tests.documentation import DOCS
from tests.heart import HOOK, Heart
from tests.postgresql import POSTGRESQL
from tests.proxy import Proxy
from tests.support import count_up, counted, further_scripts, wait_until, writer_held

pytestmark = POSTGRESQL


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(postgresql_server, "UNREACHABLE_SECONDS", 0.05)


def attempt(work):
    """What comes of it."""
    try:
        return work()
    except Unavailable as refusal:
        return refusal


def test_values_stand_in_statements_as_in_all_engines():
    assert in_its_own_sql("UPDATE t SET a = ?, b = 'is it? :no' WHERE c = ?")[0] == (
        "UPDATE t SET a = $1, b = 'is it? :no' WHERE c = $2"
    )
    assert in_its_own_sql("SELECT :b, :a, :b FROM t INDEXED BY i WHERE x LIKE '%'") == (
        "SELECT $1, $2, $1 FROM t WHERE x LIKE '%'",
        ("b", "a"),
    )


def test_rows_have_their_values_by_name_and_by_place(database):
    with database.read() as connection:
        row = connection.execute("SELECT :a AS a, CAST(:b AS INTEGER) AS b", {"b": 2, "a": "x", "c": 0}).fetchone()
        number, text = connection.execute("SELECT 1, '50%'").fetchone()
    assert (row["a"], row["b"], row[1], tuple(row), dict(row)) == ("x", 2, 2, ("x", 2), {"a": "x", "b": 2})
    assert (number, text) == (1, "50%")


def test_a_text_with_a_nul_is_looked_for_in_vain(database, clock):
    heart = Heart(database, clock)
    check = heart.create()
    for look in (lambda check_id: heart.checks.get(heart.key.id, check_id), lambda id: heart.checks.ping(id).wait()):
        with pytest.raises(NotFound):
            look(f"{check.id}\0")


def sever(postgresql):
    """End all other sessions of the server."""
    others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    postgresql.execute(f"SELECT pg_terminate_backend(pid) {others}")
    wait_until(lambda: not postgresql.execute(f"SELECT pid {others}"))


def test_sessions_that_the_server_ends_are_begun_anew_and_nobody_notices(database, postgresql):
    database.write(count_up)
    assert counted(database) == 1
    sever(postgresql)
    assert counted(database) == 1
    database.write(count_up)
    assert counted(database) == 2


def test_a_transaction_whose_session_ends_before_its_commit_is_made_again(database, postgresql):
    tries = []

    def work(transaction):
        count_up(transaction)
        if not tries:
            sever(postgresql)
        tries.append(1)
        transaction.execute("SELECT 1")

    database.write(work)
    assert (counted(database), len(tries)) == (1, 2)


def test_while_the_server_is_gone_all_are_told_so_and_it_goes_on_by_itself(database, postgresql, caplog):
    database.write(count_up)
    postgresql.stop()
    try:
        refusals = [attempt(lambda: database.write(count_up)) for _ in range(3)]
        refusals += [attempt(lambda: counted(database)) for _ in range(3)]
        assert [refusal.headers["Retry-After"] for refusal in refusals] == ["5"] * 6
    finally:
        postgresql.start()
    wait_until(lambda: attempt(lambda: counted(database)) == 1)
    wait_until(lambda: attempt(lambda: database.write(count_up)) is None)
    assert counted(database) == 2
    assert "\n" not in caplog.records[0].getMessage()
    told = [record.getMessage() for record in caplog.records if "can't write" not in record.getMessage()]
    assert [line.partition(":")[0].partition(";")[0] for line in told] == [
        "the database can't be reached",
        "the database can be reached again",
        "the database can be written again",
    ]


def test_a_server_that_can_not_be_reached_is_tried_once_in_a_while_and_not_for_each_caller(
    database, postgresql, monkeypatch
):
    tried = []

    def connect(*_, **__):
        tried.append(1)
        raise psycopg.OperationalError("nobody there")

    monkeypatch.setattr(postgresql_server, "UNREACHABLE_SECONDS", 60)
    monkeypatch.setattr(postgresql_server, "connect", connect)
    sever(postgresql)
    assert isinstance(attempt(lambda: counted(database)), Unavailable)
    assert isinstance(attempt(lambda: database.write(count_up)), Unavailable)
    assert len(tried) == 1


def test_while_a_server_does_not_answer_nobody_waits_for_it(database, postgresql, monkeypatch):
    reachable, tries, connected = threading.Event(), threading.Semaphore(0), postgresql_server.connect

    def connect(*arguments, **options):
        tries.release()
        if reachable.wait(5):
            return connected(*arguments, **options)
        raise psycopg.OperationalError("timeout expired")

    sever(postgresql)
    with monkeypatch.context() as patch:
        patch.setattr(postgresql_server, "connect", lambda *_, **__: connect_to_nobody())
        assert isinstance(attempt(lambda: counted(database)), Unavailable)
    monkeypatch.setattr(postgresql_server, "connect", connect)
    assert tries.acquire(timeout=5)
    began = time.monotonic()
    assert isinstance(attempt(lambda: counted(database)), Unavailable)
    assert isinstance(attempt(lambda: database.write(count_up)), Unavailable)
    assert time.monotonic() - began < 4
    reachable.set()
    wait_until(lambda: attempt(lambda: database.write(count_up)) is None)


def test_who_cannot_read_writes_nothing_and_leaves_its_connection_to_others(database, postgresql, monkeypatch):
    """Where connections lacked after a restart, a node could renew the lease and read nothing: no alert was sent."""
    connected = postgresql_server.connect

    def connect(url, *, only_reads=False):
        if only_reads:
            raise psycopg.OperationalError("remaining connection slots are reserved")
        return connected(url)

    with monkeypatch.context() as patch:
        patch.setattr(postgresql_server, "connect", connect)
        database._readers.drop_idle()
        assert isinstance(attempt(lambda: database.write(count_up)), Unavailable)
        assert database._writer.connection.closed
    wait_until(lambda: attempt(lambda: database.write(count_up)) is None)
    assert counted(database) == 1


def test_who_cannot_write_leaves_its_idle_connections_to_others(database, monkeypatch):
    connected = postgresql_server.connect

    def connect(url, *, only_reads=False):
        if only_reads:
            return connected(url, only_reads=True)
        raise psycopg.OperationalError("remaining connection slots are reserved")

    database.write(count_up)
    assert database._readers._idle
    database._writer.connection.close()
    monkeypatch.setattr(postgresql_server, "connect", connect)
    assert isinstance(attempt(lambda: database.write(count_up)), Unavailable)
    assert not database._readers._idle


def test_a_connection_that_reads_is_enough_to_write(database, monkeypatch):
    with database.read(), monkeypatch.context() as patch:
        patch.setattr(postgresql_server, "connect", lambda *_, **__: connect_to_nobody())
        database.write(count_up)


def connect_to_nobody():
    raise psycopg.OperationalError("nobody there")


def test_a_statement_that_takes_too_long_is_given_up(database, monkeypatch):
    monkeypatch.setattr(postgresql_connection.Connection, "limit_seconds", 0.1)
    for slow in (lambda: database.write(lambda it: it.execute("SELECT pg_sleep(9)")), lambda: read_slowly(database)):
        assert isinstance(attempt(slow), Unavailable)
        database.write(count_up)
    assert counted(database) == 2


def read_slowly(database):
    with database.read() as connection:
        connection.execute("SELECT pg_sleep(9)")


def test_a_session_that_was_given_up_ends_by_itself(postgresql):
    with contextlib.closing(connect(postgresql.url(), only_reads=True)) as connection:
        (shown,) = connection.execute("SELECT current_setting('statement_timeout')").fetchone()
        assert shown == f"{0.9 * STATEMENT_SECONDS:g}s"


def test_a_read_is_not_compiled_where_a_new_table_was_never_counted(postgresql):
    """The number of checks, which the metrics show, took 0.4 s and not 1 ms."""
    with contextlib.closing(connect(postgresql.url(), only_reads=True)) as connection:
        rows = "generate_series(1, 99999) AS a, generate_series(1, 99999) AS b"
        plan = connection.execute(f"EXPLAIN SELECT count(*) FROM {rows} WHERE a + b > 9")
        assert "JIT" not in str(list(map(tuple, plan.fetchall())))


@pytest.mark.parametrize("code", ["25P03", "25P04"])
def test_a_session_that_the_server_ended_for_its_slowness_is_trouble_that_may_pass(code):
    error = type("Slow", (psycopg.InternalError,), {"sqlstate": code})("terminating connection due to a timeout")
    assert is_trouble(error)
    assert may_be_repeated(error)


def test_of_those_written_in_one_go_only_those_fail_whose_row_another_session_keeps_locked(database, open_again, quick):
    def mark(transaction, names):
        for name in names:
            transaction.execute("UPDATE monitor SET value = 1 WHERE name = ?", (name,))
        return names

    for name in "abc":
        database.write(lambda transaction, name=name: monitor.note(transaction, **{name: 0}))
    with kept_locked(open_again(), "b"):
        with writer_held(database):
            written = {name: database.write_together(mark, name) for name in "abcb"}
        assert [written["a"].wait(), written["c"].wait()] == ["a", "c"]
        assert attempt(written["b"].wait).headers["Retry-After"] == "5"
    with database.read() as connection:
        assert monitor.values(connection) == {"a": 1, "b": 0, "c": 1}


def test_after_a_row_was_found_locked_none_is_waited_for_long_for_a_minute(database, open_again, quick, monkeypatch):
    def limit(transaction):
        return transaction.execute("SELECT current_setting('lock_timeout')").fetchone()[0]

    database.write(count_up)
    with kept_locked(open_again(), "n"):
        assert isinstance(attempt(lambda: database.write(count_up)), Unavailable)
        assert [database.write(limit) for _ in range(2)] == ["20ms"] * 2
        monkeypatch.setattr(engine_module, "CAUTIOUS_SECONDS", 0)
        assert isinstance(attempt(lambda: database.write(count_up)), Unavailable)
        assert database.write(limit) == "300ms"
    database.write(count_up)
    assert counted(database) == 2


def test_of_many_locked_rows_each_is_waited_for_half_as_long_as_the_one_before(database, open_again, quick):
    def mark(transaction, names):
        limits.append(transaction.execute("SELECT current_setting('lock_timeout')").fetchone()[0])
        transaction.execute("UPDATE monitor SET value = 1")
        return names

    limits = []
    database.write(count_up)
    with kept_locked(open_again(), "n"):
        assert all(isinstance(error, Unavailable) for error in errors_together(database, mark))
    assert limits == ["300ms", "10ms", "10ms", "10ms"]


def test_where_many_rows_are_locked_all_that_wait_fail_at_once(database, open_again, quick, monkeypatch):
    def mark(transaction, names):
        calls.append(names)
        transaction.execute("UPDATE monitor SET value = 1")
        return names

    calls = []
    database.write(count_up)
    # As if what came before had taken long.
    monkeypatch.setattr(engine_module, "GIVE_UP_SECONDS", 0)
    with kept_locked(open_again(), "n"):
        assert all(isinstance(error, Unavailable) for error in errors_together(database, mark))
    assert len(calls) <= 2


def errors_together(database, work):
    """What three writes raise that are made in one go."""
    with writer_held(database):
        written = [database.write_together(work, name) for name in "abc"]
    return [attempt(later.wait) for later in written]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(engine_module, "LOCK_SECONDS", 0.3)
    monkeypatch.setattr(engine_module, "NEXT_LOCK_SECONDS", 0.02)


@contextlib.contextmanager
def kept_locked(other, name):
    """Another session keeps this row of `monitor` locked, until what waits has been told."""
    held, release = threading.Event(), threading.Event()
    sql = "UPDATE monitor SET value = value WHERE name = ?"

    def keep(transaction):
        transaction.execute(sql, (name,))
        held.set()
        release.wait(20)

    kept = other.write_later(keep)
    assert held.wait(20)
    try:
        yield
    finally:
        release.set()
        kept.wait()


@pytest.fixture
def without_standby(database, postgresql, monkeypatch):
    """Commits wait for a standby that there is not, until they need not."""
    monkeypatch.setattr(postgresql_connection, "COMMIT_SECONDS", 0.5)

    def wait_for(names):
        # In a session that waits for no standby itself.
        postgresql.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        postgresql.execute("SELECT pg_reload_conf()")
        wait_until(lambda: read_one(database, "SHOW synchronous_standby_names".replace("SHOW ", SETTING)) == names)

    wait_for("nobody")
    yield lambda: wait_for("")
    wait_for("")


SETTING = "SELECT current_setting('synchronous_standby_names') -- "


def read_one(database, sql):
    with database.read() as connection:
        return connection.execute(sql).fetchone()[0]


def waiting_sessions(database):
    return read_one(database, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")


def test_a_commit_that_waits_for_its_standby_is_not_told_as_kept_and_not_cut_off(database, without_standby):
    began = time.monotonic()
    assert (refusal := attempt(lambda: database.write(count_up))).code == "unconfirmed"
    # To ask again could do it twice: 503 and Retry-After tell clients to.
    assert (refusal.status, refusal.headers) == (503, {})
    # Not even tried: all others would come to wait behind it.
    for _ in range(20):
        assert (refusal := attempt(lambda: database.write(count_up))).code == "database_unavailable"
        assert (refusal.status, refusal.headers) == (503, {"Retry-After": "5"})
    assert time.monotonic() - began < 5
    assert waiting_sessions(database) == 1
    without_standby()
    wait_until(lambda: attempt(lambda: database.write(count_up)) is None)
    assert counted(database) == 2


@pytest.mark.parametrize("asked", ["ping", "health"])
def test_a_ping_and_the_health_that_are_not_confirmed_may_be_asked_again(database, clock, request, asked):
    heart = Heart(database, clock)
    check = heart.create()
    request.getfixturevalue("without_standby")
    health = HealthRoutes(database, clock, lambda: True)
    refusal = attempt(lambda: heart.ping(check) if asked == "ping" else health.read().wait())
    assert (refusal.code, refusal.status, refusal.headers) == ("database_unavailable", 503, {"Retry-After": "5"})
    assert waiting_sessions(database) == 1


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_commit_that_a_proxy_has_lost_is_not_waited_for_once_the_server_is_done_with_it(
    postgresql, tmp_path, monkeypatch, way
):
    monkeypatch.setattr(postgresql_connection, "COMMIT_SECONDS", 0.2)
    with Proxy(postgresql.port) as proxy:
        url = postgresql.emptied(tmp_path).replace(f"@:{postgresql.port}", f"@127.0.0.1:{proxy.port}")
        with contextlib.closing(open_database(tmp_path, re.sub("host=[^&]*&", "", url))) as database:

            def lose(transaction):
                count_up(transaction)
                # The proxy still answers to TCP's own questions, so the connection never ends.
                proxy.dropped.add(way)

            assert isinstance(attempt(lambda: database.write(lose)), MaybeDone)
            proxy.dropped.clear()
            wait_until(lambda: attempt(lambda: database.write(lambda it: monitor.note(it, other=1))) is None)
            with database.read() as connection:
                assert ("n" in monitor.values(connection)) == (way == "back")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_texts_are_utf_8_whatever_the_url_or_the_role_says(postgresql, tmp_path, encoding):
    url = f"{postgresql.emptied(tmp_path)}%20-cclient_encoding%3D{encoding}&client_encoding={encoding}"
    with contextlib.closing(open_database(tmp_path, url)) as database, database.read() as connection:
        assert connection.execute("SELECT CAST(? AS text)", ("zażółć 🐄",)).fetchone()[0] == "zażółć 🐄"


def test_a_table_that_is_out_of_the_search_path_is_trouble_that_may_pass(database, caplog):
    def refuse(transaction):
        transaction.execute("SET LOCAL search_path = pg_catalog")
        monitor.values(transaction)

    assert attempt(lambda: database.write(refuse)).headers["Retry-After"] == "5"
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith('the database can\'t write: relation "monitor" does not exist')
    database.write(count_up)


def test_the_same_server_is_known_whatever_time_zone_the_role_is_set_to(postgresql, tmp_path):
    url = postgresql.emptied(tmp_path)
    known = set()
    for zone in ("UTC", "Asia/Kathmandu"):
        with contextlib.closing(open_database(tmp_path, f"{url}%20-cTimeZone%3D{zone}")) as database:
            known.add(database.server())
    assert len(known) == 1


def test_a_server_whose_tables_are_put_back_is_another_one(postgresql, tmp_path):
    with contextlib.closing(open_database(tmp_path, postgresql.new_schema("put_back"))) as database:
        before = database.server()
        postgresql.execute("DROP SCHEMA put_back CASCADE")
        open_database(tmp_path, postgresql.new_schema("put_back")).close()
        assert database.server() != before


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_commit_whose_wait_is_cancelled_is_not_told_as_kept(database, without_standby, postgresql, monkeypatch, end):
    monkeypatch.setattr(postgresql_connection, "COMMIT_SECONDS", 20)
    database.write(lambda transaction: transaction.execute("SET client_min_messages = error"))
    made = []
    with ThreadPoolExecutor() as pool:
        written = pool.submit(attempt, lambda: database.write(lambda it: (made.append(1), count_up(it))))
        wait_until(lambda: waiting_sessions(database) or written.done())
        postgresql.execute(f"SELECT {end}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        assert isinstance(written.result(20), MaybeDone)
    assert len(made) == 1
    without_standby()
    database.write(count_up)
    # The primary alone has it.
    assert counted(database) == 2


@pytest.mark.parametrize("isolation", ["read%5C%20committed", "repeatable%5C%20read"])
def test_nodes_that_start_at_once_make_the_schema_once(postgresql, tmp_path, monkeypatch, isolation):
    once = "INSERT INTO monitor (name, value) VALUES ('times_migrated', 1)"
    # It takes as long as ten need to begin.
    further_scripts(monkeypatch, "postgresql", "SELECT pg_sleep(0.3)", once)
    url = f"{postgresql.new_schema()}%20-cdefault_transaction_isolation%3D{isolation}"
    start = threading.Barrier(10)

    def open_(_):
        start.wait(20)
        return open_database(tmp_path, url)

    with ThreadPoolExecutor(10) as pool:
        databases = list(pool.map(open_, range(10)))
    assert read_one(databases[0], "SELECT max(version) FROM cardbeat_schema") == newest("postgresql")
    for database in databases:
        database.close()


def test_a_node_waits_for_as_long_as_another_one_makes_the_schema(postgresql, tmp_path, monkeypatch):
    monkeypatch.setattr(postgresql_connection, "STATEMENT_SECONDS", 1.0)
    monkeypatch.setattr(postgresql_connection.Connection, "limit_seconds", 1.0)
    waits = "SELECT 1 FROM pg_locks WHERE clock_timestamp() - waitstart > interval '1.2 s'"
    url = postgresql.new_schema()
    with contextlib.closing(psycopg.connect(postgresql.url())) as another, ThreadPoolExecutor() as pool:
        another.execute(f"SELECT pg_advisory_xact_lock({postgresql_schema.MIGRATION_LOCK})")
        opened = pool.submit(open_database, tmp_path, url)
        wait_until(lambda: opened.done() or postgresql.execute(waits))
        another.rollback()
        opened.result(20).close()


def test_a_script_that_fails_leaves_the_schema_as_it_was(postgresql, tmp_path, monkeypatch):
    url = postgresql.new_schema()
    open_database(tmp_path, url).close()
    with monkeypatch.context() as patch:
        further_scripts(patch, "postgresql", "DROP TABLE moves", "DROP TABLE nowhere")
        with pytest.raises(StartupError, match="nowhere"):
            open_database(tmp_path, url)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        assert read_one(database, "SELECT count(*) FROM moves") == 0


def test_a_newer_schema_is_refused(postgresql, tmp_path, monkeypatch):
    url = postgresql.new_schema()
    with monkeypatch.context() as patch:
        further_scripts(patch, "postgresql", "SELECT 1")
        open_database(tmp_path, url).close()
    with pytest.raises(StartupError, match="newer cardbeat"):
        open_database(tmp_path, url)


def test_every_engine_has_the_same_tables_and_columns(postgresql, tmp_path):
    in_file = open_database(tmp_path)
    on_server = open_database(tmp_path, postgresql.new_schema())
    with in_file.read() as connection:
        names = [row["name"] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        tables = {
            name: {row["name"] for row in connection.execute(f"PRAGMA table_xinfo({name})")}
            for name in names
            if not name.startswith("sqlite_")
        }
    with on_server.read() as connection:
        for table, columns in tables.items():
            found = connection.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_schema = current_schema() AND table_name = ?",
                (table,),
            )
            assert {row[0] for row in found} == columns, table
    in_file.close()
    on_server.close()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://me:s3cret@127.0.0.1:1/db", "refused"),
        ("postgresql://me:s3cret@127.0.0.1:0x/db", "port"),
        ("postgresql://me:s3cret@127.0.0.1/db?nothing=1", "can't be read"),
        ("postgresql://127.0.0.1/db?s3cret", "can't be read"),
        ("postgresql://me:%ffs3cret@127.0.0.1/db", "URL"),
        ("postgresql://127.0.0.1/db?connect_timeout=s3cret", "connect_timeout"),
        ("postgresql://127.0.0.1/db?service=s3cret", "service"),
        ("postgresql://127.0.0.1/db?sslmode=s3cret", "sslmode"),
        ("postgresql://127.0.0.1/db?keepalives=s3cret", "keepalives"),
        ("postgresql://me:s3c%72et@127.0.0.1:1/s3cret?user=s3c%72et", "refused"),
        ("postgresql://me:s3cret@a..b/db", "URL"),
        ("postgresql://me:s3cret@s3cret.invalid/db", "[*]{3}.invalid"),
        ("postgresql://me:s3cret@nowhere.invalid/db", "nowhere.invalid"),
    ],
)
def test_a_database_that_can_not_be_reached_at_the_start_is_one_line_without_the_password(tmp_path, url, sentence):
    with pytest.raises(StartupError, match=sentence) as refused:
        open_database(tmp_path, url)
    assert "\n" not in str(refused.value)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(("code", "is_another"), [("0A000", True), ("25006", True), ("42501", False)])
def test_a_server_that_does_not_let_it_write_is_trouble_that_may_pass(database, caplog, code, is_another):
    def process(transaction):
        return transaction.execute("SELECT pg_backend_pid()").fetchone()[0]

    def refuse(transaction):
        transaction.execute(f"DO $$ BEGIN RAISE 'not here' USING ERRCODE = '{code}'; END $$")

    before = database.write(process)
    assert attempt(lambda: database.write(refuse)).headers["Retry-After"] == "5"
    assert [record.getMessage().partition(" CONTEXT")[0] for record in caplog.records] == [
        "the database can't write: not here"
    ]
    assert (database.write(process) != before) == is_another


def test_tables_of_another_program_in_front_of_ours_are_told_at_the_start(postgresql, tmp_path):
    url = postgresql.emptied(tmp_path)
    postgresql.execute("CREATE SCHEMA front; CREATE TABLE front.checks (name TEXT)")
    try:
        with pytest.raises(StartupError, match="the schema front has a table checks too and stands first"):
            open_database(tmp_path, url.replace("%3Demptied", "%3Dfront,emptied"))
        open_database(tmp_path, url.replace("%3Demptied", "%3Demptied,front")).close()
    finally:
        postgresql.execute("DROP SCHEMA front CASCADE")


def test_trouble_that_each_request_meets_has_a_line_once_in_a_while(database, caplog):
    for _ in range(20):
        attempt(lambda: database.write(lambda transaction: transaction.execute("DELETE FROM nowhere")))
        with contextlib.suppress(Unavailable), database.read() as connection:
            connection.execute("SELECT 1 FROM nowhere")
    told = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert told == ["the database can't write", "the database can't read"]


@pytest.mark.parametrize("right", ["SELECT", "INSERT", "UPDATE", "DELETE"])
def test_a_role_without_a_right_that_serving_needs_is_told_at_the_start(postgresql, tmp_path, right):
    url = postgresql.emptied(tmp_path)
    postgresql.execute(f"""
        CREATE ROLE web LOGIN; GRANT USAGE ON SCHEMA emptied TO web;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA emptied TO web;
        REVOKE {right} ON emptied.moves FROM web
    """)
    try:
        with pytest.raises(StartupError, match=f"the role web has no right to {right} on the table moves; grant"):
            open_database(tmp_path, url.replace("cardbeat@", "web@"))
        postgresql.execute(f"GRANT {right} ON emptied.moves TO web")
        with contextlib.closing(open_database(tmp_path, url.replace("cardbeat@", "web@"))) as database:
            heart = Heart(database, database.clock)
            check = heart.create(1)
            heart.ping(check)
            heart.checks.delete(heart.key.id, check.id).wait()
    finally:
        postgresql.execute("DROP OWNED BY web; DROP ROLE web")


def put_back_sequences(postgresql):
    """Leave them as a move by logical replication does: the rows are there, and each sequence is new."""
    for table in NUMBERED:
        postgresql.execute(f"ALTER SEQUENCE emptied.{table}_seq_seq RESTART")


def numbers(postgresql):
    return {table: postgresql.execute(f"SELECT seq FROM emptied.{table} ORDER BY seq") for table in NUMBERED}


def test_rows_get_numbers_after_those_there_are_though_the_sequences_were_left_behind(postgresql, tmp_path, caplog):
    url = postgresql.emptied(tmp_path)

    def live():
        with contextlib.closing(open_database(tmp_path, url)) as database:
            heart = Heart(database, database.clock)
            for _ in range(3):
                check = heart.create()
                heart.checks.test_alert(heart.key.id, check.id).wait()
                heart.checks.update(check, heart.settings(check, webhook_url=f"{HOOK}/2")).wait()

    live()
    # History was removed: the first numbers are free again, and a new row could take them.
    postgresql.execute("DELETE FROM emptied.alerts WHERE seq < 3")
    before = numbers(postgresql)
    assert caplog.messages == []
    put_back_sequences(postgresql)
    # The next number of this one is ahead, and it goes forward only.
    postgresql.execute("ALTER SEQUENCE emptied.moves_seq_seq RESTART WITH 1000")
    live()
    added = {table: rows[len(before[table]) :] for table, rows in numbers(postgresql).items()}
    assert added == {
        "keys": [(2,)],
        "checks": [(4,), (5,), (6,)],
        "alerts": [(4,), (5,), (6,)],
        "moves": [(1001,), (1002,), (1003,)],
    }
    told = ", ".join(f"emptied.{table}_seq_seq" for table in NUMBERED)
    assert caplog.messages == [f"set sequences that were behind their tables: {told}"]
    open_database(tmp_path, url).close()
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("isolation", ["read%5C%20committed", "repeatable%5C%20read"])
def test_nodes_that_start_at_once_set_a_sequence_that_was_left_behind_once(postgresql, tmp_path, isolation):
    url = f"{postgresql.emptied(tmp_path)}%20-cdefault_transaction_isolation%3D{isolation}"
    with contextlib.closing(open_database(tmp_path, url)) as database:
        Heart(database, database.clock)
        postgresql.execute("UPDATE emptied.keys SET seq = 100")

        def start(number):
            with contextlib.closing(open_database(tmp_path / str(number), url)) as opened:
                return [Heart(opened, opened.clock).key for _ in range(5)]

        with contextlib.closing(psycopg.connect(url)) as another, ThreadPoolExecutor() as pool:
            # Until it commits, both have seen the sequence behind and wait for the lock.
            another.execute("LOCK TABLE keys IN ROW EXCLUSIVE MODE")
            started = [pool.submit(start, number) for number in range(2)]
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = CAST('emptied.keys' AS regclass)"
            wait_until(lambda: postgresql.execute(waiting) == [(2,)])
            another.commit()
            assert len([key for each in started for key in each.result(20)]) == 10
    assert numbers(postgresql)["keys"] == [(number,) for number in range(100, 111)]


def test_a_role_may_see_that_a_sequence_was_left_behind_and_is_told_that_it_may_not_set_it(postgresql, tmp_path):
    url = postgresql.emptied(tmp_path)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        Heart(database, database.clock)
    put_back_sequences(postgresql)
    postgresql.execute("""
        CREATE ROLE web LOGIN; GRANT USAGE ON SCHEMA emptied TO web;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA emptied TO web
    """)
    try:
        # The rights that serving needs.
        open_database(tmp_path, url.replace("cardbeat@", "web@")).close()
        postgresql.execute("GRANT SELECT ON ALL SEQUENCES IN SCHEMA emptied TO web")
        with pytest.raises(StartupError, match="permission denied for sequence keys_seq_seq"):
            open_database(tmp_path, url.replace("cardbeat@", "web@"))
    finally:
        postgresql.execute("DROP OWNED BY web; DROP ROLE web")


def test_a_role_that_may_not_make_the_tables_is_told_at_the_start_and_by_doctor(postgresql, tmp_path, capsys):
    url = postgresql.new_schema().replace("cardbeat@", "web@")
    postgresql.execute("CREATE ROLE web LOGIN")
    try:
        with pytest.raises(StartupError, match="the role web may make none in the schema"):
            open_database(tmp_path, url)
        (tmp_path / "url").write_text(url)
        assert cli.main(["doctor", "--data", str(tmp_path), "--database", str(tmp_path / "url")]) == 1
        assert "the role web may make none in the schema" in capsys.readouterr().out
    finally:
        postgresql.execute("DROP OWNED BY web; DROP ROLE web")


@pytest.fixture
def protected(postgresql):
    """A URL with a password that the server asks for, and what changes that on the server."""
    password = """s3cret: '\\"@/?#%&=é"""
    rules = postgresql.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all protected all scram-sha-256\n{before}")
    postgresql.execute("SELECT pg_reload_conf()")

    def change(password):
        quoted = password.replace("'", "''")
        postgresql.execute(f"ALTER ROLE protected PASSWORD '{quoted}'")

    postgresql.execute("CREATE ROLE protected SUPERUSER LOGIN")
    change(password)
    postgresql.new_schema("protected")
    yield f"postgresql://protected:{quote(password, safe='')}@127.0.0.1:{postgresql.port}/postgres", change
    rules.write_text(before)


def test_no_message_holds_the_password_where_the_server_refuses_it(protected, postgresql, tmp_path, caplog):
    url, change = protected
    url += "?options=-csearch_path%3Dprotected"
    with contextlib.closing(open_database(tmp_path, url)) as database:
        database.write(count_up)
        change("another")
        sever(postgresql)
        assert isinstance(attempt(lambda: counted(database)), Unavailable)
        assert isinstance(attempt(lambda: database.write(count_up)), Unavailable)
        with pytest.raises(StartupError, match="password authentication failed") as refused:
            open_database(tmp_path, url)
    assert "password authentication failed" in caplog.text
    shown = caplog.text + str(refused.value) + repr(database.__dict__)
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("set_to", "used"), [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")]
)
def test_a_commit_waits_for_the_disk_and_the_standby_whatever_is_set_for_the_role(postgresql, tmp_path, set_to, used):
    url = postgresql.emptied(tmp_path) + f"%20-csynchronous_commit%3D{set_to}"
    with contextlib.closing(open_database(tmp_path, url)) as database:
        setting = database.write(lambda it: it.execute("SELECT current_setting('synchronous_commit')").fetchone()[0])
        assert setting == used


def test_the_lease_of_a_node_that_is_gone_is_taken_over_though_the_role_is_given_few_digits(postgresql, tmp_path):
    url = f"{postgresql.emptied(tmp_path)}%20-cextra_float_digits%3D0"
    with contextlib.ExitStack() as opened:
        first, second = (opened.enter_context(contextlib.closing(open_database(tmp_path, url))) for _ in range(2))
        assert first.lease().take()
        # A time whose last digit is not among the 15 that are given.
        postgresql.execute("UPDATE emptied.leases SET until = 1800000000.1234567 - 1e9")
        assert second.lease().take()


def test_without_its_driver_it_is_one_line_that_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StartupError, match=r"pip install 'psycopg\[binary\]"):
        open_database(tmp_path, "postgresql://127.0.0.1/db")


@pytest.mark.parametrize("place", ["file/cards", "unwritable/cards"])
def test_a_folder_that_no_card_can_be_stored_in_is_one_line_at_the_start(tmp_path, capsys, monkeypatch, place):
    url, folder = "postgresql://127.0.0.1:1/db", tmp_path / place
    (tmp_path / "file").write_text("")
    (tmp_path / "unwritable").mkdir()
    monkeypatch.setattr(os, "access", lambda path, _mode: path.name != "unwritable")
    with pytest.raises(StartupError, match="can't write in the data folder"):
        open_database(folder, url)
    cli.main(["doctor", "--data", str(folder), "--database", url])
    assert "problem  folder: can't write in the data folder" in capsys.readouterr().out


def test_a_folder_that_can_not_be_made_is_one_line_at_the_start(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StartupError, match=r"can't write in the data folder .*: No such file"):
        open_database(tmp_path / "none", "postgresql://127.0.0.1:1/db")


def test_the_folder_of_the_cards_is_made_at_the_start_and_for_its_owner_alone(tmp_path, database_url):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    for name, mode in (("new", 0o700), ("shared", 0o755)):
        open_database(tmp_path / name, database_url).close()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
    assert cli.main(["keys", "list", "--data", str(tmp_path / "none"), "--database", database_url]) == 0
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("version", ["3.1.7", "3.2", "3.2.10", "3.2.1rc1", "2.9.9 (dt dec pq3 ext lo64)"])
def test_a_driver_that_is_too_old_is_one_line_that_says_which_is_there_and_which_is_needed(
    tmp_path, monkeypatch, capsys, version
):
    monkeypatch.setattr(psycopg, "__version__", version)
    told = f"psycopg {version} is too old, 3.2.11 or newer is needed; run: pip install 'psycopg[binary]>=3.2.11'"
    options = ["--data", str(tmp_path), "--database", "postgresql://127.0.0.1/db"]
    with pytest.raises(StartupError, match=re.escape(told)):
        open_database(tmp_path, options[-1])
    for command in (["keys", "list"], ["keys", "create"], ["restore", "file"]):
        assert cli.main([*command, *options]) == 2
        assert capsys.readouterr().err == f"cardbeat: {told}\n"
    assert cli.main(["doctor", *options]) == 1
    assert f"problem  database: {told}\n" in capsys.readouterr().out


@pytest.mark.parametrize("version", ["3.2.11", "3.2.11.dev1", "3.3", "3.10.0b1", "4.0", "0.0.0.0", "unknown"])
def test_a_driver_that_is_new_enough_or_does_not_tell_its_version_is_used(tmp_path, monkeypatch, version):
    monkeypatch.setattr(psycopg, "__version__", version)
    with pytest.raises(StartupError, match="refused"):
        open_database(tmp_path, "postgresql://127.0.0.1:1/db")


def test_the_package_and_the_documentation_ask_for_the_driver_that_is_needed():
    needed = f"psycopg[binary]>={'.'.join(map(str, OLDEST_DRIVER))}"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [it for extra in extras.values() for it in extra if it.startswith("psycopg")] == [needed] * 2
    assert set(re.findall(r"psycopg\[binary\][^\"']*", DOCS["nodes"])) == {needed}
    assert re.findall(r"psycopg ([0-9.]+) or newer", DOCS["nodes"]) == [needed.partition(">=")[2]]


def test_doctor_tells_of_the_server_and_makes_no_tables(postgresql, tmp_path, capsys):
    url = postgresql.new_schema()
    command = ["doctor", "--data", str(tmp_path), "--database", url]
    cli.main(command)
    assert "PostgreSQL 1" in (found := capsys.readouterr().out)
    assert "no tables yet" in found
    open_database(tmp_path, url).close()
    cli.main(command)
    assert f"schema {newest('postgresql')}\n" in capsys.readouterr().out
    cli.main([*command[:-1], "postgresql://127.0.0.1:1/db"])
    assert "refused" in capsys.readouterr().out


def test_a_transaction_has_one_call_for_many_writes_so_that_all_servers_lock_their_rows_in_one_order(database):
    def work(_transaction, items):
        settled.append(sum(later.is_settled for later in written))
        return items

    settled = []
    with writer_held(database):
        written = [database.write_together(work, number) for number in range(2 * max(database.AT_ONCE))]
    for later in written:
        later.wait()
    assert settled == [0, max(database.AT_ONCE)]
