"""Pings that wait for the same commit: each has its own answer, and all of them one statement."""

import pytest

from cardbeat.errors import NotFound
from cardbeat.heartbeat import pings
from cardbeat.heartbeat.pings import Signal
from cardbeat.web.message import Request
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import GOOD_CHECK, writer_held

pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


def at_once(heart, *check_ids):
    """The results of pings that come to stand in one group, each once it is there."""
    with writer_held(heart.database):
        return [heart.checks.ping(check_id) for check_id in check_ids]


def test_each_ping_of_a_group_is_answered_for_its_own_check(heart):
    short, long = heart.create(60), heart.create(3600)
    first, unknown, second = at_once(heart, short.id, "unknown", long.id)
    assert (first.wait().deadline_at, second.wait().deadline_at) == (heart.clock.now + 60, heart.clock.now + 3600)
    with pytest.raises(NotFound):
        unknown.wait()
    assert [heart.read(check).ping_count for check in (short, long)] == [1, 1]


def test_several_pings_of_one_check_in_a_group_all_count(heart):
    often, once = heart.create(), heart.create()
    results = at_once(heart, often.id, once.id, often.id, often.id)
    assert [result.wait().recovered for result in results] == [False] * 4
    assert [heart.read(check).ping_count for check in (often, once)] == [3, 1]


def test_of_several_pings_of_an_overdue_check_the_first_ends_the_outage(heart):
    overdue, other = heart.create(), heart.create(1000)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    results = at_once(heart, other.id, overdue.id, overdue.id)
    assert [result.wait().recovered for result in results] == [False, True, False]
    assert heart.status(overdue) == "on_time"
    assert heart.alert_types(overdue) == ["check.overdue", "check.recovered"]
    assert heart.checks.totals() == {"on_time": 2, "overdue": 0}


def signals_at_once(heart, *signals):
    with writer_held(heart.database):
        results = [heart.checks.signal(check.id, signal) for check, signal in signals]
    return [result.wait() for result in results]


def test_signals_of_one_check_in_a_group_count_in_their_order(heart):
    fails_last, pings_last, other = heart.create(), heart.create(), heart.create()
    ping, failure = Signal.PING, Signal.FAILURE
    told = signals_at_once(
        heart,
        *((fails_last, ping), (pings_last, failure), (other, ping), (fails_last, failure), (pings_last, ping)),
        *((fails_last, failure), (other, Signal.OTHER), (pings_last, ping)),
    )
    assert [one.status for one in told] == [
        *("on_time", "overdue", "on_time", "overdue", "on_time"),
        *("overdue", "on_time", "on_time"),
    ]
    assert [one.recovered for one in told] == [False] * 4 + [True] + [False] * 3
    assert [heart.status(check) for check in (fails_last, pings_last, other)] == ["overdue", "on_time", "on_time"]
    assert heart.alert_types(fails_last) == ["check.overdue"]
    assert heart.alert_types(pings_last) == ["check.overdue", "check.recovered"]
    assert [heart.read(check).ping_count for check in (fails_last, pings_last, other)] == [1, 2, 1]


def test_a_check_turns_at_most_twice_in_a_group_however_its_signals_alternate(heart):
    fails_last, pings_last = heart.create(), heart.create()
    signals = [Signal.FAILURE, Signal.OTHER, Signal.PING] * 10
    told = signals_at_once(
        heart, *((fails_last, signal) for signal in reversed(signals)), *((pings_last, signal) for signal in signals)
    )
    assert [heart.status(check) for check in (fails_last, pings_last)] == ["overdue", "on_time"]
    assert heart.alert_types(fails_last) == ["check.overdue"]
    assert heart.alert_types(pings_last) == ["check.overdue", "check.recovered"]
    assert sum(one.recovered for one in told) == 1
    assert [heart.read(check).ping_count for check in (fails_last, pings_last)] == [10, 10]


def test_a_failure_in_a_group_of_pings_is_one_commit_with_them(heart):
    checks = [heart.create() for _ in range(20)]
    signals = [(check, Signal.FAILURE if number % 2 else Signal.PING) for number, check in enumerate(checks)]
    told = signals_at_once(heart, *signals)
    assert [one.status for one in told] == ["on_time", "overdue"] * 10
    assert [len(heart.alert_types(check)) for check in checks] == [0, 1] * 10
    assert heart.checks.totals() == {"on_time": 10, "overdue": 10}


