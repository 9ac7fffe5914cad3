"""The client that sent a request: the peer of the connection, or who a trusted proxy names."""

import ipaddress
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from cardbeat.config import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_MOST_PROXIES = 16
"""Proxies behind one another whose header is read: each entry costs the loop some microseconds."""


class Peer(NamedTuple):
    """The other end of a connection. All addresses of one `network` count as one client."""

    address: str
    network: str
    is_trusted: bool
    """Whether it is a `--trusted-proxy`, whose `X-Forwarded-For` counts."""


def peer_of(address: str, trusted: Sequence[Network]) -> Peer:
    return Peer(
        address,
        network_of(address),
        is_trusted(parse_address(address), trusted),
    )


def parse_address(text: str) -> Address | None:
    """The address in an entry of `X-Forwarded-For`, without brackets, port and zone; else None."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_trusted(address: Address | None, trusted: Sequence[Network]) -> bool:
    return address is not None and any(
        address in network for network in trusted
    )


@lru_cache(4096)
def network_of(client: str, prefix: int = 64) -> str:
    """The network that counts as one client: an IPv4 address, or an IPv6 network.

    One host usually has a /64 for itself. `::ffff:192.0.2.1` is the IPv4 address in it.
    """
    address = parse_address(f"[{client}]")
    if address is None:
        return client
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.IPv6Network((address, prefix), strict=False))


def client_address(
    peer: str, headers: Mapping[str, str], trusted: Sequence[Network]
) -> str:
    """The client that the trusted proxy `peer` names: the right-most one that is no trusted proxy.

    The search ends at an entry that is no address: what is left of it anyone may have written.
    Example: with `X-Forwarded-For: 1.2.3.4, 192.0.2.7, 10.0.0.2` from a proxy at 10.0.0.1, where
    10.0.0.0/8 is trusted, the client is 192.0.2.7. It may have written 1.2.3.4 itself.
    """
    client = peer
    for entry in reversed(
        headers.get("x-forwarded-for", "").rsplit(",", _MOST_PROXIES)
    ):
        address = parse_address(entry)
        if address is None:
            break
        client = str(address)
        if not is_trusted(address, trusted):
            break
    return client
