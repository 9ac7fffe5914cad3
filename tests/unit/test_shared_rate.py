"""Limits that two servers over one database keep together."""

import threading

import pytest

from cardbeat.config import Config
from cardbeat.errors import Unavailable
from cardbeat.keys.rate import RateLimit, StrictRateLimit
from cardbeat.keys.shared_rate import SharedRateLimit, SharedStrictRateLimit, Takes, limits_for
from tests.heart import at_once
from tests.postgresql import BOTH_ENGINES, POSTGRESQL
from tests.support import App, FakeClock, service_of, writer_held

pytestmark = BOTH_ENGINES

BOTH_LIMITS = pytest.mark.parametrize("limit", [SharedRateLimit, SharedStrictRateLimit])


@pytest.fixture
def nodes(open_again, clock):
    """What two servers take by; the monotonic clock of each stands still, so that a refusal is remembered."""
    return [Takes(open_again(), clock) for _ in range(2)]


def take(limit, name, per_minute):
    return limit.take_later(name, per_minute).wait()


def rows(takes):
    with takes.database.read() as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table}") for table in ("rates", "registrations")]
        return [count.fetchone()[0] for count in counts]


@BOTH_LIMITS
def test_what_one_server_has_taken_the_other_has_not_got(nodes, clock, limit):
    first, second = (limit(takes) for takes in nodes)
    assert [take(node, "a", 4) for node in (first, second, first, second)] == [0] * 4
    waits = [take(node, "a", 4) for node in (first, second)]
    assert waits == pytest.approx([15, 15] if limit is SharedRateLimit else [60, 60], abs=0.01)
    assert take(second, "b", 4) == 0
    clock.advance(60)
    again = [limit(takes) for takes in nodes]
    assert [take(node, "a", 4) for node in again * 2] == [0] * 4


@BOTH_LIMITS
def test_of_many_that_take_at_once_as_many_get_one_as_there_are(nodes, limit):
    limits = [limit(takes) for takes in nodes]
    for name in "abc":
        waits = at_once(*(lambda node=node, name=name: take(node, name, 10) for node in limits * 15))
        assert sum(wait == 0 for wait in waits) == 10
        assert all(wait == 0 or 0 < wait <= 60 for wait in waits)


@BOTH_LIMITS
def test_each_passes_what_its_kind_passes_in_memory(nodes, clock, limit):
    monotonic = FakeClock(0)
    shared = limit(nodes[0], monotonic)
    in_memory = (RateLimit if limit is SharedRateLimit else StrictRateLimit)(monotonic)
    for step in range(60):
        assert take(shared, "a", 7) == pytest.approx(in_memory.take("a", 7), abs=0.01), step
        if limit is SharedRateLimit:
            assert shared.used("a", 7) == in_memory.used("a", 7)
        for each in (clock, monotonic):
            each.advance(step % 9)


def test_a_burst_of_any_size_passes_as_a_whole(nodes):
    limit = SharedRateLimit(nodes[0])
    for per_minute in (1, 7, 59, 101):
        waits = [take(limit, f"of {per_minute}", per_minute) for _ in range(per_minute + 1)]
        assert [wait > 0 for wait in waits] == [False] * per_minute + [True]
    assert limit.used("of 101", 101) == 101
    assert limit.used("never", 101) == 0


@BOTH_LIMITS
def test_a_clock_that_was_set_back_keeps_nobody_waiting(nodes, clock, limit):
    assert [take(limit(nodes[0]), "a", 1) > 0 for _ in range(2)] == [False, True]
    clock.advance(-3600)
    assert [take(limit(nodes[0]), "a", 1) > 0 for _ in range(2)] == [False, True]


@BOTH_LIMITS
def test_who_is_refused_is_refused_without_the_database_until_there_is_one_left(nodes, clock, limit):
    monotonic = FakeClock(0)
    node = limit(nodes[0], monotonic)
    take(node, "a", 1)
    assert take(node, "a", 1) == 60
    with writer_held(nodes[0].database):
        monotonic.advance(20)
        assert take(node, "a", 1) == 40
    clock.advance(60)
    monotonic.advance(40)
    assert take(node, "a", 1) == 0


