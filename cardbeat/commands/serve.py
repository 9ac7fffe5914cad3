"""The command `serve`: listens, warns of what is likely a mistake in how it is set up, and serves until a stop."""

import argparse
import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cardbeat import __version__, pillow
from cardbeat.advice import undefined_tiers, unknown_variables, unreachable_base_url
from cardbeat.config import Config
from cardbeat.errors import StartupError, Unavailable
from cardbeat.keys.tiers import tiers_from
from cardbeat.log import QueuedHandler
from cardbeat.options import SERVE_OPTIONS, Parser, values_of
from cardbeat.system import keep_files_private, on_stop_signals
from cardbeat.watchdog import Watchdog, end_now
from cardbeat.web.router import Router
from cardbeat.web.server import Server

if TYPE_CHECKING:
    from cardbeat.service import Service

log = logging.getLogger(__name__)

MIB = 1024 * 1024
OVERTIME_SECONDS = 0.75
"""What a stop may take longer than it waits for anything, before the process is ended whatever hangs."""
LAST_LINES_SECONDS = 0.2
"""What stderr's reader has at the end to take what is left."""

EPILOG = """\
Each option is a variable too (CARDBEAT_PORT). More commands, with own --help:
  card --title TEXT --output FILE    draw a card into a file, without a server
  keys list|create|revoke|tier       see, issue and end API keys
  checks list|apply|ping             a client: keep your checks in a file
  backup, restore, doctor, completion  copy data, check this host, help a shell
"""


def parser() -> Parser:
    about = "Link-preview cards and a dead man's switch for cron jobs."
    made = Parser("[serve] [options] | --version | --help", about, EPILOG)
    made.add_argument("--version", action="version", version=f"cardbeat {__version__}", help=argparse.SUPPRESS)
    # Both stand in the usage, so that the whole help fits a screen.
    made.actions[0].help = argparse.SUPPRESS
    for option in SERVE_OPTIONS:
        option.add_to(made)
    return made


def run(argv: Sequence[str]) -> int:
    config = config_from(values_of(SERVE_OPTIONS, parser().parse_args(list(argv))))
    # Until the service handles these signals itself, one ends the start, leaving nothing half done.
    stops: list[int] = []

    def leave(number: int, _frame: object) -> None:
        stops.append(number)
        sys.exit(0)

    on_stop_signals(leave)
    watchdog = Watchdog(config.http.stop_seconds + OVERTIME_SECONDS)
    watchdog.start()
    if problem := pillow.problem():
        raise StartupError(problem)
    # Listening comes first: who connects while the rest is imported waits in line instead of being refused.
    server = Server(Router(), config.host, config.port, config.http, config.trusted_proxies)
    from cardbeat.service import Service  # noqa: PLC0415 - importing it needs Pillow

    # Keys' secrets, check ids and cards are for the owner's eyes.
    keep_files_private()
    main_log = _start_log()
    service = Service(config, server)
    for warning in _warnings(config, service):
        log.warning("%s", warning)
    if stops:
        # It came in a callback, out of which Python lets no exception.
        server.stop()
    watchdog.on_signal = server.loop.wake
    has_ended = service.run()
    watchdog.end()
    if not has_ended:
        end_now()
    if not main_log.finish(LAST_LINES_SECONDS):
        # Python's own end would wait for stderr's reader.
        os._exit(0)
    return 0


def config_from(values: dict[str, Any]) -> Config:
    """The values of `SERVE_OPTIONS`, by name. Raises `StartupError` for a file of tiers that can't be used."""
    return Config(
        registration_open=values.pop("registration") == "open",
        store_bytes=values.pop("store_mb") * MIB,
        trusted_proxies=tuple(values.pop("trusted_proxy")),
        tiers=tiers_from(values.pop("tiers")),
        **values,
    )


def _start_log() -> QueuedHandler:
    """Log to stderr, with times in UTC."""
    logging.Formatter.converter = time.gmtime
    stderr = logging.StreamHandler()
    stderr.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    main_log = QueuedHandler(stderr)
    logging.basicConfig(level=logging.INFO, handlers=[main_log])
    # The access log comes in records of many lines, each with its own time.
    access_log = logging.getLogger("cardbeat.access")
    access_log.addHandler(logging.StreamHandler())
    access_log.propagate = False
    return main_log


def _warnings(config: Config, service: "Service") -> Iterator[str]:
    yield from unknown_variables(os.environ)
    yield from unreachable_base_url(config.host, config.base_url)
    # A database that can't be read is the health check's to tell.
    with contextlib.suppress(Unavailable):
        yield from undefined_tiers(service.keys.count_by_tier(), config.tiers)
