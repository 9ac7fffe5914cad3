"""Every refusal there is, by status: what it means, and a sentence for each of its codes."""

from typing import Any, Final, NamedTuple


class Kind(NamedTuple):
    """The refusals of one status. `codes` gives an example of each: its sentence, and its field where it has one."""

    meaning: str
    codes: dict[str, tuple[str, str | None]]
    header: str | None = None


EVERYWHERE: Final = (400, 408, 413, 414, 417, 431, 500, 501)
"""What any request can meet, before or while it is answered."""

KINDS: Final = {
    400: Kind(
        "The request, or the field named, must be changed first; after a fault in its framing the connection closes.",
        {
            "invalid_json": ("The body is not valid JSON.", None),
            "missing_field": ("The field name is required and can't be null.", "name"),
            "unknown_field": (
                'There is no field "nmae" here; the fields are: name, period_seconds, grace_seconds, webhook_url.',
                "nmae",
            ),
            "duplicate_field": ('The field "name" is given more than once.', "name"),
            "invalid_field": (
                "The field period_seconds must be an integer from 1 to 31536000 (seconds).",
                "period_seconds",
            ),
            "missing_parameter": ("Give the card a title that is not blank: title=...", "title"),
            "invalid_parameter": ("The template must be one of: default, blog, article.", "template"),
            "duplicate_parameter": ("Give the parameter limit only once.", "limit"),
            "no_webhook": (
                "This check has no webhook_url to send an alert to; set one with PATCH first.",
                "webhook_url",
            ),
            "bad_request_line": (
                "Start a request with a method, a target and HTTP/1.1 or HTTP/1.0, one space between them.",
                None,
            ),
            "bad_target": ("Send a request target that starts with a slash.", None),
            "bad_line_end": ("End every line of a request's head with CR LF.", None),
            "bad_byte": ("Send no control characters in a request's head.", None),
            "bad_header": ("Write each header on one line as a name, a colon and a value, no space before.", None),
            "duplicate_header": ("Send the header Host once.", None),
            "missing_host": ("Send the header Host.", None),
            "bad_host": ("Send a host name or address, with or without a port, in the header Host.", None),
            "bad_content_length": ("Send Content-Length as plain digits.", None),
            "bad_framing": ("Send Content-Length without Transfer-Encoding.", None),
        },
    ),
    401: Kind(
        "There is no key with the request, or none that is known here.",
        {
            "key_missing": ("Send the API key in a header: Authorization: Bearer sk_...", None),
            "key_unknown": ("This API key is not known here, or was revoked.", None),
        },
        "WWW-Authenticate",
    ),
    403: Kind(
        "This caller may not do this.",
        {
            "wrong_scope": (
                "This is a cards key; checks take a checks key, which POST /register issues for an e-mail address.",
                None,
            ),
            "too_many_checks": (
                "This key's tier allows 100 checks and you have them all; delete one first.",
                None,
            ),
            "registration_closed": ("Registration is closed here; ask the operator for a key.", None),
        },
    ),
    404: Kind(
        "There is nothing of this name, or nothing of this caller's.",
        {"not_found": ("There is no check with this id.", None)},
    ),
    405: Kind(
        "The path does not take this method.",
        {"method_not_allowed": ("This path does not take PUT; it takes GET, HEAD, POST.", None)},
        "Allow",
    ),
    408: Kind(
        "The request did not arrive in time.",
        {"too_slow": ("Send the whole request within 10 seconds.", None)},
    ),
    409: Kind(
        "The check was modified, or deleted, while this request was at work.",
        {"conflict": ("The check was modified concurrently and nothing was changed; read it again and retry.", None)},
    ),
    412: Kind(
        "The check has another version than If-Match names.",
        {
            "precondition_failed": (
                "The check has version 3, which If-Match does not name; read it again and retry.",
                "If-Match",
            )
        },
    ),
    413: Kind(
        "The body is too large.",
        {"body_too_large": ("Send at most 65536 bytes of body.", None)},
    ),
    414: Kind(
        "The request line is too long.",
        {"target_too_long": ("Send at most 8192 bytes of request line.", None)},
    ),
    415: Kind(
        "The body is of another media type than JSON.",
        {"unsupported_media_type": ("Send the body as JSON, with Content-Type: application/json.", None)},
    ),
    416: Kind(
        "The range begins after the image's end.",
        {"range_not_satisfiable": ("The image has 48213 bytes; ask for a range inside it.", None)},
        "Content-Range",
    ),
    417: Kind(
        "The header Expect asks for something unknown.",
        {"expectation_failed": ("Send no Expect header other than 100-continue.", None)},
    ),
    429: Kind(
        "Too many in a minute or an hour, or too many that wait.",
        {"too_many_requests": ("Too many keys were issued to your address; try again in a moment.", None)},
        "Retry-After",
    ),
    431: Kind(
        "There are too many headers, or too much of them.",
        {
            "headers_too_large": ("Send at most 16384 bytes of headers.", None),
            "too_many_headers": ("Send at most 100 headers.", None),
        },
    ),
    500: Kind(
        "The fault is the server's, whose log has the details.",
        {"internal_error": ("Something went wrong here; the operator's log has the details.", None)},
    ),
    501: Kind(
        "The method is not one of HTTP's, or the body is sent with Transfer-Encoding.",
        {
            "unknown_method": ("Use one of the methods GET, HEAD, POST, PATCH and DELETE.", None),
            "transfer_encoding": ("Send the body with Content-Length; no Transfer-Encoding works here.", None),
        },
    ),
    503: Kind(
        "The server can't do this now; try again after Retry-After.",
        {
            "database_unavailable": ("The database can't be used now; try again soon.", None),
            "disk_low": ("The server's disk is nearly full, so nothing new is taken; try again later.", None),
            "busy": ("Too many of your requests wait already; try again in a moment.", None),
            "sweep_stalled": ("The sweep has not finished for three intervals; see the log.", None),
            "delivery_stalled": (
                "No alert is sent: nobody has worked on them for 300 seconds; see the log.",
                None,
            ),
            "stopping": ("The server is stopping; try again in a moment.", None),
        },
        "Retry-After",
    ),
}


def error_body(code: str, sentence: str, field: str | None) -> dict[str, Any]:
    body = {"error": sentence, "code": code}
    return body if field is None else {**body, "field": field}
