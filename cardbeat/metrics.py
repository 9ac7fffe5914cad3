"""`GET /metrics`: what an operator watches, in the text format of Prometheus.

Only sums: no key, check id or address is in them.
"""

import platform
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Final

import PIL

from cardbeat import __version__
from cardbeat.cards.store import Store
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.delivery import Delivery
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.web.message import Answered, Request, Response
from cardbeat.web.router import Route

BOUNDS_SECONDS: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10)
PING: Final = "/ping/{id}"
PROMETHEUS_HEADERS: Final = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}

Labels = Mapping[str, object]
Sample = tuple[str, Labels, float]
"""What follows the family's name, the labels, the value."""


class Histogram:
    """Durations, counted by the smallest bound that each keeps."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self.sum_seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.sum_seconds += seconds

    def add(self, other: "Histogram") -> None:
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.sum_seconds += other.sum_seconds

    def samples(self, labels: Labels) -> Iterable[Sample]:
        totals = list(accumulate(self.counts))
        for bound, total in zip((*BOUNDS_SECONDS, "+Inf"), totals, strict=True):
            yield "_bucket", {**labels, "le": bound}, total
        yield "_sum", labels, self.sum_seconds
        yield "_count", labels, totals[-1]


class Answers:
    """Counts answers as the server gives them, in its one thread and so without a lock, and what they took to draw."""

    def __init__(self) -> None:
        self.drawing_seconds: deque[float] = deque()
        """Of each card that was drawn. The thread that draws appends them, and they are counted with the next answers.

        Both are one step each.
        """
        self._drawings = Histogram()
        self._histograms: dict[tuple[str | None, str, int, str | None], Histogram] = {}
        self._pings = {False: 0, True: 0}

    def observe(self, answers: Iterable[Answered]) -> None:
        while self.drawing_seconds:
            self._drawings.observe(self.drawing_seconds.popleft())
        for request, response, seconds in answers:
            key = request.pattern, request.method, response.status, response.headers.get("X-Cache")
            histogram = self._histograms.get(key)
            if histogram is None:
                histogram = self._histograms[key] = Histogram()
            histogram.counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
            histogram.sum_seconds += seconds
            if request.pattern == PING and response.status == 200:
                self._pings[isinstance(response.body, bytes) and b'"recovered":true' in response.body] += 1

    def families(self) -> Iterable[str]:
        requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        durations: defaultdict[str, Histogram] = defaultdict(Histogram)
        cards = {"HIT": 0, "MISS": 0}
        # Copied, because the server counts on while another thread reads.
        for (pattern, method, status, cache), histogram in self._histograms.copy().items():
            route, count = pattern or "none", sum(histogram.counts)
            requests[route, method, status] += count
            durations[route].add(histogram)
            if cache:
                cards[cache] += count
        yield family(
            "cardbeat_http_requests_total",
            "counter",
            "Requests answered, by route, method and status.",
            [
                ("", {"route": route, "method": method, "status": code}, n)
                for (route, method, code), n in sorted(requests.items())
            ],
        )
        yield family(
            "cardbeat_http_request_duration_seconds",
            "histogram",
            "From a whole request to its answer, by route.",
            [sample for route, sums in sorted(durations.items()) for sample in sums.samples({"route": route})],
        )
        yield family(
            "cardbeat_cards_total",
            "counter",
            "Cards answered, from the store (hit) or drawn for it (miss).",
            [("", {"cache": cache.lower()}, n) for cache, n in cards.items()],
        )
        yield family(
            "cardbeat_pings_total",
            "counter",
            "Pings answered 200, by whether they ended an overdue spell.",
            [("", {"recovered": str(recovered).lower()}, n) for recovered, n in self._pings.items()],
        )
        drawings = self._drawings.samples({})
        yield family("cardbeat_card_render_duration_seconds", "histogram", "Drawing of a card.", drawings)


class MetricsRoutes:
    """Reads what the parts of the service count of themselves."""

    def __init__(
        self,
        answers: Answers,
        *,
        store: Store,
        checks: Checks,
        delivery: Delivery,
        sweep: Sweep,
        connections_shed: Callable[[], int],
    ) -> None:
        self._answers = answers
        self._store = store
        self._checks = checks
        self._delivery = delivery
        self._sweep = sweep
        self._connections_shed = connections_shed
        self._started_at = time.time()

    def routes(self) -> list[Route]:
        return [Route("GET", "/metrics", self.read)]

    def read(self, _request: Request) -> Response:
        text = "".join([*self._answers.families(), *self._gauges()])
        return Response(200, text.encode(), PROMETHEUS_HEADERS)

    def _gauges(self) -> Iterable[str]:
        yield family(
            "cardbeat_connections_shed_total",
            "counter",
            "Connections closed because too much was held for all clients together.",
            [("", {}, self._connections_shed())],
        )
        yield gauge("cardbeat_store_bytes", "Stored cards.", self._store.bytes_stored)
        yield family("cardbeat_checks", "gauge", "Checks, by status.", self._checks_by_status())
        yield family(
            "cardbeat_alert_attempts_total",
            "counter",
            "Attempts to deliver an alert, by what came of them.",
            [("", {"outcome": outcome}, n) for outcome, n in self._delivery.totals().items()],
        )
        yield family(
            "cardbeat_alert_oldest_due_seconds",
            "gauge",
            "For how long the oldest alert whose time has come waits for its post to end; 0 where none does.",
            self._oldest_due(),
        )
        yield gauge(
            "cardbeat_delivery_age_seconds",
            "Since alerts were worked on, whether there were any or not.",
            self._delivery.liveness.age_seconds(),
        )
        yield gauge("cardbeat_sweep_age_seconds", "Since a sweep finished.", self._sweep.age_seconds())
        meaning = "Of the last sweep that this process finished; 0 where another one sweeps."
        yield gauge("cardbeat_sweep_duration_seconds", meaning, self._sweep.last_duration_seconds or 0)
        yield gauge("process_start_time_seconds", "In Unix time.", self._started_at)
        versions = {"version": __version__, "python": platform.python_version(), "pillow": PIL.__version__}
        yield family("cardbeat_build_info", "gauge", "What runs here.", [("", versions, 1)])

    def _checks_by_status(self) -> list[Sample]:
        try:
            return [("", {"status": status}, n) for status, n in self._checks.totals().items()]
        except Unavailable:
            # All else is needed most when the database is in trouble.
            return []

    def _oldest_due(self) -> list[Sample]:
        try:
            return [("", {}, self._delivery.oldest_due_seconds())]
        except Unavailable:
            return []


def gauge(name: str, meaning: str, value: float) -> str:
    return family(name, "gauge", meaning, [("", {}, value)])


def family(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{suffix}{_in_braces(labels)} {value}" for suffix, labels, value in samples]
    return "\n".join(lines) + "\n"


def _in_braces(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{escaped(str(value))}"' for name, value in labels.items())
    return pairs and f"{{{pairs}}}"


def escaped(value: str) -> str:
    """A label's value as it stands between its quotes."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
