"""What is right with one writer and wrong with several unless something keeps them apart: two nodes over a server."""

import contextlib
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from cardbeat.clock import utc_text
from cardbeat.config import TESTS_AN_HOUR, Tier
from cardbeat.database import monitor, queue
from cardbeat.database.postgresql import database as postgresql_database
from cardbeat.database.postgresql.connection import TIME, Connection
from cardbeat.errors import NotFound, Refusal, TooMany, Unavailable
from cardbeat.heartbeat import removal, sweep
from cardbeat.heartbeat.check import Settings
from cardbeat.heartbeat.checks import _update
from cardbeat.heartbeat.outbox.alert import OVERDUE, RECOVERED, TEST
from cardbeat.heartbeat.outbox.pending import PendingAlerts
from cardbeat.heartbeat.pings import Signal
from cardbeat.heartbeat.removal import STEP_ALERTS
from tests.heart import HOOK, SWEEP_SECONDS, Heart
from tests.mail import Mail
from tests.nodes import Nodes
from tests.postgresql import POSTGRESQL
from tests.support import wait_until, writer_held

pytestmark = POSTGRESQL


@pytest.fixture
def nodes(open_again, clock):
    """Two hearts that beat for the same key, and that both sweep."""
    first, second = (Heart(open_again(), clock, Tier(max_checks=10)) for _ in range(2))
    second.keys.revoke(second.key.id).wait()
    second.key = first.key
    return first, second


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as pool:
        yield pool


@contextlib.contextmanager
def uncommitted(node, work):
    """Do some work in a transaction of this node's writer, which ends with the block; its result."""
    done, release = threading.Event(), threading.Event()
    results = []

    def hold(transaction):
        results.append(work(transaction))
        done.set()
        release.wait(20)

    written = node.database.write_later(hold)
    assert done.wait(20)
    try:
        yield results[0]
    finally:
        release.set()
    written.wait()


def lock(node, check):
    """Keep a check's row locked while the block runs."""
    sql = "SELECT seq FROM checks WHERE seq = ?"
    return uncommitted(node, lambda transaction: node.database.lock(transaction, sql, (check.seq,)))


def wait_for_lock(node, future):
    """Return once some session waits for another's lock, or what it is asked for is there already."""

    wait_until(lambda: future.done() or locks_are_waited_for(node))


def locks_are_waited_for(node):
    with node.database.read() as connection:
        return connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0]


def test_a_check_that_is_pinged_while_the_sweep_chooses_it_is_not_overdue(nodes, pool):
    pinging, sweeping = nodes
    check = pinging.create()
    pinging.pass_time(61)
    with uncommitted(pinging, lambda transaction: pinging.checks._ping(transaction, [check.id], int(pinging.clock()))):
        swept = pool.submit(sweeping.sweep.sweep_once)
        wait_for_lock(pinging, swept)
    assert swept.result(20) == 0
    assert pinging.status(check) == "on_time"
    assert pinging.alert_types(check) == []


def test_a_ping_that_meets_the_sweep_finds_its_check_and_ends_the_outage(nodes, pool):
    pinging, sweeping = nodes
    check = pinging.create()
    pinging.pass_time(61)
    moment = sweeping.sweep.credit.moment()
    with uncommitted(sweeping, lambda transaction: sweeping.sweep._mark_overdue(transaction, moment)):
        pinged = pool.submit(pinging.ping, check)
        wait_for_lock(sweeping, pinged)
    assert pinged.result(20).recovered
    assert pinging.status(check) == "on_time"
    assert pinging.alert_types(check) == ["check.overdue", "check.recovered"]


def test_two_nodes_that_sweep_at_once_alert_once(nodes, pool):
    one, other = nodes
    checks = [one.create() for _ in range(5)]
    one.pass_time(61)
    moment = one.sweep.credit.moment()
    with uncommitted(one, lambda transaction: one.sweep._mark_overdue(transaction, moment)):
        swept = pool.submit(other.sweep.sweep_once)
        wait_for_lock(one, swept)
    assert swept.result(20) == 0
    assert [one.alert_types(check) for check in checks] == [["check.overdue"]] * 5
    assert one.checks.totals() == {"on_time": 0, "overdue": 5}


