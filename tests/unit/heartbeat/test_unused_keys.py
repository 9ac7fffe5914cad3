"""Keys that are not used are removed, none that is used, and none because of a wrong clock."""

import threading

import pytest

from cardbeat.errors import Refusal
from cardbeat.heartbeat.removal import STEP_KEYS, Removal
from cardbeat.heartbeat.unused_keys import (
    CARDS_DAYS,
    CHECKS_DAYS,
    DAY_SECONDS,
    LOOK_SECONDS,
    WINDOW_KEYS,
    Terms,
    UnusedKeys,
    removed_after,
)
from cardbeat.keys.store import Keys, hash_of
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import FakeClock

pytestmark = BOTH_ENGINES

YEARS = 10 * 365


class Server:
    """A heart whose server looks for unused keys every hour."""

    def __init__(self, database, clock):
        self.heart = Heart(database, clock)
        self.heart.create()
        self.clock = clock
        self.monotonic = FakeClock(0)
        self.start()

    def start(self):
        """As after a restart, with a look."""
        self.unused = UnusedKeys(self.heart.database, self.clock, self.monotonic)
        self.look()

    def look(self):
        self.unused.look(Removal(self.heart.database))

    def run(self, days):
        """Let days pass with the server awake."""
        for _ in range(days):
            for each in (self.clock, self.monotonic):
                each.advance(DAY_SECONDS)
            self.look()

    def issue(self, email=None):
        return self.heart.keys.issue(email).wait()

    def use(self, issued):
        """As a request of another process does, whose cache is empty."""
        Keys(self.heart.database, self.clock, self.heart.keys.tiers).find(hash_of(issued.value))
        self.heart.database.write(lambda _: None)

    def left(self, *issued):
        ids = {key.id for key in self.heart.keys.all()}
        assert self.heart.key.id in ids
        return [each.key.id in ids for each in issued]


@pytest.fixture
def server(database, clock):
    return Server(database, clock)


def test_a_checks_key_goes_after_90_days_and_a_cards_key_after_a_year(server):
    checks, cards = server.issue("a@b"), server.issue()
    server.run(CHECKS_DAYS)
    assert server.left(checks, cards) == [True, True]
    server.run(1)
    assert server.left(checks, cards) == [False, True]
    server.run(CARDS_DAYS - CHECKS_DAYS - 1)
    assert server.left(cards) == [True]
    server.run(1)
    assert server.left(cards) == [False]


def test_a_key_that_is_used_stays(server):
    used_once, used_monthly, cards = server.issue("a@b"), server.issue("a@b"), server.issue()
    server.run(80)
    for each in (used_once, used_monthly, cards):
        server.use(each)
    for _ in range(2):
        server.run(80)
        server.use(used_monthly)
    # A shared picture must not break: a cards key that drew one card stays.
    assert server.left(used_once, used_monthly, cards) == [False, True, True]


def test_a_key_that_has_a_check_stays(server):
    watched = server.issue("a@b")
    server.heart.key, own = watched.key, server.heart.key
    check = server.heart.create()
    server.heart.key = own
    server.run(200)
    assert server.left(watched) == [True]
    server.heart.checks.delete(watched.key.id, check.id).wait()
    server.run(1)
    assert server.left(watched) == [False]


@pytest.mark.parametrize("days", [-YEARS, YEARS])
def test_a_clock_that_is_wrong_by_years_at_a_start_removes_nothing_that_is_used(server, days):
    used, never = server.issue("a@b"), server.issue("a@b")
    server.run(1)
    server.use(used)
    server.clock.advance(days * DAY_SECONDS)
    server.start()
    server.use(used)
    new = server.issue("a@b")
    for each in (server.clock, server.monotonic):
        each.advance(LOOK_SECONDS)
    server.look()
    assert server.left(used, never, new) == [True] * 3
    server.clock.advance(-days * DAY_SECONDS)
    server.run(1)
    assert server.left(used, never, new) == [True] * 3
    for _ in range(3):
        server.run(60)
        server.use(used)
    assert server.left(used) == [True]


@pytest.mark.parametrize("to", [0, 1000 * DAY_SECONDS, -100 * DAY_SECONDS])
def test_a_clock_that_is_wrong_for_a_second_between_two_looks_removes_no_key_of_that_second(server, to):
    used = server.issue("a@b")
    for _ in range(8):
        server.run(50)
        server.use(used)
    now = server.clock.now
    server.clock.now = float(to) if to >= 0 else now + to
    new = [server.issue(), server.issue("a@b")]
    server.use(used)
    server.clock.now = now
    server.start()
    assert server.left(*new, used) == [True, True, True]
    server.run(CHECKS_DAYS - 2)
    assert server.left(*new, used) == [True, True, True]


def test_pruned_is_only_what_was_not_used_for_so_long_however_late_a_use_is_noted(server):
    issued = server.issue("a@b")
    server.run(50)
    server.use(issued)
    server.clock.advance(0.8 * DAY_SECONDS)
    server.use(issued)
    server.clock.advance(0.5 * DAY_SECONDS)
    removed = server.unused.remove(Terms.of_days(int(server.clock()), 1), Removal(server.heart.database))
    assert (removed, server.left(issued)) == (0, [True])


