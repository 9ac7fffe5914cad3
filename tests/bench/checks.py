"""For benchmarks: a data folder with very many checks, written past the server, and a client that measures calls.

Only the schema of the database is relied on, so that any checkout's server may find them there.
"""

import contextlib
import http.client
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.running import Server, create_key

LIMIT_SECONDS = 900
"""A bench that has waited so long for something to happen gives up; no other time is judged."""


class Check(NamedTuple):
    """A check whose deadline is `clock_from + period_seconds`, in Unix seconds."""

    id: str
    period_seconds: int
    webhook_url: str | None
    clock_from: int


def create_checks_key(tree: Path, data: Path) -> str:
    return create_key(tree, data, "--email", "ops@example.com", "--tier", "unlimited")


@contextlib.contextmanager
def database(data: Path) -> Iterator[sqlite3.Connection]:
    """A connection that commits each statement by itself, beside a server or without one."""
    with contextlib.closing(sqlite3.connect(data / "cardbeat.db", isolation_level=None, timeout=60)) as connection:
        yield connection


def insert(data: Path, checks: Iterable[Check]) -> None:
    """Store checks of the newest key."""
    with database(data) as connection:
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from,"
            " created_at, updated_at) SELECT ?1, id, 'Nightly backup', ?2, 0, ?3, ?4, ?4, ?4"
            " FROM keys ORDER BY seq DESC LIMIT 1",
            checks,
        )
        connection.execute("COMMIT")


def count(connection: sqlite3.Connection, query: str) -> int:
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
