"""Who gives way when too much is held for all."""

from cardbeat.web.phases import HeldBytes


def test_what_is_held_is_summed_over_all() -> None:
    held: HeldBytes[str] = HeldBytes(100, str)
    held.set("a", 60, 0)
    held.set("b", 40, 0)
    assert not held.is_too_much
    held.set("a", 61, 1)
    assert (held.total, held.is_too_much) == (101, True)
    held.set("a", 0, 2)
    held.set("never", 0, 2)
    assert (held.total, held.is_too_much) == (40, False)


def test_those_give_way_that_held_most_for_longest_until_an_eighth_is_free() -> None:
    held: HeldBytes[str] = HeldBytes(1000, str)
    held.set("large and new", 600, 9.9)
    held.set("small and old", 100, 0)
    held.set("large and old", 350, 5)
    held.set("tiny and old", 10, 0)
    gone = []
    for holder in held.heaviest(10):
        gone.append(holder)
        held.set(holder, 0, 10)
    assert gone == ["large and old"]
    assert held.total == 710


def test_the_time_runs_on_while_any_bytes_are_held_and_ends_with_the_last() -> None:
    held: HeldBytes[str] = HeldBytes(0, str)
    held.set("a", 10, 0)
    held.set("a", 20, 9)
    held.set("b", 30, 5)
    held.set("c", 10, 0)
    held.set("c", 0, 9)
    held.set("c", 50, 9)
    assert list(held.heaviest(10)) == ["a", "b", "c"]


def test_one_that_can_not_give_way_is_passed_over() -> None:
    held: HeldBytes[str] = HeldBytes(10, str)
    held.set("stays", 100, 0)
    held.set("goes", 10, 0)
    assert list(held.heaviest(1)) == ["stays", "goes"]


def test_those_of_the_network_that_held_most_in_all_go_first() -> None:
    held: HeldBytes[str] = HeldBytes(100, lambda holder: holder[0])
    held.set("b", 40, 0)
    for number in range(7):
        held.set(f"a{number}", 10 + number, 0)
    gone = []
    for holder in held.heaviest(10):
        gone.append(holder)
        held.set(holder, 0, 10)
    assert gone == ["a6", "a5", "a4"]
