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


def test_what_has_no_owner_goes_first_of_all() -> None:
    assert order(files("a", [STALE_SECONDS + 1]), files(None, [1, 2])) == ["None2", "None1", f"a{STALE_SECONDS + 1}"]


def test_nothing_leaves_where_there_is_nothing() -> None:
    assert order() == []
