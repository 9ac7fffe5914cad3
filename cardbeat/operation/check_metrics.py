"""`GET /checks/metrics`: the checks of one key, in the text format of Prometheus."""

import time
from collections.abc import Callable
from typing import Final

from cardbeat.errors import Refusal
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.checks import Checks
from cardbeat.keys.bearer import Bearer, key_of
from cardbeat.keys.key import CHECKS, READ
from cardbeat.keys.store import Keys
from cardbeat.operation.metrics import PROMETHEUS_HEADERS, escaped, heading
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

MOST_CHECKS: Final = 100_000
"""In one answer. It then has 37 MB and takes 1.2 s of CPU and 70 MB of memory."""

STRETCH_CHECKS: Final = 200
PAUSE_SECONDS: Final = 0.001
"""After so many checks, about 2.5 ms of CPU, pings get the interpreter for this time."""

GAUGES: Final[dict[str, Callable[[Check], int | None]]] = {
    "cardbeat_check_up": lambda check: int(check.status == "on_time"),
    "cardbeat_check_last_ping_timestamp_seconds": lambda check: check.last_ping_at,
    "cardbeat_check_deadline_timestamp_seconds": lambda check: check.deadline_at,
    "cardbeat_check_snoozed_until_timestamp_seconds": lambda check: check.snoozed_until,
    "cardbeat_check_delivery_ok": lambda it: int(it.delivery == "ok") if it.webhook_url and it.delivery else None,
}
"""The value of each family for a check. One for which it is None has no sample."""


class CheckMetricsRoutes:
    """The handler of `/checks/metrics`, which runs in a worker thread."""

    def __init__(self, checks: Checks, keys: Keys) -> None:
        self._checks = checks
        self._bearer = Bearer(keys, CHECKS, READ)

    def routes(self) -> list[Route]:
        return [Route("GET", "/checks/metrics", self.read, guard=self._bearer)]

    def read(self, request: Request) -> Response:
        key_id = key_of(request).id
        if self._checks.usage(key_id)[0] > MOST_CHECKS:
            sentence = f"This key has more than {MOST_CHECKS} checks, too many for one answer; use several keys."
            raise Refusal("too_many_checks", sentence)
        families = {name: bytearray(heading(name).encode()) for name in GAUGES}
        for number, check in enumerate(self._checks.each(key_id), 1):
            if number % STRETCH_CHECKS == 0:
                time.sleep(PAUSE_SECONDS)
            labels = f'{{name="{escaped(check.name)}",id="{check.short_id}"}}'
            for name, value_of in GAUGES.items():
                if (value := value_of(check)) is not None:
                    families[name].extend(f"{name}{labels} {value}\n".encode())
        return Response(200, b"".join(families.values()), PROMETHEUS_HEADERS)
