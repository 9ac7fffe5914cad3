"""The lease on a row, of two processes with the same database, each with a monotonic clock of its own."""

import pytest

from cardbeat.database import open_database
from cardbeat.database.postgresql.row_lease import HELD_SECONDS, RENEWAL_SECONDS, TERM_SECONDS, RowLease
from cardbeat.errors import LeaseLost, Unavailable
from tests.support import FakeClock


class Nodes:
    """Two leases, whose machines started 85,000 seconds apart; time passes for both at once."""

    def __init__(self, tmp_path, clock):
        self.clock = clock
        self.databases = [open_database(tmp_path) for _ in range(2)]
        self.monotonic = [FakeClock(5000), FakeClock(90_000)]
        for database in self.databases:
            database.clock = clock
        self.leases = [RowLease(*of_one) for of_one in zip(self.databases, self.monotonic, strict=True)]

    def pass_time(self, seconds):
        for clock in (self.clock, *self.monotonic):
            clock.advance(seconds)

    def written(self):
        """Until when the lease is taken, once all is written that was to be."""
        for database in self.databases:
            database.write(lambda _: None)
        with self.databases[0].read() as connection:
            return connection.execute("SELECT until FROM leases").fetchone()["until"]


@pytest.fixture
def nodes(tmp_path, clock):
    nodes = Nodes(tmp_path, clock)
    yield nodes
    for database in nodes.databases:
        database.close()


@pytest.fixture
def leases(nodes):
    return nodes.leases


def test_one_of_two_takes_it_and_keeps_it_while_it_renews(nodes, leases):
    first, second = leases
    for _ in range(100):
        assert (first.take(), second.take()) == (True, False)
        assert (first.held(), second.held()) == (True, False)
        nodes.pass_time(1)
    assert first.epoch == 1


def test_it_is_written_only_now_and_then(nodes, leases):
    first, _ = leases
    assert first.take()
    until = nodes.written()
    nodes.pass_time(RENEWAL_SECONDS - 0.1)
    assert first.take()
    assert nodes.written() == until
    nodes.pass_time(0.1)
    assert first.take()
    assert nodes.written() == until + RENEWAL_SECONDS


def test_what_is_not_renewed_is_free_after_its_term_and_not_before(nodes, leases):
    first, second = leases
    first.take()
    nodes.pass_time(TERM_SECONDS - 0.1)
    assert not second.take()
    nodes.pass_time(0.1)
    assert second.take()
    assert second.epoch == 2


@pytest.mark.parametrize("was_taken", [False, True])
def test_of_two_that_find_it_free_at_the_same_moment_one_takes_it(nodes, leases, monkeypatch, was_taken):
    first, second = leases
    if was_taken:
        RowLease(nodes.databases[0], nodes.monotonic[0]).take()
        nodes.pass_time(TERM_SECONDS)
    is_free = second._is_free

    def found_before_the_first_takes_it():
        found = is_free()
        assert first.take()
        return found

    monkeypatch.setattr(second, "_is_free", found_before_the_first_takes_it)
    assert not second.take()
    assert first.epoch == 1 + was_taken


def test_a_clock_of_the_database_that_is_set_back_keeps_it_from_nobody(nodes, leases):
    first, second = leases
    first.take()
    assert not second.take()
    nodes.clock.advance(-3600)
    nodes.pass_time(TERM_SECONDS - 0.1)
    assert not second.take()
    nodes.pass_time(0.1)
    assert second.take()


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_who_renews_it_keeps_it_though_the_clock_of_the_database_is_set(nodes, leases, seconds):
    first, second = leases
    first.take()
    second.take()
    nodes.clock.advance(seconds)
    nodes.pass_time(RENEWAL_SECONDS)
    for _ in range(10):
        assert (first.take(), second.take()) == (True, False)
        nodes.pass_time(RENEWAL_SECONDS)


@pytest.mark.parametrize("seconds", [-60, 60])
@pytest.mark.parametrize("knows", [False, True])
def test_while_its_holder_renews_it_nobody_takes_it_though_the_clock_of_the_database_was_set(
    nodes, leases, seconds, knows
):
    first, second = leases
    waiting = FakeClock(nodes.clock())
    # A node that writes nothing does not know that the server's clock was set; one that writes may know it first.
    nodes.databases[1].clock = waiting
    first.take()
    second.take()
    nodes.clock.advance(seconds)
    waiting.advance(seconds * knows)
    for _ in range(100):
        assert not (second.take() and first.held())
        first.take()
        nodes.pass_time(0.7)
        waiting.advance(0.7)
    assert (first.held(), first.epoch) == (True, 1)


def test_its_holder_relies_on_it_for_a_part_of_the_term(nodes, leases):
    first, _ = leases
    first.take()
    assert HELD_SECONDS < TERM_SECONDS
    nodes.pass_time(HELD_SECONDS - 0.1)
    assert first.held()
    nodes.pass_time(0.1)
    assert not first.held()


def test_what_nobody_else_has_taken_goes_on_in_the_same_epoch(nodes, leases):
    first, _ = leases
    first.take()
    nodes.pass_time(10 * TERM_SECONDS)
    assert not first.held()
    assert first.take()
    assert (first.held(), first.epoch) == (True, 1)


def test_who_lost_it_is_told_once_though_it_is_free_again(nodes, leases, caplog):
    first, second = leases
    # It takes what another one has released, and finds it released again.
    second.take()
    second.release()
    nodes.written()
    assert first.take()
    nodes.pass_time(TERM_SECONDS)
    second.take()
    second.release()
    nodes.written()
    assert not first.take()
    assert not first.held()
    assert "another server sends alerts now" in caplog.text
    assert first.take()
    assert first.epoch == 4


def test_a_release_lets_another_take_it_at_once(nodes, leases):
    first, second = leases
    first.take()
    first.release()
    assert not first.held()
    nodes.written()
    assert second.take()


def test_who_lost_it_releases_nobody_elses(nodes, leases):
    first, second = leases
    first.take()
    nodes.pass_time(TERM_SECONDS)
    second.take()
    first.release()
    nodes.written()
    nodes.pass_time(1)
    assert not first.take()


def test_a_process_that_started_anew_waits_for_the_term_of_the_one_before(nodes, leases):
    first, _ = leases
    first.take()
    again = RowLease(nodes.databases[0], nodes.monotonic[0])
    assert not again.take()
    nodes.pass_time(TERM_SECONDS)
    assert again.take()


def test_only_its_holder_can_confirm_it(nodes, leases):
    first, second = leases
    first.take()
    nodes.databases[0].write(first.confirm)
    with pytest.raises(LeaseLost):
        nodes.databases[1].write(second.confirm)
    nodes.pass_time(TERM_SECONDS)
    second.take()
    with pytest.raises(LeaseLost):
        nodes.databases[0].write(first.confirm)
    nodes.databases[1].write(second.confirm)


def test_it_is_not_held_any_longer_where_the_database_can_not_be_written(nodes, leases, monkeypatch):
    first, _ = leases
    first.take()

    def refuse(_work):
        raise Unavailable("database_unavailable", "The database can't be used now.")

    monkeypatch.setattr(nodes.databases[0], "write", refuse)
    for _ in range(int(HELD_SECONDS / RENEWAL_SECONDS)):
        assert first.held()
        nodes.pass_time(RENEWAL_SECONDS)
        with pytest.raises(Unavailable):
            first.take()
    assert not first.held()
    monkeypatch.undo()
    assert first.take()
    assert first.held()
