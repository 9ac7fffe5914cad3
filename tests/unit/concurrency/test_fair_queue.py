"""The fair queue: turns by name, weighed by cost, each name's part bounded."""

import heapq
import random
from collections import Counter, deque
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


class Clients:
    """A queue of which some names always want items, whose costs are drawn by chance. One thread serves it, or more."""

    def __init__(self, seed=1, threads=1, estimate=0.0):
        self.queue, self.chance = FairQueue(10_000, estimate), random.Random(seed)
        self.threads, self.now, self.running, self.wants, self.got = threads, 0.0, [], {}, Counter()

    def want(self, *payers, cost=(0.5, 1.5)):
        self.wants[" ".join(payers)] = (payers, cost)
        for _ in range(self.threads + 1):
            self.put(*payers, cost=cost)

    def put(self, *payers, cost=(0.5, 1.5)):
        self.queue.put(" ".join(payers), cost, payers)

    def step(self):
        """The name whose item is done next."""
        while len(self.running) < self.threads and (taken := self.queue.take()) is not None:
            cost = self.chance.uniform(*taken[1])
            heapq.heappush(self.running, (self.now + cost, taken[0], cost))
        self.now, name, cost = heapq.heappop(self.running)
        self.queue.done(name, cost)
        self.got[name] += cost
        if name in self.wants:
            payers, cost = self.wants[name]
            self.put(*payers, cost=cost)
        return name

    def steps_until_done(self, *payers):
        return next(number for number in range(2000) if self.step() == " ".join(payers))


def pair(own, place):
    return (own, "shared") if place else ("shared", own)


@pytest.mark.parametrize("place", [0, 1], ids=["the first payer is shared", "the last payer is shared"])
@pytest.mark.parametrize("busy", [1, 2, 5, 10, 50])
def test_a_new_name_waits_for_few_turns_of_names_that_share_a_payer_with_it(place, busy):
    """It waited for about as much work as was done before, for each busy name."""
    for cost, estimate, threads in (((1, 1), 0, 1), ((0.5, 1.5), 0, 1), ((50, 150), 1, 2)):
        clients = Clients(1, threads, estimate)
        for number in range(busy):
            clients.want(*pair(f"busy{number}", place), cost=cost)
        for _ in range(300):
            clients.step()
        for number in range(3):
            clients.put(*pair(f"new{number}", place))
            assert clients.steps_until_done(*pair(f"new{number}", place)) <= threads + 2
            for _ in range(2 * busy):
                clients.step()


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("seed", range(6))
def test_names_that_come_and_go_leave_to_one_that_stays_what_names_that_stay_leave(place, seed):
    """Most are new each time, some come again; four wait at a time, in one network or with one key: at most as five."""
    chance = random.Random(seed)
    cost = chance.choice([(0.01, 10), (0.5, 1.5), (50, 150)])
    for steady, least in ((("own", "stranger"), 1 / 3), (pair("inside", place), 1 / (1 + 5))):
        clients = Clients(seed, chance.choice([1, 2]), chance.choice([0, 1]))
        clients.want(*steady)
        number, passing = 0, deque()
        for _ in range(1000):
            while len(passing) < 4:
                number += 1
                payers = pair(f"new{number if chance.random() < 0.9 else number - chance.randrange(20)}", place)
                passing.append(" ".join(payers))
                clients.put(*payers, cost=cost)
            name = clients.step()
            if name in passing:
                passing.remove(name)
        assert clients.got[" ".join(steady)] >= 0.9 * least * clients.now * clients.threads
        assert len(clients.queue._names) <= 100


def test_new_clients_without_end_leave_turns_to_one_that_stays():
    clients = Clients()
    clients.want("steady")
    for number in range(3):
        clients.put(f"new{number}")
    for number in range(1000):
        if clients.step() != "steady":
            clients.put(f"later{number}")
    assert clients.got["steady"] >= 0.1 * clients.now


def test_a_name_whose_key_and_network_others_always_use_is_served():
    clients = Clients()
    for number in range(5):
        clients.want("key", f"network{number}")
        clients.want(f"key{number}", "network")
    for _ in range(500):
        clients.step()
    clients.want("key", "network")
    assert all(clients.steps_until_done("key", "network") <= 50 for _ in range(20))


@pytest.mark.parametrize("place", [0, 1])
def test_many_names_of_one_payer_get_at_most_twice_as_much_as_a_stranger(place):
    clients = Clients()
    clients.want("own", "stranger")
    for number in range(30):
        clients.want(*pair(f"busy{number}", place), cost=(0.01, 10))
    for _ in range(1000):
        clients.step()
    assert clients.got["own stranger"] >= 0.9 / 3 * clients.now
