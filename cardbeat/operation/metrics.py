"""`GET /metrics`: counters and gauges of the whole service.

No sample names a key, a check id or an address.
"""

import contextlib
import sys
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import PIL

from cardbeat import __version__
from cardbeat.cards.store import Store
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.alerts.delivery import Delivery
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.operation.prometheus import Samples
from cardbeat.web.message import Answered, Request, Response
from cardbeat.web.router import Route

BOUNDS_SECONDS: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10)
DURATIONS: Final = "cardbeat_http_request_duration_seconds"


class Histogram:
    """Counts durations by the smallest bound that is not below each."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self._sum_seconds = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self._sum_seconds += seconds

    def write(self, samples: Samples, family: str, **labels: str) -> None:
        """Add its samples. That of a bound counts all durations up to it, as the format has it."""
        total = 0
        for bound, count in zip((*BOUNDS_SECONDS, "+Inf"), self._counts, strict=True):
            total += count
            samples.add(family, total, "_bucket", **labels, le=bound)
        samples.add(family, self._sum_seconds, "_sum", **labels)
        samples.add(family, total, "_count", **labels)


class Answers:
    """Counts answers and drawing times. Only the loop calls `observe`, so it needs no lock."""

    def __init__(self) -> None:
        self.drawing_seconds: deque[float] = deque()
        """Seconds that each new card took: other threads append, `observe` counts and removes."""
        self._drawings = Histogram()
        self._requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._durations: defaultdict[str, Histogram] = defaultdict(Histogram)
        self._cards = {"HIT": 0, "MISS": 0}
        self._pings = {False: 0, True: 0}

    def observe(self, answers: Iterable[Answered]) -> None:
        while self.drawing_seconds:
            self._drawings.observe(self.drawing_seconds.popleft())
        for request, response, seconds in answers:
            route = request.pattern or "none"
            self._requests[route, request.method, response.status] += 1
            self._durations[route].observe(seconds)
            if "X-Cache" in response.headers:
                self._cards[response.headers["X-Cache"]] += 1
            is_ping = route == "/ping/{id}" or request.params.get("signal") == "0"
            if is_ping and response.status == 200 and isinstance(response.body, bytes):
                self._pings[b'"recovered":true' in response.body] += 1

    def write(self, samples: Samples) -> None:
        # Copies, because the loop may add to them while this thread reads.
        for (route, method, status), count in sorted(self._requests.copy().items()):
            labels = {"route": route, "method": method, "status": str(status)}
            samples.add("cardbeat_http_requests_total", count, **labels)
        for route, durations in sorted(self._durations.copy().items()):
            durations.write(samples, DURATIONS, route=route)
        for cache, count in self._cards.items():
            samples.add("cardbeat_cards_total", count, cache=cache.lower())
        for recovered, count in self._pings.items():
            samples.add("cardbeat_pings_total", count, recovered=str(recovered).lower())
        self._drawings.write(samples, "cardbeat_card_render_duration_seconds")


@dataclass(eq=False, repr=False)
class MetricsRoutes:
    """Collects the counters and gauges of all parts. `shed` counts the connections shed."""

    _answers: Answers
    _store: Store
    _checks: Checks
    _delivery: Delivery
    _sweep: Sweep
    _shed: Callable[[], int]
    _started_at: float = field(default_factory=time.time)

    def routes(self) -> list[Route]:
        return [Route("GET", "/metrics", self.read)]

    def read(self, _request: Request) -> Response:
        samples = Samples("/metrics")
        self._answers.write(samples)
        samples.add("cardbeat_connections_shed_total", self._shed())
        samples.add("cardbeat_store_bytes", self._store.bytes_stored)
        for outcome, count in self._delivery.totals().items():
            samples.add("cardbeat_alert_attempts_total", count, outcome=outcome)
        # While the database can't be read, the other metrics matter most.
        with contextlib.suppress(Unavailable):
            for status, count in self._checks.totals().items():
                samples.add("cardbeat_checks", count, status=status)
            due_seconds = self._delivery.oldest_due_seconds()
            samples.add("cardbeat_alert_oldest_due_seconds", due_seconds)
        samples.add("cardbeat_sweep_age_seconds", self._sweep.age_seconds())
        samples.add("cardbeat_sweep_duration_seconds", self._sweep.last_duration_seconds or 0)
        samples.add("process_start_time_seconds", self._started_at)
        python = sys.version.split()[0]
        versions = {"version": __version__, "python": python, "pillow": PIL.__version__}
        samples.add("cardbeat_build_info", 1, **versions)
        return samples.response()
