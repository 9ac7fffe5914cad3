"""Parses webhook URLs and decides which addresses are allowed. Looks up no name.

This prevents SSRF: a stranger with a key must not make the server send requests into its network.
"""

import functools
import ipaddress
import re
import socket
import unicodedata
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

URL_BYTES = 2000
"""The longest webhook URL, in UTF-8."""
HOST_CHARACTERS = 253
LABEL_CHARACTERS = 63
"""The longest host name, and the longest label between its dots (RFC 1035, 2.3.4)."""
DEFAULT_PORTS = {"http": 80, "https": 443}
REMEMBERED = 256
"""URLs, and addresses, of which the results are kept: most posts go to few."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(text: str) -> list[Network]:
    return [ipaddress.ip_network(network) for network in text.split()]


METADATA = _networks("""
    169.254.0.0/16 fe80::/10
    100.100.100.200 fd00:100::100:200
    168.63.129.16
    192.0.0.192 fd00:c1::a9fe:a9fe
    fd00:42::42
    fd00:a9fe:a9fe::1
    fd00:ec2::/32
    fd20:ce::254
""")
"""Where clouds keep their machines' secrets.

By line: link-local (most clouds); Alibaba; Azure's host agent; Oracle; Scaleway;
Akamai; Amazon, also the credentials of Kubernetes pods; Google.
"""
NEVER = [
    *METADATA,
    *_networks("0.0.0.0/8 224.0.0.0/4 255.255.255.255 :: ff00::/8"),
]
"""Those, the unspecified address, multicast and broadcast."""
METADATA_NAMES = (
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.goog",
    "metadata.google.internal",
)
"""Names that lead to such an address. They matter where a proxy looks up the names."""
RESERVED = _networks("""
    100.64.0.0/10 192.0.0.0/24 192.88.99.0/24
    2001::/23 3fff::/20 ::/3 4000::/2 8000::/1
""")
"""Allowed only with `--allow-private-webhooks`, as is all that Python's `is_private` knows.

Of IPv6 only 2000::/3 is public. Python versions differ about the other networks.
"""
WITH_IPV4 = _networks("::ffff:0:0/96 64:ff9b::/96")
"""IPv4 addresses that are mapped into IPv6, and NAT64."""
LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
PRIVATE = (
    "The URL's host is a private or reserved address; give one that is reachable from the Internet,"
    " or ask the operator to start the server with --allow-private-webhooks."
)
_NEVER = "The URL's host is an address that is never requested; give another one."
_INVALID = "The URL's host or port is not valid."
_TOO_LONG = (
    f"The URL's host is too long: a name has at most {HOST_CHARACTERS} characters, and "
    f"{LABEL_CHARACTERS} between its dots."
)
_NETLOC = re.compile(
    r"(?:(.*)@)?(\[[0-9A-Fa-f:.]*\]|[^:\[\]@]*)(?::([0-9]{0,5}))?"
)
_NAME = re.compile(r"[a-z0-9._-]+")
_NUMERIC = re.compile(r"(.*\.)?(0x[0-9a-f]*|[0-9]+)")
# Sharp s, final sigma and joiners: IDNA 2003 (Python) and 2008 (browsers) turn them into different
# hosts.
_AMBIGUOUS = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")


class BadTarget(Exception):
    """One sentence that says why a URL or its host can't be a webhook's target."""


class Target(NamedTuple):
    """A webhook URL in its normal form: ASCII, without fragment. This form is vetted and requested.

    `url` has no user information. That is in `credentials`, as Basic authentication sends it (RFC
    7617): `user:password`, "" without an `@`.
    """

    url: str
    netloc: str
    host: str
    address: IpAddress | None
    path: str
    credentials: str


@functools.lru_cache(
    REMEMBERED
)  # a URL of 2,000 bytes takes up to 14 KB here
def parse(url: str) -> Target:
    """The normal form of an absolute http or https URL. Raises `BadTarget` for any other.

    Does not check whether the host is allowed.
    """
    if len(url.encode(errors="surrogatepass")) > URL_BYTES:
        raise BadTarget("The URL is longer than 2,000 bytes.")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadTarget(_INVALID) from None
    if not _AMBIGUOUS.isdisjoint(parts.netloc):
        raise BadTarget(
            "The URL's host has letters that stand for different names; write it in ASCII, as "
            "xn--..."
        )
    if " " in url or "\\" in parts.netloc or not url.isprintable():
        raise BadTarget(
            "The URL holds a space, backslash or control character; write it percent-encoded."
        )
    if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
        raise BadTarget(
            "Give an absolute URL that begins with http:// or https://."
        )
    netloc = _NETLOC.fullmatch(parts.netloc)
    if netloc is None:
        raise BadTarget(_INVALID)
    host, address = _host(netloc[2])
    port = int(netloc[3] or DEFAULT_PORTS[parts.scheme])
    if not 0 < port < 65536:
        raise BadTarget(_INVALID)
    place = f"[{host}]" if ":" in host else host
    if port != DEFAULT_PORTS[parts.scheme]:
        place += f":{port}"
    path = _path(parts.path or "/", parts.query)
    credentials = ""
    if netloc[1]:
        user, _, password = netloc[1].partition(":")
        credentials = f"{unquote(user)}:{unquote(password)}"
    url = f"{parts.scheme}://{place}{path}"
    return Target(url, place, host, address, path, credentials)


def refused_url(url: str, allow_private: bool) -> str | None:
    """A sentence that says why a check can't have this webhook URL; None for a good URL.

    Resolves no name.
    """
    try:
        require_allowed(parse(url), allow_private)
    except BadTarget as bad:
        return str(bad)
    return None


def host_of(webhook_url: str) -> str:
    """The host of a URL, by which posts are limited; "" if the URL can't be parsed."""
    try:
        return parse(webhook_url).host
    except BadTarget:
        return ""


