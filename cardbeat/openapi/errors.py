"""The refusals by status: what each status means, and its codes and sentences from `cardbeat.errors`."""

from typing import Final, NamedTuple

from cardbeat.errors import REASONS, Refusal
from cardbeat.openapi.parts import Json, answer
from cardbeat.openapi.schemas import ref


class Status(NamedTuple):
    """What the refusals of one status have in common; `header` is one that each of them has."""

    meaning: str
    header: str | None = None


STATUSES: Final = {
    400: Status(
        "Change the request, or the field it names, before you send it again. After an error in the framing the "
        "connection is closed."
    ),
    401: Status("The request has no key, or one that is not known here.", "WWW-Authenticate"),
    403: Status("The key may not do this, or registration is closed."),
    404: Status("It does not exist, or belongs to another key."),
    405: Status("The path does not take this method.", "Allow"),
    408: Status("The request did not arrive in time."),
    409: Status("The check was changed or deleted during this request."),
    412: Status("If-Match does not name the version of the check."),
    413: Status("The body is too large."),
    414: Status("The request line is too long."),
    415: Status("The body is not sent as JSON."),
    416: Status("The range begins after the end of the image.", "Content-Range"),
    417: Status("The header Expect has an unknown value."),
    429: Status("Too many requests in a minute or an hour, or too many alerts that wait.", "Retry-After"),
    431: Status("There are too many headers, or they are too large."),
    500: Status("An error of the server; its log has the details."),
    501: Status("The method is unknown, or the body is sent with Transfer-Encoding."),
    503: Status("The server can't do this now; try again after Retry-After.", "Retry-After"),
}


def error_responses() -> dict[str, Json]:
    """The answer of each status, with an example of each of its codes."""
    return {str(status): _response(status) for status in STATUSES}


def _response(status: int) -> Json:
    meaning, header = STATUSES[status]
    headers = ("Cache-Control", header) if header else ("Cache-Control",)
    examples = {
        code: {"value": Refusal(code, field=reason.field, **reason.values).body()}
        for code, reason in REASONS.items()
        if reason.status == status
    }
    return answer(meaning, *headers, content={"application/json": {"schema": ref("Error"), "examples": examples}})
