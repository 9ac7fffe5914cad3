"""`GET /healthz`, and what Prometheus reads, in its text format 0.0.4.

`/healthz` tells whether the database can be written and the sweep keeps time. `GET /metrics` has
counters and gauges of the whole service, of which none names a key, a check or an address;
`GET /checks/metrics` has the checks of one key.
"""

import contextlib
import json
import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Final

import PIL

from cardbeat import __version__
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.store import Store
from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction, set_numbers
from cardbeat.errors import MaybeDone, Refusal, Unavailable
from cardbeat.files import read_text
from cardbeat.heartbeat.alerts.delivery import Delivery
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.keys.key import CHECKS, READ
from cardbeat.keys.store import Bearer, Keys, key_of
from cardbeat.web.message import Answered, Request, Response
from cardbeat.web.router import Route

FAMILIES: Final = json.loads(read_text("operation/metrics.json"))
"""The kind and the meaning of each family of samples, by endpoint."""
BOUNDS: Final = (
    0.0001,
    0.0005,
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    5,
    10,
)
"""Of durations, in seconds."""
DURATIONS: Final = "cardbeat_http_request_duration_seconds"
MOST_CHECKS: Final = 100_000
"""In one answer, which then has 37 MB."""

# The format escapes backslash, quote and newline, and so does JSON. No label has other controls.
_quoted = json.JSONEncoder(ensure_ascii=False).encode


