"""Cards that wait to be drawn: in turns, and not too many."""

import threading

import pytest

from cardbeat.cards.routes import DrawingQueue
from cardbeat.errors import Unavailable
from tests.support import FakeClock


class Drawn:
    """A queue in which one card is being drawn until `go` is set. All others wait."""

    def __init__(self):
        self.clock = FakeClock()
        self.queue = DrawingQueue(self.clock)
        self.order = []
        self.go = threading.Event()
        begun = threading.Event()
        self.first = self.queue.put("first", "first", lambda: (begun.set(), self.go.wait(10)))
        assert begun.wait(10)

    def put(self, client, key="key", text=""):
        self.queue.require_room(key, client)
        name = f"{client} {key}{text}"
        return self.queue.put(key, client, lambda: (self.order.append(name), name)[1])

    def put_many(self, count, client="", key=""):
        """Put so many cards, of other clients and keys unless they are given."""
        return [self.put(client or f"{number}", key or f"key {number}") for number in range(count)]


@pytest.fixture
def drawn():
    drawn = Drawn()
    yield drawn
    drawn.go.set()
    drawn.queue.stop()


def test_a_card_is_drawn_and_its_error_is_that_of_its_drawing(drawn):
    card = drawn.put("a")
    broken = drawn.queue.put("key", "a", lambda: 1 / 0)
    drawn.go.set()
    assert card.wait() == "a key"
    with pytest.raises(ZeroDivisionError):
        broken.wait()


def test_clients_have_turns_and_in_these_their_keys(drawn):
    cards = [drawn.put("a", "x", number) for number in "123"]
    cards += [drawn.put("a", "y", number) for number in "12"]
    cards += [drawn.put("b", "x", number) for number in "12"]
    drawn.go.set()
    for card in cards:
        card.wait()
    assert drawn.order == ["a x1", "b x1", "a y1", "b x2", "a x2", "a y2", "a x3"]


@pytest.mark.parametrize(("most", "client", "key"), [(64, "a", ""), (64, "", "x"), (512, "", "")])
def test_a_client_a_key_and_all_have_so_many_waiting_and_no_more(drawn, most, client, key):
    cards = drawn.put_many(most, client, key)
    with pytest.raises(Unavailable) as refused:
        drawn.put(client or "other", key or "other")
    assert (refused.value.code, refused.value.headers["Retry-After"]) == ("busy", "1")
    if most < 512:
        cards.append(drawn.put("other", "other"))
    drawn.go.set()
    for card in cards:
        card.wait()
    assert drawn.put(client or "other", key or "other").wait()


def test_a_card_whose_turn_comes_too_late_is_refused(drawn):
    late = drawn.put("a")
    drawn.clock.advance(1)
    in_time = drawn.put("a")
    drawn.clock.advance(9.5)
    drawn.go.set()
    with pytest.raises(Unavailable, match="Too many of your requests wait"):
        late.wait()
    assert in_time.wait() == "a key"


def test_at_a_stop_all_that_wait_are_refused(drawn):
    cards = drawn.put_many(3)
    drawn.queue.stop()
    drawn.go.set()
    assert drawn.first.wait()
    for card in cards:
        with pytest.raises(Unavailable) as refused:
            card.wait()
        assert refused.value.code == "stopping"
    assert drawn.order == []
