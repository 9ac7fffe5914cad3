"""What is remembered of stored cards."""

from cardbeat.cards.index import CardIndex, Entry


def entry(n: int) -> Entry:
    return Entry((n, 1, 1), b"hash", '"etag"', 0, b"lines")


def test_the_cards_asked_for_longest_ago_are_forgotten_first() -> None:
    index = CardIndex(max_entries=2)
    index.put("a", entry(1))
    index.put("b", entry(2))
    assert index.get("a") == entry(1)
    index.put("c", entry(3))
    assert [index.get(name) for name in "abc"] == [entry(1), None, entry(3)]


def test_a_card_may_be_put_again_and_discarded_twice() -> None:
    index = CardIndex(max_entries=1)
    index.put("a", entry(1))
    index.put("a", entry(2))
    assert index.get("a") == entry(2)
    for _ in range(2):
        index.discard("a")
    assert index.get("a") is None
