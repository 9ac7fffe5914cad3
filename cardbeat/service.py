"""The composition root: builds every part of the service from a `Config`, and starts and stops them in order."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING, TypeVar

from cardbeat import __version__
from cardbeat.cards.drawing_process import DrawingProcess
from cardbeat.cards.drawing_queue import DrawingQueue
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.store import Store
from cardbeat.clock import Clock
from cardbeat.concurrency import threads
from cardbeat.concurrency.later import Workers
from cardbeat.concurrency.threads import BackgroundThread
from cardbeat.config import Config
from cardbeat.database import open_database
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.delivery.courier import Courier
from cardbeat.heartbeat.delivery.delivery import Delivery
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.removal import Removal
from cardbeat.heartbeat.report import Report
from cardbeat.heartbeat.routes import CheckRoutes
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.heartbeat.unused_keys import UnusedKeys
from cardbeat.host import service_manager
from cardbeat.host.ownership import CARDS
from cardbeat.host.system import on_stop_signals
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.registration import Registration
from cardbeat.keys.routes import KeyRoutes
from cardbeat.keys.store import Keys
from cardbeat.keys.webhook_secrets import WebhookSecrets
from cardbeat.openapi.routes import OpenApiRoutes
from cardbeat.operation.check_metrics import CheckMetricsRoutes
from cardbeat.operation.health import HealthRoutes
from cardbeat.operation.metrics import Answers, MetricsRoutes
from cardbeat.pages.documentation import DocRoutes
from cardbeat.pages.routes import PageRoutes
from cardbeat.web.access import AccessLog
from cardbeat.web.exchange import Exchange
from cardbeat.web.listener import Listener
from cardbeat.web.loop import Loop
from cardbeat.web.router import Route, Router
from cardbeat.web.server import HttpServer

if TYPE_CHECKING:
    from cardbeat.heartbeat.webhooks.post import Sender

T = TypeVar("T")
log = logging.getLogger(__name__)
LOAD_AFTER_SECONDS = 1.0
"""After this time of serving, what the first answer did not need is loaded: to draw, to post, to describe and document.
Not at the first use alone: an upgrade replaces the artifact while it runs, and what is not loaded then can't be."""
WORKERS = 2
"""Threads for the handlers of routes that are not `in_loop`."""
LEAST_SECONDS = 0.1
"""Minimum time each part gets to stop, in seconds."""