def test_an_alert_that_is_committed_late_is_read_all_the_same(nodes, pool):
    late, quick = nodes
    checks = [late.create(), late.create()]
    pending = PendingAlerts(late.database)

    def record(node, check, transaction):
        return node.alerts.record(transaction, TEST, [check], 1)

    with uncommitted(late, lambda transaction: record(late, checks[0], transaction)):
        recorded = pool.submit(quick.database.write, lambda transaction: record(quick, checks[1], transaction))
        wait_for_lock(late, recorded)
        read = pending.after(0)
    recorded.result(20)
    last = read[-1].seq if read else 0
    assert [alert.check_seq for alert in (*read, *pending.after(last))] == [check.seq for check in checks]


def test_a_move_that_is_committed_late_is_read_all_the_same(nodes, pool):
    late, quick = nodes
    checks = [late.create(), late.create()]
    for check in checks:
        late.checks.test_alert(late.key.id, check.id).wait()
    pending = PendingAlerts(late.database)

    def move(node, check, transaction):
        return node.alerts.move(transaction, check.id, 1)

    with uncommitted(late, lambda transaction: move(late, checks[0], transaction)):
        moved = pool.submit(quick.database.write, lambda transaction: move(quick, checks[1], transaction))
        wait_for_lock(late, moved)
        read = pending.moves_after(0)
    moved.result(20)
    last = read[-1][0] if read else 0
    assert [check_seq for _, check_seq in (*read, *pending.moves_after(last))] == [check.seq for check in checks]


def test_no_more_checks_are_created_than_the_tier_allows(nodes, pool):
    one, other = nodes
    for _ in range(9):
        one.create()
    with uncommitted(one, lambda transaction: insert(one, transaction)):
        created = pool.submit(other.create)
        wait_for_lock(one, created)
    with pytest.raises(Refusal) as refused:
        created.result(20)
    assert refused.value.code == "too_many_checks"
    assert one.checks.usage(one.key.id)[0] == 10


def insert(node, transaction):
    """Create a check in this transaction."""
    made = []

    class Here:
        def create_later(self, work):
            made.append(work(transaction))

    checks = type(node.checks)(Here(), node.clock, node.alerts, node.delivery)
    checks.create(node.key, Settings("job", 60, 0, HOOK))
    return made


def test_no_more_tests_are_taken_in_an_hour_than_may_be(nodes, pool):
    one, other = nodes
    checks = [one.create() for _ in range(7)]
    for number in range(TESTS_AN_HOUR - 1):
        one.checks.test_alert(one.key.id, checks[number % 7].id).wait()
    with uncommitted(one, lambda transaction: one.alerts.record_test(transaction, checks[5], int(one.clock()))):
        taken = pool.submit(lambda: other.checks.test_alert(one.key.id, checks[6].id).wait())
        wait_for_lock(one, taken)
    with pytest.raises(TooMany):
        taken.result(20)


def test_a_check_for_a_key_that_goes_meanwhile_is_refused_as_if_it_had_gone_before(nodes, pool):
    one, other = nodes
    sql = "DELETE FROM keys WHERE id = ?"
    with uncommitted(one, lambda transaction: transaction.execute(sql, (one.key.id,))):
        created = pool.submit(other.create)
        wait_for_lock(one, created)
    with pytest.raises(Refusal) as refused:
        created.result(20)
    assert refused.value.status == 401


def test_an_alert_for_a_check_that_goes_meanwhile_is_none(nodes, pool):
    one, other = nodes
    check = one.create()
    sql = "DELETE FROM checks WHERE id = ?"
    with uncommitted(one, lambda transaction: transaction.execute(sql, (check.id,))):
        tested = pool.submit(lambda: other.checks.test_alert(other.key.id, check.id).wait())
        wait_for_lock(one, tested)
    with pytest.raises(NotFound):
        tested.result(20)


