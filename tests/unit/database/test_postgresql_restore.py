"""From a file to PostgreSQL: nothing is lost on the way, and nothing half done is left behind."""

import contextlib
import sqlite3
import threading
from pathlib import Path

import psycopg
import pytest

from cardbeat import cli
from cardbeat.config import Config
from cardbeat.database import open_database
from cardbeat.database.postgresql import restore as postgresql_restore
from cardbeat.database.postgresql.restore import restore
from cardbeat.database.schema import NODE_TABLES, TABLES
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.errors import StartupError
from cardbeat.host.staging import PREFIX
from cardbeat.keys.webhook_secrets import WebhookSecrets
from tests.heart import HOOK, Heart
from tests.nodes import Nodes, flush
from tests.postgresql import POSTGRESQL
from tests.support import App, FakeClock, service_of

pytestmark = POSTGRESQL

HOUR = 3600


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(postgresql_restore, "BATCH", 3)


def fill(database, clock):
    """Put rows of every kind into a database, and let the last of some be gone; a check that is kept."""
    heart = Heart(database, clock)
    checks = [heart.create(1 + number % 5) for number in range(11)]
    heart.pass_time(10)
    heart.sweep.sweep_once()
    for check in checks[::2]:
        heart.ping(check)
    kept = heart.create(HOUR)
    heart.checks.test_alert(heart.key.id, kept.id).wait()
    late = heart.read(checks[1])
    heart.checks.update(late, heart.settings(late, webhook_url=f"{HOOK}/2")).wait()
    WebhookSecrets(database, clock).renew(heart.key).wait()
    for name in ("é \U0001f600 \\N \\. \t", "'quoted'"):
        heart.keys.issue(f"{name}@b", "unlimited").wait()
    heart.keys.issue().wait()
    gone = heart.create()
    heart.checks.delete(heart.key.id, gone.id).wait()
    heart.keys.revoke(heart.keys.issue("gone@b").wait().key.id).wait()
    return kept


@pytest.fixture
def filled(tmp_path, clock):
    """A file with rows of every kind."""
    with contextlib.closing(open_database(tmp_path / "filled")) as database:
        fill(database, clock)
    return tmp_path / "filled" / FILE_NAME


def connect(place):
    """A connection of the engine's driver alone, to the path of a file or a URL."""
    return contextlib.closing(sqlite3.connect(place) if isinstance(place, Path) else psycopg.connect(place))


def contents(place):
    """All rows of a database by table."""
    with connect(place) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES}


def last_numbers(place):
    """The largest number that a row had, by table."""
    if isinstance(place, Path):
        sql = "SELECT 'keys', max(seq) FROM keys UNION SELECT name, seq FROM sqlite_sequence"
    else:
        sql = "SELECT replace(sequencename, '_seq_seq', ''), last_value FROM pg_sequences"
        sql += " WHERE schemaname = current_schema()"
    with connect(place) as connection:
        return dict(connection.execute(sql).fetchall())


def test_all_tables_are_carried_or_left_behind_for_a_reason(filled):
    with connect(filled) as connection:
        found = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {name for name in found if not name.startswith("sqlite_")} == {*TABLES, *NODE_TABLES}


def test_all_rows_of_a_file_are_on_the_server_as_they_were_but_a_clock_of_the_machine_before(
    filled, postgresql, tmp_path
):
    before = contents(filled)
    assert all(before.values())
    url = postgresql.emptied(tmp_path)
    name, *held = restore(url, tmp_path / "cards", filled)
    assert held == [5, 12, 1_800_000_010, None]
    assert "cardbeat" not in name.partition("@")[2]
    assert dict(before["monitor"])["last_sweep_monotonic"] > 0
    noted = {name: value for name, value in before["monitor"] if name != "last_sweep_epoch"}
    after = contents(url)
    assert dict(after.pop("monitor")) == noted | {"last_sweep_monotonic": 0}
    assert after == {table: rows for table, rows in before.items() if table != "monitor"}
    assert last_numbers(url) == last_numbers(filled)
    assert contents(filled) == before
    assert list((tmp_path / "cards").iterdir()) == []


