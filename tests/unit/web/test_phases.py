"""Who gives way to whom among the connections, and how often that is told."""

import pytest

from cardbeat.config import HttpLimits
from cardbeat.web.loop import Phase
from cardbeat.web.phases import LOOKED_AT, TELL_SECONDS, Phases


class Stub:
    """A connection that holds as much as it is told to, until it gives way. With `is_at_work` it can't."""

    def __init__(self, phases: "Phases[Stub]", now: float = 0, address: str = "192.0.2.1") -> None:
        self.network = address
        self.is_open = True
        self.is_at_work = False
        self._phases = phases
        self._phase = phases.new
        phases.opened(self)
        phases.held.set(self, 100, now)
        self.enter(phases.new)

    def enter(self, phase: "Phase[Stub]") -> "Stub":
        self._phase.deadlines.pop(self, None)
        self._phase = phase
        phase.deadlines[self] = 0
        return self

    def do(self, step: object) -> None: ...

    def read(self) -> None: ...

    def serve(self) -> None: ...

    def resume(self) -> None: ...

    def write(self) -> None: ...

    def time_out(self) -> None: ...

    def become_idle(self) -> None: ...

    def close(self) -> None: ...

    def can_give_way(self) -> bool:
        return not self.is_at_work

    def give_way(self) -> None:
        self.is_open = False
        del self._phase.deadlines[self]
        self._phases.held.set(self, 0, 0)
        self._phases.closed(self)


def test_what_was_shed_is_told_at_once_and_then_once_a_minute_with_all_since() -> None:
    phases = Phases(HttpLimits(held_bytes=0), Stub, 100)
    told = []
    for now, count in ((0, 2), (1, 3), (TELL_SECONDS - 1, 1), (TELL_SECONDS, 1), (TELL_SECONDS + 1, 0)):
        for _ in range(count):
            Stub(phases, now)
        told.append(phases.relieve(now))
    assert told == [2, 0, 0, 5, 0]
    assert phases.shed == 7


@pytest.fixture
def phases() -> Phases[Stub]:
    return Phases(HttpLimits(), Stub, 8)


def test_idle_ones_give_way_first_then_those_that_wait_for_their_turn_and_then_for_a_worker(
    phases: Phases[Stub],
) -> None:
    order = [phases.idle, phases.new, phases.writing, phases.buffered, phases.working]
    stubs = [Stub(phases).enter(phase) for phase in reversed(order)]
    at_work = Stub(phases).enter(phases.working)
    at_work.is_at_work = True
    while stubs:
        assert phases.give_way()
        assert not stubs.pop().is_open
    assert not phases.give_way()
    assert at_work.is_open


def test_a_network_has_half_of_all_places_and_its_own_connections_give_way_past_that(phases: Phases[Stub]) -> None:
    greedy = [Stub(phases, address="192.0.2.9").enter(phases.working) for _ in range(4)]
    other = Stub(phases).enter(phases.idle)
    greedy[0].is_at_work = True
    assert phases.make_room("192.0.2.9")
    assert [stub.is_open for stub in (other, *greedy)] == [True, True, False, True, True]
    Stub(phases, address="192.0.2.9").enter(phases.working)
    for stub in list(phases.working.deadlines):
        stub.is_at_work = True
    assert not phases.make_room("192.0.2.9")
    assert phases.make_room("192.0.2.1")
    assert other.is_open


def test_when_all_places_are_taken_the_largest_network_gives_way(phases: Phases[Stub]) -> None:
    idle = [Stub(phases, address=f"192.0.2.{number}").enter(phases.idle) for number in range(4)]
    crowd = [Stub(phases, address="192.0.2.9").enter(phases.buffered) for _ in range(4)]
    assert phases.has_room
    assert phases.make_room("192.0.2.7")
    assert all(stub.is_open for stub in idle)
    assert [stub.is_open for stub in crowd] == [False, True, True, True]


def test_connections_of_a_proxy_count_for_the_client_whose_request_came_last(phases: Phases[Stub]) -> None:
    stubs = [Stub(phases, address=f"10.0.0.1 {port}").enter(phases.idle) for port in range(8)]
    for stub in stubs[4:]:
        phases.moved(stub, "192.0.2.9")
    assert phases.give_way()
    assert [stub.is_open for stub in stubs] == [True] * 4 + [False] + [True] * 3
    phases.moved(stubs[5], "10.0.0.1 5")
    phases.held.set(stubs[0], 250, 0)
    phases.held.set(stubs[5], 140, 0)
    phases.held._limit = 0
    assert next(phases.held.heaviest(10)) is stubs[0]
    phases.moved(stubs[5], "192.0.2.9")
    assert next(phases.held.heaviest(10)) is stubs[5]


def test_there_is_no_room_where_all_are_at_work(phases: Phases[Stub]) -> None:
    for number in range(8):
        assert phases.has_room
        Stub(phases, address=f"192.0.2.{number}").enter(phases.working).is_at_work = True
    assert not phases.has_room


def test_the_one_to_give_way_is_looked_for_among_a_bounded_number(phases: Phases[Stub]) -> None:
    asked = 0

    class Counted(Stub):
        def can_give_way(self) -> bool:
            nonlocal asked
            asked += 1
            return False

    for _ in range(2 * LOOKED_AT):
        Counted(phases).enter(phases.working)
    assert not phases.has_room
    assert asked == LOOKED_AT
