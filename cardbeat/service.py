"""The composition root: builds every part of the service, and starts and stops them in order."""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING

from cardbeat import __version__
from cardbeat.cards.painter import Painter
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.store import Store
from cardbeat.clock import Clock
from cardbeat.config import Config
from cardbeat.database import open_database
from cardbeat.heartbeat.alerts.delivery import Delivery
from cardbeat.heartbeat.alerts.outbox import Outbox
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.outages import Outages
from cardbeat.heartbeat.pings import Pings
from cardbeat.heartbeat.report import Report
from cardbeat.heartbeat.routes import CheckRoutes
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.heartbeat.tidy import Tidy
from cardbeat.host import surroundings
from cardbeat.host.ownership import CARDS, prepare_folder
from cardbeat.host.system import (
    clients_and_senders,
    on_stop_signals,
    wake_on_signals,
)
from cardbeat.jobs import BackgroundThread, start_thread
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.routes import KeyRoutes
from cardbeat.keys.store import Keys
from cardbeat.operation.routes import (
    CheckMetricsRoutes,
    HealthRoutes,
    Metrics,
)
from cardbeat.pages.routes import PageRoutes
from cardbeat.web.loop import Loop
from cardbeat.web.message import Answered
from cardbeat.web.router import Route, Router
from cardbeat.web.server import HttpServer, url_of

if TYPE_CHECKING:
    from cardbeat.heartbeat.alerts.post import Sender

log = logging.getLogger(__name__)

LOAD_AFTER_SECONDS = 1.0
"""After this time of serving, what the first answer did not need is loaded: to draw and to post.
Not at the first use alone: an upgrade replaces the artifact while it runs, and what is not loaded
then can't be."""
LEAST_SECONDS = 0.1
"""Minimum time each part gets to stop, in seconds."""


