"""Whose turn it is: networks are served round robin, new ones first, and what waits already waits once."""

from functools import partial

from cardbeat.concurrency.turns import NEW_IN_A_ROW, Turns


def names(turns: Turns) -> list[object]:
    taken = []
    while turns.waiting:
        taken.append(turns.take()())
    return taken


def test_each_network_has_one_call_in_turn_however_many_it_has() -> None:
    turns = Turns()
    for call, network in [(lambda: "a1", "a"), (lambda: "a2", "a"), (lambda: "a3", "a"), (lambda: "b1", "b")]:
        turns.add(call, network)
    assert turns.take()() == "a1"
    turns.add(lambda: "c1", "c")
    assert names(turns) == ["b1", "c1", "a2", "a3"]


def test_a_network_that_comes_back_is_last() -> None:
    turns = Turns()
    turns.add(lambda: "a1", "a")
    assert turns.take()() == "a1"
    turns.add(lambda: "b1", "b")
    turns.add(lambda: "a2", "a")
    assert names(turns) == ["b1", "a2"]


def test_a_call_that_waits_is_not_added_again_and_keeps_its_place() -> None:
    class Client:
        def do(self) -> object:
            return self

    first, second = Client(), Client()
    turns = Turns()
    for client in (first, second, first):
        turns.add(client.do, "a")
    assert names(turns) == [first, second]


def held(turns: Turns, *networks: str) -> None:
    """Networks that had a turn and keep items."""
    for network in networks:
        for number in range(3):
            turns.add(partial(str, f"{network}{number}"), network)
    for _ in networks:
        turns.take()


def test_a_network_that_has_just_come_goes_before_those_that_had_a_turn() -> None:
    turns = Turns()
    held(turns, "a", "b", "c")
    turns.add(lambda: "new", "new")
    assert names(turns) == ["new", "a1", "b1", "c1", "a2", "b2", "c2"]


def test_a_network_is_not_new_again_before_its_next_turn_would_come() -> None:
    turns = Turns()
    held(turns, "a", "b")
    turns.add(lambda: "new", "new")
    assert turns.take()() == "new"
    turns.add(lambda: "again", "new")
    assert [turns.take()() for _ in range(3)] == ["a1", "b1", "again"]
    assert turns.take()() == "a2"
    assert turns.take()() == "b2"


def test_one_that_had_nothing_when_its_turn_came_is_new_again() -> None:
    turns = Turns()
    held(turns, "a", "b")
    turns.add(lambda: "new", "new")
    assert [turns.take()() for _ in range(4)] == ["new", "a1", "b1", "a2"]
    turns.add(lambda: "again", "new")
    assert names(turns) == ["again", "b2"]


def test_however_many_networks_come_those_that_wait_have_turns_too() -> None:
    turns = Turns()
    held(turns, "a")
    for number in range(3 * NEW_IN_A_ROW):
        turns.add(partial(str, number), f"new {number}")
    taken = names(turns)
    assert taken.index("a1") == NEW_IN_A_ROW - 1
    assert taken.index("a2") == 2 * NEW_IN_A_ROW


def test_nothing_is_kept_of_networks_when_no_item_waits() -> None:
    turns = Turns()
    held(turns, "a", "b")
    turns.add("last", "c")
    turns.remove("last", "c")
    names(turns)
    assert not turns.waiting
    assert not turns._new
    assert not turns._others
