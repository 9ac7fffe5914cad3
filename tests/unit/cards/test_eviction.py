"""Which stored cards give way: fair among their owners."""

from cardbeat.cards.eviction import STALE_SECONDS, StoredFile, leaving

NOW = 100 * STALE_SECONDS


def files(owner: str | None, used_ago: list[int], size: int = 10) -> list[StoredFile]:
    """Files of an owner, named after it and when they were used."""
    return [StoredFile(NOW - ago, size, f"{owner}{ago}", owner) for ago in used_ago]


def order(*held: list[StoredFile]) -> list[str]:
    return [file.name for file in leaving([file for files in held for file in files], NOW)]


def test_the_least_recently_used_of_one_owner_goes_first() -> None:
    assert order(files("a", [1, 3, 2])) == ["a3", "a2", "a1"]


def test_whoever_holds_most_makes_room_until_all_hold_the_same() -> None:
    assert order(files("a", [5, 6, 7, 8]), files("b", [90, 91])) == ["a8", "a7", "a6", "b91", "a5", "b90"]


def test_bytes_count_and_not_files() -> None:
    assert order(files("a", [1], size=100), files("b", [2, 3, 4], size=30)) == ["a1", "b4", "b3", "b2"]


def test_what_nobody_has_asked_for_in_thirty_days_goes_before_all_else() -> None:
    long_ago = STALE_SECONDS + 1
    assert order(files("a", [long_ago, long_ago + 1, 1]), files("b", [2, 3, 4])) == [
        f"a{long_ago + 1}",
        f"a{long_ago}",
        "b4",
        "b3",
        "a1",
        "b2",
    ]


def asked_by(client: str, used_ago: list[int], owner: str = "a", *, of_several: bool = False) -> list[StoredFile]:
    """Files of an owner that were drawn for this client, and named after it."""
    return [
        StoredFile(NOW - ago, 10, f"{client}{ago}", owner, client=client, other="other" * of_several)
        for ago in used_ago
    ]


def test_of_one_owner_the_client_with_most_makes_room_until_all_clients_have_the_same() -> None:
    stranger, someone = asked_by("x", [1, 2, 3, 4]), asked_by("y", [90, 91])
    assert order(stranger, someone)[:2] == ["x4", "x3"]
    assert sorted(order(stranger, someone)[2:4]) == ["x2", "y91"]


def test_what_several_clients_have_asked_for_goes_last_and_is_shared_as_well() -> None:
    several = asked_by("y", [95, 96], of_several=True), asked_by("z", [7, 8, 9], of_several=True)
    assert order(asked_by("x", [1, 2]), *several)[:3] == ["x2", "x1", "z9"]


def test_what_was_asked_for_before_the_start_goes_after_what_one_client_asked_for() -> None:
    assert order(files("a", [50, 51]), asked_by("x", [1, 2])) == ["x2", "x1", "a51", "a50"]


def test_the_clients_of_one_owner_cost_other_owners_nothing() -> None:
    held = [asked_by(f"client {number} ", [number], "a") for number in range(1, 9)]
    assert order(*held, files("b", [99], size=20))[-2] == "b99"


def test_owners_that_one_network_alone_uses_count_as_one() -> None:
    strange = [asked_by("x", [number, number + 1], f"key {number}") for number in range(0, 20, 2)]
    honest = asked_by("y", [90, 91, 92, 93], "honest"), asked_by("z", [94, 95, 96, 97], "seen", of_several=True)
    assert {name[0] for name in order(*strange, *honest)[:16]} == {"x"}


def test_owners_that_the_same_networks_use_count_as_one() -> None:
    strange = [
        [*asked_by("x", [n], f"key {n}"), *asked_by("x", [n + 1], f"key {n}", of_several=True)] for n in (1, 3, 5)
    ]
    assert {name[0] for name in order(*strange, asked_by("y", [90, 91], "honest"))[:4]} == {"x"}


def test_the_owners_that_one_network_alone_uses_share_what_it_may_have() -> None:
    seen = asked_by("z", [7, 8], "seen", of_several=True)
    large, small = asked_by("x", [1, 2, 3, 4, 5], "large"), asked_by("x", [90], "small")
    assert order(large, small, seen)[:4] == ["x5", "x4", "x3", "x2"]


def test_a_crawler_that_fetches_cards_of_many_owners_costs_those_nothing_that_others_ask_for_too() -> None:
    crawled = [asked_by("crawler", [number], f"site {number}") for number in range(20, 40)]
    site = asked_by("crawler", [90, 91], "site"), asked_by("visitor", [92], "site")
    assert {"crawler90", "crawler91", "visitor92"}.isdisjoint(order(*crawled, *site)[:17])


def test_what_has_no_owner_goes_first_of_all() -> None:
    assert order(files("a", [STALE_SECONDS + 1]), files(None, [1, 2])) == ["None2", "None1", f"a{STALE_SECONDS + 1}"]


def test_nothing_leaves_where_there_is_nothing() -> None:
    assert order() == []