def test_after_the_move_new_rows_have_new_numbers_and_the_totals_go_on(filled, postgresql, tmp_path, clock):
    url = postgresql.emptied(tmp_path)
    restore(url, tmp_path, filled)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        before = contents(filled)
        heart = Heart(database, clock)
        check = heart.create(1)
        heart.pass_time(10)
        heart.sweep.sweep_once()
        with database.read() as connection:
            seqs = [connection.execute(f"SELECT max(seq) FROM {table}").fetchone()[0] for table in ("keys", "checks")]
            totals = dict(connection.execute("SELECT status, checks FROM totals_by_status").fetchall())
            known = connection.execute("SELECT reltuples FROM pg_class WHERE oid = to_regclass('checks')").fetchone()[0]
            counted = dict(connection.execute("SELECT status, count(*) FROM checks GROUP BY status").fetchall())
        # The number of a check that is gone is not given to another.
        assert seqs == [len(before["keys"]) + 1, last_numbers(filled)["checks"] + 1]
        assert totals == counted
        assert known == len(before["checks"])
        assert heart.status(check) == "overdue"


def test_the_ping_urls_and_keys_of_before_work(postgresql, tmp_path):
    clock = FakeClock()
    service = service_of(Config(data=tmp_path / "old", port=0), clock)
    app = App(service, clock)
    key, cards_key = app.checks_key(), app.cards_key()
    body = {"name": "a", "period_seconds": 60, "grace_seconds": 0}
    check = app.json("POST", "/checks", body, key=key)["check"]
    service.close()
    url = postgresql.emptied(tmp_path)
    restore(url, tmp_path / "new", tmp_path / "old" / FILE_NAME)
    clock.advance(30)
    service = service_of(Config(data=tmp_path / "new", port=0, database=url), clock)
    app = App(service, clock)
    assert app.json("GET", f"/checks/{check['id']}", key=key)["check"] == {
        **check,
        "ping_url": f"{service.server.url}/ping/{check['id']}",
    }
    assert app("GET", f"/ping/{check['id']}").status == 200
    assert app("GET", f"/og?title=x&key={cards_key}").status == 200
    assert app("GET", f"/og?title=x&key={key}").status == 403
    service.close()


def beat(heart):
    """How many checks turn overdue when this node sweeps as the one that has the lease."""
    assert heart.fence.take() or heart.fence.take()
    return heart.sweep.sweep_once(heart.sweep.credit.give_due(threading.Event()))


def test_silence_from_the_backup_to_the_restore_is_credited_once(postgresql, tmp_path, clock):
    url = postgresql.emptied(tmp_path)
    # Of a machine that was up for longer than the next ones.
    heart = Heart(open_database(tmp_path / "old"), clock, monotonic=FakeClock(1_000_000))
    check = heart.create(HOUR)
    heart.sweep.sweep_once(heart.sweep.credit.give_due(threading.Event()))
    heart.database.close()
    clock.advance(2 * HOUR)
    restore(url, tmp_path, tmp_path / "old" / FILE_NAME)
    with contextlib.ExitStack() as opened:
        nodes = Nodes(lambda: opened.enter_context(contextlib.closing(open_database(tmp_path, url))), clock)
        for node in nodes:
            assert beat(node) == 0
            assert node.checks.get(check.api_key_id, check.id).deadline_at == check.deadline_at + 2 * HOUR
            nodes.pass_time(20)
            node.fence.release()
            flush(node)


def test_the_epoch_of_a_lease_stays_behind(filled, postgresql, tmp_path):
    with connect(filled) as connection, connection:
        connection.execute("INSERT INTO monitor VALUES ('last_sweep_epoch', 3)")
    restore(url := postgresql.emptied(tmp_path), tmp_path, filled)
    assert "last_sweep_epoch" not in dict(contents(url)["monitor"])


class Stopped:
    """Stops what asks it whether to go on, at the Nth time."""

    def __init__(self, at):
        self.left = at

    def __call__(self):
        self.left -= 1
        if not self.left:
            raise StartupError("stopped by SIGTERM; nothing was done")


