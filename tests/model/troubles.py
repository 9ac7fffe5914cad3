"""When nobody could listen, and how far clocks may move for it: what the model compares with."""

from dataclasses import dataclass

LAG_SECONDS = 60.0
"""Within this time a server that has started, or goes on, begins to sweep, and so does a sweep that is due."""
STOP_SECONDS = 10.0
"""A server that is to stop takes no more pings, and has so long to finish: only then it listens no more."""
SLOWEST_SECONDS = 900.0
"""For one commit on a slow disk."""
JITTER_SECONDS = 2.0
"""Times are stored in whole seconds, and the clocks may differ by rounding."""


@dataclass(slots=True)
class Trouble:
    """A time in which nobody could listen, or in which the clock was set; near ones are one."""

    begin: float
    end: float
    silent: float = 0.0
    certain: float = 0.0
    """The seconds of silence that must be credited."""
    forward: float = 0.0
    back: float = 0.0
    """By how much the clock was set, all times together."""
    slow: float = 0.0
    """By how much sweeps may be late."""


class Troubles:
    """All of a run. `near` is within how many seconds two are one."""

    def __init__(self, sweep_seconds, near):
        self._sweep_seconds = sweep_seconds
        self._near = near
        self._all = []

    def since(self, moment):
        return [
            trouble
            for trouble in self._all
            if trouble.end > moment - self._near
        ]

    def add(self, trouble):
        if trouble.silent > 2 * self._sweep_seconds + JITTER_SECONDS:
            trouble.certain = trouble.silent - STOP_SECONDS
        if trouble.forward > 2 * self._sweep_seconds + JITTER_SECONDS:
            trouble.certain = trouble.forward
        while (
            self._all and trouble.begin <= self._all[-1].end + self._near
        ):
            before = self._all.pop()
            trouble.begin = min(trouble.begin, before.begin)
            trouble.end = max(trouble.end, before.end)
            for name in ("silent", "certain", "forward", "back", "slow"):
                setattr(
                    trouble,
                    name,
                    getattr(trouble, name) + getattr(before, name),
                )
        self._all.append(trouble)

    def bounds(self, sent_at, told_at, decided_at, until):
        """The least and the most seconds by which a clock that started then may have been moved.

        What ended before `decided_at` must have moved it, what began before `until` may have.
        """
        low = high = 0.0
        for trouble in self.since(sent_at):
            if trouble.begin > until:
                break
            most = self._most(trouble)
            if trouble.end < sent_at:
                # A clock that started after it moves no further than to the first sweep.
                most = min(
                    most,
                    trouble.end + self._near + trouble.slow - sent_at,
                )
            high += max(0.0, most)
            low -= trouble.back
            if (
                not trouble.back
                and trouble.begin > told_at
                and trouble.end < decided_at
            ):
                low += max(0.0, trouble.certain)
        return low - JITTER_SECONDS, high + JITTER_SECONDS

    def _most(self, trouble):
        """It counts from the last sweep before to the second one after: one may be left out."""
        seconds = (
            trouble.end
            - trouble.begin
            + 3 * self._sweep_seconds
            + LAG_SECONDS
        )
        return seconds + trouble.forward + trouble.slow
