"""The refusals that a client gets, with their catalogue, and the error that ends the program at its start."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple


class Reason(NamedTuple):
    """Why a request is refused: the status of the answer, and the sentence if the refusal has no other.

    `field` and `values` are examples for the API's description: the field at fault, and the values in the braces.
    """

    status: int
    sentence: str
    field: str | None = None
    values: Mapping[str, Any] = {}


REASONS: Final[dict[str, Reason]] = {
    "invalid_json": Reason(400, "The body is not valid JSON."),
    "missing_field": Reason(400, "The field {field} is required and can't be null.", "name"),
    "unknown_field": Reason(
        400,
        "There is no field {name} here; the fields are: {known}.",
        "nmae",
        {"name": '"nmae"', "known": "name, period_seconds, grace_seconds, webhook_url, repeat_seconds"},
    ),
    "duplicate_field": Reason(400, "The field {name} is given more than once.", "name", {"name": '"name"'}),
    "invalid_field": Reason(
        400,
        "The field {field} must be an integer from {least} to {most} (seconds).",
        "period_seconds",
        {"least": 1, "most": 31_536_000},
    ),
    "missing_parameter": Reason(400, "Give the card a title that is not blank: title=...", "title"),
    "invalid_parameter": Reason(
        400, "The {field} must be one of: {known}.", "template", {"known": "default, blog, article"}
    ),
    "duplicate_parameter": Reason(400, "Give the parameter {field} only once.", "limit"),
    "no_webhook": Reason(
        400, "This check has no webhook_url to send an alert to; set one with PATCH first.", "webhook_url"
    ),
    "bad_request_line": Reason(
        400, "Start a request with a method, a target and HTTP/1.1 or HTTP/1.0, one space between them."
    ),
    "bad_target": Reason(400, "Send a request target that starts with a slash."),
    "bad_line_end": Reason(400, "End every line of a request's head with CR LF."),
    "bad_byte": Reason(400, "Send no control characters in a request's head."),
    "bad_header": Reason(400, "Write each header on one line as a name, a colon and a value, no space before."),
    "duplicate_header": Reason(400, "Send the header {name} once.", values={"name": "Host"}),
    "missing_host": Reason(400, "Send the header Host."),
    "bad_host": Reason(400, "Send a host name or address, with or without a port, in the header Host."),
    "bad_content_length": Reason(400, "Send Content-Length as plain digits."),
    "bad_framing": Reason(400, "Send Content-Length without Transfer-Encoding."),
    "key_missing": Reason(401, "An API key is needed here; POST /register issues one."),
    "key_unknown": Reason(401, "This API key is not known here, or was revoked; POST /register issues a new one."),
    "wrong_scope": Reason(
        403, "This is a cards key; checks take a checks key, which POST /register issues for an e-mail address."
    ),
    "too_many_checks": Reason(
        403, "This key's tier allows {most} checks, and it has as many; delete one first.", values={"most": 100}
    ),
    "cross_site": Reason(
        403, "A page of another site sent this request; register from a command line or from a page of this server."
    ),
    "registration_closed": Reason(403, "Registration is closed here; ask the operator for a key."),
    "not_found": Reason(404, "There is nothing at this path; GET /openapi.json lists all paths."),
    "method_not_allowed": Reason(
        405,
        "This path does not take {method}; it takes {allowed}.",
        values={"method": "PUT", "allowed": "GET, HEAD, POST"},
    ),
    "too_slow": Reason(408, "Send the whole request within 10 seconds."),
    "conflict": Reason(409, "The check was modified concurrently and nothing was changed; read it again and retry."),
    "precondition_failed": Reason(
        412,
        "The check has version {version}, which If-Match does not name; read it again and retry.",
        "If-Match",
        {"version": 3},
    ),
    "body_too_large": Reason(413, "Send at most {most} bytes of body.", values={"most": 65536}),
    "target_too_long": Reason(414, "Send at most {most} bytes of request line.", values={"most": 8192}),
    "unsupported_media_type": Reason(415, "Send the body as JSON, with Content-Type: application/json."),
    "range_not_satisfiable": Reason(
        416, "The image has {length} bytes; ask for a range inside it.", values={"length": 48213}
    ),
    "expectation_failed": Reason(417, "Send no Expect header other than 100-continue."),
    "too_many_requests": Reason(429, "Too many keys were issued to your address; try again in a moment."),
    "headers_too_large": Reason(431, "Send at most {most} bytes of headers.", values={"most": 16384}),
    "too_many_headers": Reason(431, "Send at most {most} headers.", values={"most": 100}),
    "internal_error": Reason(500, "Something went wrong here; the operator's log has the details."),
    "unknown_method": Reason(501, "Use one of the methods GET, HEAD, POST, PUT, PATCH and DELETE."),
    "transfer_encoding": Reason(501, "Send the body with Content-Length; no Transfer-Encoding works here."),
    "database_unavailable": Reason(503, "The database can't be used now; try again soon."),
    "disk_low": Reason(503, "The server's disk is nearly full, so nothing new or longer is taken; try again later."),
    "unconfirmed": Reason(503, "The database did not confirm this: it may be done; look before you send it again."),
    "busy": Reason(503, "Too many of your requests wait already; try again in a moment."),
    "sweep_stalled": Reason(503, "The sweep has not finished for three intervals; see the log."),
    "stopping": Reason(503, "The server is stopping; try again in a moment."),
}
"""All refusals, by their codes. The API's description lists these."""


