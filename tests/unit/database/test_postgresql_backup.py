"""From a file to PostgreSQL and back: nothing is lost on the way, and nothing half done is left behind."""

import contextlib
import sqlite3
import threading

import psycopg
import pytest

from cardbeat import cli
from cardbeat.config import Config
from cardbeat.database import open_database, postgresql_backup, sqlite_rows
from cardbeat.database.postgresql_backup import back_up, restore
from cardbeat.database.sqlite_file import FILE_NAME, integrity_problems, schema_version
from cardbeat.database.sqlite_rows import LEFT_BEHIND, TABLES
from cardbeat.errors import StartupError
from cardbeat.keys.webhook_secrets import WebhookSecrets
from cardbeat.staging import PREFIX
from tests.heart import HOOK, Heart
from tests.nodes import Nodes, flush
from tests.postgresql import POSTGRESQL
from tests.support import App, FakeClock, service_of, wait_until

pytestmark = POSTGRESQL

HOUR = 3600


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(sqlite_rows, "BATCH", 3)
    monkeypatch.setattr(postgresql_backup, "BATCH", 3)


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
    heart.keys.revoke(heart.keys.issue("gone@b").wait().key.id)
    return kept


@pytest.fixture
def filled(tmp_path, clock):
    """A file with rows of every kind."""
    with contextlib.closing(open_database(tmp_path / "filled")) as database:
        fill(database, clock)
    return tmp_path / "filled" / FILE_NAME


