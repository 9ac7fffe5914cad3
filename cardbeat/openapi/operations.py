"""All endpoints, and the webhook: what they accept and answer."""

from typing import Final

from cardbeat.cards.drawing_queue import WAIT_SECONDS, WAITING_OF_KEY
from cardbeat.cards.request import MAX_CHARACTERS, TEMPLATES, THEMES
from cardbeat.characters import SEEN
from cardbeat.config import TESTS_AN_HOUR
from cardbeat.heartbeat.check import SHORT_ID_CHARACTERS
from cardbeat.heartbeat.delivery import allowance
from cardbeat.heartbeat.outbox.alert import ALERTS_AN_HOUR
from cardbeat.heartbeat.outbox.alerts import WAITING_ALERTS
from cardbeat.heartbeat.quota import WAITING_TESTS
from cardbeat.heartbeat.routes import LARGEST_PAGE_CHECKS, PAGE_CHECKS, SIGNAL_PATTERN
from cardbeat.heartbeat.webhooks.receivers import RECEIVERS
from cardbeat.openapi.examples import ALERT_ID, CARDS_KEY_VALUE, CHECK_ID, ETAG
from cardbeat.openapi.parts import (
    IF_NONE_MATCH,
    Operation,
    answer,
    header,
    json_answer,
    json_body,
    query,
    text_answer,
)
from cardbeat.openapi.schemas import CHECK_ID_SCHEMA, Json
from cardbeat.operation.check_metrics import MOST_CHECKS

CARD_HEADERS: Final = ("Cache-Control", "ETag", "X-Cache", "X-Left-Out", "X-Missing-Glyphs", "Accept-Ranges")
PNG: Final[Json] = {"image/png": {"schema": {"type": "string", "format": "binary"}}}
"""OpenAPI 3.1 needs no schema here, but client generators look at `format`."""
CHECK_LINKS: Final[Json] = {
    name: {"operationId": name, "parameters": {"id": "$response.body#/check/id"}}
    for name in (
        *("readCheck", "updateCheck", "deleteCheck", "snoozeCheck", "endSnooze"),
        *("listAlerts", "sendTestAlert", "ping", "pingByPost"),
    )
}

READS: Final = "A read-only key may do this too."


def card_text(name: str, meaning: str, example: str, *, required: bool = False) -> Json:
    """A text of the card. Only the required one, `title`, must have a visible character."""
    schema = {"type": "string", "pattern": SEEN} if required else {"type": "string"}
    return query(name, meaning, schema, required=required, example=example)


def choice(name: str, meaning: str, values: tuple[str, ...]) -> Json:
    return query(name, meaning, {"type": "string", "enum": list(values), "default": values[0]})


def page(id: str, summary: str, *media_types: str) -> Operation:
    headers = ("Cache-Control", "ETag", "Content-Security-Policy", "Referrer-Policy")
    answers = {
        200: answer("The file.", *headers, content={media_type: {} for media_type in media_types}),
        304: answer("The file is the one that If-None-Match names.", *headers),
    }
    return Operation(id, summary, answers, parameters=(IF_NONE_MATCH,))


FILE_TYPES: Final = (
    *("text/css", "text/javascript", "image/svg+xml", "font/woff2"),
    *("image/png", "image/jpeg", "text/plain"),
)

PATH_PARAMETERS: Final[dict[str, Json]] = {
    name: {"name": name, "in": "path", "required": True, "schema": schema, "example": example}
    for name, schema, example in (
        ("id", CHECK_ID_SCHEMA, CHECK_ID),
        ("signal", {"type": "string", "pattern": f"^({SIGNAL_PATTERN})$"}, "fail"),
        ("folder", {"type": "string"}, "shared"),
        ("name", {"type": "string"}, "style.css"),
        ("page", {"type": "string"}, "cards"),
    )
}

