"""The composition root: builds every part of the service from a `Config`, and starts and stops them in order."""

import contextlib
import logging
import time
from math import inf

from cardbeat import __version__
from cardbeat.cards.render import Renderer
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.store import Store
from cardbeat.clock import Clock, wall_clock
from cardbeat.config import Config
from cardbeat.database import Database
from cardbeat.database_file import DELIVERY_LOCK
from cardbeat.health import HealthRoutes
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.courier import Courier
from cardbeat.heartbeat.delivery import Delivery
from cardbeat.heartbeat.removal import Removal
from cardbeat.heartbeat.report import Report
from cardbeat.heartbeat.routes import CheckRoutes
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.heartbeat.transitions import TransitionLog
from cardbeat.heartbeat.webhook import Sender
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.routes import KeyRoutes
from cardbeat.keys.store import Keys
from cardbeat.keys.webhook_secrets import WebhookSecrets
from cardbeat.metrics import Answers, MetricsRoutes
from cardbeat.openapi.routes import OpenApiRoutes
from cardbeat.pages.routes import PageRoutes
from cardbeat.system import on_stop_signals, wake_on_signals
from cardbeat.typeset.fonts import Fonts
from cardbeat.web.server import Server

log = logging.getLogger(__name__)


class Service:
    """All parts of the service, put behind a server that serves nothing yet.

    Raises `StartupError` if it can't run as configured; the server is closed then.
    """

    def __init__(self, config: Config, server: Server, clock: Clock = wall_clock) -> None:
        self._stop_seconds = config.http.stop_seconds
        self._stop_by = inf
        with contextlib.ExitStack() as undo:
            self.server = server
            undo.callback(server.server_close)
            self.database = Database(config.data)
            undo.callback(self.database.close)
            base_url = config.base_url or server.url
            renders = RateLimit()
            self.keys = Keys(self.database, clock, config.tiers)
            self.transitions = TransitionLog()
            alerts = Alerts(self.database, base_url, self.transitions)
            courier = Courier(alerts, Sender(config.allow_private_webhooks).post, clock)
            self.delivery = Delivery(alerts, courier, clock, config.data / DELIVERY_LOCK)
            checks = Checks(self.database, clock, alerts, self.delivery)
            report = Report(config.report_to) if config.report_to else None
            self.sweep = Sweep(self.database, clock, alerts, self.delivery.wake, config.sweep_seconds, after=report)
            self.removal = Removal(self.database)
            self.store = Store(config.data / "cards", config.store_bytes, disk_is_low=self.database.reserve.is_low)
            undo.callback(self.store.close)
            answers = Answers()
            self.cards = CardRoutes(
                self.keys,
                self.store,
                Renderer(Fonts()),
                renders,
                work_soon=server.exchange.work_soon,
                note_drawing_seconds=answers.drawing_seconds.append,
            )
            server.exchange.observe = answers.observe
            for part in (
                KeyRoutes(
                    self.keys,
                    WebhookSecrets(self.database, clock),
                    renders,
                    checks.count,
                    self.removal.wake,
                    registration_open=config.registration_open,
                    register_per_minute=config.register_per_minute,
                ),
                self.cards,
                CheckRoutes(checks, self.keys, alerts, base_url, config.allow_private_webhooks),
                HealthRoutes(self.database, clock, self.sweep.healthy),
                MetricsRoutes(answers, store=self.store, checks=checks, delivery=self.delivery, sweep=self.sweep),
                OpenApiRoutes(base_url),
                PageRoutes(),
            ):
                server.router.add(part.routes())
            undo.pop_all()

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, finish what runs, and return.

        Raises `StartupError`, before it serves, if the lock file of the alerts can't be used.
        """
        on_stop_signals(lambda _number, _frame: self._stop())
        wake_on_signals(self.server.loop.waker)
        try:
            self.delivery.start()
            log.info("cardbeat %s serves %s", __version__, self.server.url)
            self.transitions.start()
            self.sweep.start()
            self.removal.start()
            self.server.serve_forever()
        finally:
            wake_on_signals(None)
            self.close()
        log.info("stopped")

    def _stop(self) -> None:
        self._stop_by = min(self._stop_by, time.monotonic() + self._stop_seconds)
        self.server.stop()

    def close(self) -> None:
        """Stop what works in the background, and let go of the port and the database."""
        stop_by = min(self._stop_by, time.monotonic() + self._stop_seconds)
        self.cards.stop()
        self.sweep.stop()
        self.removal.stop()
        self.delivery.stop(max(0, stop_by - time.monotonic()))
        self.transitions.stop()
        self.store.close()
        self.server.server_close()
        self.database.close()