class Refusal(Exception):
    """An answer that refuses a request: a sentence for a person, and a code for a program.

    `sentence` says what to do, and never names a path, a statement or a secret; without it the sentence of the code's
    `Reason` is used, with `field` and `values` in its braces. `field` names the member, parameter or header at fault.
    """

    def __init__(
        self,
        code: str,
        sentence: str | None = None,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> None:
        reason = REASONS[code]
        self.status = reason.status
        self.code = code
        self.sentence = sentence or reason.sentence.format(field=field, **values)
        self.field = field
        self.headers = dict(headers or {})
        super().__init__(self.sentence)

    def body(self) -> dict[str, Any]:
        body = {"error": self.sentence, "code": self.code}
        return body if self.field is None else {**body, "field": self.field}


class Invalid(Refusal):
    """400: the caller must change a value."""


class NotFound(Refusal):
    """404: it does not exist, or belongs to another key."""

    def __init__(self, sentence: str | None = None) -> None:
        super().__init__("not_found", sentence)


class TooMany(Refusal):
    """429: a rate limit is reached. One more request passes after `retry_after_seconds`."""

    def __init__(self, sentence: str | None, retry_after_seconds: float) -> None:
        super().__init__("too_many_requests", sentence, headers=_retry_after(retry_after_seconds))


class Unavailable(Refusal):
    """503: nothing was done; the request is right, and may succeed after `retry_after_seconds`, if that is given."""

    def __init__(
        self, code: str, sentence: str | None = None, retry_after_seconds: float | None = 5, **values: Any
    ) -> None:
        headers = None if retry_after_seconds is None else _retry_after(retry_after_seconds)
        super().__init__(code, sentence, headers=headers, **values)


class MaybeDone(Unavailable):
    """503 without `Retry-After`: a write was not confirmed, so it may be done. To repeat it could do it twice."""

    def __init__(self) -> None:
        super().__init__("unconfirmed", retry_after_seconds=None)


class LeaseLost(Exception):
    """Another process holds the lease now, so this one must not write what it was about to change."""


class StartupError(Exception):
    """The program can't run as asked: it prints this one line to stderr and exits with status 2.

    The line says what is wrong and, after "; ", what to do.
    """


@contextmanager
def refusals_as_startup_errors() -> Iterator[None]:
    """Tell the operator in the same words what a client would be refused for."""
    try:
        yield
    except Refusal as refusal:
        raise StartupError(refusal.sentence) from None


def _retry_after(seconds: float) -> dict[str, str]:
    """The header in whole seconds, at least one, rounded up: an earlier request would be refused again."""
    return {"Retry-After": str(max(1, int(-(-seconds // 1))))}
