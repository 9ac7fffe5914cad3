"""Parses webhook URLs and decides which addresses are allowed. Uses no network.

This prevents SSRF: a stranger with a key must not make the server send requests into its own network.
"""

import functools
import ipaddress
import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from cardbeat.web.forwarded import ipv4_inside

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

URL_BYTES = 2000
"""The longest webhook URL, in UTF-8."""
HOST_CHARACTERS = 253
LABEL_CHARACTERS = 63
"""The longest host name, and the longest label between its dots (RFC 1035, 2.3.4)."""
DEFAULT_PORTS = {"http": 80, "https": 443}

_V4 = ipaddress.IPv4Network
_V6 = ipaddress.IPv6Network

LAN = (
    _V4("10.0.0.0/8"),
    _V4("100.64.0.0/10"),
    _V4("127.0.0.0/8"),
    _V4("172.16.0.0/12"),
    _V4("192.168.0.0/16"),
    _V6("::1/128"),
    _V6("fc00::/7"),
)
"""Allowed only with `--allow-private-webhooks`."""
NEVER = (
    _V4("0.0.0.0/8"),
    _V4("100.100.100.200/32"),  # Alibaba's metadata
    _V4("168.63.129.16/32"),  # Azure's host agent
    _V4("169.254.0.0/16"),
    _V4("192.0.0.0/24"),
    _V4("192.0.2.0/24"),
    _V4("192.88.99.0/24"),
    _V4("198.18.0.0/15"),
    _V4("198.51.100.0/24"),
    _V4("203.0.113.0/24"),
    _V4("224.0.0.0/3"),
    _V6("2001::/23"),
    _V6("2001:db8::/32"),
    _V6("3fff::/20"),
    _V6("fd00:42::42/128"),  # Scaleway's metadata
    _V6("fd00:100::100:200/128"),  # Alibaba's metadata
    _V6("fd00:a9fe:a9fe::1/128"),  # Akamai's (Linode's) metadata
    _V6("fd00:c1::a9fe:a9fe/128"),  # Oracle's metadata
    _V6("fd00:ec2::/32"),  # Amazon's metadata, the credentials of Kubernetes pods, and other services
    _V6("fd20:ce::254/128"),  # Google's metadata
)
"""Never allowed: multicast, reserved and documentation networks, and the metadata services of clouds.

Most clouds serve metadata, which holds secrets, at a link-local address; other addresses are named above.
"""

PRIVATE = "The URL's host is a private or reserved address; give one that is reachable from the Internet."

_INVALID_HOST = "The URL's host is not valid."
_TOO_LONG = (
    f"The URL's host is too long: a name has at most {HOST_CHARACTERS} characters, and {LABEL_CHARACTERS} between its"
    " dots."
)

_PUBLIC_V6 = _V6("2000::/3")

_DOTS = re.compile("[.\u3002\uff0e\uff61]")
"""Separators of labels in a name (RFC 3490, 3.1)."""
_NETLOC = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?")
_NAME = re.compile(r"[a-z0-9._-]+")
# Sharp s, final sigma and joiners: IDNA 2003 (Python) and 2008 (browsers) turn them into different hosts.
_AMBIGUOUS = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")
_NUMERIC = re.compile(r"0x[0-9a-f]*|[0-9]+")
_NUMBER = re.compile(r"0x(?P<hex>[0-9a-f]*)|0(?P<octal>[0-7]+)|(?P<decimal>0|[1-9][0-9]*)")
_BASES = {"hex": 16, "octal": 8, "decimal": 10}


class BadTarget(Exception):
    """One sentence that says why a URL or its host can't be a webhook's target."""


class Target(NamedTuple):
    """A webhook URL in its normal form: ASCII, without fragment. The same form is checked and requested."""

    scheme: str
    host: str
    port: int
    path: str
    address: IpAddress | None

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.path}"

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@functools.lru_cache(maxsize=256)  # a URL of 2,000 bytes takes up to 14 KB here
def parse(url: str) -> Target:
    """The normal form of an absolute http or https URL without user information. Raises `BadTarget` for any other.

    Does not check whether the host is allowed.
    """
    # Every character has at least one byte: do not encode a text that is too long anyway.
    if len(url) > URL_BYTES or len(url.encode(errors="surrogatepass")) > URL_BYTES:
        raise BadTarget("The URL is longer than 2,000 bytes.")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadTarget("The URL is not valid.") from None
    if not _AMBIGUOUS.isdisjoint(parts.netloc):
        raise BadTarget("The URL's host has letters that stand for different names; write it in ASCII, as xn--...")
    if " " in url or not url.isprintable():
        raise BadTarget("The URL holds a space or control character; write it percent-encoded.")
    if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
        raise BadTarget("Give an absolute URL that begins with http:// or https://.")
    if "@" in parts.netloc:
        raise BadTarget("The URL must not hold a user name or password.")
    netloc = _NETLOC.fullmatch(parts.netloc)
    if netloc is None:
        raise BadTarget("The URL's host or port is not valid.")
    host, address = _host(netloc[1])
    port = int(netloc[2] or DEFAULT_PORTS[parts.scheme])
    if not 0 < port < 65536:
        raise BadTarget("The URL's port is not valid.")
    return Target(parts.scheme, host, port, _path(parts.path or "/", parts.query), address)


