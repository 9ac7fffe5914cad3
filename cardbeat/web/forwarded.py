"""The client that sent a request: the peer of the connection, or the client that a trusted proxy names."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from cardbeat.config import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Peer(NamedTuple):
    """The other end of a connection. All addresses of one `network` count as one client.

    Each connection of a trusted proxy has a network of its own: it may be that of any client.
    """

    address: str
    network: str
    is_trusted: bool
    """Whether it is a `--trusted-proxy`, whose forwarding headers count."""


def peer_of(address: str, port: int, trusted: Sequence[Network]) -> Peer:
    if trusted and is_trusted(parse_address(address), trusted):
        return Peer(address, f"{address} {port}", is_trusted=True)
    return Peer(address, network_of(address), is_trusted=False)


def parse_address(text: str) -> Address | None:
    """The address in a text from `Forwarded` or a socket, without brackets, port and zone; None if there is none."""
    text = text.strip().strip('"')
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
    return address is not None and any(address in network for network in trusted)


@lru_cache(4096)
def network_of(client: str) -> str:
    """The network that counts as one client: an IPv4 address, or an IPv6 /64, which one host usually has alone."""
    if ":" not in client:
        return client
    address = parse_address(f"[{client}]")
    return str(ipaddress.ip_network((address, 64), strict=False)) if address and address.version == 6 else str(address)


def client_address(peer: str, headers: Mapping[str, str], trusted: Sequence[Network]) -> str:
    """The client that the trusted proxy `peer` names in `X-Forwarded-For` or `Forwarded` (RFC 7239).

    A proxy sets one of these headers and may pass on the other one as the client sent it. We can't know which one it
    set. If they name different clients, neither counts, and the result is the proxy's own address.
    """
    named = {_nearest_stranger(peer, entries, trusted) for entries in _lists(headers)}
    return named.pop() if len(named) == 1 else peer


def _nearest_stranger(peer: str, entries: Sequence[str], trusted: Sequence[Network]) -> str:
    """The right-most address that is not a trusted proxy's.

    The search ends at an entry that is no address: what is left of it may have been written by anyone.
    """
    client = peer
    for entry in reversed(entries):
        address = parse_address(entry)
        if address is None:
            break
        client = str(address)
        if not is_trusted(address, trusted):
            break
    return client


def _lists(headers: Mapping[str, str]) -> Iterator[Sequence[str]]:
    """Yield for each forwarding header its list of addresses, the one nearest to this server last."""
    if "x-forwarded-for" in headers:
        yield headers["x-forwarded-for"].split(",")
    if "forwarded" in headers:
        yield [_for_in(element) for element in headers["forwarded"].split(",")]


def _for_in(element: str) -> str:
    pairs = (pair.strip().partition("=") for pair in element.split(";"))
    return next((value for name, _, value in pairs if name.lower() == "for"), "")
