"""Delivery where the lease is a row: one of several nodes sends, and who lost the lease forgets what it knew."""

import contextlib
import threading
import time
from collections import Counter

import pytest

from cardbeat.database import open_database
from cardbeat.database.postgresql import server as postgresql_server
from cardbeat.database.postgresql.row_lease import HELD_SECONDS, RENEWAL_SECONDS, TERM_SECONDS, RowLease
from cardbeat.errors import Unavailable
from tests.heart import HOOK, Heart
from tests.mail import FAILED, Mail
from tests.nodes import flush
from tests.postgresql import BOTH_ENGINES
from tests.support import FakeClock, wait_until

pytestmark = BOTH_ENGINES

HOUR = 3600


@pytest.fixture
def node(open_again, clock):
    """Makes a node, which delivers once it is started."""
    with contextlib.ExitStack() as stopped:

        def make():
            database = open_again()
            database.clock = clock
            mail = Mail(database, clock)
            lease = RowLease(database, mail.elapsed)
            database.lease = lambda: lease
            stopped.callback(mail.delivery.stop, 10)
            stopped.callback(mail.held.clear)
            return mail

        yield make


@pytest.fixture
def mail(node):
    return node()


@pytest.fixture
def other(open_again, clock):
    """The lease of another node, whose monotonic clock stands still."""
    database = open_again()
    database.clock = clock
    return RowLease(database, FakeClock())


def lose(mail, other):
    """Let another node take the lease, as of one that could not renew it in time, and have that seen."""
    was = mail.delivery._dispatcher
    mail.clock.advance(TERM_SECONDS)
    assert other.take()
    mail.elapsed.advance(RENEWAL_SECONDS)
    wait_until(lambda: mail.delivery.wake() or mail.delivery._dispatcher is not was)
    assert not mail.database.lease().held()


def started(mail):
    mail.delivery.start()
    wait_until(lambda: mail.database.lease().held())


def test_of_two_nodes_one_delivers_and_the_other_takes_over_when_it_is_stopped(node):
    first, second = node(), node()
    started(first)
    second.delivery.start()
    first.record(first.heart.create())
    first.settled(1)
    first.delivery.stop(10)
    second.record(first.heart.create())
    second.settled(1)
    assert (len(first.posted), len(second.posted)) == (1, 1)


def test_a_node_takes_over_from_one_that_says_no_more_that_it_goes_on(mail, other):
    other.take()
    mail.record(mail.heart.create())
    mail.delivery.start()
    mail.pass_time(TERM_SECONDS - 1)
    time.sleep(0.05)
    assert mail.posted == []
    mail.pass_time(1)
    mail.settled(1)


def test_who_gets_the_lease_back_knows_what_was_stored_meanwhile(mail, other):
    check, marker = mail.heart.create(), mail.heart.create()
    mail.outcomes = [FAILED]
    started(mail)
    mail.record(check)
    mail.settled(1)
    lose(mail, other)
    # In its memory the next attempt was due after 5 seconds.
    mail.alerts.store(
        [mail.heart.attempt(1, "pending", 500, "busy", int(mail.clock()) + HOUR, HOOK, 1)], int(mail.clock())
    )
    other.release()
    flush(mail.heart)
    mail.elapsed.advance(60)
    mail.record(marker)
    mail.settled(2)
    assert (mail.states(check), mail.states(marker)) == (["pending"], ["delivered"])
    mail.pass_time(HOUR)
    mail.settled(3)
    assert mail.alerts.newest(check.id)[0]["attempts"] == 3


def two_in_line(mail):
    """Two checks of one host: the post for one is on its way, and the other waits for it."""
    checks = [mail.heart.create() for _ in range(2)]
    mail.held.set()
    started(mail)
    for check in checks:
        mail.record(check)
    wait_until(lambda: len(mail.posted) == 1)
    return checks


def test_a_post_that_ends_after_the_lease_is_lost_changes_nothing(mail, other):
    checks = two_in_line(mail)
    posting = couriers()
    lose(mail, other)
    mail.held.clear()
    wait_until(lambda: not any(courier.is_alive() for courier in posting))
    flush(mail.heart)
    assert [mail.states(check) for check in checks] == [["pending"]] * 2
    assert len(mail.posted) == 1


