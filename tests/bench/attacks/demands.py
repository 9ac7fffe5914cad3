"""What must hold beside every attack, and what was found."""

import operator
from collections.abc import Callable
from typing import NamedTuple

from tests.bench.attacks.callers import Times
from tests.bench.running import Figures

WITHIN_SECONDS = {"stored card": 1, "GET /checks": 1, "alert": 5}
"""What the slowest of all may take."""
PING_SECONDS = 0.1
CARD_SECONDS = 0.5
"""What a ping (95 of 100) and a new card (the median) may take in any case. Alone they take some milliseconds, of which
the other processes of a small machine decide."""

Compare = Callable[[float, float], bool]


class Verdict(NamedTuple):
    demand: str
    found: float
    met: bool

    def __str__(self) -> str:
        return f"{'met    ' if self.met else 'NOT MET'} {self.told()}"

    def told(self) -> str:
        return f"{self.demand}: {self.found:,.2f}"


def at_most(demand: str, found: float, limit: float) -> Verdict:
    """`{}` stands for the limit. Not met by a figure that is no number, because nothing was measured."""
    return _judged(operator.le, demand, found, limit)


def at_least(demand: str, found: float, limit: float) -> Verdict:
    return _judged(operator.ge, demand, found, limit)


def _judged(compare: Compare, demand: str, found: float, limit: float) -> Verdict:
    return Verdict(demand.format(f"{limit:g}"), found, compare(found, limit))


def common(alone: dict[str, Times], beside: dict[str, Times], figures: Figures) -> list[Verdict]:
    """The demands on every attack, as far as they concern what was measured."""
    return [
        *(
            at_most(
                f"{name}, {part:.0%} of all, within {{}} s ({times} times alone, at least {least} s)",
                beside[name].percentile(part),
                max(times * alone[name].percentile(part), least),
            )
            for name, part, times, least in (("ping", 0.95, 3, PING_SECONDS), ("new card", 0.5, 8, CARD_SECONDS))
            if name in beside
        ),
        *(
            at_most(f"{name} within {{}} s", beside[name].percentile(1), limit)
            for name, limit in WITHIN_SECONDS.items()
        ),
        *(at_most(f"{name} never refused", times.refused, 0) for name, times in beside.items()),
        at_most("memory at most {} MiB more", figures["memory, most, MiB more"], 96),
        at_most("database at most {} MiB more after it", figures["database, after, MiB more"], 8),
        at_most("posts to one address at once at most {}", figures["posts to one address at once"], 4),
    ]
