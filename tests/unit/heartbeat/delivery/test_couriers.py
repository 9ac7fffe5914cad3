"""The threads that post: begun when a queue is due, counted by their limit, and what they bring back."""

import ipaddress
import threading
import time
from dataclasses import replace

import pytest

from cardbeat.errors import Unavailable
from cardbeat.heartbeat.delivery import couriers as couriers_module
from cardbeat.heartbeat.delivery.allowance import Allowance
from cardbeat.heartbeat.delivery.courier import Result
from cardbeat.heartbeat.delivery.couriers import TROUBLE_SECONDS, Couriers
from cardbeat.heartbeat.delivery.lanes import CheckQueue
from cardbeat.heartbeat.webhooks import post as post_module
from cardbeat.heartbeat.webhooks.permit import Postponed
from cardbeat.heartbeat.webhooks.post import Sender
from cardbeat.heartbeat.webhooks.resolver import Resolver
from tests.receiver import Receiver, hang
from tests.support import wait_until

LONG = 60
"""Seconds in which all threads start, on a machine that has much else to do."""


class HeldCourier:
    """Makes attempts that compute until they may wait, by default at once, and last until they are let go."""

    def __init__(self):
        self.begun = []
        self.may_wait = threading.Event()
        self.may_wait.set()
        self.let_go = threading.Semaphore(0)

    def attempt(self, queue, permit):
        self.begun.append(queue.check_seq)
        assert self.may_wait.wait(timeout=10)
        permit.leave_turn()
        assert self.let_go.acquire(timeout=10)
        return Result(queue)


@pytest.fixture
def courier():
    return HeldCourier()


@pytest.fixture
def changed():
    return threading.Condition()


@pytest.fixture
def couriers(courier, changed):
    couriers = Couriers(
        courier, changed, limit=2, may_post=lambda: True, allowance=Allowance(time.monotonic), starting_seconds=LONG
    )
    yield couriers
    couriers.stop()
    courier.let_go.release(10)
    wait_until(lambda: not couriers.posting())


def queue(check_seq):
    return CheckQueue(check_seq, "key", f"host-{check_seq}.example", check_seq)


def brought_back(couriers, count):
    wait_until(lambda: len(couriers.results(10)) == count)
    return [result.queue.check_seq for result in couriers.results(10)]


def test_each_courier_goes_on_to_the_next_queue_and_no_more_run_than_the_limit(couriers, courier):
    couriers.add(map(queue, (1, 2, 3)))
    couriers.send_out()
    wait_until(lambda: len(courier.begun) == 2)
    courier.let_go.release()
    wait_until(lambda: len(courier.begun) == 3)
    assert couriers.posting()
    courier.let_go.release(2)
    assert sorted(brought_back(couriers, 3)) == [1, 2, 3]
    assert not couriers.posting()


def test_no_post_begins_while_it_may_not_and_what_is_due_goes_out_later(courier, changed):
    may = []
    couriers = Couriers(
        courier,
        changed,
        limit=1,
        may_post=lambda: bool(may),
        allowance=Allowance(time.monotonic),
        starting_seconds=LONG,
    )
    couriers.add(map(queue, (1, 2, 3)))
    couriers.send_out()
    assert not couriers.posting()
    may.append(True)
    couriers.send_out()
    wait_until(lambda: courier.begun == [1])
    may.clear()
    courier.let_go.release()
    assert brought_back(couriers, 1) == [1]
    assert not couriers.posting()
    may.append(True)
    couriers.send_out()
    wait_until(lambda: courier.begun == [1, 2])
    courier.let_go.release(2)
    assert brought_back(couriers, 3) == [1, 2, 3]


def test_one_courier_computes_at_a_time_and_the_next_begins_when_it_waits(courier, changed):
    couriers = Couriers(
        courier, changed, limit=3, may_post=lambda: True, allowance=Allowance(time.monotonic), starting_seconds=0.05
    )
    courier.may_wait.clear()
    couriers.add(map(queue, (1, 2, 3, 4)))
    couriers.send_out()
    couriers.send_out()
    assert courier.begun == [1]
    assert couriers.has_news()
    courier.may_wait.set()
    wait_until(lambda: couriers.send_out() or len(courier.begun) == 3)
    # Those that end their posts at the same time go on one after another, or leave it to the one that waits.
    courier.may_wait.clear()
    courier.let_go.release(3)
    brought_back(couriers, 3)
    wait_until(lambda: len(courier.begun) == 4)
    assert couriers._lanes.running == 1
    courier.may_wait.set()
    courier.let_go.release()
    assert sorted(brought_back(couriers, 4)) == [1, 2, 3, 4]


