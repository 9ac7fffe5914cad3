"""Laws of the fair queue, for any arrivals."""

from collections import Counter, deque

from hypothesis import given
from hypothesis import strategies as st

from cardbeat.jobs import FairQueue

CLIENTS = st.sampled_from("abc")


@given(st.lists(st.tuples(CLIENTS, st.booleans()), max_size=60))
def test_items_of_a_client_keep_their_order_and_none_is_lost(steps):
    queue = FairQueue()
    put = {client: deque() for client in "abc"}
    for number, (client, is_put) in enumerate(steps):
        if is_put:
            queue.put(client, number)
            put[client].append(number)
        elif (taken := queue.take()) is not None:
            assert put[taken[0]].popleft() == taken[1]
        assert queue.count == sum(map(len, put.values()))


@given(st.lists(CLIENTS, min_size=1, max_size=40))
def test_no_client_is_taken_twice_while_another_waits_that_came_before(
    arrivals,
):
    queue = FairQueue()
    for number, client in enumerate(arrivals):
        queue.put(client, number)
    waiting = Counter(arrivals)
    last = {}
    for turn in range(len(arrivals)):
        client, _ = queue.take()
        waiting[client] -= 1
        previous = last.get(client)
        if previous is not None:
            others = [
                other
                for other in waiting
                if other != client and waiting[other]
            ]
            assert all(last.get(other, -1) > previous for other in others)
        last[client] = turn


def test_items_of_one_client_are_taken_in_turn_by_key():
    queue = FairQueue()
    for item in ("ax1", "ax2", "ay1", "bx1", "ay2"):
        queue.put(item[0], item, item[1])
    assert [queue.take()[1] for _ in range(5)] == [
        "ax1",
        "bx1",
        "ay1",
        "ax2",
        "ay2",
    ]


def test_a_client_with_two_at_work_waits_and_the_others_go_on():
    queue = FairQueue(running_each=2)
    for item in ("a1", "a2", "a3", "b1"):
        queue.put(item[0], item)
    assert [queue.take()[1] for _ in range(3)] == ["a1", "b1", "a2"]
    assert queue.take() is None
    queue.done("b")
    assert queue.take() is None
    queue.done("a")
    assert queue.take() == ("a", "a3")
