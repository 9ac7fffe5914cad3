"""The pieces that the description's operations are written with."""

from typing import Any, Final

from cardbeat.openapi.errors import EVERYWHERE
from cardbeat.openapi.examples import ETAG, EXAMPLES
from cardbeat.openapi.schemas import ref

Json = dict[str, Any]

BEARER: Final[list[Json]] = [{"bearer": []}]
CARDS_KEY: Final[list[Json]] = [{"cardsKey": []}]


def operation(
    id: str,
    tag: str,
    summary: str,
    answers: dict[int, Json],
    *,
    errors: tuple[int, ...] = (),
    description: str | None = None,
    security: list[Json] | None = None,
    parameters: tuple[Json, ...] = (),
    body: Json | None = None,
    ignores_body: bool = False,
) -> Json:
    """One operation. To `errors`, its own statuses, those are added that any request can meet.

    With `ignores_body`, as its route has it, no body is too large.
    """
    responses = {str(status): answer for status, answer in answers.items()}
    met = {*errors, *EVERYWHERE}
    if ignores_body:
        met.remove(413)
    for status in sorted(met):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    made = {
        "operationId": id,
        "tags": [tag],
        "summary": summary,
        "description": description,
        "security": security or [],
        "parameters": list(parameters) or None,
        "requestBody": body,
        "responses": responses,
    }
    return {name: value for name, value in made.items() if value is not None}


def answer(description: str, *headers: str, content: Json | None = None, links: Json | None = None) -> Json:
    """An answer with its own headers by name; those that every answer has are added."""
    named = ("X-Request-Id", "X-Content-Type-Options", *headers)
    made = {
        "description": description,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in named},
        "content": content,
        "links": links,
    }
    return {name: value for name, value in made.items() if value is not None}


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


IF_NONE_MATCH: Final = header("If-None-Match", "An ETag seen before: 304 while it still holds.", ETAG)


def link(operation_id: str) -> Json:
    return {"operationId": operation_id, "parameters": {"id": "$response.body#/check/id"}}
