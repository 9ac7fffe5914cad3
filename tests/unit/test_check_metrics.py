"""How the text of a key with many checks is written: in steps, for everybody who waits for it."""

import pytest

from cardbeat import check_metrics
from cardbeat.check_metrics import CheckMetricsRoutes
from cardbeat.errors import Refusal, Unavailable
from cardbeat.web.message import Request
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES


class Turns:
    """Takes jobs, and lets the test do them one by one."""

    def __init__(self):
        self.waiting = []

    def submit(self, name, work):
        self.waiting.append((name, work))

    def next(self):
        (name, work), *self.waiting = self.waiting
        work()
        return name


@pytest.fixture
def turns():
    return Turns()


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def ask(heart, turns, monkeypatch):
    """Asks for the key's checks, two of which are a step; gives what the answer will be."""
    monkeypatch.setattr(check_metrics, "STEP_CHECKS", 2)
    routes = CheckMetricsRoutes(heart.checks, heart.keys, turns)
    return lambda: routes.read(Request("GET", "/checks/metrics", "/checks/metrics", key=heart.key))


def names_in(answer):
    lines = answer.result().body.decode().splitlines()
    return [line.split('"')[1] for line in lines if line.startswith("cardbeat_check_up{")]


def test_each_step_waits_for_a_turn_of_the_key_and_what_is_deleted_meanwhile_is_left_out(heart, turns, ask):
    checks = [heart.create() for _ in range(5)]
    answer = ask()
    for check in checks[1:3]:
        heart.checks.delete(heart.key.id, check.id).wait()
    while turns.waiting:
        assert not answer.is_settled
        assert turns.next() == heart.key.id
    assert names_in(answer) == [checks[n].name for n in (0, 1, 3, 4)]


def test_who_asks_while_an_answer_is_written_gets_the_same_one(heart, turns, ask):
    first = heart.create()
    second = heart.create()
    answers = [ask(), ask()]
    assert len(turns.waiting) == 1
    turns.next()
    assert names_in(answers[0]) == [first.name, second.name]
    assert answers[0].result().body is answers[1].result().body
    third = heart.create()
    later = ask()
    turns.next()
    assert names_in(later)[-1] == third.name


def test_what_fails_in_a_later_step_is_told_and_the_next_one_begins_anew(heart, turns, ask, monkeypatch):
    for _ in range(2):
        heart.create()
    answer = ask()
    with monkeypatch.context() as patch:
        patch.setattr(heart.checks, "following", lambda *_: (_ for _ in ()).throw(Unavailable("busy", "Try again.", 1)))
        turns.next()
    with pytest.raises(Unavailable):
        answer.result()
    again = ask()
    turns.next()
    assert len(names_in(again)) == 2


def test_more_checks_than_one_answer_holds_are_refused(heart, ask, monkeypatch):
    monkeypatch.setattr(check_metrics, "MOST_CHECKS", 1)
    heart.create()
    heart.create()
    with pytest.raises(Refusal, match="more than 1 checks"):
        ask()
