"""What two nodes over PostgreSQL do to the alerts of one check at the same moment."""

import contextlib
import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from cardbeat.errors import Refusal, TooMany
from cardbeat.heartbeat.alerts.message import TEST
from cardbeat.heartbeat.alerts.outbox import Result
from tests.kit.heart import Heart, at_once
from tests.kit.lists import times
from tests.kit.nodes import held_at_commit, waits_for_a_lock
from tests.kit.postgresql import POSTGRESQL
from tests.kit.support import wait_until

pytestmark = POSTGRESQL
NODES = 3
SECONDS = 4


@pytest.fixture
def nodes(open_again, clock):
    """Hearts that beat for the same key."""
    nodes = [Heart(open_again(), clock) for _ in range(NODES)]
    for node in nodes[1:]:
        node.key = nodes[0].key
    return nodes


@pytest.fixture
def check(nodes):
    """One whose last alert was taken, and whose overdue alert waits."""
    check = nodes[0].create()
    nodes[0].fail(check)
    nodes[0].take_all()
    nodes[0].ping(check)
    return check


def results_of(node):
    """What the receivers of all due alerts answer."""
    now = int(node.clock())
    with node.database.read() as connection:
        queues = node.alerts.queues(connection)
        due = [
            one
            for queue in queues
            for one in node.alerts.due(
                connection, queue, now, [], [], 0, 100
            )
        ]
    return [
        Result(message, 204, None, "delivered")
        for one in due
        for message in node.alerts.messages([one.seq], now)
    ]


def untimed(node):
    """First waiting alerts without a time, which are sent by no node; and others that have one."""
    with node.database.read() as connection:
        rows = connection.execute(
            "SELECT check_id, seq, outage IS NULL AS is_test, next_attempt_at FROM alerts WHERE state = 'pending'"
            " ORDER BY seq"
        ).fetchall()
    firsts, wrong = set(), []
    for row in rows:
        is_first = (row["check_id"], row["is_test"]) not in firsts
        firsts.add((row["check_id"], row["is_test"]))
        if is_first == (row["next_attempt_at"] is None):
            wrong.append(tuple(row))
    return wrong


@pytest.mark.parametrize("is_locked", [True, False], ids=["", "control"])
def test_an_alert_that_is_stored_behind_one_that_ends_has_its_time(
    nodes, check, is_locked, monkeypatch
):
    """Without the lock of the check's row, the new one waits for the one that has ended, for ever."""
    storing, failing, _ = nodes
    now = int(storing.clock())
    results = results_of(storing)
    if not is_locked:
        monkeypatch.setattr(storing.database, "lock", lambda *_: None)
    with (
        ThreadPoolExecutor(1) as pool,
        held_at_commit(
            storing, lambda: storing.alerts.store(results, now)
        ),
    ):
        failed = pool.submit(failing.fail, check)
        wait_until(lambda: failed.done() or waits_for_a_lock(nodes[2]))
        assert failed.done() == (not is_locked)
    assert failed.result(60)
    assert bool(untimed(nodes[2])) == (not is_locked)


def test_a_result_that_meets_a_new_alert_waits_for_it(nodes, check):
    storing, testing, _ = nodes
    now = int(storing.clock())
    results = results_of(storing)
    with (
        ThreadPoolExecutor(1) as pool,
        held_at_commit(testing, lambda: ask_for_a_test(testing, check)),
    ):
        stored = pool.submit(storing.alerts.store, results, now)
        wait_until(lambda: stored.done() or waits_for_a_lock(nodes[2]))
        assert not stored.done()
    assert len(stored.result(60)) == 1
    assert untimed(nodes[2]) == []


def test_whatever_nodes_do_at_once_each_first_alert_has_its_time_and_no_other_one(
    nodes,
):
    """All three also store results, which is harder than a lease that two take themselves to hold."""
    checks = times(4, nodes[0].create, webhook_url="https://a.example/")
    ends_at = time.monotonic() + SECONDS
    deeds = []
    for place, node in enumerate(nodes):
        deeds.append(
            partial(signal, node, checks, random.Random(place), ends_at)
        )
        deeds.append(
            partial(deliver, node, random.Random(-place), ends_at)
        )
    assert at_once(*deeds) == [None] * len(deeds)
    assert untimed(nodes[0]) == []
    assert misplaced(nodes[0]) == 0
    for check in checks:
        types = [
            one for one in nodes[0].alert_types(check) if one != TEST
        ]
        # Beyond 100 alerts the oldest are gone.
        assert all(
            one != other for one, other in itertools.pairwise(types)
        )


def signal(node, checks, luck, ends_at):
    """What callers do, until that moment."""
    while time.monotonic() < ends_at:
        deed = luck.choices(
            (
                node.fail,
                node.ping,
                partial(ask_for_a_test, node),
                partial(move, node, luck),
            ),
            (5, 5, 1, 1),
        )
        deed[0](luck.choice(checks))


def deliver(node, luck, ends_at):
    """Store what receivers answer, some of which refuse."""
    while time.monotonic() < ends_at:
        now = int(node.clock())
        results = results_of(node)
        for place, result in enumerate(results):
            if luck.random() > 0.7:
                results[place] = result._replace(
                    error="no", state="pending", next_attempt_at=now
                )
        if results:
            node.alerts.store(results, now)
        time.sleep(luck.random() / 100)


def misplaced(node):
    """Waiting alerts that are in another queue, or for another host, than their check says."""
    with node.database.read() as connection:
        return connection.execute(
            "SELECT count(*) FROM alerts JOIN checks ON checks.id = check_id WHERE state = 'pending'"
            " AND (is_new <> CASE delivery WHEN 'ok' THEN 0 ELSE 1 END"
            " OR webhook_url <> 'https://' || receiver || '/')"
        ).fetchone()[0]


def ask_for_a_test(node, check):
    with contextlib.suppress(TooMany):
        node.checks.test_alert(node.key.id, check.id)


def move(node, luck, check):
    check = node.read(check)
    with contextlib.suppress(Refusal):
        node.checks.update(
            check,
            node.settings(
                check, webhook_url=f"https://{luck.randrange(9)}.example/"
            ),
        )
