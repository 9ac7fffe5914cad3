"""For benchmarks: a data folder with very many checks, and a client that measures calls.

The checks are written past the server. Only the schema of the database is relied on, so that any
checkout's server finds them there.
"""

import contextlib
import sqlite3
import threading
import time
from typing import NamedTuple

from tests.bench.running import URL_FILE, create_key
from tests.kit.client import connect, exchange
from tests.kit.support import wait_until

LIMIT_SECONDS = 900
"""A bench that has waited so long for something to happen gives up; no other time is judged."""
INSERT = """
    INSERT INTO checks (api_key_id, name, grace_seconds, id, period_seconds, webhook_url,
        clock_from, created_at, updated_at)
    SELECT id, 'Nightly backup', 0, ?, ?, ?, ?, created_at, created_at FROM keys ORDER BY seq DESC LIMIT 1"""


class Check(NamedTuple):
    """A check whose deadline is `clock_from + period_seconds`, in Unix seconds."""

    id: str
    period_seconds: int
    webhook_url: str | None
    clock_from: int


def connect_postgresql(url):
    # The pings of `.ci/run` are measured without this driver.
    from cardbeat.database.postgresql import connection

    return connection.connect(url)


def on_postgresql(data, url):
    """A data folder whose checks are to be in that PostgreSQL, in a schema of their own."""
    schema = f"bench_{time.time_ns()}"
    with contextlib.closing(connect_postgresql(url)) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    data.mkdir(exist_ok=True)
    sign = "&" if "?" in url else "?"
    path = f"{sign}options=-csearch_path%3D{schema}"
    (data / URL_FILE).write_text(url + path)
    return data


def fill(tree, data, checks):
    """Store checks of a new key."""
    create_key(tree, data, "--email", "ops@example.com")
    with database(data) as connection:
        connection.execute("BEGIN")
        for check in checks:
            connection.execute(INSERT, check)
        connection.execute("COMMIT")
        connection.execute("ANALYZE")


@contextlib.contextmanager
def database(data):
    """A connection that commits each statement by itself, beside a server or without one."""
    if (data / URL_FILE).exists():
        opened = connect_postgresql((data / URL_FILE).read_text())
        opened.limit_seconds = LIMIT_SECONDS
    else:
        opened = sqlite3.connect(
            data / "cardbeat.db", isolation_level=None, timeout=60
        )
    with contextlib.closing(opened) as connection:
        yield connection


def count(connection, query):
    return connection.execute(f"SELECT count(*) FROM {query}").fetchone()[
        0
    ]


def wait_long(condition):
    wait_until(condition, LIMIT_SECONDS)


def seconds_of(connection, *request):
    """How long one request over a kept connection takes. Raises `SystemExit` for a refused one."""
    began = time.perf_counter()
    answer = exchange(connection, *request)
    if answer.status >= 300:
        raise SystemExit(
            f"{request}: {answer.status} {answer.body[:300]!r}"
        )
    return time.perf_counter() - began


@contextlib.contextmanager
def pinging(server, check_id, pause_seconds=0.002):
    """Pings one check again and again; gives how long each took."""
    found = []
    stopped = threading.Event()

    def ping():
        with contextlib.closing(connect(server)) as connection:
            while not stopped.wait(pause_seconds) or not found:
                took = seconds_of(connection, "GET", f"/ping/{check_id}")
                found.append(took)

    thread = threading.Thread(target=ping)
    thread.start()
    try:
        yield found
    finally:
        stopped.set()
        thread.join()
