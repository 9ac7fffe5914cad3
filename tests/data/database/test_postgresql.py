"""What PostgreSQL alone needs: a server that goes away and comes back, and commits that wait for a standby."""

import contextlib
import re
import stat
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from cardbeat import cli
from cardbeat.config import Config
from cardbeat.database import numbers, open_database, set_numbers
from cardbeat.database.postgresql import schema
from cardbeat.database.postgresql.connection import Unreachable, connect
from cardbeat.database.postgresql.lease import (
    HELD_SECONDS,
    RENEWAL_SECONDS,
    TERM_SECONDS,
    Lease,
)
from cardbeat.database.schema import VERSION
from cardbeat.errors import (
    LeaseLost,
    MaybeDone,
    StartupError,
    Unavailable,
)
from tests.kit.postgresql import POSTGRESQL
from tests.kit.proxy import Proxy
from tests.kit.support import (
    FakeClock,
    begun,
    count_up,
    counted,
    service_of,
    wait_until,
    writer_held,
)

pytestmark = POSTGRESQL

PASSWORD = "s3cret"


def attempt(work):
    """What comes of it."""
    try:
        return work()
    except Unavailable as refusal:
        return refusal


def read_one(database, sql):
    with database.read() as connection:
        return connection.execute(sql).fetchone()[0]


def sever(postgresql):
    """End all other sessions of the server."""
    others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    postgresql.execute(f"SELECT pg_terminate_backend(pid) {others}")
    wait_until(lambda: not postgresql.execute(f"SELECT pid {others}"))


def test_sessions_that_the_server_ends_are_begun_again_and_what_was_not_committed_is_made_again(
    database, postgresql
):
    database.write(count_up)
    assert counted(database) == 1
    sever(postgresql)
    assert counted(database) == 1
    tries = []

    def work(transaction):
        count_up(transaction)
        if not tries:
            sever(postgresql)
        tries.append(1)
        transaction.execute("SELECT 1")

    database.write(work)
    assert counted(database) == 2
    assert len(tries) == 2


def test_while_the_server_is_gone_all_are_told_so_at_once_and_it_goes_on_by_itself(
    database, postgresql, caplog
):
    database.write(count_up)
    postgresql.stop()
    try:
        began = time.monotonic()
        deeds = [
            lambda: database.write(count_up),
            lambda: counted(database),
        ] * 20
        assert {
            attempt(deed).headers["Retry-After"] for deed in deeds
        } == {"5"}
        assert time.monotonic() - began < 20
    finally:
        postgresql.start()
    wait_until(lambda: attempt(lambda: counted(database)) == 1)
    wait_until(lambda: attempt(lambda: database.write(count_up)) is None)
    assert counted(database) == 2
    assert PASSWORD not in caplog.text
    assert not any(
        "\n" in record.getMessage() for record in caplog.records
    )


def test_a_statement_that_takes_too_long_is_given_up_and_its_session_ends_by_itself(
    postgresql, tmp_path
):
    with contextlib.closing(
        connect(postgresql.emptied(tmp_path), only_reads=True)
    ) as connection:
        assert connection.execute(
            "SELECT current_setting('statement_timeout')"
        ).fetchone() == ("9s",)
        connection.limit_seconds = 0.2
        with pytest.raises(Unreachable):
            connection.execute("SELECT pg_sleep(5)")


def test_of_pings_made_together_only_those_fail_whose_row_another_session_keeps_locked(
    database, open_again
):
    def mark(transaction, names):
        for name in names:
            transaction.execute(
                "UPDATE monitor SET value = 1 WHERE name = ?", (name,)
            )
        return names

    for name in "abc":
        database.write(
            lambda transaction, name=name: set_numbers(
                transaction, **{name: 0}
            )
        )
    with kept_locked(open_again(), "b"):
        with writer_held(database):
            written = {
                name: database.write_ping(mark, name, "client")
                for name in "abc"
            }
        assert written["a"].wait() == "a"
        assert written["c"].wait() == "c"
        assert attempt(written["b"].wait).headers["Retry-After"] == "5"
        alone = database.write_ping(mark, "b", "client")
        assert attempt(alone.wait).headers["Retry-After"] == "5"
        # The database as a whole took them.
        assert not database.pings_refused
    with database.read() as connection:
        assert numbers(connection) == {"a": 1, "b": 0, "c": 1}


