"""Requests and responses as values: handlers get and return these and never see a socket.

Below them stand what a query says, who a request's client is, and the lines of the access log.
"""

import ipaddress
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import nan
from typing import Any
from urllib.parse import unquote_to_bytes

from cardbeat.clock import utc_text
from cardbeat.config import Network
from cardbeat.errors import Invalid, Refusal, quoted, unknown_fields
from cardbeat.log import cut

_LONGEST_NAME = 64
"""Longer than any known name, percent-encoded or not: longer ones are not decoded."""
MOST_LISTED = 32
"""Members of a header that are read: a list of thousands of commas takes a millisecond."""

_MOST_BRACKETS = 500
"""In a body, more than any endpoint needs: the parser of JSON needs stack for each open one."""
_MOST_PROXIES = 16
"""Proxies behind one another whose header is read: each entry costs the loop some microseconds."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(slots=True)
class Request:
    """One complete HTTP request.

    - `target` is the request target as sent, `path` its path, `query` the part after the first
      `?`, all encoded.
    - `headers` holds those of `reader.HEADERS` that were sent, by their names in lower case. The
      values of a repeated header are joined with `, `.
    - `client` is the address of the client, behind a trusted proxy the forwarded one. `network` is
      the network that counts as one client (`network_of`).
    - `pattern` is that of the route, `params` holds the values of the names in it. `key` is what
      the route's guard returned.
    - `received_at` is the monotonic time at which the request was complete, in seconds.
      `head_bytes` is the length of its head.
    """

    method: str
    target: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    client: str = "127.0.0.1"
    network: str = "127.0.0.1"
    id: str = "-"
    params: Mapping[str, str] = field(default_factory=dict)
    pattern: str | None = None
    key: Any = None
    received_at: float = field(default=nan, compare=False)
    head_bytes: int = field(default=0, compare=False)

    @property
    def held_bytes(self) -> int:
        """Roughly the memory that it takes."""
        return self.head_bytes + len(self.body)

    def names_tag(self, header: str, etag: str) -> bool:
        """Whether the header (`if-match` or `if-none-match`) holds this entity tag or `*`.

        A weak tag (`W/"..."`) counts as the strong one: proxies that compress make tags weak.
        """
        listed = self.headers.get(header, "").split(",", MOST_LISTED)
        tags = [tag.strip().removeprefix("W/") for tag in listed]
        return etag in tags or "*" in tags

    def expect_no_body(self) -> None:
        """Check that the body is missing or an empty JSON object. Raises as `json_object` does."""
        if self.body:
            self.json_object(())

    def json_object(
        self, members: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The body as a JSON object, with no members but these if they are given.

        Raises `Refusal` 415 for another content type and `Invalid` for anything else that is no
        such object.
        """
        media_type = (
            self.headers.get("content-type", "")
            .partition(";")[0]
            .strip()
            .lower()
        )
        if media_type != "application/json":
            raise Refusal("unsupported_media_type")
        value = _parse_json(self.body)
        if not isinstance(value, dict):
            raise Invalid(
                "invalid_json",
                "The body must be a JSON object, such as {}.",
            )
        if members is not None and (
            unknown := unknown_fields(value, members)
        ):
            raise Invalid.of_all(unknown)
        return value