def refused_url(
    url: str, allow_private: bool, is_own: Callable[[IpAddress], bool] = lambda _address: False
) -> str | None:
    """A sentence that says why a check can't have this webhook URL; None for a good URL. Resolves no name.

    `is_own` tells whether an address belongs to this host.
    """
    try:
        target = parse(url)
    except BadTarget as bad:
        return str(bad)
    if target.address and not allow_private and is_own(target.address):
        return PRIVATE
    return refusal_of(target, allow_private)


def receiver_of(webhook_url: str) -> tuple[str, int]:
    """The host of a URL and its port, for limits of posts; an empty host if the URL can't be parsed."""
    try:
        target = parse(webhook_url)
    except BadTarget:
        return "", 0
    return target.host, target.port


def shown_of(webhook_url: str) -> str:
    """A URL for those who may not know all of it: its scheme and host, without its port."""
    scheme, (host, _port) = webhook_url.partition(":")[0].lower(), receiver_of(webhook_url)
    return f"{scheme}://[{host}]" if ":" in host else f"{scheme}://{host}"


def refusal_of(target: Target, allow_private: bool) -> str | None:
    """A sentence that says why a target is refused without resolving its name; None if it is not."""
    local = target.host == "localhost" or target.host.endswith(".localhost")
    if (local and not allow_private) or (target.address and not allowed(target.address, allow_private)):
        return PRIVATE
    return None


def allowed(address: IpAddress, allow_private: bool) -> bool:
    """Whether a webhook may be sent to an address. An IPv4 address inside an IPv6 address decides for it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = ipv4_inside(address)
        if inner is not None:
            return allowed(inner, allow_private)
    if any(address in network for network in NEVER):
        return False
    if any(address in network for network in LAN):
        return allow_private
    return address.version == 4 or address in _PUBLIC_V6


def address_name(address: IpAddress) -> str:
    """The name under which posts to an address are counted and limited.

    For IPv6 it is the /64 network, which belongs to one owner (RFC 4291, 2.5.1); for an IPv4 address inside an IPv6
    address, the IPv4 address.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    inner = ipv4_inside(address)
    return str(inner or ipaddress.IPv6Network((address, 64), strict=False))


def _host(text: str) -> tuple[str, IpAddress | None]:
    """The host in lower-case ASCII; and its address, if it is one in any spelling that resolvers accept."""
    if text.startswith("["):
        return _ipv6(text[1:-1])
    name = _in_ascii(text)
    if not _NAME.fullmatch(name):
        raise BadTarget(_INVALID_HOST)
    if _NUMERIC.fullmatch(name.rpartition(".")[2]):
        address = _ipv4(name)
        return str(address), address
    return name, None


def _in_ascii(text: str) -> str:
    """The name in ASCII, without a final dot. Raises `BadTarget` for a name that is not valid.

    The time of the `idna` codec grows with the square of a label's length, and it blocks all threads. So lengths are
    checked first, also after NFKC, in which one character can become eighteen.
    """
    if not (_fits(text) and _fits(unicodedata.normalize("NFKC", text))):
        raise BadTarget(_TOO_LONG)
    try:
        name = text.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise BadTarget(_INVALID_HOST) from None
    if not _fits(name):
        raise BadTarget(_TOO_LONG)
    return name


def _fits(text: str) -> bool:
    labels = _DOTS.split(text)
    whole = sum(map(len, labels)) + len(labels) - 1 - (not labels[-1])
    return whole <= HOST_CHARACTERS and all(len(label) <= LABEL_CHARACTERS for label in labels)


def _ipv6(text: str) -> tuple[str, IpAddress]:
    try:
        if "%" in text:
            raise ValueError("a zone is valid on one host only")
        whole = ipaddress.IPv6Address(text)
    except ValueError:
        raise BadTarget("The URL's host is not a valid IPv6 address.") from None
    # Python versions write a mapped address differently.
    address = whole.ipv4_mapped or whole
    return str(address), address


def _ipv4(name: str) -> ipaddress.IPv4Address:
    """An IPv4 address of one to four numbers, decimal, octal or hexadecimal; the last one fills the remaining bytes."""
    numbers = [_number(part) for part in name.split(".")]
    *leading, last = numbers
    if len(leading) > 3 or any(number > 255 for number in leading) or last >= 256 ** (4 - len(leading)):
        raise BadTarget("The URL's host is not a valid IPv4 address.")
    return ipaddress.IPv4Address(sum(number << 24 - 8 * place for place, number in enumerate(leading)) + last)


def _number(part: str) -> int:
    match = _NUMBER.fullmatch(part)
    if match is None or match.lastgroup is None:
        raise BadTarget("The URL's host is not a valid IPv4 address.")
    return int(match[match.lastgroup] or "0", _BASES[match.lastgroup])


def _path(path: str, query: str) -> str:
    """Path and query; characters that a request line can't hold are percent-encoded, existing encodings stay."""
    return quote(f"{path}?{query}" if query else path, safe="!$%&'()*+,/:;=?@[]|~")
