"""Who gives way to whom among the connections, and how often that is told."""

from cardbeat.config import HttpLimits
from cardbeat.web.forwarded import peer_of
from cardbeat.web.phases import TELL_SECONDS, Phases


class Stub:
    """A connection that holds as much as it is told to, until it gives way."""

    peer = peer_of("192.0.2.1", ())

    def __init__(self, phases: "Phases[Stub]", now: float) -> None:
        self._phases = phases
        phases.opened(self)
        phases.held.set(self, 100, now)

    def do(self, step: object) -> None: ...

    def read(self) -> None: ...

    def watch(self) -> None: ...

    def write(self) -> None: ...

    def time_out(self) -> None: ...

    def become_idle(self) -> None: ...

    def close(self) -> None: ...

    def give_way(self) -> None:
        self._phases.held.set(self, 0, 0)
        self._phases.closed(self)


def test_what_was_shed_is_told_at_once_and_then_once_a_minute_with_all_since() -> None:
    phases = Phases(HttpLimits(held_bytes=0), Stub)
    told = []
    for now, count in ((0, 2), (1, 3), (TELL_SECONDS - 1, 1), (TELL_SECONDS, 1), (TELL_SECONDS + 1, 0)):
        for _ in range(count):
            Stub(phases, now)
        told.append(phases.relieve(now))
    assert told == [2, 0, 0, 5, 0]
    assert phases.shed == 7
