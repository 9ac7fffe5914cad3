"""Several nodes over one database: only the holder of the lease sweeps and reports."""

import pytest

from cardbeat.database import numbers
from cardbeat.errors import LeaseLost
from cardbeat.heartbeat.sweep import POLL_SECONDS
from tests.kit.lists import times
from tests.kit.nodes import Nodes
from tests.kit.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES

HOUR = 3600


@pytest.fixture
def nodes(database, open_again, clock):
    return Nodes(open_again, clock)


def noted(heart):
    with heart.database.read() as connection:
        return numbers(connection)


def test_only_the_holder_of_the_lease_sweeps_and_reports(nodes):
    check = nodes.first.create(1)
    nodes.pass_time(2)
    reports = []
    first, second = (
        heart.sweep_every(
            60, after=lambda heart=heart: reports.append(heart)
        )
        for heart in nodes
    )
    nodes.first.fence.take()
    assert second.sweep_or_look() == POLL_SECONDS
    assert nodes.first.status(check) == "on_time"
    nodes.second.database.pings_refused = True
    assert first.sweep_or_look() == 60
    assert nodes.first.status(check) == "overdue"
    assert reports == [nodes.first]
    # What a node refused counts until the next sweep of any.
    second.sweep_or_look()
    assert not nodes.second.database.pings_refused


def test_a_node_that_was_suspended_past_its_lease_changes_nothing(nodes):
    checks = times(5, nodes.first.create, 1)
    nodes.first.fence.take()
    nodes.first.sweep.sweep_once()
    nodes.pass_time(HOUR)
    nodes.second.fence.take()
    before = noted(nodes.second)
    with pytest.raises(LeaseLost):
        nodes.first.sweep.sweep_once()
    reports = []
    sweep = nodes.first.sweep_every(60, after=lambda: reports.append(1))
    assert sweep.sweep_or_look() == POLL_SECONDS
    assert noted(nodes.second) == before
    assert reports == []
    assert [*map(nodes.first.status, checks)] == ["on_time"] * 5


@pytest.mark.parametrize("sweep_seconds", [0.5, 5, 60])
def test_the_time_until_another_node_takes_over_is_no_outage(
    nodes, sweep_seconds
):
    check = nodes.first.create(HOUR)
    sweeps = [heart.sweep_every(sweep_seconds) for heart in nodes]
    nodes.first.fence.take()
    sweeps[0].sweep_once()
    # It is killed just before its next sweep, and the lease was renewed just before that.
    nodes.pass_time(sweep_seconds)
    nodes.first.fence.take()
    while not nodes.second.fence.take():
        nodes.pass_time(1)
    sweeps[1].sweep_once()
    assert nodes.first.read(check).deadline_at == check.deadline_at


def test_every_node_knows_how_long_ago_a_sweep_was(nodes):
    first, second = (heart.sweep_every(60) for heart in nodes)
    for _ in range(5):
        nodes.first.fence.take()
        first.sweep_or_look()
        second.sweep_or_look()
        nodes.pass_time(50)
        assert first.age_seconds() == second.age_seconds() == 50
    nodes.pass_time(200)
    second.sweep_or_look()
    assert not second.healthy()
    nodes.second.fence.take()
    second.sweep_or_look()
    assert second.healthy()
