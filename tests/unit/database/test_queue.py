"""Who writes, who reads and who waits at the database."""

import contextlib
import math
import sqlite3
import threading
import time
from collections import deque

import psycopg
import pytest

from cardbeat.concurrency.later import served
from cardbeat.database.queue import READ_CONNECTIONS, WAITING_OF_NETWORK, WriteQueue
from cardbeat.database.sqlite.database import as_sqlite
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.errors import Refusal, Unavailable
from tests.postgresql import BOTH_ENGINES
from tests.support import count_up, counted, wait_until, writer_held
from tests.systems import IN_USE

pytestmark = BOTH_ENGINES


def test_what_write_returned_from_is_seen_by_readers(database):
    database.write(count_up)
    assert counted(database) == 1


def test_writes_from_many_threads_are_all_kept(database):
    barrier = threading.Barrier(16)

    def write_some():
        barrier.wait()
        for _ in range(50):
            database.write(count_up)

    threads = [threading.Thread(target=write_some) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(database) == 800


def test_a_job_that_fails_undoes_only_itself_within_a_group(database):
    entered, release = threading.Event(), threading.Event()
    results = []

    def hold(connection):
        entered.set()
        release.wait(10)

    def fail(connection):
        count_up(connection)
        raise Refusal("conflict", "no")

    def attempt(work):
        try:
            results.append(database.write(work))
        except Refusal as refusal:
            results.append(refusal.status)

    threads = [threading.Thread(target=attempt, args=(hold,))]
    threads[0].start()
    assert entered.wait(10)
    threads += [threading.Thread(target=attempt, args=(work,)) for work in (count_up, fail, count_up)]
    for thread in threads[1:]:
        thread.start()
    release.set()
    for thread in threads:
        thread.join()
    assert sorted(results, key=str) == [409, None, None, None]
    assert counted(database) == 2


def test_readers_cannot_write(database):
    with pytest.raises(Unavailable), database.read() as connection:
        count_up(connection)


def test_an_error_of_the_job_itself_is_raised_as_it_is(database):
    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.NotNullViolation)):
        database.write(lambda connection: connection.execute("INSERT INTO monitor VALUES ('n', NULL)"))
    with pytest.raises(ZeroDivisionError):
        database.write(lambda connection: 1 / 0)


def test_a_write_for_later_is_settled_when_it_is_on_disk(database):
    counts, settled = [], threading.Event()

    def count(_written):
        counts.append(counted(database))
        settled.set()

    database.write_later(count_up).then(count)
    assert settled.wait(10)
    assert counts == [1]


