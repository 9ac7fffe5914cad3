"""`GET /healthz`: whether the service can do its work, which is to write, to sweep and to send alerts."""

from collections.abc import Callable

from cardbeat import monitor
from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.liveness import STALLED_SECONDS
from cardbeat.later import Later
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route


class HealthRoutes:
    """`sweep_is_healthy` tells whether a sweep has finished within three intervals, `delivery_is_healthy` whether any
    process with this data folder has worked on alerts within `STALLED_SECONDS`.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        sweep_is_healthy: Callable[[], bool],
        delivery_is_healthy: Callable[[], bool],
    ) -> None:
        self._database = database
        self._clock = clock
        self._sweep_is_healthy = sweep_is_healthy
        self._delivery_is_healthy = delivery_is_healthy
        # The newest write. Used in the server's loop alone.
        self._written: Later[None] | None = None

    def routes(self) -> list[Route]:
        return [Route("GET", "/healthz", self.read, in_loop=True)]

    def read(self, _request: Request) -> Later[Response]:
        """Settled when a write is on disk. No thread waits for it: a server whose threads are all busy is healthy.

        All who ask while one is under way share it, so that they keep nobody else from writing, however many they are.
        """
        # Only a write tells whether one is possible.
        if self._written is None or self._written.is_settled:
            self._written = self._database.write_later(self._note_health_check)
        return self._written.map(self._answer)

    def _answer(self, _written: None) -> Response:
        if not self._sweep_is_healthy():
            raise Unavailable("sweep_stalled", "The sweep has not finished for three intervals; see the log.")
        if not self._delivery_is_healthy():
            sentence = f"No alert is sent: nobody has worked on them for {STALLED_SECONDS} seconds; see the log."
            raise Unavailable("delivery_stalled", sentence)
        return Response.json(200, {"status": "ok"})

    def _note_health_check(self, transaction: Transaction) -> None:
        monitor.note(transaction, last_health_check_at=int(self._clock()))
