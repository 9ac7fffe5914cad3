"""`GET /metrics`: counters and gauges of the whole service in the text format of Prometheus.

No sample names a key, a check id or an address.
"""

import time
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import PIL

from cardbeat import __version__
from cardbeat.cards.store import Store
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.delivery.delivery import Delivery
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.web.message import Answered, Request, Response
from cardbeat.web.router import Route

BOUNDS_SECONDS: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10)
PING: Final = "/ping/{id}"
PROMETHEUS_HEADERS: Final = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}

FAMILIES: Final = {
    "counter": {
        "cardbeat_http_requests_total": "Requests answered, by route, method and status.",
        "cardbeat_cards_total": "Cards answered: stored (hit) or newly drawn (miss).",
        "cardbeat_pings_total": "Pings answered 200, by whether the check was overdue before.",
        "cardbeat_connections_shed_total": (
            "Connections closed because all clients together held more than the memory budget."
        ),
        "cardbeat_alert_attempts_total": "Attempts to deliver an alert, by outcome.",
    },
    "gauge": {
        "cardbeat_store_bytes": "Bytes of stored cards.",
        "cardbeat_checks": "Checks, by status.",
        "cardbeat_alert_oldest_due_seconds": "Seconds since the oldest due alert became due; 0 if none is due.",
        "cardbeat_sweep_age_seconds": "Seconds since the last sweep finished.",
        "cardbeat_sweep_duration_seconds": "Duration of the last sweep by this process; 0 if another process sweeps.",
        "process_start_time_seconds": "Start of the process, in Unix time.",
        "cardbeat_build_info": "Versions of cardbeat, Python and Pillow.",
        "cardbeat_check_up": "1 while the check is on time, also before its first ping, and 0 while it is overdue.",
        "cardbeat_check_last_ping_timestamp_seconds": (
            "Time of the last ping, in Unix seconds; absent before the first ping."
        ),
        "cardbeat_check_deadline_timestamp_seconds": "Time at which it turns overdue without a ping, in Unix seconds.",
        "cardbeat_check_snoozed_until_timestamp_seconds": (
            "Time until which it is snoozed, or was at last, in Unix seconds; absent for a check without a snooze."
        ),
        "cardbeat_check_delivery_ok": (
            "1 if the receiver took the last alert sent, else 0; absent before the first alert and without a webhook."
        ),
    },
    "histogram": {
        "cardbeat_http_request_duration_seconds": "Seconds from a complete request to its answer, by route.",
        "cardbeat_card_render_duration_seconds": "Seconds to draw a new card.",
    },
}
"""The meaning of each family of samples, by its type and its name."""

Labels = Mapping[str, object]
Sample = tuple[str, Labels, float]
"""The suffix of the family's name, the labels, and the value."""


class Histogram:
    """Counts durations by the smallest bound that is not below each."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self.sum_seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.sum_seconds += seconds

    def samples(self, labels: Labels) -> Iterable[Sample]:
        totals = list(accumulate(self.counts))
        for bound, total in zip((*BOUNDS_SECONDS, "+Inf"), totals, strict=True):
            yield "_bucket", {**labels, "le": bound}, total
        yield "_sum", labels, self.sum_seconds
        yield "_count", labels, totals[-1]


class Answers:
    """Counts answers and drawing times. Only the server's thread calls `observe`, so it needs no lock."""

    def __init__(self) -> None:
        self.drawing_seconds: deque[float] = deque()
        """Seconds that each new card took. Drawing threads append; `observe` counts and removes. Both are atomic."""
        self._drawings = Histogram()
        self._requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._durations: defaultdict[str, Histogram] = defaultdict(Histogram)
        self._cards = Counter(HIT=0, MISS=0)
        self._pings = {False: 0, True: 0}

    def observe(self, answers: Iterable[Answered]) -> None:
        while self.drawing_seconds:
            self._drawings.observe(self.drawing_seconds.popleft())
        for request, response, seconds in answers:
            route = request.pattern or "none"
            self._requests[route, request.method, response.status] += 1
            self._durations[route].observe(seconds)
            if cache := response.headers.get("X-Cache"):
                self._cards[cache] += 1
            if response.status == 200 and (route == PING or request.params.get("signal") == "0"):
                self._pings[isinstance(response.body, bytes) and b'"recovered":true' in response.body] += 1

    def samples(self) -> dict[str, list[Sample]]:
        """The samples of each family."""
        # Copies, because the server's thread may add to them while this thread reads.
        requests, durations = self._requests.copy(), self._durations.copy()
        return {
            "cardbeat_http_requests_total": [
                ("", {"route": route, "method": method, "status": code}, n)
                for (route, method, code), n in sorted(requests.items())
            ],
            "cardbeat_http_request_duration_seconds": [
                sample for route, sums in sorted(durations.items()) for sample in sums.samples({"route": route})
            ],
            "cardbeat_cards_total": _by("cache", {"hit": self._cards["HIT"], "miss": self._cards["MISS"]}),
            "cardbeat_pings_total": _by("recovered", {"false": self._pings[False], "true": self._pings[True]}),
            "cardbeat_card_render_duration_seconds": list(self._drawings.samples({})),
        }


@dataclass(eq=False, repr=False)
class MetricsRoutes:
    """Collects the counters and gauges of all parts of the service. `shed` counts the connections shed."""

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
        samples = self._answers.samples() | self._samples()
        return Response(200, "".join(family(name, each) for name, each in samples.items()).encode(), PROMETHEUS_HEADERS)

    def _samples(self) -> dict[str, list[Sample]]:
        import platform  # noqa: PLC0415 - imports much

        versions = {"version": __version__, "python": platform.python_version(), "pillow": PIL.__version__}
        return {
            "cardbeat_connections_shed_total": _one(self._shed()),
            "cardbeat_store_bytes": _one(self._store.bytes_stored),
            "cardbeat_checks": _if_available(lambda: _by("status", self._checks.totals())),
            "cardbeat_alert_attempts_total": _by("outcome", self._delivery.totals()),
            "cardbeat_alert_oldest_due_seconds": _if_available(lambda: _one(self._delivery.oldest_due_seconds())),
            "cardbeat_sweep_age_seconds": _one(self._sweep.age_seconds()),
            "cardbeat_sweep_duration_seconds": _one(self._sweep.last_duration_seconds or 0),
            "process_start_time_seconds": _one(self._started_at),
            "cardbeat_build_info": [("", versions, 1)],
        }


def _one(value: float) -> list[Sample]:
    return [("", {}, value)]


def _by(label: str, values: Mapping[str, float]) -> list[Sample]:
    return [("", {label: name}, value) for name, value in values.items()]


def _if_available(read: Callable[[], list[Sample]]) -> list[Sample]:
    """The samples, or none while the database can't be read: the other metrics matter most then."""
    try:
        return read()
    except Unavailable:
        return []


def family(name: str, samples: Iterable[Sample]) -> str:
    return heading(name) + "".join(f"{name}{suffix}{_in_braces(labels)} {n}\n" for suffix, labels, n in samples)


def heading(name: str) -> str:
    kind = next(kind for kind, families in FAMILIES.items() if name in families)
    return f"# HELP {name} {FAMILIES[kind][name]}\n# TYPE {name} {kind}\n"


def _in_braces(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{escaped(str(value))}"' for name, value in labels.items())
    return pairs and f"{{{pairs}}}"


def escaped(value: str) -> str:
    """A label's value with backslash, quote and newline escaped."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
