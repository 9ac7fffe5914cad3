"""Clients that measure: each asks one thing again and again, and keeps how long it took and what was answered."""

import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

TIMEOUT_SECONDS = 10
"""A caller waits so long for an answer, or for the next part of one."""


class Answer(NamedTuple):
    """`status` is 0 where none came."""

    status: int
    body: bytes
    cache: str | None = None

    def member(self, name: str) -> dict[str, str]:
        return json.loads(self.body)[name]


NO_ANSWER = Answer(0, b"")


class Caller:
    """Asks over one kept connection, or always on a new one."""

    def __init__(self, port: int, key: str = "", *, kept: bool = True, address: str = "127.0.0.1") -> None:
        self._port = port
        self._address = address
        self._kept = kept
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, value: object = None) -> Answer:
        """A kept connection that the server has closed meanwhile is opened again, as every HTTP client does."""
        was_open = self._connection is not None
        try:
            return self._ask(method, path, value)
        except ConnectionError:
            self.close()
            return self.ask(method, path, value) if was_open else NO_ANSWER
        except (OSError, http.client.HTTPException):
            self.close()
            return NO_ANSWER

    def created(self, method: str, path: str, value: object = None) -> Answer:
        """Exits when it is refused: without it there is nothing to measure."""
        answer = self.ask(method, path, value)
        if not 200 <= answer.status < 300:
            raise SystemExit(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
        return answer

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _ask(self, method: str, path: str, value: object) -> Answer:
        if self._connection is None:
            source = (self._address, 0)
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, TIMEOUT_SECONDS, source)
        body = None if value is None else json.dumps(value, ensure_ascii=False).encode()
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        answer = Answer(response.status, response.read(), response.headers["X-Cache"])
        if not self._kept:
            self.close()
        return answer


@dataclass
class Times:
    """How long one thing took, asked again and again.

    A refused one counts as long as a caller would have waited. Where one was asked late, because the answer before it
    took so long, it counts as asked in time: a silence of ten seconds is more than one slow answer.
    """

    seconds: list[float] = field(default_factory=list)
    asked: int = 0
    refused: int = 0

    def add(self, seconds: float, answered: bool, every_seconds: float) -> None:
        self.asked += 1
        self.refused += not answered
        self.seconds.append(seconds if answered else max(seconds, TIMEOUT_SECONDS))
        late = seconds - every_seconds
        while late > 0:
            self.seconds.append(late)
            late -= every_seconds

    def __iadd__(self, other: "Times") -> "Times":
        self.seconds += other.seconds
        self.asked += other.asked
        self.refused += other.refused
        return self

    def percentile(self, part: float) -> float:
        times = sorted(self.seconds)
        return times[min(int(len(times) * part), len(times) - 1)] if times else float("nan")


@dataclass
class Activity:
    """Something asked each `every_seconds`, or as soon as the last answer has come if that was later.

    `ask` gets the number of the turn, and tells whether it was answered as it should be.
    """

    name: str
    every_seconds: float
    ask: Callable[[int], bool]
    times: Times = field(default_factory=Times)
    _turns: int = 0

    def turn(self) -> float:
        """Ask once; the seconds that it took."""
        started = time.perf_counter()
        answered = self.ask(self._turns)
        seconds = time.perf_counter() - started
        self._turns += 1
        self.times.add(seconds, answered, self.every_seconds)
        return seconds

    def run(self, ended: threading.Event) -> None:
        self.times = Times()
        while not ended.is_set():
            ended.wait(self.every_seconds - self.turn())
