"""Many alerts of strangers at once: those behind them are read in the same round."""

from collections import Counter
from unittest.mock import MagicMock, Mock

import pytest

from cardbeat.heartbeat.delivery import dispatcher as module
from cardbeat.heartbeat.delivery.allowance import Allowance
from cardbeat.heartbeat.delivery.dispatcher import MOST_PAGES, Dispatcher
from cardbeat.heartbeat.outbox import pending
from cardbeat.heartbeat.outbox.alert import OVERDUE
from tests.mail import Mail
from tests.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES

PAGE = 4


@pytest.fixture
def mail(database, clock, monkeypatch):
    for place in (module, pending):
        monkeypatch.setattr(place, "PAGE", PAGE)
    return Mail(database, clock)


class Round:
    """A dispatcher whose couriers only take what is due."""

    def __init__(self, mail):
        self.mail = mail
        self.couriers = Mock(changed=MagicMock(), **{"results.return_value": [], "forget.return_value": []})
        self.couriers.allowance = Allowance(mail.elapsed)
        self.dispatcher = Dispatcher(mail.alerts, self.couriers, Counter(), mail.clock, mail.elapsed)

    def due(self):
        """The checks whose alerts one round finds due."""
        self.dispatcher.wake()
        self.dispatcher.go_round()
        ((queues,), _) = self.couriers.add.call_args
        return {queue.check_seq for queue in queues}


def overdue(mail, count):
    """The `seq` of so many checks, each with an alert."""
    checks = [mail.heart.create() for _ in range(count)]
    for check in checks:
        mail.record(check._replace(outage=1), OVERDUE)
    return {check.seq for check in checks}


def test_alerts_behind_pages_of_others_are_read_in_the_same_round(mail):
    one = Round(mail)
    assert one.due() == set()
    checks = overdue(mail, MOST_PAGES * PAGE)
    assert one.due() == checks


def test_after_a_start_pages_of_waiting_alerts_are_read_in_one_round(mail):
    checks = overdue(mail, MOST_PAGES * PAGE)
    assert Round(mail).due() == checks


def test_posts_do_not_wait_for_more_pages_than_a_few(mail):
    checks = overdue(mail, MOST_PAGES * PAGE + 1)
    one = Round(mail)
    first = one.due()
    assert len(first) == MOST_PAGES * PAGE
    assert one.due() == checks - first


def test_a_round_takes_the_lock_of_hundreds_of_couriers_as_often_for_many_alerts_as_for_one(mail):
    one, taken = Round(mail), []
    one.due()
    for count in (1, 1, 10):
        overdue(mail, count)
        one.couriers.changed.__enter__.reset_mock()
        one.due()
        taken.append(one.couriers.changed.__enter__.call_count)
    assert taken[1] == taken[2]
