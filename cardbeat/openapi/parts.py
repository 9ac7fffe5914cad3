"""What the descriptions of endpoints are written with."""

from dataclasses import dataclass, field
from typing import Any, Final

from cardbeat.openapi.examples import ETAG, EXAMPLES
from cardbeat.openapi.schemas import ref
from cardbeat.web.router import Route

Json = dict[str, Any]

EVERYWHERE: Final = (400, 408, 413, 414, 417, 431, 500, 501)
"""The statuses of refusals that any request may get."""

CARDS_KEY: Final[list[Json]] = [{"cardsKey": []}]


@dataclass(frozen=True)
class Operation:
    """The description of one endpoint, without what its `Route` says.

    `errors` are the statuses of its own refusals. Those of its guard, and those that any request may get, are added.
    """

    id: str
    tag: str
    summary: str
    answers: dict[int, Json]
    errors: tuple[int, ...] = ()
    description: str | None = None
    security: list[Json] = field(default_factory=list)
    parameters: tuple[Json, ...] = ()
    body: Json | None = None

    def of(self, route: Route) -> Json:
        """The OpenAPI operation of this route."""
        errors = {*self.errors, *EVERYWHERE, *(route.guard.refuses if route.guard else ())}
        if route.ignores_body:
            errors.remove(413)
        refused = {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(errors)}
        return _without_none(
            {
                "operationId": self.id,
                "tags": [self.tag],
                "summary": self.summary,
                "description": self.description,
                "security": [{"bearer": []}] if route.guard else self.security,
                "parameters": list(self.parameters) or None,
                "requestBody": self.body,
                "responses": {str(status): answer for status, answer in self.answers.items()} | refused,
            }
        )


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


def link(operation_id: str) -> Json:
    return {"operationId": operation_id, "parameters": {"id": "$response.body#/check/id"}}


def _without_none(members: Json) -> Json:
    return {name: value for name, value in members.items() if value is not None}
