"""Checks that are pinged, changed, swept and deleted at the same moment."""

import random
from functools import partial

import pytest

from cardbeat.errors import Refusal
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.tidy import Tidy
from tests.kit.heart import Heart, at_once
from tests.kit.lists import each, times
from tests.kit.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def other_process(heart, open_again):
    """A second server's view of the same database."""
    return Heart(open_again(), heart.clock)


def change(heart, check, **changes):
    """What a PATCH does: read, then write where nothing was written in between."""
    read = heart.read(check)
    return heart.checks.update(read, heart.settings(read, **changes))


def statuses(results):
    """Those of the refusals among some results; there must be no other error."""
    refusals = [
        result for result in results if isinstance(result, Exception)
    ]
    assert all(isinstance(refusal, Refusal) for refusal in refusals)
    return set(each(refusals, "status"))


def test_of_changes_of_one_version_exactly_one_succeeds_each_time(heart):
    check = heart.create()
    for number in range(1, 101):
        read = heart.read(check)
        changed = heart.settings(read, name=f"name {number}")
        results = at_once(
            *[partial(heart.checks.update, read, changed)] * 3
        )
        (won,) = [
            result for result in results if isinstance(result, Check)
        ]
        assert statuses(results) == {409}
        assert heart.read(check) == won
        assert won.version == 1 + number


def test_a_patch_never_loses_a_ping_beside_it(heart):
    check = heart.create()
    heart.pass_time(10)
    results = at_once(
        *[partial(heart.ping, check), partial(change, heart, check)] * 25
    )
    stored = heart.read(check)
    assert stored.ping_count == 25
    assert stored.deadline_at == int(heart.clock.now) + 60
    assert stored.version == 1 + sum(
        isinstance(result, Check) for result in results
    )


def test_a_key_revoked_beside_creations_leaves_no_check(heart):
    revoke = partial(heart.keys.revoke, heart.key.id)
    results = at_once(*[heart.create] * 20, revoke, *[heart.create] * 20)
    assert statuses(results) <= {401}
    Tidy(heart.database).remove_revoked()
    assert heart.checks.totals() == {"on_time": 0, "overdue": 0}


def act(own, checks, chance):
    """60 deeds of one client, at any of some checks."""
    for _ in range(60):
        check = chance.choice(checks)
        deed = chance.choice(("ping", "ping", "sweep", "change", "wait"))
        if deed == "ping":
            own.ping(check)
        elif deed == "sweep":
            own.sweep.sweep_once()
        elif deed == "wait":
            own.clock.advance(2)
        else:
            change(own, check, grace_seconds=chance.randrange(5))


def test_at_any_deeds_at_once_the_alerts_of_a_check_alternate(
    heart, other_process
):
    checks = times(10, heart.create, period_seconds=5)
    other_process.key = heart.key
    clients = (heart, other_process) * 4
    chances = map(random.Random, range(len(clients)))
    pairs = zip(clients, chances, strict=True)
    results = at_once(
        *[partial(act, own, checks, chance) for own, chance in pairs]
    )
    assert statuses(results) <= {409}
    for check in checks:
        types = heart.alert_types(check)
        assert (
            types
            == (["check.overdue", "check.recovered"] * len(types))[
                : len(types)
            ]
        )
        assert (heart.status(check) == "overdue") == bool(len(types) % 2)


def test_a_check_deleted_beside_everything_is_gone(heart):
    for _ in range(20):
        check = heart.create()
        heart.pass_time(61)
        results = at_once(
            partial(heart.checks.delete, heart.key.id, check.id),
            partial(heart.ping, check),
            partial(change, heart, check),
            heart.sweep.sweep_once,
        )
        assert statuses(results) <= {404, 409}
        assert heart.alert_types(check) == []
