"""The fair queue: turns by name, weighed by cost, each name's part bounded."""

import heapq
import random
from collections import Counter
from math import inf

import pytest

from cardbeat.concurrency.fair_queue import OUTDATED, FairQueue


def filled(waiting, queue=None):
    queue = queue or FairQueue(1000)
    for name, count in waiting.items():
        for number in range(count):
            assert queue.put(name, f"{name}{number}")
    return queue


def served(queue, cost=lambda _: 1.0, running_each=inf):
    """The items in the order in which they run, one at a time, each at the cost of its name."""
    order = []
    while taken := queue.take(running_each):
        name, item = taken
        order.append(item)
        queue.done(name, cost(name))
    return order


def test_names_go_round_in_circles_and_each_in_its_own_order():
    assert served(filled({"a": 3, "b": 1, "c": 2})) == ["a0", "b0", "c0", "a1", "c1", "a2"]


def test_one_that_comes_late_waits_for_one_turn_of_the_others_and_not_for_all_they_have():
    queue = filled({"a": 500, "b": 500})
    for _ in range(100):
        queue.done(queue.take()[0])
    queue.put("late", "late0")
    assert "late0" in served(queue)[:3]


def test_a_name_gets_turns_by_what_its_own_cost():
    order = served(filled({"dear": 100, "cheap": 100}), {"dear": 10, "cheap": 1}.get)
    first = Counter(item.rstrip("0123456789") for item in order[:44])
    assert first == {"dear": 4, "cheap": 40}


def test_nobody_gains_by_going_away_while_others_wait():
    queue = filled({"steady": 50})
    queue.put("dear", "dear0")
    while (taken := queue.take()) and taken[0] != "dear":
        queue.done(taken[0])
    queue.done("dear", 20)
    queue.put("dear", "dear1")
    assert served(queue).index("dear1") >= 19


def test_once_nobody_waits_all_are_even_and_forgotten():
    queue = filled({"dear": 1})
    assert served(queue, lambda _: 1e9) == ["dear0"]
    assert queue._names == {}
    assert served(filled({"cheap": 2, "dear": 2}, queue)) == ["cheap0", "dear0", "cheap1", "dear1"]


def test_what_waits_for_a_name_is_bounded_and_no_other_name_is_refused_for_it():
    queue = FairQueue(2)
    assert [queue.put("a", number) for number in range(3)] == [True, True, False]
    assert queue.put("b", 0)
    assert queue.waiting == 3


def test_of_one_name_only_so_many_run_at_once_and_the_others_go_on():
    queue = filled({"a": 5, "b": 1}, FairQueue(10))
    assert [queue.take(2) for _ in range(4)] == [("a", "a0"), ("b", "b0"), ("a", "a1"), None]
    queue.done("a")
    assert queue.take(2) == ("a", "a2")
    assert queue.take(2) is None


def test_one_at_its_limit_pays_for_what_runs_once_it_is_finished():
    queue = filled({"dear": 3, "cheap": 8}, FairQueue(10))
    assert queue.take(1) == ("dear", "dear0")
    assert queue.take(1) == ("cheap", "cheap0")
    queue.done("dear", 5)
    queue.done("cheap", 1)
    assert served(queue, running_each=1)[:5] == ["cheap1", "cheap2", "cheap3", "cheap4", "dear1"]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_nothing_is_lost_and_nobody_who_waits_falls_behind(seed):
    """No name that always waits gets less than another by more than what three pieces of work each may cost."""
    draw = random.Random(seed)
    queue, spent, running = FairQueue(50), Counter(), []
    put = taken = 0
    for _ in range(3000):
        for name in "abc":
            while queue.put(name, put):
                put += 1
        if draw.random() < 0.3:
            put += queue.put(f"passing{draw.randrange(40)}", put)
        if (found := queue.take()) is not None:
            running.append(found)
            taken += 1
        while len(running) > draw.randrange(4):
            name, _item = running.pop(draw.randrange(len(running)))
            cost = draw.uniform(0.1, 4)
            spent[name] += cost
            queue.done(name, cost)
    assert put == taken + queue.waiting
    assert max(spent[name] for name in "abc") - min(spent[name] for name in "abc") <= 2 * 3 * 4
    assert len(queue._names) <= 3 + 40


def test_names_with_too_much_running_are_passed_over_and_keep_their_turn():
    queue = filled({"a": 3, "b": 1})
    assert [queue.take(2)[1] for _ in range(3)] == ["a0", "b0", "a1"]
    assert queue.take(2) is None
    queue.put("c", "c0")
    assert queue.take(2)[1] == "c0"
    queue.done("a", 0)
    assert queue.take(2)[1] == "a2"
    queue.put("a", "a3")
    assert queue.take(2) is None
    assert queue.take(3)[1] == "a3"


