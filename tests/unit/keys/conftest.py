"""The keys of a database, whose cache goes by a clock that only the test moves."""

import pytest

from cardbeat.config import FREE
from cardbeat.database import Database
from cardbeat.keys.store import Keys
from tests.support import FakeClock


@pytest.fixture
def monotonic() -> FakeClock:
    return FakeClock(0)


@pytest.fixture
def keys(database: Database, clock: FakeClock, monotonic: FakeClock) -> Keys:
    return Keys(database, clock, {"free": FREE}, monotonic=monotonic)
