"""When nobody could listen, and the credit that is due for it: what the model compares each check's clock with."""

from dataclasses import dataclass

LAG_SECONDS = 60.0
"""Within this time a server that has started, or goes on, begins to sweep, and a sweep that is due begins."""
STOP_SECONDS = 10.0
"""A server that is to stop takes no more pings, and has so long to finish what it has: only then it listens no more."""
SLOWEST_SECONDS = 900.0
"""For one commit on a slow disk."""
JITTER_SECONDS = 2.0
"""Times are stored in whole seconds, and the clocks may differ by rounding."""


@dataclass(slots=True)
class Trouble:
    """A time in which nobody could listen, or in which the clock was set; near ones are one."""

    begin: float
    end: float
    certain: float = 0.0
    """The seconds of silence that must be credited."""
    silent: float = 0.0
    silences: int = 0
    """How many there were."""
    jump: float = 0.0
    back: float = 0.0
    """By how much the clock was set back, all times together."""
    has_jump: bool = False
    has_start: bool = False
    is_retried: bool = False
    """Whether a server listened that could not write: it tries again an interval later."""
    may_be_silent: bool = False
    """Whether one server's writes were so slow that another one had to refuse its own."""
    has_slow_work: bool = False
    """Work that a crash may cut short, and then nothing tells that there was any."""
    has_sleep: bool = False
    """Whether the machine slept: that is credited as a jump of the clock, and short silences beside it are not."""


class Troubles:
    """All of a run. `near` is within how many seconds two are one."""

    def __init__(self, sweep_seconds: float, near: float) -> None:
        self._sweep_seconds = sweep_seconds
        self._near = near
        self._all: list[Trouble] = []

    def since(self, moment: float) -> list[Trouble]:
        return [trouble for trouble in self._all if trouble.end > moment - self._near]

    def add(self, trouble: Trouble) -> None:
        trouble.silences = int(trouble.silent > 0)
        if trouble.silent > 2 * self._sweep_seconds + JITTER_SECONDS:
            trouble.certain = trouble.silent
        while self._all and trouble.begin <= self._all[-1].end + self._near:
            self._join(trouble, self._all.pop())
        self._all.append(trouble)

    @staticmethod
    def _join(last: Trouble, trouble: Trouble) -> None:
        last.begin = min(last.begin, trouble.begin)
        last.end = max(last.end, trouble.end)
        last.certain += trouble.certain
        last.silent += trouble.silent
        last.silences += trouble.silences
        last.jump += trouble.jump
        last.back += trouble.back
        last.has_jump |= trouble.has_jump
        last.has_start |= trouble.has_start
        last.is_retried |= trouble.is_retried
        last.may_be_silent |= trouble.may_be_silent
        last.has_slow_work |= trouble.has_slow_work
        last.has_sleep |= trouble.has_sleep

    def bounds(self, sent_at: float, told_at: float, decided_at: float, until: float) -> tuple[float, float]:
        """The least and the most seconds by which a clock that started then may have been moved.

        What ended before `decided_at` must have moved it, what began before `until` may have.
        """
        low = high = moved = 0.0
        first = len(self._all)
        while first and self._all[first - 1].end + self._near >= sent_at:
            first -= 1
        for trouble in self._all[first:]:
            if trouble.begin > until:
                break
            least, most = self._credit_of(trouble)
            if trouble.end < sent_at:
                # A clock that started after it moves no further than to the first sweep.
                high += min(max(most + trouble.back, most - trouble.jump, 0.0), trouble.end + self._near - sent_at)
                moved += max(0.0, most)
                continue
            # Set back, the clock shows times again at which pings came before, or to which clocks were moved: which of
            # them are new, nobody knows.
            certain_from = trouble.begin - (trouble.back + moved + 2 * self._near if trouble.back else 0.0)
            is_whole = certain_from > told_at and trouble.end < decided_at
            # One that started in the midst of it may be moved by some of its jumps alone.
            low += least if is_whole else min(least, trouble.jump - JITTER_SECONDS, -trouble.back)
            high += most if is_whole else max(most + trouble.back, most - trouble.jump, 0.0)
            moved += max(0.0, most)
        return low - JITTER_SECONDS, high + JITTER_SECONDS

    def _credit_of(self, trouble: Trouble) -> tuple[float, float]:
        wide = trouble.has_jump and (trouble.has_start or trouble.may_be_silent or trouble.silent > 0)
        cut_short = trouble.has_slow_work and trouble.has_start
        if not (trouble.silent or trouble.may_be_silent or cut_short or wide):
            return trouble.jump - JITTER_SECONDS, trouble.jump + JITTER_SECONDS
        slack = 2 * self._sweep_seconds + self._near if wide else 0.0
        least = trouble.certain - slack - (STOP_SECONDS if trouble.certain and trouble.has_start else 0.0)
        if trouble.has_slow_work:
            # A commit may have been under way when each of them ended, and what it takes is work.
            least = max(min(least, 0.0), least - SLOWEST_SECONDS * trouble.silences)
        if trouble.has_sleep:
            least = min(least, max(0.0, trouble.certain - 2 * self._sweep_seconds))
        return trouble.jump + least - JITTER_SECONDS, trouble.jump + self._most_silence(trouble) + slack

    def _most_silence(self, trouble: Trouble) -> float:
        """It is credited from the last sweep before to the first one after, where that is more than two intervals, or
        where the machine slept.
        """
        intervals = 2 if trouble.is_retried or trouble.may_be_silent or trouble.has_slow_work else 1
        most = trouble.end - trouble.begin + intervals * self._sweep_seconds + LAG_SECONDS
        return most if trouble.has_sleep or most > 2 * self._sweep_seconds else 0.0