OPERATIONS: Final[dict[str, Operation]] = {
    "POST /register": Operation(
        "register",
        "Get an API key",
        {
            201: json_answer(
                "The key, shown this once: a checks key if an e-mail address was sent, else a cards key.",
                "IssuedKey",
            )
        },
        description=(
            "Without a body it issues a cards key. This key is in the HTML of public pages, so it can only draw cards "
            "and read its own limits. With an e-mail address it issues a checks key, and the secret that signs its "
            "alerts. Keys are counted for each client address; an IPv6 network of /64 counts as one address, and a /48 "
            "gets ten times as many. A checks key that has no check and made no request for 90 days is removed, and a "
            "cards key that was never used within a year. A "
            "request that a browser sends for a page of another site is refused (403)."
        ),
        body=json_body("Registration", required=False),
    ),
    "GET /key": Operation(
        "readKey", "Read a key's tier, limits and usage", {200: json_answer("The key, without its value.", "Key")}
    ),
    "DELETE /key": Operation(
        "revokeKey",
        "Revoke a checks key and delete its checks",
        {204: answer("The key is revoked and no longer works.", "Cache-Control")},
        description=(
            "No alert of its checks is sent any more, and their ping URLs answer 404. A cards key is public, so it "
            "can't revoke itself (403): the operator revokes it with the command `keys revoke`."
        ),
    ),
    "POST /key/rotate": Operation(
        "rotateKey",
        "Give a checks key a new value; the old one stops working",
        {200: json_answer("The same key with its new value, shown this once.", "IssuedKey")},
        description="Its read-only key ends too. A cards key is public, so it can't do this (403).",
    ),
    "POST /key/read-only": Operation(
        "issueReadOnlyKey",
        "Get a read-only key for the checks of a checks key",
        {201: json_answer("The read-only key, shown this once.", "ReadOnlyKey")},
        description=(
            "For a wall display, a colleague or Prometheus. It reads `/key`, `/checks`, a check, its alerts and "
            "`/checks/metrics`; all else is refused (403). It sees no ping URL, the first "
            f"{SHORT_ID_CHARACTERS} characters of a check's id, with which it reads that check, and of a webhook URL "
            "the scheme and host. A checks key has one at a time: asking again ends the one before, and so does a new "
            "value of the checks key. While the server's disk is nearly full, no first one is made (503)."
        ),
    ),
    "DELETE /key/read-only": Operation(
        "endReadOnlyKey",
        "End the read-only key of a checks key",
        {204: answer("The checks key has no read-only key any more.", "Cache-Control")},
    ),
    "POST /key/webhook-secret": Operation(
        "renewWebhookSecret",
        "Get a new secret for the alerts of a checks key",
        {200: json_answer("The new secret, shown this once.", "WebhookSecret")},
        description=(
            "For 24 hours each alert has two signatures, one with the new secret and one with the secret before it, so "
            "that you can change the receiver in that time. After a further request the newest two sign; but within 5 "
            "minutes it counts as repeated after a lost answer: the newest signs, and the one before both requests."
        ),
    ),
    "GET /og": Operation(
        "readCard",
        "Draw a link-preview card, or answer the stored one",
        {
            200: answer("The card, a PNG of 1200×630 pixels and under 100 KB.", *CARD_HEADERS, content=PNG),
            206: answer("The part of the card that Range asks for.", *CARD_HEADERS, "Content-Range", content=PNG),
            304: answer("The card is the one that If-None-Match names.", *CARD_HEADERS),
        },
        errors=(401, 403, 416, 429, 503),
        description=(
            "One card is stored for each distinct URL: the same URL gives the same image. Other parameters are allowed "
            "and make another URL, so `v=2` gives a new drawing. The operator may have chosen the hue of the colours "
            "(`--accent`); after a change of it all cards are drawn again. Do not repeat one of these parameters. In "
            "the texts, tabs and line breaks count as spaces, other control characters are removed, bytes that are not "
            f"UTF-8 become U+FFFD, and a text is cut after {MAX_CHARACTERS:,} characters. A stored card never counts "
            f"for the rate limit. New cards are drawn round robin by key and network. If {WAITING_OF_KEY} of a key "
            f"wait, one gets 503, and so does a card that has waited for {WAIT_SECONDS} seconds. "
            "The networks that use a key share its rate and its places: one that asks for many costs others nothing."
        ),
        security=({"cardsKey": []},),
        parameters=(
            query("key", "A cards key.", {"type": "string"}, required=True, example=CARDS_KEY_VALUE),
            card_text("title", "The largest text; not blank.", "Designing reliable jobs", required=True),
            card_text("description", "One or two sentences below the title.", "What three years of cron taught us."),
            card_text("author", "Who wrote it.", "Ada Lovelace"),
            card_text("tag", "A word or two above the title.", "Engineering"),
            card_text("domain", "The site.", "blog.example.com"),
            choice("template", "The layout.", TEMPLATES),
            choice("theme", "The colours.", THEMES),
            IF_NONE_MATCH,
            header("Range", "Bytes of the image. Several or malformed ranges get the whole image.", "bytes=0-1023"),
            header("If-Range", "An ETag: if it is not that of the card, Range is ignored.", ETAG),
        ),
    ),
    "POST /checks": Operation(
        "createCheck",
        "Create a check",
        {201: json_answer("The check.", "CheckAnswer", "ETag", "Location", links=CHECK_LINKS)},
        description="A new check is on time. Its clock starts now, so a job that never runs is noticed too.",
        body=json_body("NewCheck"),
    ),
    "GET /checks": Operation(
        "listChecks",
        "List the key's checks, oldest first",
        {200: json_answer("A page of checks.", "CheckPage", "Link")},
        description=READS,
        parameters=(
            query(
                "limit",
                "Checks on the page, as plain digits.",
                {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE_CHECKS, "default": PAGE_CHECKS},
            ),
            query("after", "The id of the last check on the page before, which is its `next`.", CHECK_ID_SCHEMA),
        ),
    ),
    "GET /checks/metrics": Operation(
        "readCheckMetrics",
        "Read the key's checks, in the text format of Prometheus",
        {200: text_answer("For each check: whether it is up, its last ping, deadline and snooze.", "text/plain")},
        description=(
            "`cardbeat_check_up` is 1 while a check is on time, also before its first ping, and 0 while it is overdue, "
            "also during a snooze. "
            "The label `id` tells checks with the same name apart. It is only the beginning of the check's id, and "
            f"can't ping. A key with more than {MOST_CHECKS:,} checks gets 403. {READS}"
        ),
    ),
    "GET /checks/{id}": Operation(
        "readCheck", "Read a check", {200: json_answer("The check.", "CheckAnswer", "ETag")}, description=READS
    ),
    "PATCH /checks/{id}": Operation(
        "updateCheck",
        "Change the fields that the body has",
        {200: json_answer("The whole check after the change.", "CheckAnswer", "ETag")},
        errors=(409, 412),
        description=(
            "Absent fields keep their values, and the merged result is validated. If another update came in between, "
            "nothing is changed (409). A ping changes neither `version` nor `updated_at`, and is never lost. Waiting "
            "alerts go to a new `webhook_url` at once; earlier attempts still count, and `delivery` shows the last one "
            "until the next. With null they wait for a new URL. While the server's disk is nearly full, name and URL "
            "together can't become longer (503)."
        ),
        parameters=(header("If-Match", "The ETag of the version to change, a list of them, or `*`.", '"2"'),),
        body=json_body("CheckChanges"),
    ),
    "DELETE /checks/{id}": Operation(
        "deleteCheck",
        "Delete a check and its undelivered alerts",
        {204: answer("The check is deleted.", "Cache-Control")},
        errors=(412,),
        parameters=(header("If-Match", "The ETag of the version to delete, a list of them, or `*`.", '"2"'),),
    ),
    "PUT /checks/{id}/snooze": Operation(
        "snoozeCheck",
        "Send no overdue alert and no reminder for a time",
        {200: json_answer("The check with its `snoozed_until`.", "CheckAnswer", "ETag")},
        errors=(412,),
        description=(
            "For a job that pauses. The clock starts again at `snoozed_until`, also after a ping. A check that is "
            "overdue stays so until a ping, whose all-clear is sent; its reminders go on `repeat_seconds` after the "
            "snooze. A failure is noted and not told. An overdue alert that waits already is still sent."
        ),
        parameters=(header("If-Match", "The ETag of the version to snooze, a list of them, or `*`.", '"2"'),),
        body=json_body("Snooze"),
    ),
    "DELETE /checks/{id}/snooze": Operation(
        "endSnooze",
        "End a check's snooze",
        {200: json_answer("The check, whose clock starts now if it was snoozed.", "CheckAnswer", "ETag")},
        errors=(412,),
        parameters=(header("If-Match", "The ETag of the version to change, a list of them, or `*`.", '"2"'),),
    ),
    "GET /checks/{id}/alerts": Operation(
        "listAlerts",
        "List a check's newest 100 alerts (20 if its key has more than 20 checks) and the results of their delivery",
        {200: json_answer("The alerts, newest first.", "Alerts")},
        description=(
            f"A key sends at most {allowance.KEY_POSTS} alerts at once, or two for each of its checks, and as many "
            f"more in an hour. An address gets at most {allowance.ADDRESS_POSTS} posts at once, then "
            f"{allowance.OWN_POSTS} of each key, together at most {allowance.MOST_POSTS:,} (tests only up to "
            f"{allowance.TEST_SHARE:.0%} of that, new keys to {allowance.NEW_KEY_SHARE:.0%}, older ones to more), and "
            "half of these numbers again in an hour. An alert beyond that waits until `next_attempt_at`. "
            f"{READS}"
        ),
    ),
    "POST /checks/{id}/test-alert": Operation(
        "sendTestAlert",
        "Send a test alert to the check's webhook",
        {202: json_answer("The alert is stored and will be sent like a real one.", "CheckAnswer", "ETag")},
        errors=(429,),
        description=(
            f"At most {WAITING_TESTS} test alerts of a check may wait, and a key may send {TESTS_AN_HOUR} in an hour. "
            "Above either limit the answer is 429, whose sentence says which. `Retry-After` is then the time until the "
            "first waiting one is tried again, at most an hour, or until the key may send another one. A test alert "
            "waits for the check's other test alerts only, and lets those that wait be tried again at once. Once it is "
            "delivered, the alert of an outage that waits for its next try is sent at once too."
        ),
    ),
    "GET /ping/{id}": Operation(
        "ping",
        "Ping: the last step of a job that succeeded",
        {200: json_answer("The ping is on disk.", "Beat")},
        errors=(503,),
        description=(
            "The id is the credential. It may be written as a UUID with dashes. HEAD pings too. All after `?` is "
            "ignored: `?status=fail` is a ping."
        ),
    ),
    "POST /ping/{id}": Operation(
        "pingByPost",
        "Ping with POST; a body is ignored",
        {200: json_answer("The ping is on disk.", "Beat")},
        errors=(503,),
    ),
    "GET /ping/{id}/{signal}": Operation(
        "signal",
        "Signal that a job failed, or its exit status",
        {200: json_answer("The signal is on disk, and what became of the check.", "Beat")},
        errors=(503,),
        description=(
            "`0` is a ping. `fail` and `1` to `255` say that the job failed: a check that is on time turns overdue at "
            "once and its alert is sent; `deadline_at` stays, and the next ping ends the outage. For a check that is "
            "overdue or snoozed only `failed_at` changes. `start` and `log` change nothing. HEAD is the same as GET."
        ),
    ),
    "POST /ping/{id}/{signal}": Operation(
        "signalByPost",
        "Signal with POST; a body is ignored",
        {200: json_answer("The signal is on disk, and what became of the check.", "Beat")},
        errors=(503,),
    ),
    "GET /robots.txt": Operation(
        "robots", "Allow crawlers", {200: text_answer("Every crawler may fetch all.", "text/plain")}
    ),
    "GET /healthz": Operation(
        "health",
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
        "Read the metrics, in the text format of Prometheus",
        {200: text_answer("Sums of the whole service, without keys, checks and addresses.", "text/plain")},
    ),
    "GET /openapi.json": Operation(
        "describe", "Read this description", {200: json_answer("OpenAPI 3.1.", "Description")}
    ),
    "GET /": page("builder", "Build a card", "text/html"),
    "GET /dashboard": page("dashboard", "Watch checks", "text/html"),
    "GET /docs": page("docs", "Read the documentation: a list of its pages", "text/html"),
    "GET /docs/{page}": page("docsPage", "Read a page of the documentation", "text/html"),
    "GET /pages/{folder}/{name}": page("pageFile", "Read a file that a page loads", *FILE_TYPES),
}