@contextlib.contextmanager
def kept_locked(other, name):
    """Another session keeps this row of `monitor` locked, until what waits has been told."""
    held, release = threading.Event(), threading.Event()
    sql = "UPDATE monitor SET value = value WHERE name = ?"

    def keep(transaction):
        transaction.execute(sql, (name,))
        held.set()
        release.wait(60)

    kept = begun(lambda: other.write(keep))
    assert held.wait(60)
    try:
        yield
    finally:
        release.set()
        kept.result(60)


@pytest.fixture
def database(postgresql, tmp_path):
    url = postgresql.emptied(tmp_path).replace(
        "cardbeat@", f"cardbeat:{PASSWORD}@"
    )
    with contextlib.closing(open_database(tmp_path, url)) as database:
        yield database


@pytest.fixture
def without_standby(database, postgresql):
    """Commits wait for a standby that there is not, until they need not."""

    def wait_for(names):
        # In a session that waits for no standby itself.
        postgresql.execute(
            f"ALTER SYSTEM SET synchronous_standby_names = '{names}'"
        )
        postgresql.execute("SELECT pg_reload_conf()")
        wait_until(
            lambda: (
                read_one(
                    database,
                    "SELECT current_setting('synchronous_standby_names')",
                )
                == names
            )
        )

    wait_for("nobody")
    yield lambda: wait_for("")
    wait_for("")


def waiting_sessions(database):
    return read_one(
        database,
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
    )


def test_a_commit_that_waits_for_its_standby_is_not_told_as_kept_and_not_cut_off(
    database, without_standby
):
    began = time.monotonic()
    assert (
        refusal := attempt(lambda: database.write(count_up))
    ).code == "unconfirmed"
    # To ask again could do it twice: 503 and Retry-After tell clients to.
    assert refusal.status == 503
    assert refusal.headers == {}
    # Not even tried: all others would come to wait behind it.
    for _ in range(20):
        assert (
            refusal := attempt(lambda: database.write(count_up))
        ).code == "database_unavailable"
        assert refusal.status == 503
        assert refusal.headers == {"Retry-After": "5"}
    assert time.monotonic() - began < 20
    assert waiting_sessions(database) == 1
    without_standby()
    wait_until(lambda: attempt(lambda: database.write(count_up)) is None)
    assert counted(database) == 2


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_commit_that_a_proxy_has_lost_is_not_waited_for_once_the_server_is_done_with_it(
    postgresql, tmp_path, way
):
    with Proxy(postgresql.port) as proxy:
        url = postgresql.behind(proxy, postgresql.emptied(tmp_path))
        with contextlib.closing(open_database(tmp_path, url)) as database:
            # The server ends the session of a host that is silent for 14 s.
            idle = "SELECT current_setting('tcp_keepalives_idle')"
            assert read_one(database, idle) == "5"

            def lose(transaction):
                count_up(transaction)
                # The proxy still answers to TCP's own questions, so the connection never ends.
                proxy.dropped.add(way)

            assert isinstance(
                attempt(lambda: database.write(lose)), MaybeDone
            )
            proxy.dropped.clear()
            wait_until(
                lambda: (
                    attempt(
                        lambda: database.write(
                            lambda it: set_numbers(it, other=1)
                        )
                    )
                    is None
                )
            )
            with database.read() as connection:
                assert ("n" in numbers(connection)) == (way == "back")


