"""The endpoints of keys, cards and checks, and the webhook: what they take and answer."""

from typing import Final

from cardbeat.cards.drawing_queue import WAITING_OF_KEY
from cardbeat.cards.request import MAX_CHARACTERS, TEMPLATES, THEMES
from cardbeat.characters import SEEN
from cardbeat.check_metrics import MOST_CHECKS
from cardbeat.heartbeat.alerts import WAITING_OUTAGES
from cardbeat.heartbeat.quota import TESTS_AN_HOUR, WAITING_TESTS
from cardbeat.heartbeat.receivers import RECEIVERS
from cardbeat.heartbeat.routes import LARGEST_PAGE_CHECKS, PAGE_CHECKS
from cardbeat.openapi.examples import ALERT_ID, CARDS_KEY_VALUE, CHECK_ID, ETAG
from cardbeat.openapi.parts import (
    BEARER,
    CARDS_KEY,
    IF_NONE_MATCH,
    Json,
    answer,
    header,
    json_answer,
    json_body,
    json_content,
    link,
    operation,
    query,
    text_answer,
)
from cardbeat.openapi.schemas import CHECK_ID_SCHEMA

CARD_HEADERS: Final = ("Cache-Control", "ETag", "X-Cache", "X-Missing-Glyphs", "Accept-Ranges")
PNG: Final[Json] = {"image/png": {"schema": {"type": "string", "format": "binary"}}}
"""`format` is what makers of clients look at, though OpenAPI 3.1 would do without a schema."""
CHECK_LINKS: Final[Json] = {
    name: link(name)
    for name in ("readCheck", "updateCheck", "deleteCheck", "listAlerts", "sendTestAlert", "ping", "pingByPost")
}


def card_text(name: str, meaning: str, example: str, *, required: bool = False) -> Json:
    """A text on the card. Only the required one, `title`, must hold something visible."""
    schema = {"type": "string", "pattern": SEEN} if required else {"type": "string"}
    return query(name, meaning, schema, required=required, example=example)


def choice(name: str, meaning: str, values: tuple[str, ...]) -> Json:
    return query(name, meaning, {"type": "string", "enum": list(values), "default": values[0]})


PATH_PARAMETERS: Final[dict[str, Json]] = {
    "id": {"name": "id", "in": "path", "required": True, "schema": CHECK_ID_SCHEMA, "example": CHECK_ID},
    "name": {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}, "example": "style.css"},
}

