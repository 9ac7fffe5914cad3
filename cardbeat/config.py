"""The configuration of `serve` as checked values, and the fixed limits of HTTP."""

import ipaddress
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class HttpLimits(NamedTuple):
    """Limits of requests, of memory for all clients together, and of time."""

    request_line_bytes: int = 8 * 1024
    header_bytes: int = 16 * 1024
    header_count: int = 100
    body_bytes: int = 64 * 1024
    held_bytes: int = 64 * 1024 * 1024
    """Requests received and answers not yet sent, of all clients together."""
    header_seconds: float = 10
    body_seconds: float = 10
    idle_seconds: float = 5
    proxy_idle_seconds: float = 130
    """Of a `--trusted-proxy`, which must close idle connections before we do; Caddy after 120 s."""
    write_seconds: float = 60
    """Time without progress while a client receives an answer."""
    linger_seconds: float = 2
    """Time for a client to read an answer after which the connection is closed."""
    unasked_seconds: float = 3
    """How long a stop waits for a client that has connected and not asked."""
    stop_seconds: float = 8.5
    """How long a stop waits for requests, answers and alerts that are being sent.

    The whole stop takes at most 10 s. Unfinished alerts are sent again after the next start.
    """


class Tier(NamedTuple):
    """The limits of a key. None means no limit."""

    max_checks: int | None = 100
    min_period_seconds: int = 1
    renders_per_minute: int | None = 120


FREE = Tier()
UNLIMITED = Tier(max_checks=None, renders_per_minute=None)
TIERS = {"free": FREE, "unlimited": UNLIMITED}
TESTS_AN_HOUR = 30
"""Test alerts of one key of any tier, all checks together, in any 60 minutes."""


class Config(NamedTuple):
    """The options of `serve`."""

    host: str = "127.0.0.1"
    port: int = 8080
    data: Path = Path("cardbeat-data")
    database: str | None = None
    """The URL of a PostgreSQL database, which may hold a password; None for a file in `data`."""
    base_url: str | None = None
    sweep_seconds: float = 60
    registration_open: bool = True
    register_per_minute: int = 30
    tiers: Mapping[str, Tier] = TIERS
    store_bytes: int = 1024 * 1024 * 1024
    allow_private_webhooks: bool = False
    webhook_proxy: str | None = None
    """The URL of an HTTP proxy for alerts, which may hold a password."""
    trusted_proxies: tuple[Network, ...] = ()
    report_to: str | None = None
    accent: str | None = None
    """The colour of cards, as `#rrggbb`; None for the designed ones."""
    time_zone: tzinfo | None = None
    """In which alerts tell times, beside UTC; None for UTC alone."""
    quiet_health: bool = False
    http: HttpLimits = HttpLimits()

    def __repr__(self) -> str:
        return f"Config(data={self.data})"  # without passwords
