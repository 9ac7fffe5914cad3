"""Laws of both engines: what is written together, what a failure undoes, who waits for whom."""

import contextlib
import sqlite3
import threading
from itertools import chain

import psycopg
import pytest

from cardbeat.database.database import MOST_PINGS, READERS
from cardbeat.database.sqlite.file import FILE_NAME
from cardbeat.errors import MaybeDone, Refusal, Unavailable
from cardbeat.jobs import Future
from tests.kit.heart import at_once
from tests.kit.lists import times
from tests.kit.postgresql import BOTH_ENGINES, SQLITE
from tests.kit.support import (
    begun,
    count_up,
    counted,
    wait_until,
    writer_held,
)
from tests.kit.systems import IN_USE

pytestmark = BOTH_ENGINES


class Pings:
    """A work of pings, which keeps the items of each call, and fails for some of them."""

    def __init__(self, fails_for=()):
        self.calls = []
        self.fails_for = fails_for

    def __call__(self, transaction, items):
        self.calls.append(items)
        for item in items:
            count_up(transaction)
            if item in self.fails_for:
                raise Refusal("conflict")
        return [10 * item for item in items]


def written(database, work, client, items):
    """Pings of a client that wait."""
    return [database.write_ping(work, item, client) for item in items]


def outcome(deed):
    """What it returns, or the code of what it raises."""
    try:
        return deed()
    except Refusal as refusal:
        return refusal.code


def test_what_write_returned_from_is_seen_by_readers_and_none_of_many_is_lost(
    database,
):
    at_once(*[lambda: times(50, database.write, count_up)] * 16)
    assert counted(database) == 800


def test_a_write_that_fails_undoes_only_itself_within_a_group(database):
    def fail(transaction):
        count_up(transaction)
        raise Refusal("conflict")

    with writer_held(database):
        first = begun(lambda: database.write(count_up))
        failing = begun(lambda: outcome(lambda: database.write(fail)))
        last = begun(lambda: database.write(count_up))
    assert failing.result(60) == "conflict"
    assert first.result(60) is last.result(60) is None
    assert counted(database) == 2


def test_of_pings_made_in_one_call_only_those_that_fail_are_undone(
    database, caplog
):
    work = Pings(fails_for=(2, 3))
    with writer_held(database):
        pings = written(database, work, "client", range(1, 5))
    assert [outcome(ping.wait) for ping in pings] == [
        10,
        "conflict",
        "conflict",
        40,
    ]
    assert work.calls == [[1, 2, 3, 4], [1], [2], [3], [4]]
    assert counted(database) == 2
    # It was not for want of the database.
    assert not database.pings_refused
    assert caplog.messages == []


def test_clients_take_turns_in_groups_of_bounded_size(database):
    work = Pings()
    with writer_held(database):
        pings = written(database, work, "many", range(2 * MOST_PINGS))
        pings += written(database, work, "other", (-1, -2))
    for ping in pings:
        ping.wait()
    made = [*chain(*work.calls)]
    assert made[:5] == [0, -1, 1, -2, 2]
    assert [item for item in made if item >= 0] == list(
        range(2 * MOST_PINGS)
    )
    assert max(map(len, work.calls)) == MOST_PINGS


def test_a_single_write_waits_for_one_group_of_pings_and_pings_for_few_writes(
    database, monkeypatch
):
    order = []
    waits = []
    wait = Future.wait
    monkeypatch.setattr(
        Future, "wait", lambda it: waits.append(it) or wait(it)
    )

    def note(_, items):
        order.append("pings")
        return items

    with writer_held(database):
        pings = written(database, note, "client", range(4 * MOST_PINGS))
        others = times(
            3,
            begun,
            lambda: database.write(lambda _: order.append("other")),
        )
        # The first keeps the writer busy.
        wait_until(lambda: len(waits) == 4)
    for other in others:
        other.result(60)
    for ping in pings:
        ping.wait()
    assert order == ["pings", *["other"] * 3, *["pings"] * 3]


