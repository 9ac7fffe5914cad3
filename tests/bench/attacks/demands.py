"""What must hold beside every attack, and what was found."""

import operator
from collections.abc import Callable
from typing import NamedTuple

from tests.bench.running import Figures

Compare = Callable[[float, float], bool]


class Verdict(NamedTuple):
    demand: str
    found: float
    met: bool

    def __str__(self) -> str:
        return f"{'met    ' if self.met else 'NOT MET'} {self.demand}: {self.found:,.2f}"


def at_most(demand: str, found: float, limit: float) -> Verdict:
    """Not met by a figure that is not a number, because nothing was measured."""
    return _judged(operator.le, demand, found, limit)


def at_least(demand: str, found: float, limit: float) -> Verdict:
    return _judged(operator.ge, demand, found, limit)


def _judged(compare: Compare, demand: str, found: float, limit: float) -> Verdict:
    return Verdict(demand.format(f"{limit:g}"), found, compare(found, limit))


def common(alone: Figures, beside: Figures) -> list[Verdict]:
    """The demands on every attack."""
    card = alone["new card, median, ms"]
    refused = [at_most(f"{name} never refused", beside[f"{name}, refused"], 0) for name in REFUSED]
    return [
        at_most("ping p95 at most {} times alone", beside["ping, p95, ms"] / alone["ping, p95, ms"], 3),
        at_most("stored card within {} s", beside["stored card, worst, ms"] / 1000, 1),
        at_most("GET /checks within {} s", beside["GET /checks, worst, ms"] / 1000, 1),
        at_most("new card, median, at most {} ordinary cards", beside["new card, median, ms"] / card, 8),
        at_most("alert within {} s", beside["alert, worst, ms"] / 1000, 5),
        *refused,
        at_most("memory at most {} MiB more", beside["memory, most, MiB more"], 96),
        at_most("database at most {} MiB more after it", beside["database, after, MiB more"], 8),
        at_most("posts to one address at once at most {}", beside["posts to one address at once"], 4),
    ]


REFUSED = ("ping", "stored card", "GET /checks", "new card", "alert")