def test_a_failure_begins_the_one_outage_that_the_sweep_finds_late(heart):
    check = heart.create(60)
    deadline_at = check.deadline_at
    heart.pass_time(10)
    heart.checks.signal(check.id, Signal.FAILURE).wait()
    began = heart.read(check)
    assert (began.overdue_at, began.overdue_reason, began.deadline_at) == (heart.clock.now, "failed", deadline_at)
    heart.pass_time(61)
    assert heart.sweep.sweep_once() == 0
    heart.checks.signal(check.id, Signal.FAILURE).wait()
    assert heart.read(check).failed_at == heart.clock.now
    assert heart.ping(check).recovered
    assert heart.alert_types(check) == ["check.overdue", "check.recovered"]
    assert heart.read(check).failed_at is None


def test_a_failure_of_a_late_check_leaves_the_outage_and_its_reason(heart):
    check = heart.create(60)
    heart.pass_time(61)
    heart.sweep.sweep_once()
    heart.pass_time(5)
    assert heart.checks.signal(check.id, Signal.FAILURE).wait().status == "overdue"
    read = heart.read(check)
    assert (read.overdue_reason, read.failed_at, read.outage) == ("late", heart.clock.now, 1)
    assert heart.alert_types(check) == ["check.overdue"]


def test_a_failure_while_no_alert_can_be_stored_is_not_acknowledged(heart, monkeypatch):
    check = heart.create()

    def refuse(*_):
        raise OSError("no room")

    monkeypatch.setattr(heart.alerts, "record", refuse)
    with pytest.raises(OSError, match="no room"):
        heart.checks.signal(check.id, Signal.FAILURE).wait()
    assert (heart.status(check), heart.read(check).failed_at) == ("on_time", None)


def test_many_that_recover_at_once_have_an_alert_each(heart):
    checks = [heart.create() for _ in range(20)]
    heart.pass_time(61)
    heart.sweep.sweep_once()
    results = at_once(heart, *(check.id for check in checks))
    assert all(result.wait().recovered for result in results)
    assert {tuple(heart.alert_types(check)) for check in checks} == {("check.overdue", "check.recovered")}


def test_pings_that_wait_go_before_a_deletion_that_waits_too(heart):
    check = heart.create()
    with writer_held(heart.database):
        deleted = heart.checks.delete(heart.key.id, check.id)
        ping = heart.checks.ping(check.id)
    assert not ping.wait().recovered
    deleted.wait()
    with pytest.raises(NotFound):
        heart.checks.ping(check.id).wait()


def test_a_ping_of_a_revoked_key_finds_no_check(heart):
    check, other = heart.create(), heart.create()
    heart.keys.revoke(heart.key.id).wait()
    for result in at_once(heart, check.id, other.id):
        with pytest.raises(NotFound):
            result.wait()


@pytest.mark.parametrize("signal", Signal)
def test_so_it_is_with_each_signal(heart, signal):
    check = heart.create()
    heart.keys.revoke(heart.key.id).wait()
    with pytest.raises(NotFound):
        heart.checks.signal(check.id, signal).wait()
    assert heart.read(check).failed_at is None


@SQLITE
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 500])
def test_a_statement_for_any_number_finds_its_checks_by_an_index(heart, number):
    statements = []
    heart.database.write(lambda transaction: transaction.set_trace_callback(statements.append))
    ids = [f"id {n}" for n in range(number)]
    heart.database.write(lambda transaction: pings.note_pings(transaction, ids, 0))
    heart.database.write(lambda transaction: transaction.set_trace_callback(None))
    (statement,) = [text for text in statements if text.startswith("UPDATE")]
    with heart.database.read() as connection:
        plan = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert "SEARCH checks USING INDEX sqlite_autoindex_checks_1 (id=?)" in plan
    assert not [step for step in plan if "SCAN" in step]


def test_a_ping_is_on_disk_with_the_first_of_others_however_many_of_another_network_wait(app):
    check_id = app.json("POST", "/checks", GOOD_CHECK, key=app.checks_key())["check"]["id"]
    stored, answers = [], []
    with writer_held(app.service.database):
        for network, number in (("192.0.2.1", 1000), ("192.0.2.2", 1)):
            for signal in ("", "/fail") * number:
                request = Request("GET", f"/ping/{check_id}{signal}", f"/ping/{check_id}{signal}", network=network)
                answers.append(app.service.router.find(request).handler(request))
                answers[-1].then(lambda _, network=network: stored.append(network))
    for answer in answers:
        answer.wait()
    assert stored[:4] == ["192.0.2.1", "192.0.2.2"] * 2
