"""Whose turn it is: networks are served round robin, and what waits already waits once."""

from cardbeat.concurrency.turns import Turns


def names(turns: Turns) -> list[object]:
    taken = []
    while turns.networks:
        taken.append(turns.take()())
    return taken


def test_each_network_has_one_call_in_turn_however_many_it_has() -> None:
    turns = Turns()
    for call, network in [(lambda: "a1", "a"), (lambda: "a2", "a"), (lambda: "a3", "a"), (lambda: "b1", "b")]:
        turns.add(call, network)
    assert turns.take()() == "a1"
    turns.add(lambda: "c1", "c")
    assert names(turns) == ["b1", "a2", "c1", "a3"]


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
