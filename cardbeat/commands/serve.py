"""The command `serve`: opens the port, warns of likely mistakes, and serves until a stop signal.

A mistake is a sentence that says what was found and, behind "; ", what to do. The start logs them,
`doctor` prints them.
"""

import ipaddress
import logging
import os
import sys
import threading
import time
from argparse import SUPPRESS, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cardbeat import __version__
from cardbeat.commands.options import SERVE_OPTIONS, Parser, database_url
from cardbeat.config import Config
from cardbeat.host.surroundings import require_pillow
from cardbeat.host.system import keep_files_private, on_stop_signals
from cardbeat.keys.tiers import tiers_from
from cardbeat.log import BatchHandler
from cardbeat.web.loop import Loop
from cardbeat.web.message import access_lines
from cardbeat.web.server import listen

if TYPE_CHECKING:
    from cardbeat.service import Service

log = logging.getLogger(__name__)

ASKED_AGAIN_AND_AGAIN: Final = frozenset(
    ("/healthz", "/metrics", "/checks/metrics")
)
"""Routes that programs ask every few seconds for as long as the service runs."""
LAST_LINES_SECONDS: Final = 0.2
"""Time at the end to write the last log lines, if the reader of stderr is slow."""

EPILOG = """\
Each option is a variable too (CARDBEAT_PORT). More commands, with own --help:
  card, cards       draw one card, or those of a site, without a server
  keys, checks      manage API keys; a client that keeps your checks in a file
  import, backup, restore, doctor  move data, check this host
CARDBEAT_DATABASE, without a flag, is the URL of PostgreSQL for several servers.
"""
_LOCAL_NAMES: Final = (
    ".localhost",
    ".local",
    ".internal",
    ".lan",
    ".home.arpa",
    ".test",
)


def parser() -> Parser:
    made = Parser(
        prog="cardbeat",
        usage="cardbeat [serve] [options] | --version | --help",
        description="Link-preview cards and a dead man's switch for cron jobs.",
        epilog=EPILOG,
    )
    version = f"cardbeat {__version__}"
    made.add_argument(
        "--version", action="version", version=version, help=SUPPRESS
    )
    for option in SERVE_OPTIONS:
        option.add_to(made)
    return made


def run(given: Namespace) -> int:
    config = config_of(given)
    # Nothing is half done at any point of the start.
    on_stop_signals(lambda _number, _frame: os._exit(0))
    logging.Formatter.converter = time.gmtime
    main_log = BatchHandler(sys.stderr)
    form = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(
        level=logging.INFO, format=form, handlers=[main_log]
    )
    has_ended = _service(config, main_log).run()
    if not has_ended:
        log.warning(
            "the stop waits no longer; running: %s", threading.enumerate()
        )
    if not main_log.finish(LAST_LINES_SECONDS) or not has_ended:
        # The interpreter's own exit would wait for the reader of stderr.
        os._exit(0)
    return 0


def config_of(given: Namespace) -> Config:
    """The configuration, of what was read with `SERVE_OPTIONS`. Raises `StartupError`."""
    values = {
        option.name: getattr(given, option.name)
        for option in SERVE_OPTIONS
    }
    return Config(
        database=database_url(),
        registration_open=values.pop("registration") == "open",
        store_bytes=values.pop("store_mb") * 2**20,
        trusted_proxies=tuple(values.pop("trusted_proxy")),
        tiers=tiers_from(values.pop("tiers")),
        **values,
    )


def _service(config: Config, main_log: BatchHandler) -> "Service":
    """The service, built. Raises `StartupError`."""
    require_pillow()
    # The port opens first: clients that connect during the imports wait instead of being refused.
    listener = listen(config.host, config.port)
    from cardbeat.service import Service  # noqa: PLC0415 - importing it needs Pillow

    # Files hold secrets: only the owner may read them.
    keep_files_private()
    quiet = ASKED_AGAIN_AND_AGAIN if config.quiet_health else ()
    service = Service(
        config,
        listener,
        Loop(),
        observers=[
            lambda answers: main_log.put(access_lines(answers, quiet))
        ],
    )
    for sentence in mistakes(config):
        log.warning("%s", sentence)
    return service


def mistakes(config: Config) -> Iterator[str]:
    """What is likely a mistake in the setup."""
    if os.environ.get("CARDBEAT_PORT", "").startswith("tcp://"):
        yield (
            "CARDBEAT_PORT is ignored, because Kubernetes set it for a Service;"
            " set enableServiceLinks: false"
        )
    if config.host in ("0.0.0.0", "::") and config.base_url is None:  # noqa: S104
        yield (
            f"ping URLs will hold the address {config.host}, which no client can reach;"
            " set --base-url to the public URL"
        )
    if config.webhook_proxy and config.registration_open:
        yield (
            "the webhook proxy looks up names, so alerts of strangers can reach what it can;"
            " let it refuse private targets, or close the registration"
        )
    if not _is_public(config.base_url):
        return
    if config.registration_open:
        yield (
            f"everyone who reaches {config.base_url} can get keys there;"
            " to issue them yourself, set --registration closed"
        )
    if not config.trusted_proxies:
        yield (
            f"if a proxy serves {config.base_url}, the limits take all its clients for one;"
            " set --trusted-proxy to its address"
        )


def _is_public(base_url: str | None) -> bool:
    """Whether a URL names neither this machine nor a local one: `https://cards.example`."""
    host = (urlsplit(base_url or "").hostname or "localhost").rstrip(".")
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_LOCAL_NAMES)
