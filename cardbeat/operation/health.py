"""`GET /healthz`: whether the database can be written and the sweep keeps time."""

from collections.abc import Callable

from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction, monitor
from cardbeat.errors import MaybeDone, Unavailable
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route


class HealthRoutes:
    """`sweep_is_healthy` returns whether a sweep has finished within three intervals.

    It may be a sweep of another process.
    """

    def __init__(
        self, database: Database, clock: Clock, sweep_is_healthy: Callable[[], bool]
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
        monitor.note(transaction, last_health_check_at=int(self._clock()))
