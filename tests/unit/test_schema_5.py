"""A database of schema 4 is brought to schema 5: when alerts are due that wait behind others, or for a URL."""

import contextlib

import pytest

from cardbeat.database import open_database, sqlite_file
from cardbeat.heartbeat.pending import PendingAlerts


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A connection to a database of schema 4 with a check."""
    earlier = sqlite_file._migrations()[:4]
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "_migrations", lambda: earlier)
        sqlite_file.create_if_missing(tmp_path / sqlite_file.FILE_NAME)
    with contextlib.closing(sqlite_file.connect(tmp_path / sqlite_file.FILE_NAME)) as connection:
        connection.execute(
            "INSERT INTO keys (id, scope, tier, hash, prefix, created_at)"
            " VALUES ('key_1', 'checks', 'free', x'00', 'sk_12345', 0)"
        )
        connection.execute(
            "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, clock_from, created_at,"
            " updated_at, webhook_url) VALUES ('a', 'key_1', 'backup', 60, 0, 0, 0, 0, 'https://a.example/')"
        )
        yield connection


def insert(connection, alerts):
    for number, (kind, outage, state, next_attempt_at) in enumerate(alerts):
        connection.execute(
            "INSERT INTO alerts (id, check_id, type, outage, body, state, created_at, next_attempt_at)"
            " VALUES (?, 'a', ?, ?, '{}', ?, 0, ?)",
            (number, f"check.{kind}", outage, state, next_attempt_at),
        )


def test_what_waits_behind_another_alert_of_its_kind_is_due_with_it(old, tmp_path):
    insert(
        old,
        [
            ("overdue", 1, "delivered", None),
            ("recovered", 1, "pending", 5000),
            ("overdue", 2, "pending", 40),
            ("test", None, "pending", 600),
            ("recovered", 2, "pending", 50),
            ("test", None, "pending", 70),
        ],
    )
    with contextlib.closing(open_database(tmp_path)) as database, database.read() as connection:
        times = [row[0] for row in connection.execute("SELECT next_attempt_at FROM alerts ORDER BY seq")]
        assert times == [None, 5000, 5000, 600, 5000, 600]
        assert PendingAlerts(database).first_due_at() == 600


def test_what_waits_for_a_check_without_a_url_is_not_due(old, tmp_path):
    insert(old, [("overdue", 1, "pending", 40), ("recovered", 1, "pending", 40)])
    old.execute("UPDATE checks SET webhook_url = NULL")
    with contextlib.closing(open_database(tmp_path)) as database, database.read() as connection:
        assert [row[0] for row in connection.execute("SELECT next_attempt_at FROM alerts")] == [None, None]
        assert PendingAlerts(database).first_due_at() is None
