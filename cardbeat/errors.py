"""What can be refused, and what stops the program before it serves."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Refusal(Exception):
    """An answer other than the one asked for: one sentence for a person, a code for a program.

    `sentence` says what to do and never names a path, a statement or a secret. `field` names the one
    member, parameter or header at fault. The router turns it into the JSON error body.
    """

    def __init__(
        self,
        status: int,
        code: str,
        sentence: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.sentence = sentence
        self.field = field
        self.headers = dict(headers or {})


class Invalid(Refusal):
    """400: a value that the caller must change."""

    def __init__(self, code: str, sentence: str, *, field: str | None = None) -> None:
        super().__init__(400, code, sentence, field=field)


class NotFound(Refusal):
    """404: nothing here, or nothing of this caller's."""

    def __init__(self, sentence: str) -> None:
        super().__init__(404, "not_found", sentence)


class TooMany(Refusal):
    """429: a rate limit; `retry_after_seconds` until one more would pass."""

    def __init__(self, sentence: str, retry_after_seconds: float) -> None:
        super().__init__(429, "too_many_requests", sentence, headers=_retry_after(retry_after_seconds))


class Unavailable(Refusal):
    """503: nothing wrong with the request; worth trying again after `retry_after_seconds`."""

    def __init__(self, code: str, sentence: str, retry_after_seconds: float = 5) -> None:
        super().__init__(503, code, sentence, headers=_retry_after(retry_after_seconds))


class LeaseLost(Exception):
    """Another process does by now what only one does at a time; whatever this one was about to change, it must not."""


class StartupError(Exception):
    """The program can't run as asked: its one line goes to stderr and the exit status is 2.

    The line says what is wrong and, behind "; ", what to do about it.
    """


@contextmanager
def refusals_as_startup_errors() -> Iterator[None]:
    """What a client would be refused for is said to the operator in the same words."""
    try:
        yield
    except Refusal as refusal:
        raise StartupError(refusal.sentence) from None


def _retry_after(seconds: float) -> dict[str, str]:
    """Whole seconds, at least one, rounded up: asking earlier would be refused again."""
    return {"Retry-After": str(max(1, int(-(-seconds // 1))))}
