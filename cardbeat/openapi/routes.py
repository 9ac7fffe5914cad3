"""`GET /openapi.json`: the description of the service, as OpenAPI 3.1."""

import re
from functools import cached_property
from typing import Any, Final

from cardbeat import __version__
from cardbeat.openapi.errors import KINDS, error_body
from cardbeat.openapi.operations import OPERATIONS, PATH_PARAMETERS, WEBHOOKS
from cardbeat.openapi.parts import Json, answer
from cardbeat.openapi.schemas import SCHEMAS, ref
from cardbeat.openapi.site import SITE_OPERATIONS
from cardbeat.web.message import Request, Response, json_bytes
from cardbeat.web.router import Route

INFO: Final = {
    "title": "cardbeat",
    "version": __version__,
    "summary": "Link-preview cards and a dead man's switch for cron jobs.",
    "description": (
        "HEAD is answered wherever GET is, with the same status and headers; it knows no Range. A known path with "
        "another method is 405 with `Allow`, an unknown path 404. Every error has one shape. Times are UTC, "
        "`YYYY-MM-DD HH:MM:SS`."
    ),
    "license": {"name": "MIT", "identifier": "MIT"},
}
TAGS: Final = {
    "Cards": "Link-preview images.",
    "Checks": "Jobs that are watched, and their pings.",
    "Alerts": "What a check's webhook receives.",
    "Keys": "Of two scopes: cards keys are public, checks keys are secrets.",
    "Operation": "For who runs the service.",
    "Pages": "For people.",
}
SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key; for checks one of scope `checks`."},
    "cardsKey": {"type": "apiKey", "in": "query", "name": "key", "description": "An API key of scope `cards`."},
}
ANSWER_HEADERS: Final[dict[str, tuple[str, Json]]] = {
    "Accept-Ranges": ("Ranges of bytes can be asked for.", {"const": "bytes"}),
    "Allow": ("The methods that the path takes.", {"type": "string"}),
    "Cache-Control": ("Of all answers only cards are for caches, and those for ever.", {"type": "string"}),
    "Content-Range": ("The part of the image, or `*`, and its size.", {"type": "string", "pattern": "^bytes "}),
    "Content-Security-Policy": ("What the page may load: its own files.", {"type": "string"}),
    "ETag": ("Names this version.", {"type": "string", "pattern": '^"[0-9a-f]+"$'}),
    "Location": ("The new check.", {"type": "string", "pattern": "^(/.+)?/checks/"}),
    "Referrer-Policy": ("Card URLs hold keys.", {"const": "no-referrer"}),
    "Retry-After": ("Seconds after which it is worth trying again.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("How to send a key.", {"const": "Bearer"}),
    "X-Cache": ("Whether the card was stored already.", {"type": "string", "enum": ["HIT", "MISS"]}),
    "X-Content-Type-Options": ("Always the same.", {"const": "nosniff"}),
    "X-Missing-Glyphs": (
        "Characters that no font has, also in a text that is cut or gave up its place, marks that no font places on"
        " their letter, parts of an emoji that has no picture as a whole, and what is left out where texts mix scripts"
        " so much that the card would take too long.",
        {"type": "integer", "minimum": 0},
    ),
    "X-Request-Id": ("Names this request in the operator's log.", {"type": "string"}),
}


class OpenApiRoutes:
    """`base_url` has no slash at its end."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    @cached_property
    def _body(self) -> bytes:
        return json_bytes(document(self._base_url))

    def routes(self) -> list[Route]:
        return [Route("GET", "/openapi.json", self.read, in_loop=True)]

    def read(self, _request: Request) -> Response:
        return Response(200, self._body, {"Content-Type": "application/json"})


def document(base_url: str) -> dict[str, Any]:
    """The description of a service that is reached by `base_url`."""
    return {
        "openapi": "3.1.0",
        "info": INFO,
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": _paths(),
        "webhooks": WEBHOOKS,
        "components": {
            "schemas": SCHEMAS,
            "responses": {str(status): _error_response(status) for status in KINDS},
            "headers": {
                name: {"description": text, "required": True, "schema": schema}
                for name, (text, schema) in ANSWER_HEADERS.items()
            },
            "securitySchemes": SECURITY,
        },
    }


def _paths() -> dict[str, Json]:
    paths: dict[str, Json] = {}
    for endpoint, operation in (OPERATIONS | SITE_OPERATIONS).items():
        method, path = endpoint.split()
        item = paths.setdefault(path, {})
        if names := re.findall(r"\{(\w+)\}", path):
            item["parameters"] = [PATH_PARAMETERS[name] for name in names]
        item[method.lower()] = operation
    return paths


def _error_response(status: int) -> Json:
    kind = KINDS[status]
    examples = {code: {"value": error_body(code, *example)} for code, example in kind.codes.items()}
    headers = ("Cache-Control", kind.header) if kind.header else ("Cache-Control",)
    return answer(kind.meaning, *headers, content={"application/json": {"schema": ref("Error"), "examples": examples}})