def test_a_turn_that_was_lost_for_want_of_memory_is_not_waited_for_long(courier, couriers, monkeypatch):
    def fail():
        failing.undo()
        raise MemoryError

    monkeypatch.setattr(couriers_module, "STUCK_SECONDS", 0.2)
    monkeypatch.setattr(couriers, "_starting_seconds", 0.05)
    couriers.add(map(queue, (1, 2)))
    with monkeypatch.context() as failing:
        failing.setattr(couriers._lanes, "take", fail)
        with pytest.raises(MemoryError):
            couriers.send_out()
    wait_until(lambda: couriers.send_out() or len(courier.begun) == 2)
    courier.let_go.release(2)
    brought_back(couriers, 2)


def test_a_courier_without_memory_for_its_permit_brings_its_queue_back(courier, couriers, monkeypatch):
    def fail(*_):
        failing.undo()
        raise MemoryError

    with monkeypatch.context() as failing:
        failing.setattr(couriers_module, "_Permit", fail)
        couriers.add(map(queue, (1, 2)))
        couriers.send_out()
        wait_until(lambda: couriers.send_out() or courier.begun == [2])
    courier.let_go.release()
    brought_back(couriers, 2)
    results = {result.queue.check_seq: result.wait_seconds for result in couriers.results(10)}
    assert results == {1: TROUBLE_SECONDS, 2: None}


@pytest.mark.parametrize("error", [OSError("broken"), Postponed()])
def test_a_courier_that_fails_before_it_waits_leaves_its_turn(courier, couriers, monkeypatch, error):
    held = courier.attempt

    def attempt(queue, permit):
        if queue.check_seq == 1 and not courier.begun:
            courier.begun.append(1)
            raise error
        return held(queue, permit)

    courier.attempt = attempt
    couriers.add(map(queue, (1, 2)))
    couriers.send_out()
    wait_until(lambda: couriers.send_out() or 2 in courier.begun)
    courier.let_go.release(2)


def test_a_result_is_told_and_stays_until_it_is_recorded(couriers, courier, changed):
    couriers.add([queue(1)])
    couriers.send_out()
    with changed:
        courier.let_go.release()
        assert changed.wait_for(couriers.has_news, timeout=10)
    assert [result.queue.check_seq for result in couriers.results(10)] == [1]
    assert couriers.results(0) == []
    couriers.forget(1)
    assert not couriers.has_news()


def test_a_result_that_can_not_be_recorded_yet_is_no_news_until_it_is_tried_again(couriers, courier):
    couriers.add(map(queue, (1, 2, 3)))
    couriers.send_out()
    courier.let_go.release(3)
    brought_back(couriers, 3)
    couriers.stop()
    wait_until(lambda: not couriers.posting())
    first, second, third = couriers.results(3)
    assert couriers.forget(2, {first.queue.alert}) == [second]
    assert couriers.results(3) == [third]
    couriers.forget(1)
    assert not couriers.has_news()
    assert not couriers.finished()
    couriers.retry_left()
    assert couriers.results(3) == [first]
    couriers.forget(1)
    assert couriers.finished()


def test_after_a_stop_no_post_begins_and_the_end_waits_for_what_runs_and_its_record(couriers, courier):
    couriers.add(map(queue, (1, 2, 3)))
    couriers.send_out()
    wait_until(lambda: len(courier.begun) == 2)
    couriers.stop()
    assert not couriers.finished()
    courier.let_go.release(2)
    brought_back(couriers, 2)
    assert not couriers.finished()
    couriers.forget(2)
    assert couriers.finished()
    assert len(courier.begun) == 2