WEBHOOKS: Final[dict[str, Json]] = {
    "alert": {
        "post": {
            "operationId": "receiveAlert",
            "tags": ["Alerts"],
            "summary": "An alert, sent to a check's webhook_url as the Standard Webhooks specification says",
            "description": (
                "It is sent again after 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 5 h, 10 h and 14 h, until the answer is "
                "2xx within 10 s; and earlier, at most every 10 minutes, when its check has a new alert. `Retry-After` "
                "is honoured up to a day. A check's alerts arrive in order; test alerts "
                "wait for test alerts only. Of a check at most "
                f"{ALERTS_AN_HOUR} alerts an hour, and {WAITING_ALERTS} that wait, are told one by one: an alert that "
                "waits then tells later outages too, and `data.outages` is their number. "
                f"{', '.join(receiver.name for receiver in RECEIVERS)}: each of these "
                "is recognised by its URL and gets, in place of this body, the JSON that it documents, signed in the "
                "same way."
            ),
            "parameters": [
                header("webhook-id", "The same in every retry: use it to drop duplicates.", ALERT_ID),
                header("webhook-timestamp", "The time of this attempt, in Unix seconds.", "1772419567"),
                header(
                    "webhook-signature",
                    "`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body` with the webhook_secret. For 24 "
                    "hours after a new secret there are two, separated by a space: one that is right is enough.",
                    "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
                ),
            ],
            "requestBody": json_body("Delivery"),
            "responses": {
                "2XX": {"description": "The alert is delivered."},
                "410": {"description": "This alert is not sent to this URL again."},
                "default": {"description": "The alert is sent again. Redirects are not followed."},
            },
        }
    }
}
