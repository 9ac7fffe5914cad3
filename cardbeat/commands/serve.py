"""The command `serve`: opens the port, warns of likely mistakes in the setup, and serves until a stop signal."""

import argparse
import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cardbeat import __version__
from cardbeat.commands.advice import open_registration, undefined_tiers, unknown_variables, unreachable_base_url
from cardbeat.commands.options import SERVE_OPTIONS, Parser, values_of
from cardbeat.concurrency.watchdog import Watchdog, end_now
from cardbeat.config import Config
from cardbeat.errors import StartupError, Unavailable
from cardbeat.host import pillow
from cardbeat.host.system import descriptor_limit, keep_files_private, keep_memory_private, on_stop_signals
from cardbeat.keys.tiers import tiers_from
from cardbeat.log import BatchHandler
from cardbeat.web.access import AccessLog
from cardbeat.web.listener import Listener
from cardbeat.web.loop import Loop

if TYPE_CHECKING:
    from cardbeat.service import Service

log = logging.getLogger(__name__)

MIB = 1024 * 1024
ASKED_AGAIN_AND_AGAIN = frozenset(("/healthz", "/metrics", "/checks/metrics"))
"""Routes that programs ask every few seconds for as long as the service runs."""
LEAST_DESCRIPTORS = 24
"""With 18 the database, the log and the loop are open, and the rest is for clients."""
OVERTIME_SECONDS = 0.75
"""Added to the time of a stop. After it the process ends, even if a thread hangs."""
LAST_LINES_SECONDS = 0.2
"""Time at the end to write the last log lines, if the reader of stderr is slow."""

EPILOG = """\
Each option is a variable too (CARDBEAT_PORT). More commands, with own --help:
  card, cards       draw one card, or those of a site, without a server
  keys, checks      manage API keys; a client that keeps your checks in a file
  import, backup, restore, doctor, completion  move data, check this host
"""


def parser() -> Parser:
    about = "Link-preview cards and a dead man's switch for cron jobs."
    made = Parser("[serve] [options] | --version | --help", about, EPILOG)
    made.add_argument("--version", action="version", version=f"cardbeat {__version__}", help=argparse.SUPPRESS)
    # The usage names both already; without their lines the help fits 24 lines.
    made.actions[0].help = argparse.SUPPRESS
    for option in SERVE_OPTIONS:
        option.add_to(made)
    return made


def run(argv: Sequence[str]) -> int:
    config = config_from(values_of(SERVE_OPTIONS, parser().parse_args(list(argv))))
    stops: list[float] = []
    on_stop_signals(partial(_note, stops))
    loop = Loop()
    watchdog = Watchdog(config.http.stop_seconds + OVERTIME_SECONDS, on_signal=loop.wake)
    watchdog.start()
    try:
        main_log, has_ended = _serve(config, loop, stops)
    except StartupError:
        if not stops:
            raise
        return 0
    finally:
        watchdog.end()
    if not has_ended:
        end_now()
    if not main_log.finish(LAST_LINES_SECONDS):
        # The interpreter's own exit would wait for the reader of stderr.
        os._exit(0)
    return 0


def _serve(config: Config, loop: Loop, stops: list[float]) -> tuple[BatchHandler, bool]:
    """Serve until a signal; the log, and whether all threads have ended. Raises `StartupError`."""
    if (allowed := descriptor_limit(LEAST_DESCRIPTORS)) < LEAST_DESCRIPTORS:
        found = f"the system allows {allowed} open files, and serving needs {LEAST_DESCRIPTORS}"
        raise StartupError(f"{found}; raise its limit (ulimit -n, a service's LimitNOFILE=)")
    if problem := pillow.problem():
        raise StartupError(problem)
    # The port opens first: clients that connect during the imports wait instead of being refused.
    main_log = _start_log()
    listener = Listener(config.host, config.port)
    from cardbeat.service import Service  # noqa: PLC0415 - importing it needs Pillow

    # Files hold secrets: only the owner may read them.
    keep_files_private()
    keep_memory_private()
    access_log = AccessLog(main_log.put, ASKED_AGAIN_AND_AGAIN if config.quiet_health else ())
    service = Service(config, listener, loop, access_log)
    for warning in _warnings(config, service):
        log.warning("%s", warning)
    return main_log, service.run(stops)


def _note(stops: list[float], _number: int, _frame: object) -> None:
    """Note the time of a stop signal during the start: clients may have connected, and are answered before the stop.

    A second one ends the process. Nothing is half done at any point of the start.
    """
    stops.append(time.monotonic())
    if len(stops) > 1:
        sys.exit(0)


def config_from(values: dict[str, Any]) -> Config:
    """The configuration, from the values of `SERVE_OPTIONS` by name. Raises `StartupError` for a bad file of tiers."""
    return Config(
        registration_open=values.pop("registration") == "open",
        store_bytes=values.pop("store_mb") * MIB,
        trusted_proxies=tuple(values.pop("trusted_proxy")),
        tiers=tiers_from(values.pop("tiers")),
        **values,
    )


def _start_log() -> BatchHandler:
    """Send the log to stderr, with times in UTC."""
    logging.Formatter.converter = time.gmtime
    main_log = BatchHandler(sys.stderr)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=[main_log])
    return main_log


def _warnings(config: Config, service: "Service") -> Iterator[str]:
    yield from unknown_variables(os.environ)
    yield from unreachable_base_url(config.host, config.base_url)
    yield from open_registration(config.registration_open, config.base_url)
    # The health check reports a database that can't be read.
    with contextlib.suppress(Unavailable):
        yield from undefined_tiers(service.keys.count_by_tier(), config.tiers)
