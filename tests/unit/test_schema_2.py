"""A database of schema 1, as the first release wrote it, is brought to schema 2 with all that was in it."""

import contextlib

import pytest

from cardbeat.database import open_database, sqlite_file
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.transitions import TransitionLog

HOOK = "https://hooks.example/x"
LAST_TEST = 7


class Old:
    """Rows of schema 1, written as its program did."""

    def __init__(self, folder):
        self.folder = folder
        self._connection = sqlite_file.connect(folder / sqlite_file.FILE_NAME)
        self._connection.execute(
            "INSERT INTO keys VALUES (1, 'key_1', 'checks', 'free', 'a@b', x'00', 'sk_12345', 'whsec_YQ==', 0)"
        )

    def check(self, id, name="nightly backup", webhook_url=HOOK):
        self._connection.execute(
            "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
            " created_at, updated_at) VALUES (?, 'key_1', ?, 60, 0, ?, 0, 0, 0)",
            (id, name, webhook_url),
        )

    def alert(self, check_id, state, *, attempts=1, outage=None, kind="check.test"):
        self._connection.execute(
            "INSERT INTO alerts (id, check_id, type, outage, body, state, attempts, created_at, next_attempt_at)"
            " VALUES (hex(randomblob(16)), ?, ?, ?, '{}', ?, ?, 0, 0)",
            (check_id, kind, outage, state, attempts),
        )

    def migrated(self):
        """The database as this program has it open."""
        self._connection.close()
        return contextlib.closing(open_database(self.folder))


@pytest.fixture
def old(tmp_path, monkeypatch):
    first = sqlite_file._migrations()[:1]
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "_migrations", lambda: first)
        sqlite_file.create_if_missing(tmp_path / sqlite_file.FILE_NAME)
    return Old(tmp_path)


def column(database, sql):
    with database.read() as connection:
        return [row[0] for row in connection.execute(sql)]


def test_the_bodies_of_finished_alerts_are_dropped_and_all_else_stays(old):
    old.check("a")
    for state in ("pending", "delivered", "failed"):
        old.alert("a", state)
    with old.migrated() as database:
        assert column(database, "SELECT body FROM alerts ORDER BY seq") == ["{}", "", ""]
        states = [alert["state"] for alert in Alerts(database, "", TransitionLog()).newest("a")]
        assert states == ["failed", "delivered", "pending"]
    assert sqlite_file.integrity_problems(old.folder) == []


@pytest.mark.parametrize(
    ("alerts", "shown"),
    [
        ([], None),
        ([("pending", 0)], None),
        ([("pending", 1)], "failing"),
        ([("failed", 10)], "failing"),
        ([("delivered", 1)], "ok"),
        ([("failed", 10), ("delivered", 1), ("pending", 0)], "ok"),
        ([("delivered", 1), ("pending", 3), ("pending", 0), ("failed", 0)], "failing"),
    ],
)
def test_the_state_of_delivery_comes_from_the_last_attempt(old, alerts, shown):
    old.check("a")
    for state, attempts in alerts:
        old.alert("a", state, attempts=attempts)
    old.check("no-webhook", webhook_url=None)
    old.alert("no-webhook", "failed")
    with old.migrated() as database:
        assert column(database, "SELECT delivery FROM checks ORDER BY seq") == [shown, None]


def test_of_the_tests_that_wait_the_newest_five_are_kept(old):
    for check_id in ("a", "b"):
        old.check(check_id)
        old.alert(check_id, "pending", outage=1, kind="check.overdue")
    for _ in range(LAST_TEST):
        old.alert("a", "pending")
    with old.migrated() as database:
        states = [alert["state"] for alert in Alerts(database, "", TransitionLog()).newest("a")]
        assert states == ["pending"] * 5 + ["failed"] * 2 + ["pending"]
        assert column(database, "SELECT state FROM alerts WHERE check_id = 'b'") == ["pending"]


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("plain", "plain"),
        ("a\u202eb\u202cc", "abc"),
        ("\u200e\u05d0 1\u200f", "\u05d0 1"),
        ("\u2066 a \u2069", "a"),
        ("\u202a\u202b\u202d\u061c\u2067\u2068", "unnamed"),
        ("\U0001f469\u200d\U0001f469", "\U0001f469\u200d\U0001f469"),
    ],
)
def test_a_name_loses_what_no_name_may_hold_any_more(old, name, clean):
    old.check("a", name=name)
    old.check("b", name="another")
    with old.migrated() as database:
        assert column(database, "SELECT name FROM checks ORDER BY seq") == [clean, "another"]