def locked(postgresql, check):
    """Whether some session keeps others from changing this check."""
    free = f"SELECT id FROM emptied.checks WHERE id = '{check.id}' FOR NO KEY UPDATE SKIP LOCKED"
    return not postgresql.execute(free)


def ping_both(node, older, newer):
    pings = [(check.id, Signal.PING) for check in (newer, older)]
    node.database.write(partial(node.checks._note_signals, signals=pings))


def credit_both(node, _older, _newer):
    node.clock.advance(5000)
    node.sweep.credit.give_due(threading.Event())


@pytest.mark.parametrize("work", [ping_both, credit_both])
def test_who_waits_for_a_check_keeps_no_newer_one(nodes, pool, postgresql, monkeypatch, work):
    """Else two nodes that change the same checks in one transaction each could wait for each other."""
    one, other = nodes
    # By their ids the newer check comes first.
    ids = iter(range(99, 0, -1))
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{next(ids):0{2 * size}x}")
    older, newer = one.create(90), one.create(60)
    # In the order in which a table is read too.
    one.ping(older)
    other.sweep.sweep_once()
    other.pass_time(100)
    with uncommitted(one, lambda transaction: one.checks._ping(transaction, [older.id], int(one.clock()))):
        waiting = pool.submit(work, other, older, newer)
        wait_for_lock(one, waiting)
        assert not waiting.done()
        assert not locked(postgresql, newer)
    waiting.result(20)


def sweeps(node):
    """How many the other nodes know of."""
    with node.database.read() as connection:
        return monitor.values(connection)[sweep.SWEEPS]


def test_an_empty_sweep_asks_the_server_no_more_than_it_must(open_again, clock, monkeypatch):
    """Begin, what is due, the lease, the moment noted last, the moment noted now, and COMMIT."""
    node = Nodes(open_again, clock).first
    node.create()
    assert node.fence.take()
    node.sweep.sweep_once()
    questions = []
    wait = Connection.wait
    monkeypatch.setattr(Connection, "wait", lambda *args, **options: questions.append(1) or wait(*args, **options))
    node.sweep.sweep_once()
    assert len(questions) == 6
    assert sweeps(node) == 2


def test_a_check_that_somebody_else_keeps_locked_holds_no_sweep_up(nodes):
    one, other = nodes
    locked, free = one.create(60), one.create(60)
    other.sweep.sweep_once()
    other.pass_time(100)
    with uncommitted(
        one, lambda transaction: one.database.lock(transaction, "SELECT seq FROM checks WHERE seq = 1", ())
    ):
        assert other.sweep.sweep_or_look() == sweep.LOCKED_SECONDS
        assert [other.read(check).status for check in (locked, free)] == ["on_time", "overdue"]
        assert sweeps(one) == 2
    assert other.sweep.sweep_or_look() == SWEEP_SECONDS
    assert other.read(locked).status == "overdue"


def test_a_check_that_somebody_else_keeps_locked_gets_no_credit_at_the_second_try_and_others_do(nodes, monkeypatch):
    monkeypatch.setattr(postgresql_database, "LOCK_SECONDS", 0.05)
    one, other = nodes
    locked, free = one.create(60), one.create(60)
    other.sweep.sweep_once()
    other.clock.advance(5000)
    with lock(one, locked):
        with pytest.raises(Unavailable):
            other.sweep.sweep_or_look()
        assert other.read(free) == free
        other.sweep.sweep_or_look()
        assert [other.read(check).clock_from - check.clock_from for check in (locked, free)] == [0, 5000]
        assert sweeps(one) == 2
    other.sweep.sweep_or_look()
    assert [other.read(check).status for check in (locked, free)] == ["overdue", "on_time"]