class HealthRoutes:
    """`sweep_is_healthy` returns whether a sweep has finished within three intervals.

    It may be a sweep of another process.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        sweep_is_healthy: Callable[[], bool],
    ) -> None:
        self._database = database
        self._clock = clock
        self._sweep_is_healthy = sweep_is_healthy

    def routes(self) -> list[Route]:
        return [Route("GET", "/healthz", self.read)]

    def read(self, _request: Request) -> Response:
        self.check()
        return Response.json(200, {"status": "ok"})

    def check(self) -> None:
        """Raise `Unavailable` unless a write is on disk now and the sweep is healthy."""
        try:
            self._database.write(self._note)
        except MaybeDone:
            # Unlike other writes, this one may be repeated.
            raise Unavailable("database_unavailable") from None
        if not self._sweep_is_healthy():
            raise Unavailable("sweep_stalled")

    def _note(self, transaction: Transaction) -> None:
        set_numbers(transaction, last_health_check_at=int(self._clock()))


class Samples:
    """The samples of an endpoint, by family."""

    def __init__(self, endpoint: str) -> None:
        self._lines: dict[str, list[str]] = {}
        for name, (kind, meaning) in FAMILIES[endpoint].items():
            self._lines[name] = [
                f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
            ]

    def add(
        self,
        family: str,
        value: float,
        suffix: str = "",
        **labels: object,
    ) -> None:
        """`add("a_total", 3, route="/")` adds the line `a_total{route="/"} 3`."""
        pairs = ",".join(
            [
                f"{name}={_quoted(str(text))}"
                for name, text in labels.items()
            ]
        )
        braces = f"{{{pairs}}}" if pairs else ""
        self._lines[family].append(f"{family}{suffix}{braces} {value}\n")

    def response(self) -> Response:
        text = "".join("".join(lines) for lines in self._lines.values())
        headers = {
            "Content-Type": "text/plain; version=0.0.4; charset=utf-8"
        }
        return Response(200, text.encode(), headers)


class Metrics:
    """Counts answers, and collects the counters and gauges of all parts.

    Only the loop calls `observe`, so it needs no lock. `shed` counts the connections shed.
    """

    def __init__(
        self,
        cards: CardRoutes,
        store: Store,
        checks: Checks,
        delivery: Delivery,
        sweep: Sweep,
        *,
        shed: Callable[[], int],
    ) -> None:
        self._cards = cards
        self._store = store
        self._checks = checks
        self._delivery = delivery
        self._sweep = sweep
        self._shed = shed
        self._started_at = time.time()
        self._requests: defaultdict[tuple[str, str, int], int] = (
            defaultdict(int)
        )
        """Answers by route, method and status."""
        self._seconds: defaultdict[str, float] = defaultdict(float)
        """What all answers of a route took."""
        self._durations: defaultdict[str, list[int]] = defaultdict(
            lambda: [0] * (len(BOUNDS) + 1)
        )
        """Answers by the smallest of `BOUNDS` that they kept, for each route."""
        self._by_cache = {"HIT": 0, "MISS": 0}
        self._pings = {False: 0, True: 0}
        """By whether the check was overdue before."""

    def routes(self) -> list[Route]:
        return [Route("GET", "/metrics", self.read)]

    def observe(self, answers: Iterable[Answered]) -> None:
        for request, response, seconds in answers:
            route = request.pattern or "none"
            self._requests[route, request.method, response.status] += 1
            self._seconds[route] += seconds
            self._durations[route][bisect_left(BOUNDS, seconds)] += 1
            if "X-Cache" in response.headers:
                self._by_cache[response.headers["X-Cache"]] += 1
            is_ping = (
                route == "/ping/{id}"
                or request.params.get("signal") == "0"
            )
            if is_ping and response.status == 200:
                self._pings[b'"recovered":true' in response.body] += 1

    def read(self, _request: Request) -> Response:
        samples = Samples("/metrics")
        self._write_answers(samples)
        for suffix, value in (
            ("_sum", self._cards.drawing_seconds),
            ("_count", self._cards.drawn),
        ):
            samples.add(
                "cardbeat_card_render_duration_seconds", value, suffix
            )
        samples.add("cardbeat_connections_shed_total", self._shed())
        samples.add("cardbeat_store_bytes", self._store.bytes_stored)
        for outcome, count in self._delivery.totals().items():
            samples.add(
                "cardbeat_alert_attempts_total", count, outcome=outcome
            )
        # While the database can't be read, the other metrics matter most.
        with contextlib.suppress(Unavailable):
            for state, count in self._checks.totals().items():
                samples.add("cardbeat_checks", count, status=state)
            due_seconds = self._delivery.oldest_due_seconds()
            samples.add("cardbeat_alert_oldest_due_seconds", due_seconds)
        samples.add(
            "cardbeat_sweep_age_seconds", self._sweep.age_seconds()
        )
        samples.add(
            "cardbeat_sweep_duration_seconds",
            self._sweep.last_duration_seconds or 0,
        )
        samples.add("process_start_time_seconds", self._started_at)
        python = sys.version.split()[0]
        pillow = PIL.__version__
        samples.add(
            "cardbeat_build_info",
            1,
            version=__version__,
            python=python,
            pillow=pillow,
        )
        return samples.response()

    def _write_answers(self, samples: Samples) -> None:
        # Copies, because the loop may add to them while this thread reads.
        for (route, method, status), count in sorted(
            self._requests.copy().items()
        ):
            family = "cardbeat_http_requests_total"
            samples.add(
                family, count, route=route, method=method, status=status
            )
        for route, counts in sorted(self._durations.copy().items()):
            # The sample of a bound counts all answers that kept it.
            totals = list(accumulate(counts))
            for bound, total in zip(
                (*BOUNDS, "+Inf"), totals, strict=True
            ):
                samples.add(
                    DURATIONS, total, "_bucket", route=route, le=bound
                )
            samples.add(
                DURATIONS, self._seconds[route], "_sum", route=route
            )
            samples.add(DURATIONS, totals[-1], "_count", route=route)
        for cache, count in self._by_cache.items():
            samples.add(
                "cardbeat_cards_total", count, cache=cache.lower()
            )
        for recovered, count in self._pings.items():
            samples.add(
                "cardbeat_pings_total",
                count,
                recovered=str(recovered).lower(),
            )


class CheckMetricsRoutes:
    """The handler of `/checks/metrics`. A key with more than `most_checks` is refused."""

    def __init__(
        self, checks: Checks, keys: Keys, most_checks: int = MOST_CHECKS
    ) -> None:
        self._checks = checks
        self._bearer = Bearer(keys, CHECKS, READ)
        self._most_checks = most_checks

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/checks/metrics", self.read, guard=self._bearer)
        ]

    def read(self, request: Request) -> Response:
        key_id = key_of(request).id
        count, _ = self._checks.usage(key_id)
        if count > self._most_checks:
            sentence = f"One answer has at most {self._most_checks} checks; use several keys."
            raise Refusal("too_many_checks", sentence)
        samples = Samples("/checks/metrics")
        for check in self._checks.each(key_id):
            labels = {"name": check.name, "id": check.short_id}
            for family, value in _values(check).items():
                if value is not None:
                    samples.add(
                        f"cardbeat_check_{family}", value, **labels
                    )
        return samples.response()


def _values(check: Check) -> dict[str, int | None]:
    """The value of each family; None for one that has no sample of this check."""
    is_told = check.webhook_url is not None and check.delivery is not None
    return {
        "up": int(check.status == "on_time"),
        "last_ping_timestamp_seconds": check.last_ping_at,
        "deadline_timestamp_seconds": check.deadline_at,
        "snoozed_until_timestamp_seconds": check.snoozed_until,
        "delivery_ok": int(check.delivery == "ok") if is_told else None,
    }
