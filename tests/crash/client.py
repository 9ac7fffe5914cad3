"""A client of the artifact, and one that keeps it busy and remembers what was acknowledged."""

import contextlib
import http.client
import itertools
import json
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.artifact import Running


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def connect(server: Running) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(getattr(server, "host", "127.0.0.1"), server.port, timeout=30)


def exchange(connection, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return Answer(answer.status, answer.headers, answer.read())


def ask(server: Running, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
    with contextlib.closing(connect(server)) as connection:
        return exchange(connection, method, path, body, key)


def checks_key(server: Running) -> str:
    return str(ask(server, "POST", "/register", {"email": "ops@example.com"}).json["key"])


def new_check(server: Running, key: str, **fields: Any) -> dict[str, Any]:
    body = {"name": "job", "period_seconds": 3600, "grace_seconds": 0} | fields
    return dict(ask(server, "POST", "/checks", body, key).json["check"])


def metric(server: Running, name: str) -> float:
    lines = ask(server, "GET", "/metrics").body.decode().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name} "))
    return float(line.partition(" ")[2])


class Busy(threading.Thread):
    """Pings a check of its own and renames it, by turns, until it is stopped or the server dies."""

    def __init__(self, server: Running, key: str) -> None:
        super().__init__()
        self.key = key
        self.check = new_check(server, key)
        """As last acknowledged."""
        self.path = f"/checks/{self.check['id']}"
        self.pings: Counter[int] = Counter()
        """Answers by status."""
        self._connection = connect(server)
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        with contextlib.closing(self._connection), contextlib.suppress(OSError, http.client.HTTPException):
            for number in itertools.count():
                if self._stopping.is_set():
                    return
                self.pings[exchange(self._connection, "GET", f"/ping/{self.check['id']}").status] += 1
                changed = exchange(self._connection, "PATCH", self.path, {"name": f"job {number}"}, self.key)
                if changed.status == 200:
                    self.check = changed.json["check"]

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def stored(self, server: Running) -> dict[str, Any]:
        """Its check as a server has it, which must hold all that was acknowledged."""
        stored = dict(ask(server, "GET", self.path, key=self.key).json["check"])
        assert stored["ping_count"] >= self.pings[200]
        assert stored["version"] >= self.check["version"]
        if stored["version"] == self.check["version"]:
            assert stored["name"] == self.check["name"]
        return stored