@pytest.mark.parametrize(
    "end", ["pg_cancel_backend", "pg_terminate_backend"]
)
def test_a_commit_whose_wait_is_cancelled_is_not_told_as_kept(
    database, without_standby, postgresql, end
):
    made = []
    with ThreadPoolExecutor() as pool:
        written = pool.submit(
            attempt,
            lambda: database.write(
                lambda it: (made.append(1), count_up(it))
            ),
        )
        wait_until(lambda: waiting_sessions(database) or written.done())
        postgresql.execute(
            f"SELECT {end}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        )
        assert isinstance(written.result(60), MaybeDone)
    assert len(made) == 1
    without_standby()
    database.write(count_up)
    # The primary alone has it.
    assert counted(database) == 2


@pytest.mark.parametrize(
    "isolation", ["read%5C%20committed", "repeatable%5C%20read"]
)
def test_nodes_that_start_at_once_make_the_schema_once(
    postgresql, tmp_path, isolation
):
    url = f"{postgresql.new_schema()}%20-cdefault_transaction_isolation%3D{isolation}"
    start = threading.Barrier(10)

    def open_(_):
        start.wait(60)
        return open_database(tmp_path, url)

    with ThreadPoolExecutor(10) as pool:
        databases = list(pool.map(open_, range(10)))
    assert (
        read_one(databases[0], "SELECT max(version) FROM cardbeat_schema")
        == VERSION
    )
    for database in databases:
        database.close()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://me:s3cret@127.0.0.1:1/db", "refused"),
        ("postgresql://127.0.0.1/db?s3cret", "can't be read"),
        ("postgresql://me:%ffs3cret@127.0.0.1/db", "URL|can.t"),
        ("postgresql://me:s3cret@a..b/db", "can't be read"),
    ],
)
def test_a_database_that_can_not_be_reached_at_the_start_is_one_line_without_the_password(
    tmp_path, url, sentence
):
    with pytest.raises(StartupError, match=sentence) as refused:
        open_database(tmp_path, url)
    assert "\n" not in str(refused.value)
    assert "cret" not in str(refused.value)


def test_a_database_of_another_program_or_encoding_is_one_line_at_the_start(
    postgresql, tmp_path
):
    url = postgresql.new_schema()
    with contextlib.closing(
        psycopg.connect(url, autocommit=True)
    ) as connection:
        connection.execute("CREATE TABLE keys (theirs TEXT)")
        connection.execute(
            "CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0"
        )
        with pytest.raises(StartupError, match=r"keys.*already exists"):
            open_database(tmp_path, url)
        assert connection.execute(
            "SELECT to_regclass('checks')"
        ).fetchone() == (None,)
        with pytest.raises(
            StartupError,
            match="it has the encoding LATIN1; create one with the encoding UTF8",
        ):
            open_database(tmp_path, url.replace("/postgres?", "/latin?"))
        connection.execute("DROP DATABASE latin WITH (FORCE)")


@pytest.mark.parametrize(
    ("set_to", "used"),
    [
        ("off", "on"),
        ("local", "on"),
        ("remote_write", "on"),
        ("remote_apply", "remote_apply"),
    ],
)
def test_a_commit_waits_for_the_disk_and_the_standby_whatever_is_set_for_the_role(
    postgresql, tmp_path, set_to, used
):
    url = (
        postgresql.emptied(tmp_path)
        + f"%20-csynchronous_commit%3D{set_to}"
    )
    with contextlib.closing(open_database(tmp_path, url)) as database:
        setting = database.write(
            lambda it: it.execute(
                "SELECT current_setting('synchronous_commit')"
            ).fetchone()[0]
        )
        assert setting == used


@pytest.mark.parametrize(
    "version", [None, "3.2.10", "2.9.9 (dt dec pq3 ext lo64)"]
)
def test_without_its_driver_or_with_an_old_one_it_is_one_line_that_says_how_to_get_it(
    tmp_path, monkeypatch, capsys, version
):
    found = "no psycopg"
    if version is None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
    else:
        monkeypatch.setattr(psycopg, "__version__", version)
        found = f"psycopg {version}"
    needed = (
        f"PostgreSQL needs psycopg 3.2.11 or newer, and there is {found}"
    )
    told = f"{needed}; run: pip install 'psycopg[binary]>=3.2.11'"
    monkeypatch.setenv("CARDBEAT_DATABASE", "postgresql://127.0.0.1/db")
    for command in (
        ["serve", "--port", "0"],
        ["keys", "list"],
        ["restore", "file"],
    ):
        assert cli.main([*command, "--data", str(tmp_path)]) == 2
        assert capsys.readouterr().err == f"cardbeat: {told}\n"
    assert cli.main(["doctor", "--data", str(tmp_path)]) == 1
    assert re.search(
        f"problem +database +{re.escape(told)}\n", capsys.readouterr().out
    )