@pytest.mark.parametrize("at", [1, 4, 9])
def test_what_is_stopped_in_the_middle_leaves_all_as_it_was(filled, postgresql, tmp_path, at):
    url = postgresql.emptied(tmp_path)
    (tmp_path / "cards").mkdir()
    with pytest.raises(StartupError, match="stopped"):
        restore(url, tmp_path / "cards", filled, Stopped(at))
    assert list((tmp_path / "cards").iterdir()) == []
    assert not any(rows for table, rows in contents(url).items() if table != "totals_by_status")
    restore(url, tmp_path / "cards", filled)


def refused(*command):
    return cli.main(list(map(str, command)))


def test_a_restore_into_a_database_with_keys_is_refused(filled, postgresql, tmp_path, capsys):
    url = postgresql.emptied(tmp_path)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        Heart(database, FakeClock()).create()
    assert refused("restore", filled, "--database", url, "--data", tmp_path) == 2
    assert "is not empty; restore into an empty one\n" in (told := capsys.readouterr().err)
    assert told.count("\n") == 1
    assert len(contents(url)["checks"]) == 1


def test_a_restore_into_a_database_that_a_server_has_open_is_refused(filled, postgresql, tmp_path):
    url = postgresql.emptied(tmp_path)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        assert database.lease().take()
        with pytest.raises(StartupError, match="in use; stop all its servers"):
            restore(url, tmp_path, filled)
        database.lease().release()
    restore(url, tmp_path, filled)


def test_a_restore_while_another_one_goes_on_is_refused(filled, postgresql, tmp_path, monkeypatch):
    settings = postgresql_restore._SETTINGS
    monkeypatch.setattr(postgresql_restore, "_SETTINGS", settings.replace("lock_timeout = 5000", "lock_timeout = 50"))
    url = postgresql.emptied(tmp_path)
    with contextlib.closing(psycopg.connect(url)) as another:
        another.execute("LOCK TABLE keys IN EXCLUSIVE MODE")
        with pytest.raises(StartupError, match="in use; stop all its servers"):
            restore(url, tmp_path, filled)
    restore(url, tmp_path, filled)


def test_what_is_no_backup_is_refused_and_nothing_is_made(postgresql, tmp_path):
    url = postgresql.new_schema()
    (tmp_path / "other").write_text("something else")
    for file in (tmp_path / "other", tmp_path / "none"):
        with pytest.raises(StartupError):
            restore(url, tmp_path / "cards", file)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_the_command_says_what_it_did_and_never_the_password(filled, postgresql, tmp_path, capsys, monkeypatch):
    url = postgresql.emptied(tmp_path).replace("cardbeat@", "cardbeat:s3cret@")
    monkeypatch.setenv("CARDBEAT_DATABASE", url)
    monkeypatch.setenv("CARDBEAT_DATA", str(tmp_path / "cards"))
    assert cli.main(["restore", str(filled), "--json"]) == 0
    assert '"kept": null, "keys": 5, "checks": 12, "last_served_at": "2027-01-15 08:00:10"' in (
        told := capsys.readouterr().out
    )
    assert cli.main(["restore", str(filled)]) == 2
    found = capsys.readouterr()
    assert "s3cret" not in told + found.out + found.err


def test_a_text_with_a_nul_which_postgresql_does_not_take_is_restored_without_it(filled, postgresql, tmp_path):
    with contextlib.closing(sqlite3.connect(filled, isolation_level=None)) as connection:
        connection.execute("UPDATE alerts SET last_error = 'a' || char(0) || 'b' WHERE seq = 1")
    restore(url := postgresql.emptied(tmp_path), tmp_path, filled)
    with contextlib.closing(open_database(tmp_path, url)) as database, database.read() as connection:
        assert connection.execute("SELECT last_error FROM alerts WHERE seq = 1").fetchone() == ("a\ufffdb",)


def test_what_a_killed_restore_left_behind_goes_with_the_next_start(postgresql, tmp_path):
    left = tmp_path / f"{PREFIX}12345678"
    left.mkdir()
    (left / "copy").write_text("all keys")
    (left / "lock").write_text("\n")
    open_database(tmp_path, postgresql.emptied(tmp_path / "other")).close()
    assert not left.exists()