def test_after_a_clock_was_set_back_a_check_that_somebody_else_keeps_locked_is_waited_for(nodes, monkeypatch):
    """Else its alert would be late by as much."""
    monkeypatch.setattr(postgresql_database, "LOCK_SECONDS", 0.05)
    one, other = nodes
    checks = one.create(60), one.create(60)
    other.sweep.sweep_once()
    other.clock.advance(-5000)
    with lock(one, checks[0]):
        for _ in range(3):
            with pytest.raises(Unavailable):
                other.sweep.sweep_or_look()
    other.sweep.sweep_or_look()
    assert [other.read(check).clock_from - check.clock_from for check in checks] == [-5000] * 2


def test_more_checks_than_one_transaction_marks_may_be_locked_and_hold_no_sweep_up(nodes):
    one, other = nodes
    other.batches = {"batch": 2}
    other.sweep = other.new_sweep()
    checks = [one.create(60) for _ in range(6)]
    other.sweep.sweep_once()
    other.pass_time(100)
    locked = "SELECT seq FROM checks WHERE seq <= 3"
    with uncommitted(one, lambda transaction: one.database.lock(transaction, locked, ())):
        assert other.sweep.sweep_or_look() == sweep.LOCKED_SECONDS
        assert [other.read(check).status for check in checks] == ["on_time"] * 3 + ["overdue"] * 3
    assert other.sweep.sweep_or_look() == SWEEP_SECONDS
    assert {other.read(check).status for check in checks} == {"overdue"}


def test_who_stores_an_alert_and_then_waits_for_a_check_keeps_no_alerts_waiting(nodes, monkeypatch):
    monkeypatch.setattr(queue, "GROUP_SECONDS", 20)
    one, other = nodes
    first, second = one.create(), one.create()
    with uncommitted(other, lambda transaction: other.checks._ping(transaction, [second.id], int(other.clock()))):
        with writer_held(one.database):
            one.checks.test_alert(one.key.id, first.id)
            pinged = one.database.write_later(
                lambda transaction: one.checks._ping(transaction, [second.id], int(one.clock()))
            )
        wait_until(lambda: one.checks.usage(one.key.id)[1])
        assert not pinged.is_settled
    pinged.wait()


def test_an_attempt_that_ends_while_its_check_gets_another_url_is_due_there_at_once(nodes):
    moving, storing = nodes
    check = moving.create()
    moving.checks.test_alert(moving.key.id, check.id).wait()
    elsewhere = moving.settings(check, webhook_url=f"{HOOK}/elsewhere")

    def move(transaction):
        _update(transaction, check, elsewhere, int(moving.clock()))
        moving.alerts.move(transaction, check.id, int(moving.clock()))

    attempt = moving.attempt(1, "pending", 500, "busy", int(moving.clock()) + 3600, HOOK, 0)
    with uncommitted(moving, move):
        assert storing.alerts.store([attempt], int(storing.clock())) == (set(), {1})
    assert storing.alerts.store([attempt], int(storing.clock())) == ({1}, set())
    assert moving.alerts.newest(check.id)[0]["next_attempt_at"] == utc_text(moving.clock())


def test_of_checks_that_somebody_else_keeps_locked_no_result_is_stored_and_of_others_at_once(nodes):
    one, other = nodes
    checks = locked, free, gone = [one.create() for _ in range(3)]
    for check in checks:
        one.checks.test_alert(one.key.id, check.id).wait()
    results = [one.attempt(seq, "delivered", 204, None, None, HOOK, 0) for seq in (1, 2, 3)]
    one.checks.delete(one.key.id, gone.id).wait()
    with lock(one, locked):
        assert other.alerts.store(results, int(other.clock())) == (set(), {1})
        assert [other.alerts.newest(check.id)[0]["state"] for check in (locked, free)] == ["pending", "delivered"]
    assert other.alerts.store(results, int(other.clock())) == (set(), set())
    for check in locked, free:
        (alert,) = other.alerts.newest(check.id)
        assert (alert["state"], alert["attempts"]) == ("delivered", 1)


