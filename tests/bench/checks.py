"""For benchmarks: a data folder with very many checks, and a client that measures calls.

The checks are written past the server. Only the schema of the database is relied on, so that any
checkout's server finds them there.
"""

import contextlib
import itertools
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.bench.running import URL_FILE, Server, create_key
from tests.kit.client import connect, exchange
from tests.kit.support import wait_until

LIMIT_SECONDS = 900
"""A bench that has waited so long for something to happen gives up; no other time is judged."""
INSERT = """
    INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url,
        clock_from, created_at, updated_at)
    VALUES """


class Check(NamedTuple):
    """A check whose deadline is `clock_from + period_seconds`, in Unix seconds."""

    id: str
    period_seconds: int
    webhook_url: str | None
    clock_from: int


def on_postgresql(data: Path, url: str) -> Path:
    """A data folder whose checks are to be in that PostgreSQL, in a schema of their own."""
    from cardbeat.database.postgresql.connection import (
        connect as connect_postgresql,
    )

    schema = f"bench_{time.time_ns()}"
    with contextlib.closing(connect_postgresql(url)) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    data.mkdir(exist_ok=True)
    sign = "&" if "?" in url else "?"
    search_path = quote(f"-csearch_path={schema}")
    (data / URL_FILE).write_text(f"{url}{sign}options={search_path}")
    return data


def create_checks_key(tree: Path, data: Path) -> str:
    return create_key(
        tree, data, "--email", "ops@example.com", "--tier", "unlimited"
    )


@contextlib.contextmanager
def database(data: Path) -> Iterator[Any]:
    """A connection that commits each statement by itself, beside a server or without one."""
    if (data / URL_FILE).exists():
        from cardbeat.database.postgresql.connection import (
            connect as connect_postgresql,
        )

        opened = connect_postgresql((data / URL_FILE).read_text())
        opened.limit_seconds = LIMIT_SECONDS
    else:
        opened = sqlite3.connect(
            data / "cardbeat.db", isolation_level=None, timeout=60
        )
    with contextlib.closing(opened) as connection:
        yield connection


def insert(data: Path, checks: Iterable[Check]) -> None:
    """Store checks of the newest key."""
    with database(data) as connection:
        connection.execute("BEGIN")
        newest = connection.execute(
            "SELECT id FROM keys ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        rest = iter(checks)
        while some := list(itertools.islice(rest, 500)):
            values = []
            for check in some:
                values += [
                    check.id,
                    newest[0],
                    *check[1:],
                    check.clock_from,
                    check.clock_from,
                ]
            rows = ", ".join(
                ["(?, ?, 'Nightly backup', ?, 0, ?, ?, ?, ?)"] * len(some)
            )
            connection.execute(INSERT + rows, values)
        connection.execute("COMMIT")
        connection.execute("ANALYZE")


def count(connection: Any, query: str) -> int:
    return connection.execute(f"SELECT count(*) FROM {query}").fetchone()[0]


def wait_long(condition: Callable[[], bool]) -> None:
    wait_until(condition, LIMIT_SECONDS)


def seconds_of(connection: Any, *request: Any) -> float:
    """How long one request over a kept connection takes. Raises `SystemExit` for a refused one."""
    began = time.perf_counter()
    answer = exchange(connection, *request)
    if answer.status >= 300:
        raise SystemExit(f"{request}: {answer.status} {answer.body[:300]!r}")
    return time.perf_counter() - began


@contextlib.contextmanager
def pinging(
    server: Server, check_id: str, pause_seconds: float = 0.002
) -> Iterator[list[float]]:
    """Pings one check again and again; gives how long each took."""
    found: list[float] = []
    stopped = threading.Event()

    def ping() -> None:
        with contextlib.closing(connect(server)) as connection:
            while not stopped.wait(pause_seconds) or not found:
                found.append(
                    seconds_of(connection, "GET", f"/ping/{check_id}")
                )

    thread = threading.Thread(target=ping)
    thread.start()
    try:
        yield found
    finally:
        stopped.set()
        thread.join()