@pytest.mark.parametrize(
    ("error", "logged"),
    [(ZeroDivisionError("a defect"), True), (Unavailable("database_unavailable", "It can't be read."), False)],
)
def test_an_attempt_that_raises_is_tried_again_later_and_a_defect_logged(couriers, courier, caplog, error, logged):
    def fail(_queue, _permit):
        raise error

    courier.attempt = fail
    couriers.add([queue(1)])
    couriers.send_out()
    brought_back(couriers, 1)
    (result,) = couriers.results(10)
    assert (result.attempt, result.wait_seconds) == (None, TROUBLE_SECONDS)
    assert bool(caplog.records) == logged


@pytest.fixture
def no_thread(monkeypatch):
    """While it is set no thread can be started."""
    refusing, start = threading.Event(), threading.Thread.start

    def start_or_refuse(thread):
        if refusing.is_set():
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_refuse)
    refusing.set()
    return refusing


def test_where_no_thread_can_start_the_queue_is_tried_again_later(couriers, no_thread, caplog):
    couriers.add(map(queue, (1, 2)))
    couriers.send_out()
    assert [result.wait_seconds for result in couriers.results(10)] == [TROUBLE_SECONDS]
    assert "no more threads" in caplog.text


def test_that_threads_are_lacking_is_logged_once_and_so_is_their_return(couriers, courier, no_thread, caplog):
    couriers.add(map(queue, (1, 2, 3)))
    for _ in range(2):
        couriers.send_out()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    no_thread.clear()
    couriers.send_out()
    assert [record.getMessage() for record in caplog.records][1:] == ["there are threads for alerts again"]


def test_a_post_that_found_no_room_at_its_address_waits_for_that_and_brings_no_result(couriers, courier):
    permits = []

    def attempt(queue, permit):
        permits.append((queue.check_seq, permit.enter("one"), permit.address))
        permit.leave_turn()
        if permits[-1][1]:
            assert courier.let_go.acquire(timeout=10)
            return Result(queue)
        raise Postponed

    courier.attempt = attempt
    couriers.add(map(queue, (1, 2)))
    couriers.send_out()
    wait_until(lambda: len(permits) == 2)
    assert sorted(entered for _, entered, _ in permits) == [False, True]
    wait_until(couriers.has_news)
    assert couriers.results(10) == []
    couriers.send_out()
    assert not couriers.has_news()
    assert len(permits) == 2
    courier.let_go.release(2)
    assert sorted(brought_back(couriers, 2)) == [1, 2]
    assert permits[2] == (permits[1][0] if permits[0][1] else permits[0][0], True, "one")


def test_a_post_that_may_not_be_long_is_made_anew_as_one_that_may(changed):
    attempts = []

    class Courier:
        def attempt(self, queue, permit):
            attempts.append((queue.check_seq, permit.is_brief, permit.seconds, permit.key))
            if permit.is_brief:
                raise Postponed
            permit.leave_turn()
            wait_until(lambda: len(attempts) > 1)
            return Result(queue)

    couriers = Couriers(
        Courier(), changed, limit=3, may_post=lambda: True, allowance=Allowance(time.monotonic), starting_seconds=LONG
    )
    couriers.add(map(queue, (1, 2)))
    couriers.send_out()
    assert sorted(brought_back(couriers, 2)) == [1, 2]
    assert attempts == [(1, False, 10, "key"), (2, True, 2, "key"), (2, False, 10, "key")]


@pytest.mark.parametrize("granted", [True, False])
def test_a_post_knows_whether_the_operator_chose_the_tier_of_its_key(couriers, courier, granted):
    permits = []

    def attempt(queue, permit):
        permits.append(permit.is_granted)
        return Result(queue)

    courier.attempt = attempt
    couriers.add([replace(queue(1), is_granted=granted)])
    couriers.send_out()
    assert brought_back(couriers, 1) == [1]
    assert permits == [granted]


FULL, SLOW = "127.0.0.1", "127.0.0.2"


