"""The endpoints for the operator, for crawlers, and for browsers: what they accept and answer."""

from typing import Final

from cardbeat.openapi.parts import IF_NONE_MATCH, Operation, answer, json_answer, text_answer


def page(id: str, summary: str, *media_types: str, errors: tuple[int, ...] = ()) -> Operation:
    headers = ("Cache-Control", "ETag", "Content-Security-Policy", "Referrer-Policy")
    answers = {
        200: answer("The file.", *headers, content={media_type: {} for media_type in media_types}),
        304: answer("The file is the one that If-None-Match names.", *headers),
    }
    return Operation(id, "Pages", summary, answers, errors=errors, parameters=(IF_NONE_MATCH,))


SITE_OPERATIONS: Final[dict[str, Operation]] = {
    "GET /robots.txt": Operation(
        "robots", "Cards", "Allow crawlers", {200: text_answer("Every crawler may fetch all.", "text/plain")}
    ),
    "GET /healthz": Operation(
        "health",
        "Operation",
        "Tell whether the service can do its work",
        {200: json_answer("The database can be written, and the sweep runs in time.", "Health")},
        errors=(503,),
        description=(
            "503 when the database can't be written or no sweep has finished for three intervals, neither in this "
            "process nor in another one with the same database."
        ),
    ),
    "GET /metrics": Operation(
        "metrics",
        "Operation",
        "Read the metrics, in the text format of Prometheus",
        {200: text_answer("Sums of the whole service, without keys, checks and addresses.", "text/plain")},
        errors=(503,),
    ),
    "GET /openapi.json": Operation(
        "describe",
        "Operation",
        "Read this description",
        {200: json_answer("OpenAPI 3.1.", "Description")},
    ),
    "GET /": page("builder", "Build a card", "text/html"),
    "GET /dashboard": page("dashboard", "Watch checks", "text/html"),
    "GET /pages/{folder}/{name}": page(
        "pageFile",
        "Read a file that a page loads",
        "text/css",
        "text/javascript",
        "image/svg+xml",
        "font/woff2",
        errors=(404,),
    ),
}
