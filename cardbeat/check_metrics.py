"""`GET /checks/metrics`: the checks of one key, in the text format of Prometheus."""

from collections.abc import Callable
from typing import Final, NamedTuple

from cardbeat.errors import Refusal
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.checks import Checks
from cardbeat.keys.bearer import Bearer, key_of
from cardbeat.keys.key import CHECKS
from cardbeat.keys.store import Keys
from cardbeat.later import Later, Workers
from cardbeat.metrics import PROMETHEUS_HEADERS, escaped
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route

SHOWN_OF_ID: Final = 12
"""Characters of a check's id: enough to tell checks of one name apart, and too few to ping with."""
MOST_CHECKS: Final = 100_000
"""In one answer, which has about 30 MB then."""
STEP_CHECKS: Final = 200
"""Read and written in a few milliseconds; after each step other keys have their turn."""


class Gauge(NamedTuple):
    """One family of samples; a check of which `value` is None has none."""

    name: str
    meaning: str
    value: Callable[[Check], int | None]


def _delivery_ok(check: Check) -> int | None:
    return None if check.webhook_url is None or check.delivery is None else int(check.delivery == "ok")


GAUGES: Final = (
    Gauge(
        "cardbeat_check_up",
        "1 while the check is on time, as it is before its first ping too, and 0 while it is overdue.",
        lambda check: int(check.status == "on_time"),
    ),
    Gauge(
        "cardbeat_check_last_ping_timestamp_seconds",
        "When it was last pinged, in Unix time; absent before the first ping.",
        lambda check: check.last_ping_at,
    ),
    Gauge(
        "cardbeat_check_deadline_timestamp_seconds",
        "When it turns overdue unless it is pinged, in Unix time.",
        lambda check: check.deadline_at,
    ),
    Gauge(
        "cardbeat_check_delivery_ok",
        "1 if the last attempt to deliver an alert was taken, else 0; absent where none was made or is to be made.",
        _delivery_ok,
    ),
)


class CheckMetricsRoutes:
    """`workers` are those that the routes' handlers run in, one at a time for each key."""

    def __init__(self, checks: Checks, keys: Keys, workers: Workers) -> None:
        self._checks = checks
        self._bearer = Bearer(keys, CHECKS)
        self._workers = workers
        # By the key's id. Of one key only the thread that works for it reads and writes the entry.
        self._under_way: dict[str, Later[bytes]] = {}

    def routes(self) -> list[Route]:
        return [Route("GET", "/checks/metrics", self.read, guard=self._bearer)]

    def read(self, request: Request) -> Later[Response]:
        """Whoever asks while an answer for the key is being written gets the same one: many cost no more than one."""
        key_id = key_of(request).id
        if self._checks.count(key_id) > MOST_CHECKS:
            sentence = f"This key has more than {MOST_CHECKS} checks, too many for one answer; use several keys."
            raise Refusal(403, "too_many_checks", sentence)
        text = self._under_way.get(key_id)
        if text is None:
            export = Export(self._checks, key_id, self._workers)
            text = self._under_way[key_id] = export.text
            text.then(lambda _: self._under_way.pop(key_id))
            export.step()
        return text.map(lambda text: Response(200, text, PROMETHEUS_HEADERS))


class Export:
    """Writes the text of one key, in steps each of which waits for its turn among the other keys' work."""

    def __init__(self, checks: Checks, key_id: str, workers: Workers) -> None:
        self.text: Later[bytes] = Later()
        self._checks = checks
        self._key_id = key_id
        self._workers = workers
        # One step at a time uses these.
        self._parts = [[f"# HELP {it.name} {it.meaning}\n# TYPE {it.name} gauge\n".encode()] for it in GAUGES]
        self._last_seq = 0

    def step(self) -> None:
        """Settles `text` with the last step, or with what one of them raises."""
        try:
            if self._add(self._checks.following(self._key_id, self._last_seq, STEP_CHECKS)):
                self._workers.submit(self._key_id, self.step)
                return
        except Exception as error:
            self.text.fail(error)
        else:
            self.text.succeed(b"".join(part for parts in self._parts for part in parts))

    def _add(self, checks: list[Check]) -> bool:
        """Whether there may be more behind these."""
        labelled = [(_labels(check), check) for check in checks]
        for gauge, parts in zip(GAUGES, self._parts, strict=True):
            values = ((labels, gauge.value(check)) for labels, check in labelled)
            lines = [f"{gauge.name}{labels} {value}\n" for labels, value in values if value is not None]
            parts.append("".join(lines).encode())
        self._last_seq = checks[-1].seq if checks else 0
        return len(checks) == STEP_CHECKS


def _labels(check: Check) -> str:
    return f'{{name="{escaped(check.name)}",id="{check.id[:SHOWN_OF_ID]}"}}'
