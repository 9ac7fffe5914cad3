"""`GET /healthz`: whether the database can be written and the sweep keeps time."""

import contextlib
from collections.abc import Callable

from cardbeat.clock import Clock
from cardbeat.concurrency.later import Later, Repeatable
from cardbeat.database import Database, Transaction, monitor
from cardbeat.errors import Unavailable
from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route


class HealthRoutes:
    """`sweep_is_healthy` returns whether a sweep has finished within three intervals, in this process or in another."""

    def __init__(self, database: Database, clock: Clock, sweep_is_healthy: Callable[[], bool]) -> None:
        self._database = database
        self._clock = clock
        self._sweep_is_healthy = sweep_is_healthy
        # The newest write. Used in the server's loop alone.
        self._written: Later[None] | None = None

    def routes(self) -> list[Route]:
        return [Route("GET", "/healthz", self.read, in_loop=True)]

    def read(self, _request: Request | None = None) -> Later[Response]:
        """Settled when a write is on disk. It needs no worker thread, so a server whose workers are busy is healthy.

        Requests that come while a write is under way share it: however many there are, they cost one write at a time.
        """
        # Only a write tells whether one is possible.
        if self._written is None or self._written.is_settled:
            self._written = self._database.write_later(self._note)
        return Repeatable(self._written, self._answer)

    def call_if_healthy(self, act: Callable[[], object]) -> None:
        """Call `act` in any thread once it is known that `/healthz` would say 200; to be called in the loop."""

        def judge(answer: Later[Response]) -> None:
            with contextlib.suppress(Exception):
                answer.result()
                act()

        with contextlib.suppress(Unavailable):
            self.read().then(judge)

    def _answer(self, _written: None) -> Response:
        if not self._sweep_is_healthy():
            raise Unavailable("sweep_stalled")
        return Response.json(200, {"status": "ok"})

    def _note(self, transaction: Transaction) -> None:
        monitor.note(transaction, last_health_check_at=int(self._clock()))