def test_a_write_for_later_raises_to_who_takes_its_result(database):
    failed = database.write_later(lambda connection: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failed.wait()


def test_whoever_fails_when_told_of_a_write_keeps_nobody_from_writing(database, caplog):
    def fail(_settled):
        raise RuntimeError("a defect")

    database.write_later(lambda connection: time.sleep(0.05)).then(fail)
    assert database.write(lambda connection: 1) == 1
    assert "could not be told" in caplog.text


def test_a_closed_database_refuses_writes_after_finishing_the_queued_ones(database, tmp_path):
    database.write(count_up)
    for _ in range(2):
        assert database.close()
    with pytest.raises(Unavailable):
        database.write(count_up)
    with pytest.raises(Unavailable):
        database.write_later(count_up)
    assert not (tmp_path / f"{FILE_NAME}-wal").exists()


def test_a_connection_that_is_read_from_at_the_close_is_closed_after_it(database):
    with database.read() as connection:
        database.close()
        assert connection.execute("SELECT count(*) FROM keys").fetchone()[0] == 0
    with pytest.raises((sqlite3.ProgrammingError, psycopg.OperationalError), match="closed"):
        connection.execute("SELECT 1")


def read(database):
    with database.read() as connection:
        connection.execute("SELECT 1")


class TakenMeanwhile(deque):
    """Looks as if it held a connection, which another thread takes before the pop."""

    def __bool__(self):
        return True

    def __len__(self):
        return 1


def test_a_connection_that_another_reader_takes_first_is_not_missed(database):
    database._readers._idle = TakenMeanwhile()
    assert counted(database) is None


def test_only_so_many_read_at_once(database):
    with contextlib.ExitStack() as held:
        for _ in range(READ_CONNECTIONS):
            held.enter_context(database.read())
        reader = threading.Thread(target=read, args=(database,))
        reader.start()
        reader.join(0.1)
        assert reader.is_alive()
    reader.join(10)
    assert not reader.is_alive()


def test_its_writer_goes_first_from_when_something_is_to_be_written_until_it_is_told(database):
    wait_until(lambda: not database.precedence.has_work)
    entered, release = threading.Event(), threading.Event()
    database.write_later(lambda _: entered.set())
    assert entered.wait(10)
    written = database.write_later(lambda _: release.wait(10))
    assert database.precedence.has_work
    release.set()
    written.wait()
    wait_until(lambda: not database.precedence.has_work)


def written_for(database, order, *payers):
    """Have a client's write noted in `order` by its last payer when it is made."""
    set_before = served.set(payers)
    try:
        return database.write_later(lambda _: order.append(payers[-1]))
    finally:
        served.reset(set_before)


def test_clients_write_in_turn_however_many_keys_and_writes_one_has_and_every_second_one_is_of_the_service(database):
    order = []
    with writer_held(database):
        written = [written_for(database, order, f"key {n % 5}", "many") for n in range(40)]
        written += [written_for(database, order, "other key", "other") for _ in range(2)]
        written += [database.write_later(lambda _: order.append("own")) for _ in range(4)]
    for later in written:
        later.wait()
    assert order[:8] == ["many", "own", "other", "own", "many", "own", "other", "own"]
    assert order[8:] == ["many"] * 38


def test_clients_write_however_many_writes_the_service_has(database):
    def again(_written):
        if not of_client.is_settled and len(own) < 500:
            database.write_later(own.append).then(again)

    own = []
    with writer_held(database):
        for _ in range(3):
            database.write_later(own.append).then(again)
        of_client = written_for(database, [], "key", "network")
    of_client.wait()
    assert len(own) < 500


def test_only_so_many_writes_of_one_network_wait_whatever_their_keys(database):
    with writer_held(database):
        written = [written_for(database, [], f"key {n}", "many") for n in range(WAITING_OF_NETWORK)]
        with pytest.raises(Unavailable) as refused:
            written_for(database, [], "another key", "many")
        written.append(written_for(database, [], "key 1", "other"))
    assert (refused.value.code, refused.value.headers) == ("busy", {"Retry-After": "1"})
    for later in written:
        later.wait()
    written_for(database, [], "another key", "many").wait()


class MadeTwice(WriteQueue):
    """An engine that makes each transaction again that was undone, as PostgreSQL after a deadlock."""

    MOST_SINGLE = 1

    def __init__(self):
        self.groups = []
        super().__init__(None)

    def execute(self, _sql):
        pass

    def _commit(self, group):
        try:
            self._make(self, group)
        except RuntimeError:
            self._make(self, group)
        self.groups.append([write.item for write in group])

    def _translated(self, error):
        raise error


def test_a_single_write_of_a_transaction_that_is_made_again_stays_one():
    def undone_once(_connection):
        made.append(1)
        if len(made) == 1:
            raise RuntimeError

    engine, made, entered, go = MadeTwice(), [], threading.Event(), threading.Event()
    held = engine.write_later(lambda _: (entered.set(), go.wait(10)))
    assert entered.wait(10)
    written = [
        engine.write_together(lambda _, items: items, 1),
        engine.write_later(undone_once),
        engine.write_later(made.append),
    ]
    go.set()
    for later in (held, *written):
        later.wait()
    assert engine._finish(10)
    # A single write has no item.
    assert engine.groups == [[None], [1], [None], [None]]


LONG = 0.1
"""Seconds that a commit does not take on a slow disk."""


class Together:
    """A work of many items, which keeps those of each call."""

    def __init__(self, fails_for=None, seconds=0):
        self.calls = []
        self.fails_for = fails_for
        self.seconds = seconds

    def __call__(self, transaction, items):
        self.calls.append(items)
        time.sleep(self.seconds)
        for item in items:
            count_up(transaction)
            if item == self.fails_for:
                raise Refusal("conflict", "no")
        return [10 * item for item in items]


def test_neighbours_of_one_work_are_written_in_one_go_each_with_its_own_result(database):
    work = Together()
    with writer_held(database):
        written = [database.write_together(work, item) for item in (1, 2, 3)]
    assert [later.wait() for later in written] == [10, 20, 30]
    assert work.calls == [[1, 2, 3]]


def test_those_written_in_one_go_go_before_others_that_wait(database):
    work, others = Together(), []
    with writer_held(database):
        first = database.write_together(work, 1)
        other = database.write_later(lambda transaction: others.append(list(work.calls)))
        second = database.write_together(work, 2)
    assert (first.wait(), second.wait()) == (10, 20)
    other.wait()
    assert (others, work.calls) == ([[[1, 2]]], [[1, 2]])


@pytest.mark.parametrize("seconds", [0, 0.02])
def test_others_are_written_however_many_go_before_them_and_however_long_they_take(database, seconds):
    def again(_written):
        if not other.is_settled and len(work.calls) < 500:
            database.write_together(work, 1).then(again)

    work = Together(seconds=seconds)
    with writer_held(database):
        other = database.write_later(count_up)
        for _ in range(3):
            database.write_together(work, 1).then(again)
    other.wait()
    assert len(work.calls) < 500


def test_those_written_in_one_go_are_written_however_long_others_take(database):
    def again(_written):
        if not first.is_settled and len(others) < 500:
            database.write_later(slow).then(again)

    def slow(_transaction):
        others.append(1)
        time.sleep(0.02)

    others = []
    with writer_held(database):
        for _ in range(3):
            database.write_later(slow).then(again)
        first = database.write_together(Together(), 1)
        second = database.write_together(Together(seconds=0.02), 1)
    first.wait()
    second.wait()
    assert len(others) < 500


def test_those_of_each_network_are_written_in_turn_however_many_one_has(database):
    work = Together()
    with writer_held(database):
        many = [database.write_together(work, ("many", number), "many") for number in range(10 * max(database.AT_ONCE))]
        other = [database.write_together(work, ("other", number), "other") for number in range(2)]
    for later in (*many, *other):
        later.wait()
    assert work.calls[0][:6] == [("many", 0), ("other", 0), ("many", 1), ("other", 1), ("many", 2), ("many", 3)]
    assert [item for call in work.calls for item in call if item[0] == "many"] == [
        ("many", n) for n in range(len(many))
    ]


@pytest.mark.parametrize(("call_seconds", "group_seconds", "on_disk"), [(0, 10, [0]), (LONG, LONG / 2, [0, 1])])
def test_those_that_wait_share_a_commit_if_they_are_quick_and_else_only_as_many_as_one_call_takes(
    database, monkeypatch, call_seconds, group_seconds, on_disk
):
    def work(_transaction, items):
        found.append(sum(later.is_settled for later in written) // max(database.AT_ONCE))
        time.sleep(call_seconds)
        return items

    # However long the commit before takes on a busy machine.
    monkeypatch.setattr("cardbeat.database.queue.SLOW_COMMIT_SECONDS", math.inf)
    monkeypatch.setattr("cardbeat.database.queue.GROUP_SECONDS", group_seconds)
    monkeypatch.setattr(database, "TOGETHER_SECONDS", group_seconds)
    found = []
    with writer_held(database):
        written = [database.write_together(work, number) for number in range(2 * max(database.AT_ONCE))]
    assert [later.wait() for later in written] == list(range(2 * max(database.AT_ONCE)))
    assert sorted(set(found)) == on_disk


@pytest.mark.engines("sqlite")
def test_calls_that_took_long_are_followed_by_shorter_ones_and_quick_ones_by_longer(database, monkeypatch):
    least, most = database.AT_ONCE
    work = Together()
    for call_seconds in (1e-9, 1e9):
        monkeypatch.setattr("cardbeat.database.queue.CALL_SECONDS", call_seconds)
        with writer_held(database):
            written = [database.write_together(work, number) for number in range(least + most)]
        for later in written:
            later.wait()
    assert [len(call) for call in work.calls] == [most, least, least, most]


def test_those_of_a_transaction_that_is_made_again_are_written_in_their_order_before_the_next():
    def work(_connection, items):
        calls.append(items)
        if len(calls) == 2:
            raise RuntimeError
        return items

    engine, calls, entered, go = MadeTwice(), [], threading.Event(), threading.Event()
    held = engine.write_later(lambda _: (entered.set(), go.wait(10)))
    assert entered.wait(10)
    written = [engine.write_together(work, number) for number in range(2 * max(engine.AT_ONCE) + 1)]
    go.set()
    held.wait()
    assert [later.wait() for later in written] == list(range(2 * max(engine.AT_ONCE) + 1))
    assert engine._finish(10)
    assert [item for group in engine.groups[1:] for item in group] == list(range(2 * max(engine.AT_ONCE) + 1))


@pytest.mark.engines("sqlite")
def test_those_written_in_one_go_have_their_turn_though_others_fail_with_all_that_is_in_their_transaction(database):
    def fill_the_disk(transaction):
        others.append(1)
        if len(others) == 1:
            later.append(database.write_together(Together(seconds=LONG), 2))
        if not later[0].is_settled and len(others) < 500:
            database.write_later(fill_the_disk)
        # As SQLite does by itself.
        transaction.execute("ROLLBACK")
        raise as_sqlite("database or disk is full", sqlite3.SQLITE_FULL)

    others, later = [], []
    with writer_held(database):
        first = database.write_together(Together(seconds=LONG), 1)
        database.write_later(fill_the_disk)
    first.wait()
    wait_until(lambda: later)
    later[0].wait()
    assert len(others) < 500


@IN_USE
@pytest.mark.engines("sqlite")
def test_the_log_tells_once_that_it_can_not_be_written_and_that_it_can_again(database, caplog):
    away = database.path.rename(database.path.with_name("away"))
    for _ in range(2):
        with pytest.raises(Unavailable):
            database.write(count_up)
    away.rename(database.path)
    # A disk that takes no writes lets a transaction end that has none.
    database.write(lambda transaction: transaction.execute("DELETE FROM keys WHERE false"))
    assert len(caplog.records) == 1
    for _ in range(2):
        database.write(count_up)
    lines = [record.getMessage() for record in caplog.records]
    trouble = f"{database.path} was removed or replaced while in use; stop the server, put it back and start it"
    assert lines == [f"the database can't write: {trouble}", "the database can be written again; for 0 s it could not"]


@pytest.mark.engines("sqlite")
def test_what_fails_after_long_does_not_count_as_a_slow_disk(database):
    def fill_the_disk(transaction):
        time.sleep(3 * LONG)
        transaction.execute("ROLLBACK")
        raise as_sqlite("database or disk is full", sqlite3.SQLITE_FULL)

    with pytest.raises(Unavailable):
        database.write(fill_the_disk)
    seen = []
    with writer_held(database):
        first = database.write_together(Together(seconds=LONG), 1)
        other = database.write_later(lambda _: seen.append(first.is_settled))
    other.wait()
    assert seen == [True]


def test_what_fails_once_writes_were_told_keeps_nobody_from_writing(database, monkeypatch, caplog):
    def fail():
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr(database, "_after_commit", fail)
    for _ in range(2):
        database.write(count_up)
    assert counted(database) == 2
    assert "what can wait until writes were told has failed" in caplog.text


def test_a_write_that_takes_long_is_committed_before_the_next_begins(database):
    seen = []
    with writer_held(database):
        database.write_later(lambda transaction: (count_up(transaction), time.sleep(0.2)))
        quick = [database.write_later(lambda _: seen.append(counted(database))) for _ in range(2)]
    for written in quick:
        written.wait()
    assert seen == [1, 1]


def test_of_those_written_in_one_go_only_the_one_that_fails_is_undone(database):
    work = Together(fails_for=2)
    with writer_held(database):
        written = [database.write_together(work, item) for item in (1, 2, 3)]
    assert (written[0].wait(), written[2].wait()) == (10, 30)
    with pytest.raises(Refusal):
        written[1].wait()
    assert work.calls == [[1, 2, 3], [1], [2], [3]]
    assert counted(database) == 2


def test_a_work_that_does_not_give_each_its_result_has_failed(database):
    with pytest.raises(ValueError, match="zip"):
        database.write_together(lambda transaction, items: (count_up(transaction), 1), 1).wait()
    assert counted(database) is None