@pytest.mark.parametrize("addresses", [(FULL, SLOW), (SLOW, FULL)])
@pytest.mark.parametrize("connects", [True, False])
def test_a_slow_address_beside_one_that_may_get_no_more_posts_gets_a_long_post(
    changed, monkeypatch, addresses, connects
):
    """While another post is long, a receiver gets a brief one. If that takes too long, a long one follows at once."""
    monkeypatch.setattr(couriers_module, "BRIEF_SECONDS", 0.2)
    allowance, long_post, briefs = Allowance(time.monotonic), threading.Event(), []
    monkeypatch.setattr(allowance, "address_seconds", lambda _queue, address: 3600 if address == FULL else 0)
    resolver = Resolver(lambda _host: [ipaddress.ip_address(address) for address in addresses])
    sender = Sender(allow_private=True, resolver=resolver)

    class Courier:
        def attempt(self, queue, permit):
            permit.leave_turn()
            if queue.check_seq == 1:
                assert long_post.wait(10)
                return Result(queue)
            briefs.append(permit.is_brief)
            if permit.is_brief:
                sender.post(f"http://two.example:{receiver.port}/", {}, b"{}", permit)
            return Result(queue)

    def never(*_):
        raise TimeoutError

    if not connects:
        monkeypatch.setattr(post_module, "_connected", never)
    couriers = Couriers(Courier(), changed, limit=3, may_post=lambda: True, allowance=allowance, starting_seconds=LONG)
    with Receiver(hang, host=SLOW) as receiver:
        couriers.add(map(queue, (1, 2)))
        couriers.send_out()
        wait_until(couriers.has_news)
        long_post.set()
        brought_back(couriers, 2)
    assert briefs == [True, False]
    assert not any(result.is_held for result in couriers.results(10))


def test_a_try_before_its_time_that_finds_no_room_at_its_address_takes_no_turn_to_ask(courier, changed):
    """Those turns are of the key's other alerts, which have no other time."""
    allowance, asked = Allowance(time.monotonic), []
    allowance.address_seconds = lambda *_: 3600.0
    allowance.ask_seconds = lambda *_: asked.append(1) or 15.0
    couriers = Couriers(courier, changed, limit=2, may_post=lambda: True, allowance=allowance, starting_seconds=LONG)

    def attempt(queue, permit):
        assert not permit.enter("one")
        raise Postponed

    courier.attempt = attempt
    extra, other = queue(1), queue(2)
    extra.is_extra = True
    couriers.add([extra, other])
    couriers.send_out()
    wait_until(lambda: couriers.send_out() or len(couriers.results(10)) == 2)
    assert {result.queue.check_seq: result.wait_seconds for result in couriers.results(10)} == {1: None, 2: 15.0}
    assert asked == [1]


def test_with_a_thousand_that_wait_for_one_address_the_couriers_rest(couriers, courier):
    attempts = []

    def attempt(queue, permit):
        attempts.append(queue.check_seq)
        if not permit.enter("one"):
            raise Postponed
        permit.leave_turn()
        assert courier.let_go.acquire(timeout=10)
        return Result(queue)

    courier.attempt = attempt
    couriers.add(map(queue, range(1000)))
    couriers.send_out()
    wait_until(lambda: len(attempts) == 1000)
    wait_until(lambda: couriers._lanes.running == 1)
    couriers.send_out()
    assert len(attempts) == 1000
    couriers.stop()


def test_what_is_new_has_its_turn_though_hundreds_of_threads_are_to_be_started(courier, changed):
    couriers = Couriers(
        courier, changed, limit=512, may_post=lambda: True, allowance=Allowance(time.monotonic), starting_seconds=0
    )
    couriers.add(queue(number) for number in range(300))
    couriers.send_out()
    assert couriers.has_news()
    couriers.add([CheckQueue(1000, "another key", "new.example", 1)])
    # One thread each: the keys take turns.
    couriers.send_out()
    couriers.send_out()
    couriers.stop()
    wait_until(lambda: len(courier.begun) == 3)
    assert 1000 in courier.begun
    courier.let_go.release(3)
    wait_until(lambda: not couriers.posting())


def test_once_all_threads_are_started_there_is_no_more_news(courier, changed):
    couriers = Couriers(
        courier, changed, limit=512, may_post=lambda: True, allowance=Allowance(time.monotonic), starting_seconds=LONG
    )
    couriers.add(map(queue, range(100)))
    couriers.send_out()
    assert not couriers.has_news()
    wait_until(lambda: len(courier.begun) == 100)
    couriers.stop()
    courier.let_go.release(100)
    wait_until(lambda: not couriers.posting())
