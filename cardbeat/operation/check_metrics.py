"""`GET /checks/metrics`: the checks of one key, in the text format of Prometheus."""

from typing import Final

from cardbeat.errors import Refusal
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.checks import Checks
from cardbeat.keys.key import CHECKS, READ
from cardbeat.keys.store import Bearer, Keys, key_of
from cardbeat.operation.metrics import Samples
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

MOST_CHECKS: Final = 100_000
"""In one answer, which then has 37 MB."""


class CheckMetricsRoutes:
    """The handler of `/checks/metrics`. A key with more than `most_checks` is refused."""

    def __init__(self, checks: Checks, keys: Keys, most_checks: int = MOST_CHECKS) -> None:
        self._checks = checks
        self._bearer = Bearer(keys, CHECKS, READ)
        self._most_checks = most_checks

    def routes(self) -> list[Route]:
        return [Route("GET", "/checks/metrics", self.read, guard=self._bearer)]

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
                    samples.add(f"cardbeat_check_{family}", value, **labels)
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