@dataclass(slots=True)
class Response:
    """One HTTP response, without the headers that the server adds.

    These are `Date`, `Connection`, `Content-Length`, `X-Request-Id`, `X-Content-Type-Options` and,
    if missing, `Cache-Control: no-store`. The server sends no body to HEAD.

    `lines` are the headers as bytes, set before the response is first sent.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    lines: bytes = field(default=b"", compare=False)

    @classmethod
    def json(
        cls,
        status: int,
        value: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> "Response":
        body = _encoded(value).encode("utf-8", "replace")
        return cls(
            status,
            body,
            {"Content-Type": "application/json", **(headers or {})},
        )


Answered = tuple[Request, Response, float]
"""A request, its response, and the seconds between them."""


def header_lines(response: Response) -> bytes:
    """The header lines that depend on the response alone, with the empty line at the end.

    Raises `ValueError` for a header that would break out of its line.
    """
    length = None
    # These have no body, and a length would be taken for another answer's (RFC 9110, 8.6).
    if response.status not in (204, 304):
        length = len(response.body)
    return _lines(tuple(response.headers.items()), length)


@lru_cache(256)
def _lines(
    given: tuple[tuple[str, str], ...], length: int | None
) -> bytes:
    headers = {
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        **dict(given),
    }
    if length is not None:
        headers["Content-Length"] = str(length)
    lines = [f"{name}: {value}" for name, value in headers.items()]
    text = "\r\n".join([*lines, "", ""])
    if text.count("\r") + text.count("\n") > 2 * len(lines) + 2:
        raise ValueError("a header of the response holds a line end")
    return text.encode("latin-1", "replace")


_encoded = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":")
).encode


def _parse_json(body: bytes) -> Any:
    if body.count(b"[") + body.count(b"{") > _MOST_BRACKETS:
        raise Invalid("invalid_json", "The body is nested too deeply.")
    try:
        text = body.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_no_constant
        )
        # A lone \ud800 is legal in JSON but not in UTF-8: it can be neither stored nor sent back.
        _encoded(value).encode()
    except UnicodeError:
        raise Invalid(
            "invalid_json", "The body is not valid UTF-8 text."
        ) from None
    except ValueError:
        raise Invalid("invalid_json") from None
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise Invalid(
                "duplicate_field", field=name, name=quoted(name)
            )
        members[name] = value
    return members


def _no_constant(name: str) -> Any:
    raise Invalid("invalid_json", f"{name} is not a JSON value.")


def first_value(query: str, name: str) -> str | None:
    """The value of the first parameter of this name; None if there is none."""
    return next((value for _, value in _known(query, (name,))), None)


def values_of(query: str, name: str) -> list[str]:
    """The values of all parameters of this name."""
    return [value for _, value in _known(query, (name,))]


def only_value(query: str, name: str) -> str:
    """The value of the parameter of this name; empty if there is none, or if it is repeated."""
    values = values_of(query, name)
    if len(values) == 1:
        return values[0]
    return ""


def known_among(names: Collection[str], query: str) -> dict[str, str]:
    """The parameters of a query that have one of these names. Others are ignored.

    A value may be empty, with or without `=` before it. `+` is a space. A percent sign that begins
    no escape stays: `100%` is `100%`. Bytes that are not UTF-8 become U+FFFD.
    Raises `Invalid` if one of these parameters is repeated.
    """
    values: dict[str, str] = {}
    for name, value in _known(query, names):
        if name in values:
            raise Invalid("duplicate_parameter", field=name)
        values[name] = value
    return values


def _known(
    query: str, names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each known parameter."""
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if "%" in name and len(name) <= _LONGEST_NAME:
            name = _decoded(name)
        if name in names:
            yield name, _decoded(value)


def _decoded(part: str) -> str:
    if "%" not in part and part.isascii():
        return part.replace("+", " ")
    data = part.encode("latin-1").replace(b"+", b" ")
    return unquote_to_bytes(data).decode("utf-8", "replace")


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


def trusts(proxies: Sequence[Network], address: Address | None) -> bool:
    """Whether the address is in one of these networks."""
    return address is not None and any(address in one for one in proxies)


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
        if not trusts(trusted, address):
            break
    return client


def access_lines(
    answers: Sequence[Answered], quiet_patterns: Collection[str] = ()
) -> list[str]:
    """The lines of the access log for answers that were sent just now, without secrets.

    `2026-01-31 12:00:00 GET /ping/{id} 200 71 1.3ms 127.0.0.1 - 5f0c-2a`. There is none for an
    answer with status 200 of the routes in `quiet_patterns`.
    """
    now = utc_text(time.time())
    lines = []
    for request, response, seconds in answers:
        if response.status == 200 and request.pattern in quiet_patterns:
            continue
        path = request.pattern or _shown_path(request)
        query = "?" if "?" in request.target else ""
        cache = response.headers.get("X-Cache", "-")
        lines.append(
            f"{now} {request.method} {path}{query} {response.status} {len(response.body)}"
            f" {seconds * 1000:.1f}ms {request.client} {cache} {request.id}"
        )
    return lines


def _shown_path(request: Request) -> str:
    """A path without a route. Long segments are cut: they may be secrets."""
    path = request.target[:200].partition("?")[0]
    shown = "/".join(cut(segment) for segment in path.split("/"))
    return shown.encode("ascii", "backslashreplace").decode()