def test_who_can_not_renew_the_lease_begins_no_more_posts_once_it_may_be_anothers(mail, monkeypatch):
    two_in_line(mail)
    posting = couriers()

    def refuse():
        raise Unavailable("database_unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(mail.database.lease(), "take", refuse)
        mail.elapsed.advance(HELD_SECONDS)
        mail.held.clear()
        wait_until(lambda: not any(courier.is_alive() for courier in posting))
        assert len(mail.posted) == 1
    mail.settled(2)


def test_posts_of_before_it_was_lost_take_nothing_more_when_the_lease_is_back(mail, other):
    checks = two_in_line(mail)
    lose(mail, other)
    other.release()
    wait_until(lambda: len(mail.posted) == 2)
    mail.held.clear()
    mail.settled(2)
    assert sorted(Counter(mail.ids).values()) == [1, 2]
    assert [mail.states(check) for check in checks] == [["delivered"]] * 2


def couriers():
    return [thread for thread in threading.enumerate() if thread.name == "alerts-courier"]


def test_a_stop_does_not_wait_for_posts_of_before_it_was_lost(mail, other):
    mail.held.set()
    started(mail)
    mail.record(mail.heart.create())
    wait_until(lambda: mail.posted)
    stopping = threading.Thread(target=mail.delivery.stop, args=(30,))
    stopping.start()
    wait_until(lambda: mail.delivery._dispatcher.couriers._stopping)
    lose(mail, other)
    stopping.join(10)
    assert not stopping.is_alive()
    # It has released nothing that is not its own.
    flush(mail.heart)
    assert not RowLease(mail.database).take()


def test_what_another_server_stores_under_numbers_that_were_read_already_is_sent(mail, monkeypatch):
    """A standby that lagged behind lacks the last alerts, and gives their numbers once more."""
    lost, new = mail.heart.create(), mail.heart.create()
    started(mail)
    mail.record(lost)
    mail.settled(1)
    monkeypatch.setattr(mail.database, "server", lambda: "the standby")
    mail.heart.checks.delete(mail.heart.key.id, lost.id).wait()
    mail.database.write(lambda transaction: insert_test(transaction, new, 1))
    mail.delivery.wake()
    mail.settled(2)
    assert mail.states(new) == ["delivered"]


def insert_test(transaction, check, seq):
    transaction.execute(
        "INSERT INTO alerts (seq, id, check_id, type, deadline_at, created_at, next_attempt_at)"
        " VALUES (?, 'msg_new', ?, 'check.test', 0, 0, 0)",
        (seq, check.id),
    )


def test_what_is_stored_after_a_backup_was_put_back_is_sent_at_once(postgresql, tmp_path, clock, monkeypatch):
    monkeypatch.setattr(postgresql_server, "UNREACHABLE_SECONDS", 0.05)
    postgresql.execute("CREATE DATABASE put_back")
    url = postgresql.url().replace("/postgres?", "/put_back?")
    with contextlib.closing(open_database(tmp_path, url)) as database:
        heart = Heart(database, clock)
        check = heart.create()
    postgresql.execute("ALTER DATABASE put_back RENAME TO backup")
    postgresql.execute("CREATE DATABASE put_back TEMPLATE backup")
    with contextlib.closing(open_database(tmp_path, url)) as database:
        mail = Mail(database, clock)
        started(mail)
        mail.record(check)
        mail.settled(1)
        postgresql.execute("DROP DATABASE put_back WITH (FORCE)")
        postgresql.execute("CREATE DATABASE put_back TEMPLATE backup")
        wait_until(lambda: is_written(mail, check))
        mail.settled(2)
        mail.delivery.stop(10)


def is_written(mail, check):
    with contextlib.suppress(Unavailable):
        mail.record(check)
        return True


def test_what_was_posted_before_another_server_has_the_database_is_recorded_and_not_sent_again(mail, monkeypatch):
    mail.held.set()
    started(mail)
    check = mail.heart.create()
    mail.record(check)
    wait_until(lambda: mail.posted)
    posting = mail.delivery._dispatcher.couriers

    def server():
        mail.held.clear()
        wait_until(lambda: posting.results(1) or not posting.posting())
        return "the standby"

    monkeypatch.setattr(mail.database, "server", server)
    mail.settled(1)
    marker = mail.heart.create()
    mail.record(marker)
    mail.settled(2)
    assert (mail.states(check), mail.states(marker)) == (["delivered"], ["delivered"])
    assert len(mail.posted) == 2
