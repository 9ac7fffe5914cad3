"""The composition root: builds every part of the service from a `Config`, and starts and stops them in order."""

import contextlib
import logging
import time
from math import inf

from cardbeat import __version__
from cardbeat.cards.render import Renderer
from cardbeat.cards.routes import CardRoutes
from cardbeat.cards.store import Store
from cardbeat.check_metrics import CheckMetricsRoutes
from cardbeat.clock import Clock
from cardbeat.config import Config
from cardbeat.database import open_database
from cardbeat.health import HealthRoutes
from cardbeat.heartbeat.alerts import Alerts
from cardbeat.heartbeat.checks import Checks
from cardbeat.heartbeat.courier import Courier
from cardbeat.heartbeat.delivery import Delivery
from cardbeat.heartbeat.quota import TESTS_AN_HOUR
from cardbeat.heartbeat.removal import Removal
from cardbeat.heartbeat.report import Report
from cardbeat.heartbeat.routes import CheckRoutes
from cardbeat.heartbeat.sweep import Sweep
from cardbeat.heartbeat.transitions import TransitionLog
from cardbeat.heartbeat.webhook import Sender
from cardbeat.keys.routes import KeyRoutes
from cardbeat.keys.shared_rate import limits_for
from cardbeat.keys.store import Keys
from cardbeat.keys.webhook_secrets import WebhookSecrets
from cardbeat.metrics import Answers, MetricsRoutes
from cardbeat.openapi.routes import OpenApiRoutes
from cardbeat.pages.routes import PageRoutes
from cardbeat.system import on_stop_signals
from cardbeat.typeset.fonts import Fonts
from cardbeat.web.server import Server

log = logging.getLogger(__name__)

ASKED_AGAIN_AND_AGAIN = frozenset(("/healthz", "/metrics", "/checks/metrics"))
"""Routes that programs ask every few seconds for as long as the service runs."""
LEAST_SECONDS = 0.1
"""What a part has to end in where nothing is left of the time of a stop."""


class Service:
    """All parts of the service, put behind a server that serves nothing yet.

    `clock` is the database's unless another is given. Raises `StartupError` if the service can't run as configured; the
    server is closed then.
    """

    def __init__(self, config: Config, server: Server, clock: Clock | None = None) -> None:
        self._stop_seconds = config.http.stop_seconds
        self._stop_by = inf
        with contextlib.ExitStack() as undo:
            self.server = server
            undo.callback(server.server_close)
            self.database = open_database(config.data, config.database)
            undo.callback(self.database.close)
            clock = clock or self.database.clock
            server.workers.give_way_to(self.database.precedence)
            base_url = config.base_url or server.url
            limits = limits_for(self.database, clock)
            self.keys = Keys(self.database, clock, config.tiers)
            self.transitions = TransitionLog()
            alerts = Alerts(self.database, base_url, self.transitions)
            courier = Courier(alerts, Sender(config.allow_private_webhooks).post, clock)
            self.delivery = Delivery(alerts, courier, clock)
            checks = Checks(self.database, clock, alerts, self.delivery)
            report = Report(config.report_to) if config.report_to else None
            self.sweep = Sweep(
                self.database,
                clock,
                alerts,
                self.delivery.wake,
                config.sweep_seconds,
                after=report,
                fence=self.database.fence,
            )
            webhook_secrets = WebhookSecrets(self.database, clock)
            self.removal = Removal(self.database, also=(webhook_secrets.forget_old, limits.forget_old))
            self.store = Store(config.data / "cards", config.store_bytes, disk_is_low=self.database.reserve.is_low)
            undo.callback(self.store.close)
            answers = Answers()
            self.cards = CardRoutes(
                self.keys,
                self.store,
                Renderer(Fonts()),
                limits.renders,
                work_soon=server.exchange.work_soon,
                note_drawing_seconds=answers.drawing_seconds.append,
            )
            server.exchange.observe = answers.observe
            if config.quiet_health:
                server.exchange.access_log.quiet_patterns = ASKED_AGAIN_AND_AGAIN
            for part in (
                KeyRoutes(
                    self.keys,
                    webhook_secrets,
                    limits,
                    checks.count,
                    self.removal.wake,
                    count_tests=checks.count_tests,
                    tests_an_hour=TESTS_AN_HOUR,
                    registration_open=config.registration_open,
                    register_per_minute=config.register_per_minute,
                ),
                self.cards,
                CheckRoutes(checks, self.keys, alerts, base_url, config.allow_private_webhooks),
                HealthRoutes(self.database, clock, self.sweep.healthy, self.delivery.liveness.healthy),
                MetricsRoutes(
                    answers,
                    store=self.store,
                    checks=checks,
                    delivery=self.delivery,
                    sweep=self.sweep,
                    connections_shed=lambda: server.connections_shed,
                ),
                CheckMetricsRoutes(checks, self.keys, server.workers),
                OpenApiRoutes(base_url),
                PageRoutes(),
            ):
                server.router.add(part.routes())
            undo.pop_all()

    def run(self) -> bool:
        """Serve until SIGTERM or SIGINT, finish what runs, and return whether all of it has ended.

        Signals must wake the server's loop. Raises `StartupError`, before it serves, if the lock file of the alerts
        can't be used or the system grants too few threads.
        """
        on_stop_signals(lambda _number, _frame: self._stop())
        try:
            self.delivery.start()
            self.transitions.start()
            self.sweep.start()
            self.removal.start()
            self.server.exchange.access_log.start()
            log.info("cardbeat %s serves %s", __version__, self.server.url)
            self.server.serve_forever()
        finally:
            has_ended = self.close()
        log.info("stopped")
        return has_ended

    def _stop(self) -> None:
        self._stop_by = min(self._stop_by, time.monotonic() + self._stop_seconds)
        self.server.stop()

    def close(self) -> bool:
        """Stop what works in the background, and let go of the port and the database.

        False where something has not ended in time: it holds what it works with until the process ends.
        """
        stop_by = min(self._stop_by, time.monotonic() + self._stop_seconds)

        def left() -> float:
            return max(LEAST_SECONDS, stop_by - time.monotonic())

        # Nobody's end is waited for before all were told.
        self.cards.stop()
        self.sweep.stop(0)
        self.removal.stop(0)
        self.server.server_close()
        have_ended = [
            self.delivery.stop(max(0, stop_by - time.monotonic())),
            self.sweep.stop(left()),
            self.removal.stop(left()),
            self.transitions.stop(left()),
            self.store.close(left()),
            self.database.close(left()),
        ]
        return all(have_ended)
