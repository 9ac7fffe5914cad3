"""The endpoints for who runs the service, for crawlers, and for people in a browser: what they take and answer."""

from typing import Final

from cardbeat.heartbeat.liveness import STALLED_SECONDS
from cardbeat.openapi.parts import IF_NONE_MATCH, Json, answer, json_answer, operation, text_answer


def page(id: str, summary: str, *media_types: str, errors: tuple[int, ...] = ()) -> Json:
    headers = ("Cache-Control", "ETag", "Content-Security-Policy", "Referrer-Policy")
    answers = {
        200: answer("The file.", *headers, content={media_type: {} for media_type in media_types}),
        304: answer("The file is still the one that If-None-Match names.", *headers),
    }
    return operation(id, "Pages", summary, answers, errors=errors, parameters=(IF_NONE_MATCH,))


SITE_OPERATIONS: Final[dict[str, Json]] = {
    "GET /robots.txt": operation(
        "robots", "Cards", "Welcome crawlers", {200: text_answer("Everyone is allowed.", "text/plain")}
    ),
    "GET /healthz": operation(
        "health",
        "Operation",
        "Tell whether the service can do its work",
        {200: json_answer("The database can be written, the sweep keeps time, and alerts are worked on.", "Health")},
        errors=(503,),
        description=(
            "503 when the database can't be written, when no sweep has finished for three intervals, or when nobody "
            f"has worked on alerts for {STALLED_SECONDS} seconds: neither this process nor another one with the same "
            "database. An alert that is late because receivers are silent is no reason."
        ),
    ),
    "GET /metrics": operation(
        "metrics",
        "Operation",
        "Read the metrics, in the text format of Prometheus",
        {200: text_answer("Sums only: no key, check or address is in them.", "text/plain")},
        errors=(503,),
    ),
    "GET /openapi.json": operation(
        "describe",
        "Operation",
        "Read this description",
        {200: json_answer("OpenAPI 3.1.", "Description")},
    ),
    "GET /": page("builder", "Build a card", "text/html"),
    "GET /dashboard": page("dashboard", "Watch checks", "text/html"),
    "GET /pages/{name}": page(
        "pageFile",
        "Read what a page loads",
        "text/css",
        "text/javascript",
        "image/svg+xml",
        "font/woff2",
        errors=(404,),
    ),
}