class Service:
    """All parts of the service, built but not started. `clock` is the database's unless another is given.

    Raises `StartupError` if the service can't run as configured, and closes the listener and the loop then.
    """

    def __init__(
        self,
        config: Config,
        listener: Listener,
        loop: Loop,
        access_log: AccessLog | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._data = config.data
        self._stop_seconds = config.http.stop_seconds
        self._stop_by = inf
        with contextlib.ExitStack() as undo:
            undo.callback(loop.close)
            undo.callback(listener.close)
            self.database = open_database(config.data, config.database)
            undo.callback(self.database.close)
            clock = clock or self.database.clock
            base_url = config.base_url or listener.url
            renders, registration = RateLimit(), Registration(config)
            self.keys = Keys(self.database, clock, config.tiers)
            alerts = Alerts(self.database, base_url)
            checks = self._heartbeat(config, clock, alerts)
            webhook_secrets = WebhookSecrets(self.database, clock)
            unused = UnusedKeys(self.database, clock)
            also = (webhook_secrets.forget_old, lambda: unused.look(self.removal))
            self.removal: Removal = Removal(self.database, also=also)
            reserve, after = self.database.reserve, LOAD_AFTER_SECONDS
            self.store = Store(
                config.data / CARDS, config.store_bytes, accent=config.accent, reserve=reserve, first_after=after
            )
            undo.callback(self.store.close)
            first = (loop.precedence, self.database.precedence)
            workers = Workers(WORKERS, first=first)
            answers = Answers()
            health = HealthRoutes(self.database, clock, self.sweep.healthy)
            signs = service_manager.seconds_between_signs()
            alive = partial(health.call_if_healthy, partial(service_manager.tell, "WATCHDOG=1"))
            # Through the loop, as a request for /healthz: a loop that hangs gives no sign.
            self._signs = signs and BackgroundThread("signs of life", partial(loop.call_soon, alive), signs)
            self._drawing_process = DrawingProcess(config.accent)
            soon: list[Callable[[], None]] = []
            self.cards = CardRoutes(
                self.keys,
                self.store,
                self._drawing_process,
                DrawingQueue(renders),
                work_soon=soon.append,
                note_drawing_seconds=answers.drawing_seconds.append,
                first=first,
            )
            routes: list[Route] = []
            description = OpenApiRoutes(base_url, routes)
            docs = DocRoutes(description.body)
            parts = (
                KeyRoutes(registration, self.keys, webhook_secrets, renders, checks.usage, self.removal.wake),
                self.cards,
                CheckRoutes(checks, self.keys, alerts, base_url, config.allow_private_webhooks),
                health,
                MetricsRoutes(
                    answers, self.store, checks, self.delivery, self.sweep, lambda: self.server.connections_shed
                ),
                CheckMetricsRoutes(checks, self.keys),
                PageRoutes(config.accent),
                docs,
            )
            routes += [route for part in parts for route in part.routes()]
            self.router = Router((*routes, *description.routes()))
            to_load = (self._drawing_process.start, self._sender, description.body, docs.load)
            self._loading = threading.Timer(LOAD_AFTER_SECONDS, partial(_load, to_load))
            self._loading.name, self._loading.daemon = "loading", True
            proxies, observe = config.trusted_proxies, answers.observe
            exchange = Exchange(self.router, workers, proxies, access_log=access_log, observe=observe, soon=soon)
            self.server = HttpServer(listener, exchange, loop, config.http)
            undo.pop_all()

    def _heartbeat(self, config: Config, clock: Clock, alerts: Alerts) -> Checks:
        """Make the delivery and the sweep, which `run` starts, and return the checks, whose alerts they handle."""
        self._sender = once(partial(new_sender, config.allow_private_webhooks))
        courier = Courier(alerts, lambda *post: self._sender().post(*post), clock)
        self.delivery = Delivery(alerts, courier, clock)
        self.sweep = Sweep(
            self.database,
            clock,
            alerts,
            self.delivery.wake,
            config.sweep_seconds,
            after=Report(config.report_to) if config.report_to else None,
            fence=self.database.fence,
        )
        return Checks(self.database, clock, alerts, self.delivery)

    def run(self, stops: Sequence[float] = ()) -> bool:
        """Serve until SIGTERM or SIGINT, then stop all parts, and return whether all have ended.

        Signals must wake the loop; `stops` are the monotonic times of those that came before. Raises `StartupError`
        before it serves, if the lock file of the alerts can't be used or the system grants too few threads.
        """
        on_stop_signals(lambda _number, _frame: self._stop(time.monotonic()))
        if stops:
            self._stop(stops[0])
        try:
            self.delivery.start()
            self.sweep.start()
            self.removal.start()
            threads.start(self._loading)
            if self._signs:
                self._signs.start()
            where = f"{self._data.absolute()}{' and PostgreSQL' if self.database.fence else ''}"
            log.info("cardbeat %s serves %s, its data is in %s", __version__, self.server.url, where)
            service_manager.tell("READY=1")
            self.server.serve_forever()
        finally:
            has_ended = self.close()
        log.info("stopped")
        return has_ended

    def _stop(self, asked_at: float) -> None:
        """Stop; at a second signal, do not wait any more for requests that clients have not sent."""
        if self._stop_by == inf:
            service_manager.tell("STOPPING=1")
            self._stop_by = asked_at + self._stop_seconds
            # Running posts and the last requests end at the same time, not one after the other.
            self.server.loop.call_soon(self.delivery.begin_stop)
            self.server.stop(asked_at)
        else:
            self.server.hurry()

    def close(self) -> bool:
        """Stop the background threads, then close the port, the stored cards and the database.

        False if a part has not ended in time: it keeps what it uses open until the process ends.
        """
        stop_by = min(self._stop_by, time.monotonic() + self._stop_seconds)

        def left() -> float:
            return max(LEAST_SECONDS, stop_by - time.monotonic())

        # Tell all parts to stop before waiting for any.
        self._loading.cancel()
        if self._signs:
            self._signs.stop(0)
        self.cards.stop()
        self.sweep.stop(0)
        self.removal.stop(0)
        self.server.server_close()
        have_ended = [
            self.delivery.stop(max(0, stop_by - time.monotonic())),
            self.sweep.stop(left()),
            self.removal.stop(left()),
            self.store.close(left()),
            self.database.close(left()),
        ]
        self._drawing_process.close()
        return all(have_ended)


def once(make: Callable[[], T]) -> Callable[[], T]:
    """Return what `make` makes at the first call, in any thread. If that fails, the next call tries again."""
    lock, made = threading.Lock(), cache(make)

    def get() -> T:
        with lock:
            return made()

    return get


def new_sender(allow_private: bool) -> "Sender":
    from cardbeat.heartbeat.webhooks.post import Sender  # noqa: PLC0415

    return Sender(allow_private)


def _load(parts: Iterable[Callable[[], object]]) -> None:
    for part in parts:
        try:
            part()
        except Exception:
            log.exception("a part could not be loaded")
