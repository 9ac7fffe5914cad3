"""A request and a response as values; no handler ever sees a socket."""

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any, Protocol

from cardbeat.errors import Invalid, Refusal

NO_STORE = "no-store"
JSON_HEADERS = {"Content-Type": "application/json", "Cache-Control": NO_STORE}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_MAX_DEPTH = 16
"""More than any body here needs."""
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string, whole or cut off, or what begins or ends a list or an object."""


class Holder(Protocol):
    """Whoever holds a key."""

    @property
    def id(self) -> str: ...


@dataclass(slots=True)
class Request:
    """One HTTP request, read whole.

    `target` is the request target as sent; `path` is its path with percent-encoding undone; `query` is what follows
    the first `?`, still encoded. `headers` has those of `reader.HEADERS` that were sent, by their names in lower case;
    a repeated header's values are joined with `, `. `client` is the caller's address, the forwarded one behind a
    trusted proxy, and `network` what counts as one client (`forwarded.network_of`). `pattern` is the matched route's,
    `params` what stands for the names in it, `key` what its guard has found. `received_at` is when it had come, in
    seconds of the monotonic clock; `held_bytes` is about how much memory it takes, with what the client has sent behind
    it.
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

    def names_tag(self, header: str, etag: str) -> bool:
        """Whether `If-Match` or `If-None-Match`, named in lower case, holds this entity tag or `*`; not if absent.

        Proxies that compress make our tags weak (`W/`); what they name is the same.
        """
        if header not in self.headers:
            return False
        tags = [tag.strip().removeprefix("W/") for tag in self.headers[header].split(",")]
        return etag in tags or "*" in tags

    def expect_no_body(self) -> None:
        """Where a request has nothing to say: an empty object is as good as none. Raises as `json_object`."""
        if self.body:
            self.json_object(())

    def json_object(self, members: Collection[str]) -> dict[str, Any]:
        """The body as a JSON object that has no other members than `members`.

        Raises `Refusal` 415 for another content type and `Invalid` for anything that is not such an object.
        """
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise Refusal(415, "unsupported_media_type", "Send the body as JSON, with Content-Type: application/json.")
        value = _parse_json(self.body)
        if not isinstance(value, dict):
            raise Invalid("invalid_json", "The body must be a JSON object, such as {}.")
        for name, item in value.items():
            if name not in members:
                known = ", ".join(members) or "none"
                raise Invalid(
                    "unknown_field", f"There is no field {_quoted(name)} here; the fields are: {known}.", field=name
                )
            if isinstance(item, dict | list):
                raise Invalid("invalid_field", f"The field {_quoted(name)} must not hold a list or object.", field=name)
        return value


@dataclass(slots=True)
class FileBody:
    """A body of `length` bytes that stands at the start of an open file. Whoever sends it, or does not, closes it."""

    descriptor: int
    length: int

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        """Raises `OSError` if the file is shorter now."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        data = os.read(self.descriptor, self.length)
        if len(data) < self.length:
            raise OSError("the file of a body is shorter than it was")
        return data


@dataclass(slots=True)
class Response:
    """One HTTP response. The server adds what concerns the connection, `Content-Length`, `X-Request-Id` and, where
    there is none, `Cache-Control: no-store`, and leaves the body out for HEAD.

    `lines` are the headers as they are written, once that has been done. A handler may keep them for its next answer
    of the same headers and length; of `headers` only `X-Cache` is then looked at, for the log.
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
        """The one shape of every error body."""
        value = {"error": refusal.sentence, "code": refusal.code}
        if refusal.field is not None:
            value["field"] = refusal.field
        return cls.json(refusal.status, value, refusal.headers)


Answered = tuple[Request, Response, float]
"""A request, its answer, and the seconds from one to the other."""


_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_bytes(value: Mapping[str, Any]) -> bytes:
    return _encoded(value).encode("utf-8", "replace")


def json_page(name: str, items: Iterable[Mapping[str, Any]], others: Mapping[str, Any]) -> bytes:
    """As `json_bytes`, of a long list under its name and of some other members behind it.

    It is written item by item: in one call, the interpreter would run no other thread until the whole list is done.
    """
    written = ",".join(map(_encoded, items))
    return f"{{{_encoded(name)}:[{written}],{_encoded(others)[1:]}".encode("utf-8", "replace")


def _parse_json(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
        # Not left to the parser: from Python 3.12 on it trusts the stack to be larger than a thread's may be.
        if _depth(text) > _MAX_DEPTH:
            raise Invalid("invalid_json", "The body is nested too deeply.")
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
        # A lone \ud800 is legal JSON but no text: it could be neither stored nor sent back.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise Invalid("invalid_json", "The body is not valid UTF-8 text.") from None
    except ValueError:
        raise Invalid("invalid_json", "The body is not valid JSON.") from None
    return value


def _depth(text: str) -> int:
    """How many lists and objects are open at once at most, whether or not the text is JSON."""
    depth = deepest = 0
    for token in _NESTING.findall(text):
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        deepest = max(deepest, depth)
    return deepest


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise Invalid("duplicate_field", f"The field {_quoted(name)} is given more than once.", field=name)
        members[name] = value
    return members


def _no_constant(name: str) -> Any:
    raise Invalid("invalid_json", f"{name} is not a JSON value.")


def _quoted(name: str) -> str:
    return json.dumps(name if len(name) <= 40 else name[:40] + "…")
