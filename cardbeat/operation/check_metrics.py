"""`GET /checks/metrics`: the checks of one key, in the text format of Prometheus."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from cardbeat.errors import Refusal
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.checks import Checks
from cardbeat.keys.bearer import Bearer, key_of
from cardbeat.keys.key import CHECKS
from cardbeat.keys.store import Keys
from cardbeat.operation.metrics import PROMETHEUS_HEADERS, escaped
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

SHOWN_OF_ID: Final = 12
"""Characters of a check's id: enough to tell checks with the same name apart, too few to ping with."""
MOST_CHECKS: Final = 100_000
"""In one answer. It then has 37 MB and takes 1.2 s of CPU and 70 MB of memory."""

STRETCH_CHECKS: Final = 200
PAUSE_SECONDS: Final = 0.001
"""After so many checks, about 2.5 ms of CPU, pings get the interpreter for this time."""


class Gauge(NamedTuple):
    """One family of samples. A check for which `value` returns None has no sample."""

    name: str
    meaning: str
    value: Callable[[Check], int | None]


def _delivery_ok(check: Check) -> int | None:
    return None if check.webhook_url is None or check.delivery is None else int(check.delivery == "ok")


GAUGES: Final = (
    Gauge(
        "cardbeat_check_up",
        "1 while the check is on time, also before its first ping, and 0 while it is overdue.",
        lambda check: int(check.status == "on_time"),
    ),
    Gauge(
        "cardbeat_check_last_ping_timestamp_seconds",
        "Time of the last ping, in Unix seconds; absent before the first ping.",
        lambda check: check.last_ping_at,
    ),
    Gauge(
        "cardbeat_check_deadline_timestamp_seconds",
        "Time at which it turns overdue without a ping, in Unix seconds.",
        lambda check: check.deadline_at,
    ),
    Gauge(
        "cardbeat_check_delivery_ok",
        "1 if the receiver took the last alert sent, else 0; absent before the first alert and without a webhook.",
        _delivery_ok,
    ),
)


class CheckMetricsRoutes:
    """The handler of `/checks/metrics`, which runs in a worker thread."""

    def __init__(
        self, checks: Checks, keys: Keys, *, most_checks: int = MOST_CHECKS, stretch_checks: int = STRETCH_CHECKS
    ) -> None:
        self._most_checks = most_checks
        self._stretch_checks = stretch_checks
        self._checks = checks
        self._bearer = Bearer(keys, CHECKS)

    def routes(self) -> list[Route]:
        return [Route("GET", "/checks/metrics", self.read, guard=self._bearer)]

    def read(self, request: Request) -> Response:
        key_id = key_of(request).id
        if self._checks.count(key_id) > self._most_checks:
            sentence = f"This key has more than {self._most_checks} checks, too many for one answer; use several keys."
            raise Refusal("too_many_checks", sentence)
        families = [bytearray(f"# HELP {it.name} {it.meaning}\n# TYPE {it.name} gauge\n".encode()) for it in GAUGES]
        for number, check in enumerate(self._checks.each(key_id), 1):
            if number % self._stretch_checks == 0:
                time.sleep(PAUSE_SECONDS)
            labels = f'{{name="{escaped(check.name)}",id="{check.id[:SHOWN_OF_ID]}"}}'
            for gauge, family in zip(GAUGES, families, strict=True):
                if (value := gauge.value(check)) is not None:
                    family.extend(f"{gauge.name}{labels} {value}\n".encode())
        return Response(200, b"".join(families), PROMETHEUS_HEADERS)
