"""What is right with one writer and wrong with several unless something keeps them apart: two nodes over a server."""

import contextlib
import secrets
import threading

import pytest

from cardbeat.config import Tier
from cardbeat.errors import NotFound, Refusal
from tests.kit.heart import Heart, at_once
from tests.kit.lists import times
from tests.kit.nodes import held_at_commit, waits_for_a_lock
from tests.kit.postgresql import POSTGRESQL
from tests.kit.support import begun, wait_until, writer_held

pytestmark = POSTGRESQL


@pytest.fixture
def nodes(open_again, clock):
    """Two hearts that beat for the same key, and that both sweep."""
    first, second = (
        Heart(open_again(), clock, Tier(max_checks=10)) for _ in range(2)
    )
    second.keys.revoke(second.key.id)
    second.key = first.key
    return first, second


def meanwhile(node, held, other, deed):
    """Do a deed at another node, which waits for what this one holds; what comes of it once that is committed."""
    with held_at_commit(node, held):
        done = begun(deed)
        wait_until(lambda: done.done() or waits_for_a_lock(other))
    return done


def delete(node, table, row_id):
    return lambda: node.database.write(
        lambda it: (
            it.execute(
                f"DELETE FROM {table} WHERE id = ?", (row_id,)
            ).rowcount
        )
    )


def test_a_check_that_is_pinged_while_the_sweep_chooses_it_is_not_overdue(
    nodes,
):
    pinging, sweeping = nodes
    check = pinging.create()
    pinging.pass_time(61)
    swept = meanwhile(
        pinging,
        lambda: pinging.ping(check),
        sweeping,
        sweeping.sweep.sweep_once,
    )
    assert swept.result(60) == 0
    assert pinging.status(check) == "on_time"
    assert pinging.alert_types(check) == []


def test_a_ping_that_meets_the_sweep_finds_its_check_and_ends_the_outage(
    nodes,
):
    pinging, sweeping = nodes
    check = pinging.create()
    pinging.pass_time(61)
    pinged = meanwhile(
        sweeping,
        sweeping.sweep.sweep_once,
        pinging,
        lambda: pinging.ping(check),
    )
    assert pinged.result(60).recovered
    assert pinging.status(check) == "on_time"
    assert pinging.alert_types(check) == [
        "check.overdue",
        "check.recovered",
    ]


def test_two_nodes_that_sweep_at_once_alert_once(nodes):
    one, other = nodes
    checks = times(5, one.create)
    one.pass_time(61)
    swept = meanwhile(
        one, one.sweep.sweep_once, other, other.sweep.sweep_once
    )
    assert swept.result(60) == 0
    assert [*map(one.alert_types, checks)] == [["check.overdue"]] * 5
    assert one.checks.totals() == {"on_time": 0, "overdue": 5}


def test_no_more_checks_are_created_than_the_tier_allows(nodes):
    def create(node):
        with contextlib.suppress(Refusal):
            for _ in range(10):
                node.create()

    at_once(*[lambda node=node: create(node) for node in nodes * 2])
    assert nodes[0].checks.usage(nodes[0].key.id)[0] == 10


def test_what_is_for_a_key_or_a_check_that_goes_at_the_same_time_is_refused(
    nodes,
):
    one, other = nodes
    check = one.create()
    tested = meanwhile(
        one,
        delete(one, "checks", check.id),
        other,
        lambda: other.checks.test_alert(other.key.id, check.id),
    )
    with pytest.raises(NotFound):
        tested.result(60)
    created = meanwhile(
        one, delete(one, "keys", one.key.id), other, other.create
    )
    with pytest.raises(Refusal) as refused:
        created.result(60)
    assert refused.value.status == 401


def test_a_node_that_waits_for_a_check_keeps_no_newer_one(
    nodes, postgresql, monkeypatch
):
    """Else two nodes that change the same checks in one transaction each could wait for each other."""
    one, other = nodes
    # By their ids the newer check comes first.
    ids = iter(range(99, 0, -1))
    monkeypatch.setattr(
        secrets, "token_hex", lambda size: f"{next(ids):0{2 * size}x}"
    )
    older, newer = one.create(90), one.create(60)
    # In the order in which a table is read too.
    one.ping(older)

    def ping_both():
        with writer_held(other.database):
            pings = [
                other.pings.ping(check.id) for check in (newer, older)
            ]
        return [ping.wait() for ping in pings]

    free = f"SELECT id FROM emptied.checks WHERE id = '{newer.id}' FOR NO KEY UPDATE SKIP LOCKED"
    with held_at_commit(one, lambda: one.ping(older)):
        waiting = begun(ping_both)
        wait_until(lambda: waits_for_a_lock(other))
        assert postgresql.execute(free)
    assert len(waiting.result(60)) == 2


def test_a_check_that_another_node_keeps_locked_holds_no_sweep_up(nodes):
    one, other = nodes
    locked, free = one.create(60), one.create(60)
    other.sweep.sweep_once()
    other.pass_time(100)
    lock = ("SELECT seq FROM checks WHERE id = ?", (locked.id,))
    with held_at_commit(
        one,
        lambda: one.database.write(
            lambda it: one.database.lock(it, *lock)
        ),
    ):
        assert other.sweep.sweep_once() == 1
        assert [other.read(check).status for check in (locked, free)] == [
            "on_time",
            "overdue",
        ]
    assert other.sweep.sweep_once() == 1
    assert other.read(locked).status == "overdue"


def test_two_nodes_that_wait_for_each_other_both_get_there(nodes):
    both_have_one = threading.Barrier(2)
    tries = []

    def count_both(node, names):
        def work(transaction):
            tries.append(names)
            for name in names:
                sql = "INSERT INTO monitor (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = 2"
                transaction.execute(sql, (name,))
                if name == names[0] and len(tries) <= 2:
                    both_have_one.wait(60)

        node.database.write(work)

    at_once(
        lambda: count_both(nodes[0], "ab"),
        lambda: count_both(nodes[1], "ba"),
    )
    assert len(tries) > 2
    with nodes[0].database.read() as connection:
        assert (
            connection.execute(
                "SELECT sum(value) FROM monitor WHERE name IN ('a', 'b')"
            ).fetchone()[0]
            == 4
        )