def test_after_a_clock_that_jumped_by_years_while_serving_the_terms_begin_again(server):
    never = server.issue("a@b")
    server.run(80)
    server.clock.advance(YEARS * DAY_SECONDS)
    server.run(CHECKS_DAYS - 1)
    assert server.left(never) == [True]
    server.run(2)
    assert server.left(never) == [False]


@pytest.mark.parametrize(("days", "is_left"), [(6, False), (60, True)])
def test_a_server_that_was_off_for_long_gives_keys_their_whole_term_again(server, days, is_left):
    never = server.issue("a@b")
    server.run(CHECKS_DAYS - 1)
    server.clock.advance(days * DAY_SECONDS)
    server.start()
    server.run(1)
    assert server.left(never) == [is_left]


def test_while_the_disk_is_low_what_is_used_stays_and_the_rest_goes(server, monkeypatch):
    used, never = server.issue(), server.issue()
    monkeypatch.setattr(server.heart.database.reserve, "is_low", lambda: True)
    server.use(used)
    server.run(CARDS_DAYS + 1)
    assert server.left(used, never) == [True, False]


def test_it_looks_once_an_hour(server):
    looks = []
    remove, server.unused.remove = server.unused.remove, lambda *given: looks.append(remove(*given)) or 0
    for _ in range(180):
        server.monotonic.advance(60)
        server.look()
    assert len(looks) == 3


def test_one_line_tells_how_many_were_removed(server, caplog):
    caplog.set_level("INFO")
    for _ in range(3):
        server.issue("a@b")
    server.run(CHECKS_DAYS + 5)
    (line,) = (line for line in caplog.messages if "API keys" in line)
    assert line.startswith("removed 3 API keys: ")


def add_keys(database, clock, count):
    """Add checks keys that were never used, as registered now."""

    def add(transaction):
        for number in range(count):
            transaction.execute(
                "INSERT INTO keys (id, scope, tier, email, hash, prefix, created_at)"
                " VALUES (?, 'checks', 'free', 'a@b', ?, 'sk_', ?)",
                (f"stranger_{number}", hash_of(f"{number}"), int(clock())),
            )

    database.write(add)


def test_many_go_in_small_writes_and_nothing_of_them_stays(server, monkeypatch):
    add_keys(server.heart.database, server.clock, 2 * WINDOW_KEYS + 30)
    database, changed = server.heart.database, []
    write = database.write

    def noting(work):
        def made(transaction):
            before = getattr(transaction, "total_changes", 0)
            result = work(transaction)
            changed.append(getattr(transaction, "total_changes", 0) - before)
            return result

        return write(made)

    monkeypatch.setattr(database, "write", noting)
    terms = Terms.of_days(int(server.clock()) + DAY_SECONDS, 0)
    assert server.unused.count(terms, Removal(database)) == 2 * WINDOW_KEYS + 30
    assert not changed
    assert server.unused.remove(terms, Removal(database)) == 2 * WINDOW_KEYS + 30
    assert max(changed) <= 2 * STEP_KEYS + 1
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM keys").fetchone()[0] == 1


def test_a_stop_comes_between_two_steps(server):
    add_keys(server.heart.database, server.clock, 3 * STEP_KEYS)
    removal = Removal(server.heart.database)
    terms = Terms.of_days(int(server.clock()) + DAY_SECONDS, 0)
    batches = server.unused._batches(terms, removal)
    assert next(batches).keys == STEP_KEYS
    removal.stop(0)
    assert list(batches) == []


def test_a_key_used_after_it_was_found_unused_stays(server, monkeypatch):
    issued = server.issue("a@b")
    server.clock.advance(2 * DAY_SECONDS)
    batches = server.unused._batches

    def used_in_between(*given):
        for batch in batches(*given):
            server.use(issued)
            yield batch

    monkeypatch.setattr(server.unused, "_batches", used_in_between)
    assert server.unused.remove(Terms.of_days(int(server.clock()), 0), Removal(server.heart.database)) == 0
    assert server.left(issued) == [True]


def test_a_removed_key_is_refused_where_it_was_cached(server):
    issued = server.issue("a@b")
    cached = Keys(server.heart.database, server.clock, server.heart.keys.tiers)
    digest = hash_of(issued.value)
    assert cached.find(digest)
    server.clock.advance(200 * DAY_SECONDS)
    assert server.unused.remove(Terms.of_days(int(server.clock()), 0), Removal(server.heart.database)) == 1
    cached.renew()
    with pytest.raises(Refusal):
        cached.authenticate(digest)


def test_two_processes_remove_each_key_once(server, open_again):
    add_keys(server.heart.database, server.clock, 5 * STEP_KEYS)
    terms = Terms.of_days(int(server.clock()) + DAY_SECONDS, 0)
    removed = []

    def remove(database):
        removed.append(UnusedKeys(database).remove(terms, Removal(database)))

    threads = [threading.Thread(target=remove, args=(each,)) for each in (server.heart.database, open_again())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(removed) == 5 * STEP_KEYS
    assert server.left() == []


@SQLITE
def test_the_list_tells_when_a_key_goes(server):
    checks, cards = server.issue("a@b").key, server.issue().key
    assert removed_after(checks, 0) == checks.created_at + CHECKS_DAYS * DAY_SECONDS
    assert removed_after(checks, 1) is None
    assert removed_after(cards, 0) == cards.created_at + CARDS_DAYS * DAY_SECONDS