def test_refusals_are_remembered_of_so_many_names(nodes, monkeypatch):
    monkeypatch.setattr("cardbeat.keys.shared_rate.MAX_NAMES", 2)
    node = SharedRateLimit(nodes[0])
    for name in "abc" * 2:
        take(node, name, 1)
    assert [name for name, _ in node._refused._until] == ["b", "c"]


def test_what_is_taken_while_one_writes_is_written_together(nodes, monkeypatch):
    monkeypatch.setattr("cardbeat.keys.shared_rate.MOST_AT_ONCE", 4)
    limit, written = SharedRateLimit(nodes[0]), []
    write_later = nodes[0].database.write_later
    monkeypatch.setattr(nodes[0].database, "write_later", lambda work: (written.append(work), write_later(work))[1])
    with writer_held(nodes[0].database):
        written.clear()
        taken = [limit.take_later(name, 1) for name in "dcbaefg"]
    assert [one.wait() for one in taken] == [0] * 7
    assert [[take.name for take in work.args[0]] for work in written] == [["d"], ["a", "b", "c", "e"], ["f", "g"]]


@BOTH_LIMITS
def test_without_the_database_nothing_is_taken(nodes, limit):
    nodes[0].database.close()
    with pytest.raises(Unavailable):
        take(limit(nodes[0]), "a", 1)
    assert take(limit(nodes[1]), "a", 1) == 0


def test_rows_go_once_they_count_no_more(nodes, clock):
    for name in "ab":
        take(SharedRateLimit(nodes[0]), name, 1)
        take(SharedStrictRateLimit(nodes[0]), name, 1)
        clock.advance(40)
    nodes[1].forget_old()
    assert rows(nodes[0]) == [2, 1]
    clock.advance(100)
    nodes[1].forget_old()
    nodes[0].forget_old()
    assert rows(nodes[0]) == [0, 0]


def test_one_machine_counts_in_memory_and_several_together(nodes, clock, engine):
    together = isinstance(limits_for(nodes[0].database, clock).renders, SharedRateLimit)
    assert together == (engine == "postgresql")


@pytest.fixture
def services(postgresql, tmp_path, clock):
    """Two whole servers over one database."""
    (tmp_path / "tiers.toml").touch()
    url = postgresql.emptied(tmp_path)
    options = {"port": 0, "register_per_minute": 5, "database": url}
    opened = [service_of(Config(data=tmp_path / name, **options), clock) for name in ("first", "second")]
    yield [App(service, clock) for service in opened]
    for service in opened:
        service.close()


@POSTGRESQL
def test_two_servers_issue_no_more_keys_than_one(services):
    answers = [app("POST", "/register") for app in services * 3]
    assert [answer.status for answer in answers] == [201] * 5 + [429]
    assert answers[-1].headers["Retry-After"] == "60"
    assert services[0]("POST", "/register").status == 429
    assert services[0]("POST", "/register", client="192.0.2.7").status == 201


@POSTGRESQL
def test_two_servers_draw_no_more_cards_than_one(services):
    key = services[0].cards_key()
    issued = services[0].service.keys.all()[0].id
    # As if the one of them had drawn all but two.
    for _ in range(118):
        take(services[0].service.cards._drawing._renders, issued, 120)
    urls = [f"/og?title=t{number}&key={key}" for number in range(3)]
    answers = [app("GET", url) for app, url in zip([*services, services[0]], urls, strict=True)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert services[1]("GET", urls[1]).headers["X-Cache"] == "HIT"
    assert services[1].json("GET", "/key", key=key)["usage"]["renders"] == 120


@POSTGRESQL
def test_a_server_that_can_not_reach_the_database_refuses_instead_of_counting_alone(services, monkeypatch):
    key, reached = services[0].cards_key(), threading.Event()
    assert services[0]("GET", f"/og?title=a&key={key}").status == 200

    def unreachable(*_):
        reached.set()
        raise Unavailable("database_unavailable", "The database can't be used now; try again soon.")

    monkeypatch.setattr(services[0].service.database, "write_later", unreachable)
    refused = [services[0]("GET", f"/og?title=b&key={key}"), services[0]("POST", "/register")]
    assert [(answer.status, answer.headers["Retry-After"]) for answer in refused] == [(503, "5")] * 2
    assert reached.is_set()
    monkeypatch.undo()
    assert services[0]("GET", f"/og?title=b&key={key}").status == 200
