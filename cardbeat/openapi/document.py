"""The description of the service, put together."""

import re
from collections.abc import Iterable
from typing import Any, Final

from cardbeat import __version__
from cardbeat.openapi.operations import OPERATIONS, PATH_PARAMETERS, WEBHOOKS
from cardbeat.openapi.parts import STATUSES, TAGS, refusals
from cardbeat.openapi.schemas import SCHEMAS, Json
from cardbeat.web.router import Route

INFO: Final = {
    "title": "cardbeat",
    "version": __version__,
    "summary": "Link-preview cards and a dead man's switch for cron jobs.",
    "description": (
        "HEAD is answered wherever GET is, with the same status and headers, but ignores Range. A known path with "
        "another method gets 405 with `Allow`, an unknown path 404. All errors have the same schema. Times are UTC, "
        "`YYYY-MM-DD HH:MM:SS`."
    ),
    "license": {"name": "MIT", "identifier": "MIT"},
}
SECURITY: Final = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key. Checks need the scope `checks`, or `read` where it says so.",
    },
    "cardsKey": {"type": "apiKey", "in": "query", "name": "key", "description": "An API key of scope `cards`."},
}
ANSWER_HEADERS: Final[dict[str, tuple[str, Json]]] = {
    "Accept-Ranges": ("The answer to a request may be a range of bytes.", {"const": "bytes"}),
    "Allow": ("The methods that the path takes.", {"type": "string"}),
    "Cache-Control": ("Only cards may be cached, for a year.", {"type": "string"}),
    "Content-Range": (
        "The range of the image, or `*`, and the size of the image.",
        {"type": "string", "pattern": "^bytes "},
    ),
    "Content-Security-Policy": ("The page may load its own files only.", {"type": "string"}),
    "ETag": ("Identifies this version.", {"type": "string", "pattern": '^"[0-9a-f]+"$'}),
    "Link": (
        'Only if another page follows: its URL, with `rel="next"` (RFC 8288).',
        {"type": "string", "pattern": '^<.+>; rel="next"$'},
    ),
    "Location": ("The path of the new check.", {"type": "string", "pattern": "^(/.+)?/checks/"}),
    "Referrer-Policy": ("No other site sees a page's URL, since card URLs contain keys.", {"const": "no-referrer"}),
    "Retry-After": ("Seconds after which the request may succeed.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("A key must be sent as a bearer token.", {"const": "Bearer"}),
    "X-Cache": ("Whether the card was stored already.", {"type": "string", "enum": ["HIT", "MISS"]}),
    "X-Content-Type-Options": ("Always the same.", {"const": "nosniff"}),
    "X-Left-Out": (
        "Only if the title leaves no room for the description: then the card does not show it.",
        {"const": "description"},
    ),
    "X-Missing-Glyphs": (
        "The number of characters that could not be drawn. These are characters without a glyph in any font, also in"
        " a text that is cut or left out; marks that no font places on their letter; parts of an emoji that has no"
        " picture as a whole; characters left out because so many mixed scripts would take too long to draw; and"
        " letters that a shaping engine must join, where the server has none (`doctor` tells).",
        {"type": "integer", "minimum": 0},
    ),
    "X-Request-Id": ("Identifies this request in the operator's log.", {"type": "string"}),
}
NOT_ALWAYS: Final = ("Link", "X-Left-Out")
"""Headers that an answer may lack."""


def document(base_url: str, routes: Iterable[Route]) -> dict[str, Any]:
    """The description of a service with these routes, whose URLs begin with `base_url`."""
    return {
        "openapi": "3.1.0",
        "info": INFO,
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": text} for name, (text, _) in TAGS.items()],
        "paths": _paths(routes),
        "webhooks": WEBHOOKS,
        "components": {
            "schemas": SCHEMAS,
            "responses": {str(status): refusals(status) for status in STATUSES},
            "headers": {
                name: {"description": text, "required": name not in NOT_ALWAYS, "schema": schema}
                for name, (text, schema) in ANSWER_HEADERS.items()
            },
            "securitySchemes": SECURITY,
        },
    }


def _paths(routes: Iterable[Route]) -> dict[str, Json]:
    """The operations by path and method, in the order of `OPERATIONS`."""
    by_endpoint = {f"{route.method} {route.pattern}": route for route in routes}
    paths: dict[str, Json] = {}
    for endpoint, operation in OPERATIONS.items():
        route = by_endpoint[endpoint]
        item = paths.setdefault(route.pattern, {})
        if names := re.findall(r"\{(\w+)\}", route.pattern):
            item["parameters"] = [PATH_PARAMETERS[name] for name in names]
        item[route.method.lower()] = operation.of(route)
    return paths
