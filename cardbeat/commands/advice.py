"""Sentences about likely mistakes in the setup, for the start of `serve` and for `doctor`.

Each says what was found and, behind "; ", what to do about it.
"""

import difflib
import ipaddress
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import urlsplit

from cardbeat.commands.options import KEY_VARIABLE, SERVE_OPTIONS, URL
from cardbeat.host.output import printable

PREFIX = "CARDBEAT_"
VARIABLES = sorted(option.variable for option in SERVE_OPTIONS)
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test")
OF_CLIENTS = (URL.variable, KEY_VARIABLE)
"""A server ignores these. They may be set on its host for the command `checks`."""


def unknown_variables(environment: Collection[str]) -> Iterator[str]:
    """One sentence for each name that begins with `PREFIX` and is not one of our variables."""
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in (*VARIABLES, *OF_CLIENTS):
            yield f"the variable {name} is unknown and has no effect; {_nearest_variable(name)}"


def _nearest_variable(name: str) -> str:
    # Without the prefix, which would make any two names similar.
    ends = [variable.removeprefix(PREFIX) for variable in VARIABLES]
    nearest = difflib.get_close_matches(name.removeprefix(PREFIX), ends, n=1)
    return f"did you mean {PREFIX}{nearest[0]}?" if nearest else f"there are {', '.join(VARIABLES)}"


def unreachable_base_url(host: str, base_url: str | None) -> Iterator[str]:
    """A sentence if the server listens on all addresses and has no base URL for its clients."""
    try:
        every_address = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return
    if every_address and base_url is None:
        yield f"ping URLs will hold the address {host}, which no client can reach; set --base-url to the public URL"


def open_registration(is_open: bool, base_url: str | None) -> Iterator[str]:
    """A sentence if everyone on the internet may register: the base URL names neither this machine nor a local one."""
    host = (urlsplit(base_url or "").hostname or "localhost").rstrip(".")
    try:
        is_public = ipaddress.ip_address(host).is_global
    except ValueError:
        is_public = "." in host and not host.endswith(_LOCAL_NAMES)
    if is_open and is_public:
        found = f"everyone who reaches {base_url} can get keys there"
        yield f"{found}; to issue them yourself, set --registration closed and use: keys create"


def undefined_tiers(keys_by_tier: Mapping[str, int], defined: Collection[str]) -> Iterator[str]:
    """A sentence if keys are in tiers that are not defined. `keys_by_tier` has the number of keys in each tier."""
    missing = {tier: count for tier, count in sorted(keys_by_tier.items()) if tier not in defined}
    if missing:
        total = sum(missing.values())
        keys = "1 key is" if total == 1 else f"{total} keys are"
        tiers = printable(", ".join(f"{tier}: {count}" for tier, count in missing.items()))
        yield (
            f"{keys} in tiers that are not defined ({tiers}): a server without these tiers gives free's limits; "
            "define them with its --tiers FILE, or move the keys with: keys tier ID NAME"
        )
