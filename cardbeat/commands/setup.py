"""A server's setup: its configuration, from the options, and what is likely a mistake in it.

A mistake is a sentence that says what was found and, behind "; ", what to do. The start of `serve`
logs them, `doctor` prints them.
"""

import ipaddress
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from cardbeat.commands.options import (
    DATABASE_VARIABLE,
    KEY_VARIABLE,
    SERVE_OPTIONS,
    URL,
    database_url,
    is_service_link,
)
from cardbeat.config import Config, Tier
from cardbeat.keys.tiers import tiers_from

VARIABLES: Final = sorted([*(option.variable for option in SERVE_OPTIONS), DATABASE_VARIABLE])
_OF_CLIENTS: Final = (URL.variable, KEY_VARIABLE)
"""A server ignores these. They may be set on its host for the command `checks`."""
_OF_SERVICE: Final = ("CARDBEAT_PORT_", "CARDBEAT_SERVICE_")
"""Kubernetes sets variables that begin so for a Service named `cardbeat`."""
_LOCAL_NAMES: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test")


def config_of(given: Namespace) -> Config:
    """The configuration, of what was read with `SERVE_OPTIONS`. Raises `StartupError`."""
    values = {option.name: getattr(given, option.name) for option in SERVE_OPTIONS}
    return Config(
        database=database_url(),
        registration_open=values.pop("registration") == "open",
        store_bytes=values.pop("store_mb") * 2**20,
        trusted_proxies=tuple(values.pop("trusted_proxy")),
        tiers=tiers_from(values.pop("tiers")),
        **values,
    )


def mistakes(config: Config, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is likely a mistake in the setup: the name of the matter, and a sentence."""
    for sentence in mistaken_variables(environment):
        yield "variables", sentence
    if config.host in ("0.0.0.0", "::") and config.base_url is None:  # noqa: S104
        found = f"ping URLs will hold the address {config.host}, which no client can reach"
        yield "base_url", f"{found}; set --base-url to the public URL"
    if config.webhook_proxy and config.registration_open:
        found = "the webhook proxy looks up names, so alerts of strangers can reach what it can"
        yield "webhook_proxy", f"{found}; let it refuse private targets, or close the registration"
    if not is_public(config.base_url):
        return
    if config.registration_open:
        found = f"everyone who reaches {config.base_url} can get keys there"
        advice = "to issue them yourself, set --registration closed and use: keys create"
        yield "registration", f"{found}; {advice}"
    if not config.trusted_proxies:
        found = f"if a proxy serves {config.base_url}, the limits take all its clients for one"
        yield "trusted_proxy", f"{found}; set --trusted-proxy to its address"


def mistaken_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each variable that begins with CARDBEAT_ and has no effect."""
    ignored: tuple[str, ...] = ()
    if is_service_link("CARDBEAT_PORT", environment.get("CARDBEAT_PORT", "")):
        ignored = _OF_SERVICE
        yield (
            "CARDBEAT_PORT is ignored, because Kubernetes set it for a Service"
            "; set enableServiceLinks: false, or give the Service another name"
        )
    for name in sorted({*environment}.difference(VARIABLES, _OF_CLIENTS)):
        if name.startswith("CARDBEAT_") and not name.startswith(ignored):
            known = ", ".join(VARIABLES)
            yield f"the variable {name} is unknown and has no effect; there are {known}"


def is_public(base_url: str | None) -> bool:
    """Whether a URL names neither this machine nor a local one: `https://cards.example`."""
    host = (urlsplit(base_url or "").hostname or "localhost").rstrip(".")
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_LOCAL_NAMES)


def undefined_tiers(keys_by_tier: Mapping[str, int], defined: Mapping[str, Tier]) -> Iterator[str]:
    """A sentence if keys are in tiers that are not defined. `keys_by_tier` has their numbers."""
    missing = sorted(keys_by_tier.keys() - defined.keys())
    if missing:
        tiers = ", ".join(f"{tier}: {keys_by_tier[tier]}" for tier in missing)
        yield (
            f"keys in tiers that are not defined get free's limits ({tiers})"
            "; define them with --tiers FILE, or move the keys with: keys tier ID NAME"
        )
