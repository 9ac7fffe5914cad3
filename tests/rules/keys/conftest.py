"""The keys of a database, cached by a clock that only the test moves."""

import pytest

from cardbeat.config import FREE, UNLIMITED
from cardbeat.keys.store import Keys
from tests.kit.support import FakeClock


@pytest.fixture
def monotonic():
    return FakeClock(0)


@pytest.fixture
def open_keys(database, clock, monotonic):
    """Opens the keys as a further process does, whose cache is empty."""
    tiers = {"free": FREE, "unlimited": UNLIMITED}
    return lambda over=database: Keys(
        over, clock, tiers, monotonic=monotonic
    )


@pytest.fixture
def keys(open_keys):
    return open_keys()
