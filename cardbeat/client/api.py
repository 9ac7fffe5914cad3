"""A client of a server's HTTP API, for one checks key."""

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import quote

from cardbeat import __version__
from cardbeat.errors import StartupError

T = TypeVar("T")
Response = http.client.HTTPResponse | urllib.error.HTTPError
CheckJson = dict[str, Any]
"""A check as the server shows it."""

ANSWER_SECONDS: Final = 30
"""For one answer, from the look-up of the server's name to its last byte."""
ANSWER_BYTES: Final = 16 * 2**20
MOST_PAGES: Final = 1000
"""Of 1,000 checks each."""
SENTENCE_CHARACTERS: Final = 500
"""Of a server's words more are not shown."""
NO_CONNECTION: Final = 0
MAY_PASS: Final = (NO_CONNECTION, 408, 429, 500, 502, 503, 504)
"""The statuses of a server that is restarting or busy."""
_STRANGE: Final = "the answer is not that of a cardbeat server; see CARDBEAT_URL or --url"


class Refused(StartupError):
    """An answer with an error status, or no connection, with the server's sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence[:SENTENCE_CHARACTERS])
        self.status = status


class Api:
    """Calls the API. Methods raise `Refused` for a status other than 2xx, else `StartupError`.

    After an error that may pass it asks again, behind each of the `pauses`.
    """

    def __init__(
        self,
        url: str,
        key: str,
        pauses: Sequence[float] = (),
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._url = url
        self._key = key
        self._pauses = pauses
        self._answer_seconds = answer_seconds
        # A proxy of the environment is used for https alone: there it sees neither key nor answer.
        proxies = urllib.request.getproxies()
        https = {"https": proxies["https"]} if "https" in proxies else {}
        # One for all requests: from Python 3.12 each opener reads the host's certificates, 50 ms.
        self._opener = urllib.request.build_opener(
            _NoRedirect, urllib.request.ProxyHandler(https)
        )

    def checks(self) -> list[CheckJson]:
        """All checks of the key, oldest first."""
        found = []
        after = ""
        for _ in range(MOST_PAGES):
            page = self.ask("GET", f"/checks?limit=1000{after}")
            found += list_in(page, "checks")
            if not page.get("next"):
                return [
                    with_texts(
                        check, "id", "name", "status", "deadline_at"
                    )
                    for check in found
                ]
            after = f"&after={quoted(page['next'])}"
        raise StartupError(_STRANGE)

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        version: int | None = None,
    ) -> dict[str, Any]:
        """The JSON object of the answer, empty for one without a body."""
        headers = {
            "Authorization": f"Bearer {self._key}",
            "User-Agent": f"cardbeat/{__version__}",
        }
        data = None
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        # The URL is http or https: the option checks that.
        request = urllib.request.Request(  # noqa: S310
            self._url + path, data, headers, method=method
        )
        for pause in self._pauses:
            try:
                return self._answer(request)
            except Refused as refused:
                if refused.status not in MAY_PASS:
                    raise
            time.sleep(pause)
        return self._answer(request)

    def _answer(self, request: urllib.request.Request) -> dict[str, Any]:
        try:
            response, body = _within(
                self._answer_seconds, lambda: self._exchange(request)
            )
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            told = f"can't use the server at {self._url}: {reason!s:.{SENTENCE_CHARACTERS}}"
            if isinstance(reason, ConnectionRefusedError):
                raise Refused(NO_CONNECTION, told) from None
            raise StartupError(
                f"{told}; CARDBEAT_URL or --url says where it is"
            ) from None
        try:
            content = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            content = None
        if isinstance(response, urllib.error.HTTPError):
            sentence = f"the server answered {response.code} {response.headers.get('Location', '')}"
            if isinstance(content, dict):
                sentence = str(content.get("error", sentence))
            raise Refused(response.code, sentence)
        return with_texts(content)

    def _exchange(
        self, request: urllib.request.Request
    ) -> tuple[Response, bytes]:
        try:
            response: Response = self._opener.open(
                request, timeout=ANSWER_SECONDS
            )
        except urllib.error.HTTPError as error:
            response = error
        with response:
            body = response.read(ANSWER_BYTES + 1)
        if len(body) > ANSWER_BYTES:
            raise ValueError("its answer is too long")
        return response, body


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows none: the key must not be sent to another host."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


def _within(seconds: float, call: Callable[[], T]) -> T:
    """What the call returns or raises. Raises `TimeoutError` after so many seconds.

    The call goes on in a thread of its own: no timeout of a socket ends an answer that trickles, or
    the look-up of a name.
    """
    values: list[T] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            values.append(call())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    for error in errors:
        raise error
    if not values:
        raise TimeoutError(f"no whole answer came within {seconds} s")
    return values[0]


def with_texts(value: Any, *names: str) -> dict[str, Any]:
    """An object of an answer, in which these members are texts. Raises `StartupError`."""
    if isinstance(value, dict) and all(
        isinstance(value.get(name), str) for name in names
    ):
        return value
    raise StartupError(_STRANGE)


def list_in(answer: Mapping[str, Any], name: str) -> list[Any]:
    found = answer.get(name)
    if isinstance(found, list):
        return found
    raise StartupError(_STRANGE)


def path_of(check: CheckJson, end: str = "") -> str:
    return f"/checks/{quoted(check['id'])}{end}"


def quoted(text: object) -> str:
    return quote(str(text), safe="", errors="replace")