def test_a_name_is_full_once_as_many_wait_as_may_and_until_one_is_taken():
    queue = filled({"a": 2}, FairQueue(waiting_each=2))
    assert not queue.put("a", "a2")
    assert queue.put("b", "b0")
    queue.take()
    assert queue.put("a", "a2")


def shares_of_slots(queue, wants, slots, seconds, until):
    """The slot seconds that each name has got: it always wants so many, each of its items takes so many seconds."""
    got, ends, now = Counter(), [], 0.0
    for name, count in wants.items():
        for _ in range(count):
            queue.put(name, name)
    while now < until:
        while len(ends) < slots and (taken := queue.take()) is not None:
            heapq.heappush(ends, (now + seconds[taken[0]], taken[0]))
        now, name = heapq.heappop(ends)
        got[name] += seconds[name]
        queue.done(name, seconds[name])
        queue.put(name, name)
    return got


def test_a_name_whose_items_all_run_at_once_is_charged_for_them_while_they_run():
    names = [f"many{number}" for number in range(10)]
    seconds = dict.fromkeys(names, 10.0) | {"one": 3.0}
    got = shares_of_slots(FairQueue(1000, 2.0), dict.fromkeys(names, 100) | {"one": 1}, 20, seconds, 200)
    assert got["one"] >= 0.3 * 200
    assert max(got[name] for name in names) <= 1.5 * min(got[name] for name in names)


def test_what_was_charged_too_much_is_given_back_as_soon_as_the_cost_is_known():
    queue = filled({"a": 3, "b": 3}, FairQueue(1000, 10.0))
    assert [queue.take()[1] for _ in range(2)] == ["a0", "b0"]
    queue.done("a", 1)
    assert queue.take()[1] == "a1"
    queue.done("a", 1)
    queue.done("b", 20)
    assert served(queue, lambda _: 1.0) == ["a2", "b1", "b2"]


def test_an_estimate_leaves_nothing_behind_in_a_queue_that_is_never_empty():
    queue = filled({"steady": 1}, FairQueue(10, 2.0))
    for number in range(5000):
        queue.put(f"passing{number}", number)
        queue.put("steady", number)
        for _ in range(2):
            queue.done(queue.take()[0], 0.001)
    assert len(queue._turns) <= 5000


def test_a_name_that_may_not_run_now_keeps_its_turn():
    queue = filled({"a": 2, "b": 2})
    assert queue.take(may_run=lambda name: name != "a")[1] == "b0"
    assert queue.take(may_run=lambda name: False) is None
    queue.done("b", 1)
    assert served(queue) == ["a0", "b1", "a1"]


def test_entries_that_do_not_count_do_not_pile_up():
    queue = FairQueue(10_000, estimate=2.0)
    queue.put("a", 0)
    for number in range(5000):
        queue.put("a", number)
        queue.take()
        queue.done("a", 0)
    assert len(queue._turns) <= 2 + OUTDATED


def test_a_name_waits_until_it_is_the_turn_of_all_who_pay_for_it():
    queue = FairQueue(1000)
    for number in range(50):
        queue.put(f"key{number} a", f"key{number} a", (f"key{number}", "a"))
        queue.put(f"key {number}", f"key {number}", ("key", str(number)))
    queue.put("own b", "own b", ("own", "b"))
    assert "own b" in served(queue)[:4]
    assert (queue._names, queue._accounts) == ({}, {})


def test_keys_of_one_network_share_as_if_there_were_no_networks():
    queue = filled({})
    for number in range(100):
        for name in ("dear", "cheap"):
            queue.put(name, f"{name}{number}", (name, "one network"))
    order = served(queue, {"dear": 10, "cheap": 1}.get)
    assert Counter(item.rstrip("0123456789") for item in order[:44]) == {"dear": 4, "cheap": 40}


def test_pairs_of_which_one_payer_has_cost_much_keep_no_new_name_behind_their_own_turns():
    queue = FairQueue(1000)
    pairs = [(f"key{number}", "a") for number in range(9)] + [("key", f"network{number}") for number in range(9)]
    for number, payers in enumerate(pairs * 100):
        queue.put(" ".join(payers), number, payers)
    for _ in range(900):
        queue.done(queue.take()[0])
    queue.put("new b", "new", ("new", "b"))
    assert "new" in served(queue)[:4]
