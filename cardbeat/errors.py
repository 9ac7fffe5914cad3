"""The refusals that a client gets, with their catalogue, and the error that ends a start."""

import json
import pkgutil
from collections.abc import (
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from typing import Any, Final

REASONS: Final = json.loads(
    pkgutil.get_data("cardbeat", "refusals.json") or b"{}"
)
"""The status of each refusal, by its code, and the sentence if it has no other.

`openapi.json` lists them too, each with an example.
"""
MOST_UNKNOWN: Final = 10
"""Most unknown fields that one refusal names."""


class Refusal(Exception):
    """An answer that refuses a request: a sentence for a person, and a code for a program.

    `sentence` says what to do, and never names a path, a statement or a secret; without it the
    sentence of the code is used, with `field` and `values` in its braces. `field` names
    the member, parameter or header at fault. If there are several, `fields` has
    `{"field": ..., "error": ...}` for each instead.
    """

    status: int

    def __init__(
        self,
        code: str,
        sentence: str | None = None,
        *,
        field: str | None = None,
        fields: Sequence[Mapping[str, str]] | None = None,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> None:
        self.status, usual = REASONS[code]
        self.code = code
        self.sentence: str = sentence or usual.format(
            field=field, **values
        )
        self.field = field
        self.fields = list(fields or [])
        if field is not None:
            self.fields = [{"field": field, "error": self.sentence}]
        self.headers = dict(headers or {})
        if self.status == 401:
            # RFC 9110, 11.6.1: every 401 says how to send a key.
            self.headers["WWW-Authenticate"] = "Bearer"
        super().__init__(self.sentence)

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"error": self.sentence, "code": self.code}
        if self.field is not None:
            body["field"] = self.field
        elif self.fields:
            body["fields"] = self.fields
        return body


class Invalid(Refusal):
    """400: the caller must change a value."""

    @classmethod
    def of_all(
        cls, wrong: Sequence["Invalid"], mixed: str = "invalid_field"
    ) -> "Invalid":
        """One refusal that names the fields of all these; `mixed`: its code where codes differ."""
        if len(wrong) == 1:
            return wrong[0]
        fields = [one for refusal in wrong for one in refusal.fields]
        codes = {refusal.code for refusal in wrong}
        code = codes.pop() if len(codes) == 1 else mixed
        names = ", ".join(one["field"] for one in fields)
        sentence = f"{len(fields)} fields are wrong ({names}); fields says what to do about each."
        return cls(code, sentence, fields=fields)


def unknown_fields(
    given: Iterable[str], known: Collection[str]
) -> list[Invalid]:
    """A refusal for each unknown name, at most `MOST_UNKNOWN`: a body may have thousands."""
    unknown = [name for name in given if name not in known]
    listed = ", ".join(known) or "none"
    return [
        Invalid(
            "unknown_field", field=name, name=quoted(name), known=listed
        )
        for name in unknown[:MOST_UNKNOWN]
    ]


def quoted(name: str) -> str:
    """A name that a client has sent, for a sentence: in quotes, and not all of a long one."""
    if len(name) > 40:
        name = name[:40] + "…"
    return json.dumps(name)


class NotFound(Refusal):
    """404: it does not exist, or belongs to another key."""

    def __init__(self, sentence: str | None = None) -> None:
        super().__init__("not_found", sentence)


class TooMany(Refusal):
    """429: a rate limit is reached. One more request passes after `retry_after_seconds`."""

    def __init__(
        self, sentence: str | None, retry_after_seconds: float
    ) -> None:
        super().__init__(
            "too_many_requests",
            sentence,
            headers=_retry_after(retry_after_seconds),
        )


class Unavailable(Refusal):
    """503: nothing was done. The request may succeed after `retry_after_seconds`, if given."""

    def __init__(
        self,
        code: str,
        sentence: str | None = None,
        retry_after_seconds: float | None = 5,
        **values: Any,
    ) -> None:
        headers = None
        if retry_after_seconds is not None:
            headers = _retry_after(retry_after_seconds)
        super().__init__(code, sentence, headers=headers, **values)


class MaybeDone(Unavailable):
    """503 without `Retry-After`: a write was not confirmed. To repeat it could do it twice."""

    def __init__(self) -> None:
        super().__init__("unconfirmed", retry_after_seconds=None)


class LeaseLost(Exception):
    """Another process holds the lease now, so this one must not write."""


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
    """The header in whole seconds, rounded up: an earlier request would be refused again."""
    return {"Retry-After": str(max(1, int(-(-seconds // 1))))}
