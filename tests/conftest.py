"""Fixtures for every kind of test: an injected clock, a database, the application without a socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbeat.database import Database


class FakeClock:
    """A clock that only the test moves."""

    def __init__(self, now: float = 1_800_000_000) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path)
    yield database
    database.close()