def test_an_error_of_the_work_itself_is_raised_as_it_is(database):
    with pytest.raises(
        (sqlite3.IntegrityError, psycopg.errors.NotNullViolation)
    ):
        database.write(
            lambda transaction: transaction.execute(
                "INSERT INTO monitor VALUES ('n', NULL)"
            )
        )
    with pytest.raises(ZeroDivisionError):
        database.write(lambda _: 1 / 0)
    with pytest.raises(ValueError, match="zip"):
        database.write_ping(
            lambda transaction, items: (count_up(transaction), 1),
            1,
            "client",
        ).wait()
    assert counted(database) is None


def test_a_write_that_may_be_done_is_told_so_and_a_ping_may_be_sent_again(
    database,
):
    def lose(_transaction, _items=()):
        raise MaybeDone

    assert outcome(lambda: database.write(lose)) == "unconfirmed"
    assert (
        outcome(database.write_ping(lose, 1, "client").wait)
        == "database_unavailable"
    )


def test_listeners_hear_of_what_was_stored(database):
    heard = []
    database.ping_listeners.append(heard.append)
    work = Pings(fails_for=(2,))
    with writer_held(database):
        pings = written(database, work, "client", (1, 2, 3))
    for ping in pings:
        outcome(ping.wait)
    database.write(count_up)
    assert [*chain(*heard)] == [10, 30]


def test_a_callback_that_fails_keeps_nobody_from_writing(
    database, caplog
):
    def fail(*_):
        raise RuntimeError("a defect")

    database.ping_listeners.append(fail)
    with writer_held(database):
        ping = database.write_ping(Pings(), 1, "client")
        ping.when_done(fail)
    assert times(2, database.write, lambda _: 1) == [1, 1]
    assert ping.result() == 10
    assert [record.exc_info[0] for record in caplog.records] == [
        RuntimeError
    ] * 2


def test_a_closed_database_refuses_writes_after_finishing_those_that_wait(
    database, tmp_path
):
    with writer_held(database):
        written = begun(lambda: database.write(count_up))
        ping = database.write_ping(Pings(), 1, "client")
        assert not database.close(0.01)
        assert counted(database) is None
        closed = begun(database.close)
    assert closed.result(60)
    assert (outcome(lambda: written.result(60)), ping.wait()) in (
        (None, 10),
        ("stopping", 10),
    )
    assert outcome(lambda: database.write(count_up)) == "stopping"
    assert (
        outcome(lambda: database.write_ping(Pings(), 1, "client"))
        == "stopping"
    )
    assert not (tmp_path / f"{FILE_NAME}-wal").exists()


@IN_USE
@SQLITE
def test_pings_that_were_refused_are_known_and_the_log_tells_once(
    database, caplog
):
    away = database.path.rename(database.path.with_name("away"))
    assert (
        outcome(lambda: database.write(count_up))
        == "database_unavailable"
    )
    assert not database.pings_refused
    assert (
        outcome(database.write_ping(Pings(), 1, "client").wait)
        == "database_unavailable"
    )
    assert database.pings_refused
    away.rename(database.path)
    database.write(count_up)
    trouble = f"{database.path} was removed or replaced while in use; stop the server, put it back and start it"
    assert caplog.messages == [f"the database can't write: {trouble}"]


def test_readers_cannot_write_and_only_so_many_read_at_once(database):
    with pytest.raises(Unavailable), database.read() as connection:
        count_up(connection)
    with contextlib.ExitStack() as held:
        for _ in range(READERS):
            held.enter_context(database.read())
        reader = threading.Thread(target=lambda: counted(database))
        reader.start()
        reader.join(0.1)
        assert reader.is_alive()
    reader.join(60)
    assert not reader.is_alive()


def test_rows_have_their_values_by_name_and_by_place(database):
    database.write(count_up)
    with database.read() as connection:
        row = connection.execute(
            "SELECT name, value AS number FROM monitor"
        ).fetchone()
    assert row["number"] == 1
    assert row[1] == 1
    assert list(row)[1] == 1
    assert list(row.keys()) == ["name", "number"]


def test_a_text_with_a_nul_or_half_a_character_finds_nothing(database):
    with database.read() as connection:
        assert (
            connection.execute(
                "SELECT 1 FROM keys WHERE id = ?", ("a\0b",)
            ).fetchone()
            is None
        )
