"""How the descriptors of a process are shared."""

import pytest

from cardbeat.host import descriptors
from cardbeat.host.descriptors import OTHERS, Shares, shares
from tests.systems import LIMITS

pytestmark = LIMITS
WANTED = 10_896


@pytest.fixture
def limit(monkeypatch):
    """Sets the hard limit of descriptors; returns the soft limits that were set."""

    def set_hard(hard, soft=24):
        raised = []
        monkeypatch.setattr("resource.getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits[0]))
        return raised

    return set_hard


def test_the_limit_is_raised_so_that_all_have_what_they_may_use(limit):
    raised = limit(1 << 20, soft=1024)
    assert shares() == (10_000, 512, 256)
    assert raised == [10_240, WANTED]


@pytest.mark.parametrize(
    ("hard", "expected"),
    [(24, (3, 1, 2)), (30, (4, 1, 2)), (256, (80, 32, 16)), (1024, (560, 224, 112)), (4096, (3200, 512, 256))],
)
def test_few_are_shared_by_all(limit, hard, expected):
    limit(hard)
    assert shares() == Shares(*expected)


@pytest.mark.parametrize("needed", [18, OTHERS])
def test_whatever_the_limit_no_part_takes_what_others_need(limit, needed):
    """Serving needs 24, of which 18 are open from the start."""
    least = 24 if needed == 18 else 4 * OTHERS // 3 + 1
    for hard in range(least, WANTED + 1):
        limit(hard)
        assert all(number > 0 for number in shares())
        assert sum(shares()) <= hard - needed


def test_clients_are_no_more_than_one_call_can_wait_for(limit, monkeypatch):
    limit(1 << 20)
    monkeypatch.setattr(descriptors, "MOST_SOCKETS", 512)
    assert shares().clients == 510