def shown_of(webhook_url: str) -> str:
    """A URL for those who may not know all of it: its scheme and host, without its port."""
    scheme = webhook_url.partition(":")[0].lower()
    host = host_of(webhook_url)
    return f"{scheme}://[{host}]" if ":" in host else f"{scheme}://{host}"


def require_allowed(target: Target, allow_private: bool) -> None:
    """Raise `BadTarget` for a target that is refused without a look-up."""
    is_local = f".{target.host}".endswith(".localhost")
    is_refused = target.host in METADATA_NAMES or (
        is_local and not allow_private
    )
    if target.address is not None:
        is_refused = not may_enter(target.address, allow_private)
    if is_refused:
        raise BadTarget(_NEVER if allow_private else PRIVATE)


def may_enter(address: IpAddress, allow_private: bool) -> bool:
    """Whether a webhook may be sent to an address now. This host's own ones are private too."""
    return allowed(address, allow_private) and (
        allow_private or not is_own(address)
    )


@functools.lru_cache(REMEMBERED)
def allowed(address: IpAddress, allow_private: bool) -> bool:
    """Whether a webhook may be sent to an address, wherever this host has its own.

    An IPv4 address inside an IPv6 address decides for it: `::ffff:10.0.0.1` counts as `10.0.0.1`.
    """
    if address in LOCAL_NAT64:
        # Its owner chooses where in it the IPv4 address stands (RFC 8215).
        return allow_private and not _is_among(
            _last_32_bits(address), METADATA
        )
    address = _plain(address)
    if _is_among(address, NEVER):
        return False
    return allow_private or not (
        address.is_private or _is_among(address, RESERVED)
    )


def address_name(address: IpAddress) -> str:
    """The name under which posts to an address are counted and limited.

    For IPv6 it is the /64 network, which belongs to one owner (RFC 4291, 2.5.1); for an IPv4
    address inside an IPv6 address, the IPv4 address.
    """
    address = _plain(address)
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.IPv6Network((address, 64), strict=False))


def _plain(address: IpAddress) -> IpAddress:
    """The IPv4 address that a mapped, a NAT64 or a 6to4 address stands for, else the address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if _is_among(address, WITH_IPV4):
        return _last_32_bits(address)
    return address.sixtofour or address


def is_own(address: IpAddress) -> bool:
    """Whether an address belongs to this host: it would be a source address. Sends nothing."""
    try:
        family = (
            socket.AF_INET if address.version == 4 else socket.AF_INET6
        )
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ipaddress.ip_address(probe.getsockname()[0]) == address
    except OSError:
        # There is no route to it.
        return False


def _last_32_bits(address: IpAddress) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _is_among(address: IpAddress, networks: list[Network]) -> bool:
    return any(address in network for network in networks)


def _host(text: str) -> tuple[str, IpAddress | None]:
    """The host in lower-case ASCII; and its address, if it is one in any spelling."""
    address: IpAddress | None = None
    try:
        if text.startswith("["):
            whole = ipaddress.IPv6Address(text[1:-1])
            # Python versions write a mapped address differently.
            address = whole.ipv4_mapped or whole
            return str(address), address
        name = _in_ascii(text)
        if _NUMERIC.fullmatch(name):
            # One to four numbers, decimal, octal or hexadecimal, as resolvers take them.
            address = ipaddress.IPv4Address(socket.inet_aton(name))
            return str(address), address
    except (ValueError, OSError):
        raise BadTarget(_INVALID) from None
    return name, None


def _in_ascii(text: str) -> str:
    """The name in ASCII, without a final dot.

    The time of the `idna` codec grows with the square of a label's length, and it blocks all
    threads. So lengths are checked first, after NFKC, in which one character can become eighteen.
    """
    text = unicodedata.normalize("NFKC", text)
    _require_short(text)
    name = text.encode("idna").decode("ascii").lower().removesuffix(".")
    _require_short(name)
    if not _NAME.fullmatch(name):
        raise ValueError
    return name


def _require_short(text: str) -> None:
    text = text.removesuffix(".")
    # Both dots separate labels (RFC 3490, 3.1).
    labels = text.replace("\u3002", ".").split(".")
    if (
        len(text) > HOST_CHARACTERS
        or max(map(len, labels)) > LABEL_CHARACTERS
    ):
        raise BadTarget(_TOO_LONG)


def _path(path: str, query: str) -> str:
    """Path and query; characters that a request line can't hold are percent-encoded."""
    return quote(
        f"{path}?{query}" if query else path, safe="!$%&'()*+,/:;=?@[]|~"
    )