def contents(path):
    """All rows of a file by table, what its numbers go on from, and how it was made."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = [*TABLES, "sqlite_sequence"]
        rows = {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables}
        schema = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall()
        return (
            rows,
            schema,
            [connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")],
        )


def without_moments(found):
    rows, *rest = found
    noted = {name: value for name, value in rows["monitor"] if name not in ("last_sweep_monotonic", "last_sweep_epoch")}
    return {**rows, "monitor": noted}, *rest


def test_all_tables_are_carried_or_left_behind_for_a_reason(filled):
    with contextlib.closing(sqlite3.connect(filled)) as connection:
        found = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {name for name in found if not name.startswith("sqlite_")} == {*TABLES, *LEFT_BEHIND}


def test_from_a_file_to_the_server_and_back_all_rows_are_as_they_were(filled, postgresql, tmp_path):
    before = contents(filled)
    assert all(before[0].values())
    url = postgresql.emptied(tmp_path)
    name, keys, checks, served_at = restore(url, tmp_path / "cards", filled)
    assert (keys, checks, served_at) == (5, 12, 1_800_000_010)
    assert "cardbeat" not in name.partition("@")[2]
    back_up(url, tmp_path / "cards", tmp_path / "copy.db")
    assert without_moments(contents(tmp_path / "copy.db")) == without_moments(before)
    assert contents(filled) == before
    (tmp_path / "again").mkdir()
    (tmp_path / "copy.db").rename(tmp_path / "again" / FILE_NAME)
    assert integrity_problems(tmp_path / "again") == []
    assert list((tmp_path / "cards").iterdir()) == []


def test_after_the_move_new_rows_have_new_numbers_and_the_totals_go_on(filled, postgresql, tmp_path, clock):
    url = postgresql.emptied(tmp_path)
    restore(url, tmp_path, filled)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        before = contents(filled)[0]
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
        assert seqs == [len(before["keys"]) + 1, dict(before["sqlite_sequence"])["checks"] + 1]
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


def test_what_a_lease_and_a_monotonic_clock_gave_a_meaning_stays_behind(postgresql, tmp_path, clock):
    url = postgresql.emptied(tmp_path)
    with contextlib.ExitStack() as opened:
        nodes = Nodes(lambda: opened.enter_context(contextlib.closing(open_database(tmp_path, url))), clock)
        beat(nodes.first)
        back_up(url, tmp_path / "cards", tmp_path / "copy.db")
    rows = contents(tmp_path / "copy.db")[0]
    assert dict(rows["monitor"])["last_sweep_at"] == clock()
    assert dict(rows["monitor"])["last_sweep_monotonic"] == 0
    assert "last_sweep_epoch" not in dict(rows["monitor"])


def test_a_backup_while_all_is_being_written_is_of_one_moment(postgresql, tmp_path, clock):
    url = postgresql.emptied(tmp_path)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        heart = Heart(database, clock)
        stop = threading.Event()

        def write_on():
            while not stop.is_set():
                heart.create()

        thread = threading.Thread(target=write_on)
        thread.start()
        try:
            wait_until(lambda: heart.checks.count(heart.key.id) > 20)
            for _ in range(2):
                back_up(url, tmp_path / "cards", tmp_path / "copy.db")
                rows = contents(tmp_path / "copy.db")[0]
                total = len(rows["checks"])
                assert dict(rows["totals_by_status"]) == {"on_time": total, "overdue": 0}
                assert rows["totals_by_key"] == [(heart.key.id, total)]
        finally:
            stop.set()
            thread.join()


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
    restore(url, tmp_path / "cards", filled)
    (tmp_path / "backups").mkdir()
    with pytest.raises(StartupError, match="stopped"):
        back_up(url, tmp_path / "cards", tmp_path / "backups" / "copy.db", Stopped(at))
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_file_of_an_earlier_schema_is_brought_up_to_date_on_its_way_and_stays_as_it_is(
    postgresql, tmp_path, monkeypatch, clock
):
    from cardbeat.database import sqlite_file

    scripts = sqlite_file._migrations()
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "_migrations", lambda: scripts[:6])
        with contextlib.closing(open_database(tmp_path / "old")) as database:
            fill(database, clock)
    before = (tmp_path / "old" / FILE_NAME).read_bytes()
    url = postgresql.new_schema()
    restore(url, tmp_path / "cards", tmp_path / "old" / FILE_NAME)
    assert (tmp_path / "old" / FILE_NAME).read_bytes() == before
    back_up(url, tmp_path / "cards", tmp_path / "copy.db")
    assert contents(tmp_path / "copy.db")[2][0] == (schema_version(),)


def refused(*command):
    return cli.main(list(map(str, command)))


def test_a_restore_into_a_database_with_keys_is_refused(filled, postgresql, tmp_path, capsys):
    url = postgresql.emptied(tmp_path)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        Heart(database, FakeClock()).create()
    assert refused("restore", filled, "--database", url, "--data", tmp_path) == 2
    assert "is not empty; restore into an empty one\n" in (told := capsys.readouterr().err)
    assert told.count("\n") == 1
    back_up(url, tmp_path, tmp_path / "copy.db")
    assert len(contents(tmp_path / "copy.db")[0]["checks"]) == 1


def test_a_restore_into_a_database_that_a_server_has_open_is_refused(filled, postgresql, tmp_path):
    url = postgresql.emptied(tmp_path)
    with contextlib.closing(open_database(tmp_path, url)) as database:
        assert database.lease().take()
        with pytest.raises(StartupError, match="in use; stop all its servers"):
            restore(url, tmp_path, filled)
        database.lease().release()
    restore(url, tmp_path, filled)


def test_a_restore_while_another_one_goes_on_is_refused(filled, postgresql, tmp_path, monkeypatch):
    times = postgresql_backup._TIMES
    monkeypatch.setattr(postgresql_backup, "_TIMES", times.replace("lock_timeout = 5000", "lock_timeout = 50"))
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
    with pytest.raises(StartupError, match="no tables of cardbeat"):
        back_up(url, tmp_path / "cards", tmp_path / "copy.db")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_backup_never_replaces_a_database_in_the_data_folder(postgresql, tmp_path, filled):
    with pytest.raises(StartupError, match="belongs to the database"):
        back_up(postgresql.emptied(tmp_path), filled.parent, filled)


def test_the_commands_say_what_they_did_and_never_the_password(filled, postgresql, tmp_path, capsys, monkeypatch):
    url = postgresql.emptied(tmp_path).replace("cardbeat@", "cardbeat:s3cret@")
    monkeypatch.setenv("CARDBEAT_DATABASE", url)
    monkeypatch.setenv("CARDBEAT_DATA", str(tmp_path / "cards"))
    assert cli.main(["restore", str(filled), "--json"]) == 0
    assert '"kept": null, "keys": 5, "checks": 12, "last_served_at": "2027-01-15 08:00:10"' in (
        told := capsys.readouterr().out
    )
    assert cli.main(["restore", str(filled)]) == 2
    assert cli.main(["backup", str(tmp_path / "copy.db"), "--json"]) == 0
    found = capsys.readouterr()
    assert f'"bytes": {(tmp_path / "copy.db").stat().st_size}' in found.out
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


def test_a_database_that_an_older_version_has_made_is_not_backed_up_by_a_newer_one(postgresql, tmp_path):
    url = postgresql.new_schema("older")
    open_database(tmp_path, url).close()
    postgresql.execute("DELETE FROM older.cardbeat_schema WHERE version > 5")
    with pytest.raises(StartupError, match=r"older cardbeat \(schema 5\); serve it once"):
        back_up(url, tmp_path, tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []
