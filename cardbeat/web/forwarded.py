"""The client that sent a request: the peer of the connection, or the client that a trusted proxy names."""

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from cardbeat.config import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_MOST_PROXIES = 16
"""Behind one another, as far as their headers are read: each entry costs the loop some microseconds."""
_MOST_QUOTES, _LONGEST_ELEMENT = 8 * _MOST_PROXIES, 200
"""In `Forwarded`: past these it names nobody, which costs nothing."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ELEMENT = re.compile(r'(?:[^";]*+(?:(?<==)"[^"]*+"\s*+)?+(?:;|\Z))*+')
"""An element of `Forwarded` (RFC 7239), in which a quoted string is all of a value."""
_FOR = re.compile(r"(?:^|;)\s*+for=([^;]*+)", re.IGNORECASE)


class Peer(NamedTuple):
    """The other end of a connection. All addresses of one `network` count as one client.

    Each connection of a trusted proxy has a network of its own, in whose turn it is read: any client may have sent it.
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
def network_of(client: str, prefix: int = 48) -> str:
    """The network that counts as one client: an IPv4 address, or an IPv6 /48, which a provider often gives a customer.

    With a /64, which one host usually has alone, such a customer would be 65,536 clients. Whoever has one IPv4 address
    has many IPv6 networks by 6to4 and Teredo. So the IPv4 address inside counts.
    """
    address = parse_address(f"[{client}]") if ":" in client else None
    if not isinstance(address, ipaddress.IPv6Address):
        return client if address is None else str(address)
    inside = ipv4_inside(address) or (address.teredo and address.teredo[1])
    return str(inside or ipaddress.IPv6Network((address, prefix), strict=False))


def ipv4_inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a mapped, a NAT64 or a 6to4 address stands for; None for any other."""
    if address in _MAPPED or address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour


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
    """Yield for each forwarding header its list of addresses, the one nearest to this server last.

    If there are too many, the first entry is all that is left of them, and no address.
    """
    if "x-forwarded-for" in headers:
        yield headers["x-forwarded-for"].rsplit(",", _MOST_PROXIES)
    if "forwarded" in headers:
        yield [_for_in(element) for element in _unquoted(headers["forwarded"]).rsplit(",", _MOST_PROXIES)]


def _unquoted(forwarded: str) -> str:
    """The header without the separators that stand in quotes: a client may have written them, as its `Host`."""
    parts = forwarded.replace("\\\\", "__").replace('\\"', "__").split('"', _MOST_QUOTES + 1)
    parts[1::2] = (part.replace(",", "_").replace(";", "_") for part in parts[1::2])
    return '"'.join(parts) if len(parts) <= _MOST_QUOTES + 1 else ""


def _for_in(element: str) -> str:
    """The client that an element names; empty if it is not valid, or names several."""
    is_valid = len(element) <= _LONGEST_ELEMENT and _ELEMENT.fullmatch(element)
    named: list[str] = _FOR.findall(element) if is_valid else []
    return named[0] if len(named) == 1 else ""