def test_when_alerts_are_due_is_stored_but_for_checks_that_somebody_else_keeps_locked(nodes):
    one, other = nodes
    checks = [one.create() for _ in range(2)]
    for check in checks:
        one.checks.test_alert(one.key.id, check.id).wait()
    now, later = int(one.clock()), int(one.clock()) + 60
    with lock(one, checks[0]):
        assert other.alerts.put_off({1: later, 2: later, 3: later}) == {1}
        due_at = [other.alerts.newest(check.id)[0]["next_attempt_at"] for check in checks]
        assert due_at == [utc_text(now), utc_text(later)]
    assert other.alerts.put_off({1: later}) == set()
    assert other.alerts.newest(checks[0].id)[0]["next_attempt_at"] == utc_text(later)


@pytest.fixture
def mail(open_again, clock):
    mail = Mail(open_again(), clock)
    yield mail
    mail.delivery.stop(10)


def test_a_check_that_somebody_else_keeps_locked_holds_no_alert_of_another_up(nodes, mail, monkeypatch):
    locked, free = mail.heart.create(), mail.heart.create()
    for check in locked, free:
        mail.record(check, OVERDUE, RECOVERED)
    store, tries = mail.alerts.store, []
    monkeypatch.setattr(
        mail.alerts, "store", lambda made, *now: tries.append([one.seq for one in made]) or store(made, *now)
    )
    with lock(nodes[0], locked):
        mail.delivery.start()
        mail.settled(2)
        for _ in range(2):
            tries.clear()
            mail.pass_time(1)
            wait_until(lambda: [1] in tries)
            # Until then it rests.
            wait_until(lambda: not mail.delivery._dispatcher.has_news())
            assert mail.delivery._dispatcher.due_at() > mail.elapsed()
        mail.record(free)
        mail.settled(3)
        assert mail.states(locked) == ["pending", "pending"]
        assert mail.states(free) == ["delivered"] * 3
        assert len(mail.posted) == 4
    mail.pass_time(1)
    mail.settled(5)
    assert mail.states(locked) == ["delivered", "delivered"]
    assert len(set(mail.ids)) == len(mail.posted) == 5


def test_writes_that_wait_together_keep_no_locks_that_another_node_waits_for(nodes, postgresql, monkeypatch):
    monkeypatch.setattr(queue, "GROUP_SECONDS", 20)
    both_have_one = threading.Barrier(2)
    log = postgresql.folder / "log"
    deadlocks = log.read_text().count("deadlock detected")

    def count(name, then=lambda: None):
        sql = "INSERT INTO monitor (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = 2"
        return lambda transaction: (transaction.execute(sql, (name,)), then())

    with writer_held(nodes[0].database), writer_held(nodes[1].database):
        written = []
        for node, (one, other) in zip(nodes, ("ab", "ba"), strict=True):
            written.append(node.database.write_later(count(one, lambda: both_have_one.wait(20))))
            written.append(node.database.write_later(count(other)))
    for later in written:
        later.wait()
    assert log.read_text().count("deadlock detected") == deadlocks


def test_writes_that_are_made_together_share_a_transaction_with_no_other(nodes, monkeypatch):
    # Else a busy machine leaves a group no time for another one.
    monkeypatch.setattr("cardbeat.database.queue.GROUP_SECONDS", 60)

    def numbers(transaction, items):
        return [transaction.execute("SELECT CAST(pg_current_xact_id() AS text)").fetchone()[0]] * len(items)

    database = nodes[0].database
    with writer_held(database):
        others = [database.write_later(lambda transaction: numbers(transaction, [1])[0]) for _ in range(3)]
        together = [database.write_together(numbers, place) for place in range(2)]
    alone = {later.wait() for later in others}
    (shared,) = {later.wait() for later in together}
    assert len({shared, *alone}) == 4


