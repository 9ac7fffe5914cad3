"""Whose request it is: the peer, or the client that a trusted proxy names."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from cardbeat.config import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> Address | None:
    """An address as `Forwarded` or a socket spells it: brackets, a port and a zone are cut off. None for no address."""
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


def client_address(peer: str, headers: Mapping[str, str], trusted: Sequence[Network]) -> str:
    """The right-most address that no trusted proxy has; `peer` itself is one that has been found trusted.

    What stands left of an entry that is no address came from who knows whom, so the walk ends there.
    """
    client = peer
    for entry in _entries(headers):
        address = parse_address(entry)
        if address is None:
            break
        client = str(address)
        if not is_trusted(address, trusted):
            break
    return client


def _entries(headers: Mapping[str, str]) -> Iterator[str]:
    """The forwarded addresses, nearest first. A proxy sets one of the two headers; the other may be the client's."""
    if "x-forwarded-for" in headers:
        yield from reversed(headers["x-forwarded-for"].split(","))
        return
    for element in reversed(headers.get("forwarded", "").split(",")):
        pairs = (pair.strip().partition("=") for pair in element.split(";"))
        yield next((value for name, _, value in pairs if name.lower() == "for"), "")