def test_the_folder_of_the_cards_is_made_at_the_start_and_for_its_owner_alone(
    tmp_path, database_url, monkeypatch
):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    for name, mode in (("new", 0o700), ("shared", 0o775)):
        config = Config(
            data=tmp_path / name, database=database_url, port=0
        )
        service_of(config, FakeClock()).close()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
    monkeypatch.setenv("CARDBEAT_DATABASE", database_url)
    assert (
        cli.main(["keys", "list", "--data", str(tmp_path / "none")]) == 0
    )
    assert not (tmp_path / "none").exists()


def test_doctor_tells_of_the_server_and_makes_no_tables(
    postgresql, tmp_path, capsys, monkeypatch
):
    def told(url):
        monkeypatch.setenv("CARDBEAT_DATABASE", url)
        cli.main(["doctor", "--data", str(tmp_path)])
        return capsys.readouterr().out

    url = postgresql.new_schema()
    assert "no tables yet" in told(url)
    open_database(tmp_path, url).close()
    found = told(url)
    assert f"PostgreSQL is reached, schema {VERSION}\n" in found
    assert "fsync is off, so a power cut can lose answered pings" in found
    assert "no commit waits for a standby" in found
    assert "refused" in told("postgresql://127.0.0.1:1/db")


def test_doctor_tells_of_a_standby_that_is_not_there(
    postgresql, without_standby
):
    with contextlib.closing(
        connect(postgresql.url(), only_reads=True)
    ) as connection:
        told = [
            sentence
            for level, sentence in schema.findings(connection)
            if level == "problem"
        ]
    assert told[-1].startswith(
        "no standby of synchronous_standby_names is connected"
    )


@pytest.fixture
def nodes(open_again):
    """The leases of two machines that started 85,000 s apart; and what lets time pass for both."""
    clock, monotonic = FakeClock(), [FakeClock(5000), FakeClock(90_000)]
    databases = [open_again(), open_again()]
    for database in databases:
        database.clock = clock

    def pass_time(seconds):
        for one in (clock, *monotonic):
            one.advance(seconds)

    return (
        *(
            Lease(*each)
            for each in zip(databases, monotonic, strict=True)
        ),
        pass_time,
        databases,
    )


def test_one_node_has_the_lease_while_it_renews_it_and_another_a_term_after_that(
    nodes,
):
    first, second, pass_time, (database, _) = nodes
    assert first.take() is True
    assert second.take() is False
    for _ in range(20):
        pass_time(RENEWAL_SECONDS)
        assert first.take() is True
        assert second.take() is False
        assert first.held() is True
        assert second.held() is False
    pass_time(HELD_SECONDS)
    # It relies on it no longer, and no other has it yet.
    assert first.held() is False
    assert second.take() is False
    pass_time(TERM_SECONDS - HELD_SECONDS + 0.1)
    assert second.take()
    assert first.take() is False
    assert first.held() is False
    with pytest.raises(LeaseLost):
        database.write(first.confirm)


def test_of_two_that_find_it_free_one_takes_it(nodes):
    first, second, _, _ = nodes
    with ThreadPoolExecutor(2) as pool:
        taken = list(pool.map(Lease.take, (first, second)))
    assert sorted(taken) == [False, True]


def test_a_release_lets_another_take_it_at_once_and_a_late_one_takes_it_from_none(
    nodes,
):
    first, second, _, _ = nodes
    first.take()
    first.release()
    assert first.held() is False
    assert second.take() is True
    first.release()
    assert second.take()
    assert not first.take()


def test_a_sweep_that_confirmed_the_lease_keeps_it_until_its_commit(
    nodes,
):
    first, second, pass_time, (database, _) = nodes
    first.take()
    pass_time(TERM_SECONDS + 1)
    confirmed, release = threading.Event(), threading.Event()
    sweep = begun(
        lambda: database.write(
            lambda it: (
                first.confirm(it),
                confirmed.set(),
                release.wait(60),
            )
        )
    )
    assert confirmed.wait(60)
    taken = begun(second.take)
    time.sleep(0.3)
    assert not taken.done()
    release.set()
    sweep.result(60)
    assert taken.result(60)
