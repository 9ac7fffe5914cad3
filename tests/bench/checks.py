"""For benchmarks: a data folder with very many checks, written past the server, and a client that measures calls.

Only the schema of the database is relied on, so that any checkout's server may find them there.
"""

import contextlib
import http.client
import itertools
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.bench.running import Server, create_key

LIMIT_SECONDS = 900
"""A bench that has waited so long for something to happen gives up; no other time is judged."""


class Check(NamedTuple):
    """A check whose deadline is `clock_from + period_seconds`, in Unix seconds."""

    id: str
    period_seconds: int
    webhook_url: str | None
    clock_from: int


URL_FILE = "database-url"
"""In a data folder whose checks are in PostgreSQL: where."""


def on_postgresql(data: Path, url: str) -> Path:
    """A data folder whose checks are to be in that PostgreSQL, in a schema of their own."""
    from cardbeat.database.postgresql.connection import connect

    schema = f"bench_{time.time_ns()}"
    with contextlib.closing(connect(url)) as connection:
        connection.run_script(f"CREATE SCHEMA {schema}")
    data.mkdir(exist_ok=True)
    search_path = quote(f"-csearch_path={schema}")
    (data / URL_FILE).write_text(f"{url}{'&' if '?' in url else '?'}options={search_path}")
    return data


def database_options(data: Path) -> tuple[str, ...]:
    """What a server is started with besides `--data`."""
    file = data / URL_FILE
    return ("--database", str(file)) if file.exists() else ()


def create_checks_key(tree: Path, data: Path) -> str:
    return create_key(tree, data, "--email", "ops@example.com", "--tier", "unlimited", *database_options(data))


@contextlib.contextmanager
def database(data: Path) -> Iterator[Any]:
    """A connection that commits each statement by itself, beside a server or without one."""
    if database_options(data):
        from cardbeat.database.postgresql.connection import connect

        with contextlib.closing(connect((data / URL_FILE).read_text())) as connection:
            connection.limit_seconds = LIMIT_SECONDS
            yield connection
        return
    with contextlib.closing(sqlite3.connect(data / "cardbeat.db", isolation_level=None, timeout=60)) as connection:
        yield connection


def insert(data: Path, checks: Iterable[Check]) -> None:
    """Store checks of the newest key."""
    with database(data) as connection:
        connection.execute("BEGIN")
        (key_id,) = connection.execute("SELECT id FROM keys ORDER BY seq DESC LIMIT 1").fetchone()
        rest = iter(checks)
        while some := list(itertools.islice(rest, 500)):
            rows = ", ".join(["(?, ?, 'Nightly backup', ?, 0, ?, ?, ?, ?)"] * len(some))
            connection.execute(
                "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
                f" created_at, updated_at) VALUES {rows}",
                [value for it in some for value in (it.id, key_id, *it[1:], it.clock_from, it.clock_from)],
            )
        connection.execute("COMMIT")
        connection.execute("ANALYZE")


def count(connection: Any, query: str) -> int:
    return connection.execute(f"SELECT count(*) FROM {query}").fetchone()[0]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > ends:
            raise SystemExit(f"gave up waiting for {what}")
        time.sleep(0.02)


class Client:
    """One kept connection."""

    def __init__(self, server: Server, key: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, value: object = None) -> tuple[int, Any]:
        """Status, and the body if it is JSON."""
        body = None if value is None else json.dumps(value)
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        data = response.read()
        return response.status, json.loads(data) if response.headers["Content-Type"] == "application/json" else None

    def seconds(self, method: str, path: str, value: object = None) -> float:
        """How long one call takes. Raises `SystemExit` for a refused one."""
        started = time.perf_counter()
        status, answer = self.ask(method, path, value)
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {answer}")
        return time.perf_counter() - started


class Calling:
    """Gets what `path` names again and again, from its start to its end; `seconds` holds how long each call took."""

    def __init__(self, client: Client, path: Callable[[], str], pause_seconds: float = 0) -> None:
        self.seconds: list[float] = []
        self._client = client
        self._path = path
        self._pause_seconds = pause_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Calling":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._pause_seconds) or not self.seconds:
            self.seconds.append(self._client.seconds("GET", self._path()))


def pinging(server: Server, check_id: str, pause_seconds: float = 0.002) -> Calling:
    """Pings one check."""
    return Calling(Client(server), lambda: f"/ping/{check_id}", pause_seconds)