OPERATIONS: Final[dict[str, Json]] = {
    "POST /register": operation(
        "register",
        "Keys",
        "Get an API key",
        {
            201: json_answer(
                "The key, shown this once: for checks when an e-mail address was sent, else for cards.",
                "IssuedKey",
            )
        },
        errors=(403, 415, 429, 503),
        description=(
            "Without a body it issues a cards key, which stands in the HTML of public pages: whoever reads it there "
            "can draw cards with it and read its limits, and nothing else. With an e-mail address it issues a checks "
            "key, and the secret that signs its alerts. Keys are counted for each client address; those "
            "of one IPv6 network of /64 count as one."
        ),
        body=json_body("Registration", required=False),
    ),
    "GET /key": operation(
        "readKey",
        "Keys",
        "Read a key's tier, its limits and the use made of them",
        {200: json_answer("The key, without its value.", "Key")},
        errors=(401, 503),
        security=BEARER,
    ),
    "DELETE /key": operation(
        "revokeKey",
        "Keys",
        "Revoke a checks key; its checks go with it",
        {204: answer("It is revoked, and dead at once.", "Cache-Control")},
        errors=(401, 403, 415, 503),
        description=(
            "No alert of its checks is sent from then on, and their ping URLs answer 404. A cards key is public, so "
            "it can't revoke itself (403): the operator does it, with the command `keys revoke`."
        ),
        security=BEARER,
    ),
    "POST /key/rotate": operation(
        "rotateKey",
        "Keys",
        "Give a checks key a new value; the old one is dead at once",
        {200: json_answer("The same key with its new value, shown this once.", "IssuedKey")},
        errors=(401, 403, 415, 503),
        description="A cards key is public, so it can't do this (403).",
        security=BEARER,
    ),
    "POST /key/webhook-secret": operation(
        "renewWebhookSecret",
        "Keys",
        "Get a new secret for the alerts of a checks key",
        {200: json_answer("The new secret, shown this once.", "WebhookSecret")},
        errors=(401, 403, 415, 503),
        description=(
            "For 24 hours alerts carry two signatures, by the new secret and by the one before it, so that a receiver "
            "can be changed meanwhile. Asked for again within that time, the newest two sign."
        ),
        security=BEARER,
    ),
    "GET /og": operation(
        "readCard",
        "Cards",
        "Draw a link-preview card, or answer it as it was stored",
        {
            200: answer("The card, a PNG of 1200×630 pixels and under 100 KB.", *CARD_HEADERS, content=PNG),
            206: answer("The part of it that Range asks for.", *CARD_HEADERS, "Content-Range", content=PNG),
            304: answer("The card is still the one that If-None-Match names.", *CARD_HEADERS),
        },
        errors=(401, 403, 416, 429, 503),
        description=(
            "One card is stored for each distinct URL: the same URL gives the same image. Parameters other than "
            "these are allowed and make another URL, so `v=2` draws anew. A parameter of these must not be "
            "repeated. In the texts, tabs and line breaks count as spaces, other control characters are dropped, what "
            f"is no UTF-8 becomes U+FFFD, and after {MAX_CHARACTERS} characters a text is cut. A stored card is never "
            "refused for its rate. New ones are drawn in turns by key; past "
            f"{WAITING_OF_KEY} that wait for one key it gets 503."
        ),
        security=CARDS_KEY,
        parameters=(
            query("key", "A cards key.", {"type": "string"}, required=True, example=CARDS_KEY_VALUE),
            card_text("title", "The text drawn largest; not blank.", "Designing reliable jobs", required=True),
            card_text("description", "A sentence or two below it.", "What three years of cron taught us."),
            card_text("author", "Who wrote it.", "Ada Lovelace"),
            card_text("tag", "A word or two above the title.", "Engineering"),
            card_text("domain", "The site.", "blog.example.com"),
            choice("template", "The layout.", TEMPLATES),
            choice("theme", "The colours.", THEMES),
            IF_NONE_MATCH,
            header("Range", "Bytes of the image; several ranges, and nonsense, get the whole.", "bytes=0-1023"),
            header("If-Range", "An ETag without which Range does not count.", ETAG),
        ),
    ),
    "POST /checks": operation(
        "createCheck",
        "Checks",
        "Create a check",
        {201: json_answer("The check.", "CheckAnswer", "ETag", "Location", links=CHECK_LINKS)},
        errors=(401, 403, 415, 503),
        description="A new check is on time; its clock starts now, so a job that never runs is noticed too.",
        security=BEARER,
        body=json_body("NewCheck"),
    ),
    "GET /checks": operation(
        "listChecks",
        "Checks",
        "List the key's checks, oldest first",
        {200: json_answer("A page of checks.", "CheckPage")},
        errors=(401, 403, 503),
        security=BEARER,
        parameters=(
            query(
                "limit",
                "Checks on the page, as plain digits.",
                {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE_CHECKS, "default": PAGE_CHECKS},
            ),
            query("after", "The id of the last check of the page before: its `next`.", CHECK_ID_SCHEMA),
        ),
    ),
    "GET /checks/metrics": operation(
        "readCheckMetrics",
        "Checks",
        "Read the key's checks, in the text format of Prometheus",
        {200: text_answer("Whether each is up, its last ping and its deadline, by name.", "text/plain")},
        errors=(401, 403, 503),
        description=(
            "`cardbeat_check_up` is 1 while a check is on time, before its first ping too, and 0 while it is overdue. "
            "Checks of one name differ in the label `id`, which is a part of the check's: not enough to ping with. "
            f"A key with more than {MOST_CHECKS:,} checks gets 403."
        ),
        security=BEARER,
    ),
    "GET /checks/{id}": operation(
        "readCheck",
        "Checks",
        "Read a check",
        {200: json_answer("The check.", "CheckAnswer", "ETag")},
        errors=(401, 403, 404, 503),
        security=BEARER,
    ),
    "PATCH /checks/{id}": operation(
        "updateCheck",
        "Checks",
        "Change what the body names",
        {200: json_answer("The whole check as it is now.", "CheckAnswer", "ETag")},
        errors=(401, 403, 404, 409, 412, 415, 503),
        description=(
            "Absent fields keep their values, and the merged result is validated. The change applies only if no "
            "other one came in between (409). A ping changes neither `version` nor `updated_at`, and is never lost. "
            "Another `webhook_url` gets the alerts that wait at once; the attempts already made count, and `delivery` "
            "tells of the last one until then. With null they go on waiting until there is one again."
        ),
        security=BEARER,
        parameters=(header("If-Match", "The ETag of the version to change, a list of them, or `*`.", '"2"'),),
        body=json_body("CheckChanges"),
    ),
    "DELETE /checks/{id}": operation(
        "deleteCheck",
        "Checks",
        "Delete a check; its undelivered alerts go with it",
        {204: answer("It is deleted.", "Cache-Control")},
        errors=(401, 403, 404, 412, 415, 503),
        security=BEARER,
        parameters=(header("If-Match", "The ETag of the version to delete, a list of them, or `*`.", '"2"'),),
    ),
    "GET /checks/{id}/alerts": operation(
        "listAlerts",
        "Checks",
        "List a check's newest 100 alerts and how their delivery went",
        {200: json_answer("The alerts, newest first.", "Alerts")},
        errors=(401, 403, 404, 503),
        security=BEARER,
    ),
    "POST /checks/{id}/test-alert": operation(
        "sendTestAlert",
        "Checks",
        "Send an alert to the check's webhook as a real one is sent",
        {202: json_answer("It will be sent in its turn.", "CheckAnswer", "ETag")},
        errors=(401, 403, 404, 415, 429, 503),
        description=(
            f"At most {WAITING_TESTS} test alerts of a check wait for its receiver, and {TESTS_AN_HOUR} of a key are "
            "taken in an hour; past either 429, whose sentence says which. `Retry-After` then tells when the first of "
            "those that wait is tried again, at most an hour, or when the key may have another one. Of the check's "
            "alerts it waits for tests alone."
        ),
        security=BEARER,
    ),
    "GET /ping/{id}": operation(
        "ping",
        "Checks",
        "Ping: the last step of a job that went well",
        {200: json_answer("The ping is on disk.", "Beat")},
        errors=(404, 503),
        description="The id is the credential. HEAD pings too.",
        ignores_body=True,
    ),
    "POST /ping/{id}": operation(
        "pingByPost",
        "Checks",
        "Ping, with any body or none; it is ignored",
        {200: json_answer("The ping is on disk.", "Beat")},
        errors=(404, 503),
        ignores_body=True,
    ),
}

