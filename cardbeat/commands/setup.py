"""A server's setup: its configuration, from the options, and what is likely a mistake in it.

A mistake is a sentence that says what was found and, behind "; ", what to do. The start of `serve`
logs them, `doctor` prints them.
"""

import ipaddress
import os
from argparse import Namespace
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from cardbeat.commands.options import SERVE_OPTIONS, database_url
from cardbeat.config import Config
from cardbeat.keys.tiers import tiers_from

_LOCAL_NAMES: Final = (
    ".localhost",
    ".local",
    ".internal",
    ".lan",
    ".home.arpa",
    ".test",
)


def config_of(given: Namespace) -> Config:
    """The configuration, of what was read with `SERVE_OPTIONS`. Raises `StartupError`."""
    values = {
        option.name: getattr(given, option.name) for option in SERVE_OPTIONS
    }
    return Config(
        database=database_url(),
        registration_open=values.pop("registration") == "open",
        store_bytes=values.pop("store_mb") * 2**20,
        trusted_proxies=tuple(values.pop("trusted_proxy")),
        tiers=tiers_from(values.pop("tiers")),
        **values,
    )


def mistakes(config: Config) -> Iterator[str]:
    """What is likely a mistake in the setup."""
    if os.environ.get("CARDBEAT_PORT", "").startswith("tcp://"):
        found = (
            "CARDBEAT_PORT is ignored, because Kubernetes set it for a Service"
        )
        yield f"{found}; set enableServiceLinks: false"
    if config.host in ("0.0.0.0", "::") and config.base_url is None:  # noqa: S104
        found = f"ping URLs will hold the address {config.host}, which no client can reach"
        yield f"{found}; set --base-url to the public URL"
    if config.webhook_proxy and config.registration_open:
        found = "the webhook proxy looks up names, so alerts of strangers can reach what it can"
        yield f"{found}; let it refuse private targets, or close the registration"
    if not _is_public(config.base_url):
        return
    if config.registration_open:
        found = f"everyone who reaches {config.base_url} can get keys there"
        yield f"{found}; to issue them yourself, set --registration closed"
    if not config.trusted_proxies:
        found = f"if a proxy serves {config.base_url}, the limits take all its clients for one"
        yield f"{found}; set --trusted-proxy to its address"


def _is_public(base_url: str | None) -> bool:
    """Whether a URL names neither this machine nor a local one: `https://cards.example`."""
    host = (urlsplit(base_url or "").hostname or "localhost").rstrip(".")
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_LOCAL_NAMES)
