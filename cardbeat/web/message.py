"""Requests and responses as values: handlers get and return these and never see a socket."""

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import nan
from typing import Any, Protocol

from cardbeat.errors import Invalid, Refusal

NO_STORE = "no-store"
JSON_HEADERS = {"Content-Type": "application/json", "Cache-Control": NO_STORE}
_NO_LENGTH = (204, 304)
"""Answers without a body, whose length would be taken for that of another answer (RFC 9110, 8.6)."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

MOST_LISTED = 32
"""Members of a header that are read: a list of thousands of commas takes a millisecond."""
_MAX_DEPTH = 16
"""Lists and objects inside each other in a request's body. No endpoint needs as many."""
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string, complete or cut off, or a character that begins or ends a list or an object."""


class Holder(Protocol):
    """The owner of a key, or a client that needs none."""

    @property
    def queue(self) -> str: ...


@dataclass(slots=True)
class Request:
    """One complete HTTP request.

    - `target` is the request target as sent, `path` its decoded path, `query` the part after the first `?`, encoded.
    - `headers` holds those of `reader.HEADERS` that were sent, by their names in lower case. The values of a repeated
      header are joined with `, `.
    - `client` is the address of the client, behind a trusted proxy the forwarded one. `network` is the network that
      counts as one client (`forwarded.network_of`).
    - `pattern` is that of the route, `params` holds the values of the names in it. `key` is set by the route's guard.
    - `received_at` is the monotonic time at which the request was complete, in seconds. `held_bytes` is roughly the
      memory that it takes.
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
    key: Holder | None = None
    received_at: float = field(default=nan, compare=False)
    held_bytes: int = field(default=0, compare=False)

    def payers(self, key: str | None) -> tuple[str, ...]:
        """Whose turn it takes: neither a key nor a network gets more by many of the other."""
        return (self.network,) if key is None else (key, self.network)

    def names_tag(self, header: str, etag: str) -> bool:
        """Whether the header (`if-match` or `if-none-match`) holds this entity tag or `*`. False without the header.

        A weak tag (`W/"..."`) counts as the strong one, because proxies that compress make our tags weak.
        """
        if header not in self.headers:
            return False
        tags = [tag.strip().removeprefix("W/") for tag in self.headers[header].split(",", MOST_LISTED)]
        return etag in tags or "*" in tags

    def expect_no_body(self) -> None:
        """Check that the body is missing or an empty JSON object. Raises as `json_object` does."""
        if self.body:
            self.json_object(())

    def json_object(self, members: Collection[str]) -> dict[str, Any]:
        """The body as a JSON object without members other than `members`.

        Raises `Refusal` 415 for another content type and `Invalid` for anything that is not such an object.
        """
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise Refusal("unsupported_media_type")
        value = _parse_json(self.body)
        if not isinstance(value, dict):
            raise Invalid("invalid_json", "The body must be a JSON object, such as {}.")
        for name, item in value.items():
            if name not in members:
                known = ", ".join(members) or "none"
                raise Invalid("unknown_field", field=name, name=_quoted(name), known=known)
            if isinstance(item, dict | list):
                raise Invalid("invalid_field", f"The field {_quoted(name)} must not hold a list or object.", field=name)
        return value


@dataclass(slots=True)
class FileBody:
    """A body: the first `length` bytes of an open file. The receiver of this object must close `descriptor`."""

    descriptor: int
    length: int

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        """The bytes of the body. Raises `OSError` if the file has become shorter."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        data = os.read(self.descriptor, self.length)
        if len(data) < self.length:
            raise OSError("the file of a body is shorter than it was")
        return data


@dataclass(slots=True)
class Response:
    """One HTTP response, without the headers that the server adds.

    These are `Date`, `Connection`, `Content-Length`, `X-Request-Id`, `X-Content-Type-Options` and, if missing,
    `Cache-Control: no-store`. The server sends no body to HEAD.

    `lines` are the headers as bytes, set when the response is first sent. A handler may keep them for its next response
    with the same headers and length; then only `X-Cache` is read from `headers`, for the log and the metrics.
    """

    status: int = 200
    body: bytes | FileBody = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    lines: bytes = field(default=b"", compare=False, repr=False)

    @classmethod
    def json(cls, status: int, value: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> "Response":
        return cls(status, json_bytes(value), {**JSON_HEADERS, **(headers or {})})

    @classmethod
    def refusal(cls, refusal: Refusal) -> "Response":
        """The response to a refused request: the JSON body that all errors have."""
        return cls.json(refusal.status, refusal.body(), refusal.headers)


def header_lines(response: Response) -> bytes:
    """The header lines that depend on the response alone, with the empty line at the end.

    Raises `ValueError` for a header that would break out of its line.
    """
    headers = {"Cache-Control": NO_STORE, "X-Content-Type-Options": "nosniff", **response.headers}
    if response.status not in _NO_LENGTH:
        headers["Content-Length"] = str(len(response.body))
    lines = "\r\n".join(map(": ".join, headers.items()))
    if not lines.count("\n") == lines.count("\r") == len(headers) - 1:
        raise ValueError("a header of the response holds a line end")
    return lines.encode("latin-1", "replace") + b"\r\n\r\n"


Answered = tuple[Request, Response, float]
"""A request, its response, and the seconds between them."""


_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_bytes(value: Mapping[str, Any]) -> bytes:
    return _encoded(value).encode("utf-8", "replace")


def json_page(name: str, items: Iterable[Mapping[str, Any]], others: Mapping[str, Any]) -> bytes:
    """The JSON of an object with a long list called `name`, and the members of `others` behind it.

    Items are encoded one by one: the interpreter runs no other thread during one call of the encoder.
    """
    written = ",".join(map(_encoded, items))
    return f"{{{_encoded(name)}:[{written}],{_encoded(others)[1:]}".encode("utf-8", "replace")


def _parse_json(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
        # From Python 3.12 on the parser assumes a larger stack than a thread may have, and could crash.
        if _is_deeper(text, _MAX_DEPTH):
            raise Invalid("invalid_json", "The body is nested too deeply.")
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
        # A lone \ud800 is legal in JSON but not in UTF-8: it can be neither stored nor sent back.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise Invalid("invalid_json", "The body is not valid UTF-8 text.") from None
    except ValueError:
        raise Invalid("invalid_json") from None
    return value


def _is_deeper(text: str, most: int) -> bool:
    """Whether more lists and objects than `most` are open at once, also in a text that is not JSON."""
    found = (match[0] for match in _NESTING.finditer(text))
    return any(depth > most for depth in accumulate((it in "[{") - (it in "]}") for it in found))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise Invalid("duplicate_field", field=name, name=_quoted(name))
        members[name] = value
    return members


def _no_constant(name: str) -> Any:
    raise Invalid("invalid_json", f"{name} is not a JSON value.")


def _quoted(name: str) -> str:
    return json.dumps(name if len(name) <= 40 else name[:40] + "…")