class Service:
    """All parts of the service, built but not started.

    `clock` is the database's unless another is given, `observers` get all answers. Raises
    `StartupError` if the service can't run as configured, and closes the listener and the loop
    then.
    """

    def __init__(
        self,
        config: Config,
        listener: socket.socket,
        loop: Loop,
        clock: Clock | None = None,
        observers: Sequence[Callable[[Sequence[Answered]], object]] = (),
    ) -> None:
        self._config = config
        self._stop_by = inf
        with contextlib.ExitStack() as undo:
            undo.callback(loop.close)
            undo.callback(listener.close)
            if config.database is not None:
                # For the cards.
                prepare_folder(config.data)
            self.database = open_database(config.data, config.database)
            undo.callback(self.database.close)
            self._clock = clock or self.database.clock
            self._base_url = config.base_url or url_of(listener)
            self.keys = Keys(self.database, self._clock, config.tiers)
            self._build_heartbeat()
            self.store = Store(
                config.data / CARDS,
                config.store_bytes,
                accent=config.accent,
                reserve=self.database.reserve,
            )
            undo.callback(self.store.close)
            self.painter = Painter(config.accent)
            self.health = HealthRoutes(
                self.database, self._clock, self.sweep.healthy
            )
            self.router = Router(self._routes())
            self.server = HttpServer(
                listener,
                self.router,
                loop,
                config.http,
                trusted_proxies=config.trusted_proxies,
                observers=(self._metrics.observe, *observers),
            )
            undo.pop_all()
        self.loading = threading.Timer(LOAD_AFTER_SECONDS, self._load)
        self.loading.daemon = True
        self._threads: list[Sweep | BackgroundThread] = [
            self.sweep,
            self.tidy,
        ]
        seconds = surroundings.seconds_between_signs()
        if seconds:
            # A service manager asks for signs that the service is well.
            sign = partial(self._give_sign, seconds)
            signs = BackgroundThread("signs of life", sign, seconds)
            self._threads.append(signs)

    def _build_heartbeat(self) -> None:
        config = self._config
        database = self.database
        self._alerts = Outbox(database, self._base_url, config.time_zone)
        self._sender = cache(self._new_sender)
        self.delivery = Delivery(
            self._alerts,
            self._sender,
            self._clock,
            tiers=config.tiers,
            senders=clients_and_senders()[1],
            fence=database.fence,
        )
        self.sweep = Sweep(
            database,
            self._clock,
            self.delivery.wake,
            config.sweep_seconds,
            after=Report(config.report_to) if config.report_to else None,
            fence=database.fence,
        )
        self._checks = Checks(database, self._clock, self.delivery.wake)
        self.pings = Pings(database, self._clock, self.delivery.wake)
        self.tidy = Tidy(database, self._clock)

    def _new_sender(self) -> "Sender":
        """What a start does not import."""
        from cardbeat.heartbeat.alerts.post import Sender  # noqa: PLC0415 - not at the start

        config = self._config
        return Sender(config.allow_private_webhooks, config.webhook_proxy)

    def _routes(self) -> list[Route]:
        config = self._config
        checks = self._checks
        renders = RateLimit()
        self.cards = CardRoutes(
            self.keys, self.store, self.painter, renders
        )
        self._metrics = Metrics(
            self.cards,
            self.store,
            checks,
            self.delivery,
            self.sweep,
            shed=lambda: self.server.connections_shed,
        )
        parts = (
            KeyRoutes(
                config, self.keys, renders, checks.usage, self.tidy.wake
            ),
            self.cards,
            CheckRoutes(
                checks,
                self.pings,
                self.keys,
                self._alerts,
                Outages(self.database, self._clock),
                base_url=self._base_url,
                allow_private_webhooks=config.allow_private_webhooks,
            ),
            self.health,
            self._metrics,
            CheckMetricsRoutes(checks, self.keys),
            PageRoutes(
                self._base_url, config.accent, config.registration_open
            ),
        )
        return [route for part in parts for route in part.routes()]

    def _load(self) -> None:
        """Load what the first answer did not need."""
        try:
            self.store.start()
            self._sender()
            self.painter.start()
        except Exception:
            log.exception("a part could not be loaded")
        if not surroundings.trusts_some():
            log.warning("%s", surroundings.NONE_TRUSTED)

    def _give_sign(self, seconds: float) -> None:
        """Raises `Unavailable` where `/healthz` would not say 200."""
        answered = threading.Event()
        self.server.loop.call_soon(answered.set)
        # A loop that hangs gives no sign.
        if answered.wait(seconds):
            self.health.check()
            surroundings.tell_manager("WATCHDOG=1")

    def run(self) -> bool:
        """Serve until SIGTERM or SIGINT, then stop all parts. Returns whether all have ended.

        Raises `StartupError` before it serves, if another server has the data folder or the
        system grants too few threads.
        """
        on_stop_signals(lambda _number, _frame: self._stop())
        wake_on_signals(self.server.loop.waker)
        try:
            self.database.claim()
            self.delivery.start()
            for thread in self._threads:
                thread.start()
            start_thread(self.loading)
            where = self._config.data.absolute()
            also = " and PostgreSQL" if self.database.fence else ""
            served = "cardbeat %s serves %s, its data is in %s%s"
            log.info(served, __version__, self.server.url, where, also)
            surroundings.tell_manager("READY=1")
            self.database.call_next = self.server.loop.call_next
            self.server.serve_forever()
        finally:
            wake_on_signals(None)
            has_ended = self.close()
        log.info("stopped")
        return has_ended

    def _stop(self) -> None:
        """Stop; a second signal ends the process at once. What was acknowledged is on disk."""
        if self._stop_by != inf:
            os._exit(0)
        surroundings.tell_manager("STOPPING=1")
        self._stop_by = time.monotonic() + self._config.http.stop_seconds
        # Running posts and the last requests end at the same time, not one after the other.
        self.server.loop.call_soon(self.delivery.begin_stop)
        self.server.shutdown()

    def close(self) -> bool:
        """Stop the background threads, then close the port, the stored cards and the database.

        False if a part has not ended in time: it keeps what it uses open until the process ends.
        """
        stop_by = min(
            self._stop_by,
            time.monotonic() + self._config.http.stop_seconds,
        )
        # Tell all parts to stop before waiting for any.
        self.loading.cancel()
        self.cards.stop()
        for thread in self._threads:
            thread.stop(0)
        self.server.server_close()
        has_ended = True
        for stop in (
            self.delivery.stop,
            self.sweep.stop,
            self.tidy.stop,
            self.store.close,
            self.database.close,
        ):
            seconds = max(LEAST_SECONDS, stop_by - time.monotonic())
            has_ended = stop(seconds) and has_ended
        self.painter.close()
        return has_ended