WEBHOOKS: Final[dict[str, Json]] = {
    "alert": {
        "post": {
            "operationId": "receiveAlert",
            "tags": ["Alerts"],
            "summary": "An alert, sent to a check's webhook_url by the Standard Webhooks specification",
            "description": (
                "Sent again after 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 5 h, 10 h and 14 h until it is answered 2xx "
                "within 10 s; `Retry-After` is honoured up to a day. A check's alerts arrive in order, apart from "
                f"tests, which wait for tests alone. While they can't, those of its newest {WAITING_OUTAGES} outages "
                f"wait. {', '.join(receiver.name for receiver in RECEIVERS)}: each of these is known by its URL's "
                "shape and gets, instead of this body, the JSON that it documents, signed in the same way."
            ),
            "parameters": [
                header("webhook-id", "The same over retries: drop doubles by it.", ALERT_ID),
                header("webhook-timestamp", "Of this attempt, in Unix seconds.", "1772419567"),
                header(
                    "webhook-signature",
                    "`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body` with the webhook_secret. For 24 "
                    "hours after a new secret one by each, a space between them: one that fits is enough.",
                    "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
                ),
            ],
            "requestBody": {"required": True, "content": json_content("Delivery")},
            "responses": {
                "2XX": {"description": "It is delivered."},
                "410": {
                    "description": "No more attempts are made for this alert, unless the check has another URL by then."
                },
                "default": {"description": "It is tried again; redirects are not followed."},
            },
        }
    }
}