def test_groups_of_pings_and_failures_at_two_nodes_do_not_wait_for_each_other(nodes, pool, monkeypatch, postgresql):
    """Each check that turns changes a total too, which the group then holds: all its checks are locked before."""
    checks = [nodes[0].create() for _ in range(2)]
    nodes[0].checks.signal(checks[1].id, Signal.FAILURE).wait()
    (first, pinged), (second, overdue) = zip(nodes, [check.id for check in checks], strict=True)
    log = (postgresql.folder / "log").read_text
    deadlocks = log().count("deadlock detected")
    has_pinged = {first: threading.Event(), second: threading.Event()}

    def then_wait(node, other):
        note = node.checks._ping

        def ping(*arguments):
            found = note(*arguments)
            has_pinged[node].set()
            wait_until(lambda: has_pinged[other].is_set() or locks_are_waited_for(first))
            return found

        monkeypatch.setitem(node.checks._noted, Signal.PING, ping)

    then_wait(first, second)
    then_wait(second, first)
    groups = {first: [(overdue, Signal.PING), (pinged, Signal.FAILURE)]}
    groups[second] = [(pinged, Signal.PING), (overdue, Signal.FAILURE)]
    written = [
        pool.submit(node.database.write, partial(node.checks._note_signals, signals=group))
        for node, group in groups.items()
    ]
    for one in written:
        one.result(20)
    assert log().count("deadlock detected") == deadlocks


def test_two_nodes_that_wait_for_each_other_both_get_there(nodes, pool):
    both_have_one = threading.Barrier(2)
    tries = []

    def count_both(names):
        def work(transaction):
            tries.append(names)
            for name in names:
                sql = "INSERT INTO monitor (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = 2"
                transaction.execute(sql, (name,))
                if name == names[0] and len(tries) <= 2:
                    both_have_one.wait(20)

        return work

    one, other = (
        pool.submit(node.database.write, count_both(names)) for node, names in zip(nodes, ("ab", "ba"), strict=True)
    )
    one.result(20)
    other.result(20)
    assert len(tries) > 2
    with nodes[0].database.read() as connection:
        assert connection.execute("SELECT sum(value) FROM monitor WHERE name IN ('a', 'b')").fetchone()[0] == 4


STEPPED_CLOCK = """
    CREATE SCHEMA stepped; CREATE TABLE stepped.step (seconds integer); INSERT INTO stepped.step VALUES (0);
    CREATE FUNCTION stepped.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
    'SELECT pg_catalog.clock_timestamp() + (SELECT seconds FROM stepped.step) * interval ''1 s'''
"""


@pytest.fixture
def step_clock(postgresql):
    """Sets the server's clock forward by so many seconds, for sessions that look into the schema `stepped` first."""
    postgresql.execute(STEPPED_CLOCK)
    yield lambda seconds: postgresql.execute(f"UPDATE stepped.step SET seconds = {seconds}")
    postgresql.execute("DROP SCHEMA stepped CASCADE")


def test_a_check_that_an_idle_node_creates_after_the_servers_clock_was_set_is_new(database, step_clock):
    node = Heart(database, database.clock)
    database.write(lambda transaction: transaction.execute("SET search_path TO emptied, stepped, pg_catalog"))
    step_clock(600)
    check = node.create()
    ((now,),) = database.write(lambda transaction: transaction.execute(TIME).fetchall())
    assert now - check.created_at < 60
    assert now - database.clock() < 60


def test_who_removes_what_another_removes_too_leaves_a_check_that_has_alerts_left(nodes, pool):
    """To delete the check would delete all of them in one write."""
    one, other = nodes
    check = one.create()
    one.keys.revoke(one.key.id).wait()
    sql = "INSERT INTO alerts (id, check_id, type, created_at) VALUES (?, ?, 'check.test', 1)"
    one.database.write(
        lambda transaction: [transaction.execute(sql, (f"msg_{n}", check.id)) for n in range(3 * STEP_ALERTS)]
    )
    with uncommitted(one, partial(removal._step, one.database)):
        removing = pool.submit(other.database.write, partial(removal._step, other.database))
        wait_for_lock(one, removing)
    removing.result(20)
    with one.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM alerts").fetchone()[0] >= STEP_ALERTS
