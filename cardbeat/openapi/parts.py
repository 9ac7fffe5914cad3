"""What the descriptions of endpoints are written with."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cardbeat.errors import REASONS, Refusal
from cardbeat.openapi.examples import ETAG, EXAMPLES
from cardbeat.openapi.schemas import Json, ref
from cardbeat.web.router import Route

EVERYWHERE: Final = (400, 408, 414, 417, 431, 500, 501)
"""The statuses of refusals that any request may get."""
STATUSES: Final = {
    400: (
        "Change the request, or the field it names, before you send it again. After an error in the framing the "
        "connection is closed."
    ),
    401: "The request has no key, or one that is not known here.",
    403: "The key may not do this, or registration is closed.",
    404: "It does not exist, or belongs to another key.",
    405: "The path does not take this method.",
    408: "The request did not arrive in time.",
    409: "The check was changed or deleted during this request.",
    412: "If-Match does not name the version of the check.",
    413: "The body is too large.",
    414: "The request line is too long.",
    415: "The body is not sent as JSON.",
    416: "The range begins after the end of the image.",
    417: "The header Expect has an unknown value.",
    429: "Too many requests in a minute or an hour, or too many alerts that wait.",
    431: "There are too many headers, or they are too large.",
    500: "An error of the server; its log has the details. What was asked may have been done.",
    501: "The method is unknown, or the body is sent with Transfer-Encoding.",
    503: "The server can't do this now; try again after Retry-After. Without that header it may have been done.",
}
"""What the refusals of each status have in common."""
_HEADER_OF: Final = {
    401: "WWW-Authenticate",
    405: "Allow",
    416: "Content-Range",
    429: "Retry-After",
    503: "Retry-After",
}
"""The header that each refusal of a status has."""
TAGS: Final = {
    "Cards": ("Link-preview images.", ("og", "robots.txt")),
    "Checks": ("Monitored jobs, and their pings.", ("checks", "ping")),
    "Alerts": ("What a check's webhook receives.", ()),
    "Keys": ("A cards key is public, a checks key is secret, and its read-only key reads.", ("key", "register")),
    "Operation": ("For the operator of the service.", ("healthz", "metrics", "openapi.json")),
    "Pages": ("For browsers.", ("", "dashboard", "docs", "pages")),
}
"""Each with its description, and with what the paths of its endpoints begin with."""


@dataclass(frozen=True)
class Operation:
    """The description of one endpoint, without what its `Route` says.

    `errors` are the statuses of its refusals but for those that follow from its route, and that any request may get.
    """

    id: str
    summary: str
    answers: dict[int, Json]
    errors: tuple[int, ...] = ()
    description: str | None = None
    security: tuple[Json, ...] = ()
    parameters: tuple[Json, ...] = ()
    body: Json | None = None

    def of(self, route: Route) -> Json:
        errors = sorted({*self.errors, *_errors_of(route)})
        refused = {str(status): {"$ref": f"#/components/responses/{status}"} for status in errors}
        return _without_none(
            {
                "operationId": self.id,
                "tags": [name for name, (_, begins) in TAGS.items() if route.pattern.split("/")[1] in begins],
                "summary": self.summary,
                "description": self.description,
                "security": [{"bearer": []}] if route.guard and 401 in route.guard.refuses else self.security,
                "parameters": list(self.parameters) or None,
                "requestBody": self.body,
                "responses": {str(status): answer for status, answer in self.answers.items()} | refused,
            }
        )


def _errors_of(route: Route) -> Iterator[int]:
    """The statuses of the refusals that follow from a route, and that any request may get."""
    yield from EVERYWHERE
    if route.guard:
        yield from route.guard.refuses
    if "{" in route.pattern:
        yield 404
    if not route.ignores_body:
        yield 413
        if route.method != "GET":
            yield 415
    if not route.in_loop:
        # Too many requests wait for a worker.
        yield 503


def answer(description: str, *headers: str, content: Json | None = None, links: Json | None = None) -> Json:
    """An answer with these headers, and those that every answer has."""
    named = ("X-Request-Id", "X-Content-Type-Options", *headers)
    refs = {name: {"$ref": f"#/components/headers/{name}"} for name in named}
    return _without_none({"description": description, "headers": refs, "content": content, "links": links})


def json_answer(description: str, schema: str, *headers: str, links: Json | None = None) -> Json:
    return answer(description, "Cache-Control", *headers, content=json_content(schema), links=links)


def text_answer(description: str, media_type: str) -> Json:
    return answer(description, "Cache-Control", content={media_type: {"schema": {"type": "string"}}})


def json_body(schema: str, *, required: bool = True) -> Json:
    return {"required": required, "content": json_content(schema)}


def json_content(schema: str) -> Json:
    examples = {name: {"value": value} for name, value in EXAMPLES[schema].items()}
    return {"application/json": {"schema": ref(schema), "examples": examples}}


def query(name: str, description: str, schema: Json, *, required: bool = False, example: Any = None) -> Json:
    made: Json = {"name": name, "in": "query", "description": description, "required": required, "schema": schema}
    return made if example is None else {**made, "example": example}


def header(name: str, description: str, example: str) -> Json:
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string"}, "example": example}


IF_NONE_MATCH: Final = header("If-None-Match", "An ETag from before: the answer is 304 if it is still right.", ETAG)


def refusals(status: int) -> Json:
    """The answer of one status, with an example of each of its codes."""
    headers = filter(None, ("Cache-Control", _HEADER_OF.get(status)))
    examples = {
        code: {"value": Refusal(code, field=reason.field, **reason.values).body()}
        for code, reason in REASONS.items()
        if reason.status == status
    }
    content = {"application/json": {"schema": ref("Error"), "examples": examples}}
    return answer(STATUSES[status], *headers, content=content)


def _without_none(members: Json) -> Json:
    return {name: value for name, value in members.items() if value is not None}
