"""A client of a server's HTTP API, for one checks key."""

import http.client
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar
from urllib.parse import quote

from cardbeat import __version__
from cardbeat.clock import Clock
from cardbeat.errors import StartupError

T = TypeVar("T")
Response = http.client.HTTPResponse | urllib.error.HTTPError
CheckJson = dict[str, Any]
"""A check as the server shows it."""

ANSWER_SECONDS: Final = 30
"""For one answer, from the look-up of the server's name to its last byte."""
ANSWER_BYTES: Final = 16 * 2**20
PAGE_CHECKS: Final = 1000
SENTENCE_CHARACTERS: Final = 500
"""Of a server's words more are not shown."""
RETRY_SECONDS: Final = (1, 2, 4, 8, 16)
"""The pauses between tries. A `Retry-After` of the answer can make one longer."""
LONGEST_RETRY_SECONDS: Final = 30
LOOK_SECONDS: Final = 0.5
"""The pause before each look whether a test alert was sent."""
STRANGE: Final = "the answer is not that of a cardbeat server; see CARDBEAT_URL or --url"
NO_CONNECTION: Final = 0
NOT_FOUND: Final = 404
_MAY_PASS: Final = (NO_CONNECTION, 408, 429, 500, 502, 503, 504)


class Refused(StartupError):
    """An answer with an error status, or no connection, with the server's sentence.

    `retry_after` are the seconds to wait if nothing was done and the server asks for it, else 0.
    """

    def __init__(self, status: int, sentence: str, retry_after: int = 0) -> None:
        super().__init__(sentence[:SENTENCE_CHARACTERS])
        self.status = status
        self.retry_after = min(retry_after, LONGEST_RETRY_SECONDS)


class Api:
    """Calls the API. Methods raise `Refused` for a status other than 2xx, else `StartupError`.

    An answer with `Retry-After` says that nothing was done, so it tries again, five times. With
    `keeps_trying`, for a ping, it does so also after 408, 500, 502, 504 and without a connection:
    the server may be restarting.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        keeps_trying: bool = False,
        answer_seconds: float = ANSWER_SECONDS,
        page_checks: int = PAGE_CHECKS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        self._url = url
        self._key = key
        self._keeps_trying = keeps_trying
        self._answer_seconds = answer_seconds
        self._page = f"/checks?limit={page_checks}"
        self._sleep = sleep
        self._clock = clock

    def checks(self) -> list[CheckJson]:
        """All checks of the key, oldest first."""
        page = self._ask("GET", self._page)
        found = _list_in(page, "checks")
        while following := page.get("next"):
            page = self._ask("GET", f"{self._page}&after={_quoted(following)}")
            found += _list_in(page, "checks")
        return [*map(_check, found)]

    def create(self, settings: Mapping[str, Any]) -> CheckJson:
        return _check(self._ask("POST", "/checks", settings).get("check"))

    def change(self, check: CheckJson, settings: Mapping[str, Any]) -> CheckJson:
        """The check as changed. Raises `Refused` 409 or 412 if it has another version now."""
        answer = self._ask("PATCH", _path(check["id"]), settings, check.get("version"))
        return _check(answer.get("check"))

    def snooze(self, check: CheckJson, seconds: int | None) -> CheckJson:
        """The check, snoozed for so many seconds; with None its snooze has ended."""
        path = _path(check["id"], "/snooze")
        if seconds is not None:
            answer = self._ask("PUT", path, {"seconds": seconds})
        else:
            answer = self._ask("DELETE", path)
        return _check(answer.get("check"))

    def delete(self, check: CheckJson) -> bool:
        """Whether the check was there to delete. Raises `Refused` 412 if it was changed."""
        try:
            self._ask("DELETE", _path(check["id"]), version=check.get("version"))
        except Refused as refused:
            if refused.status != NOT_FOUND:
                raise
            return False
        return True

    def ping(self, check_id: str) -> dict[str, Any]:
        """The answer to a ping."""
        return _with_texts(self._ask("GET", f"/ping/{_quoted(check_id)}"), "deadline_at")

    def test(self, check_id: str, seconds: float) -> dict[str, Any]:
        """Send a test alert. Returns it after its first attempt, or when these seconds are over.

        Earlier ones that wait are tried before it.
        """
        # Not asked again after 429: it says that too many tests were sent.
        self._ask("POST", _path(check_id, "/test-alert"), pauses=())
        ends = self._clock() + seconds
        while True:
            is_over = self._clock() >= ends
            answer = self._ask("GET", _path(check_id, "/alerts"))
            tests = [
                alert
                for alert in _list_in(answer, "alerts")
                if _with_texts(alert, "type", "state")["type"] == "check.test"
            ]
            newest = _with_texts(next(iter(tests), None))
            if newest.get("attempts") or is_over:
                return newest
            self._sleep(LOOK_SECONDS)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        version: int | None = None,
        pauses: Sequence[int] = RETRY_SECONDS,
    ) -> dict[str, Any]:
        """The JSON object of the answer, empty for one without a body."""
        headers = {"Authorization": f"Bearer {self._key}", "User-Agent": f"cardbeat/{__version__}"}
        data = None
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        # The URL is http or https: the option checks that.
        request = urllib.request.Request(self._url + path, data, headers, method=method)  # noqa: S310
        for pause in pauses:
            try:
                return self._answer(request)
            except Refused as refused:
                may_pass = self._keeps_trying and refused.status in _MAY_PASS
                if not may_pass and not refused.retry_after:
                    raise
                self._sleep(max(pause, refused.retry_after))
        return self._answer(request)

    def _answer(self, request: urllib.request.Request) -> dict[str, Any]:
        try:
            response, body = _within(self._answer_seconds, lambda: self._exchange(request))
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            told = f"can't use the server at {self._url}: {reason!s:.{SENTENCE_CHARACTERS}}"
            if isinstance(reason, ConnectionRefusedError):
                raise Refused(NO_CONNECTION, told) from None
            raise StartupError(f"{told}; CARDBEAT_URL or --url says where it is") from None
        try:
            content = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            content = None
        if isinstance(response, urllib.error.HTTPError):
            raise _refused(response, content)
        return _with_texts(content)

    def _exchange(self, request: urllib.request.Request) -> tuple[Response, bytes]:
        # A proxy of the environment is used for https alone: there it sees neither key nor answer.
        proxies = urllib.request.getproxies()
        https = {"https": proxies["https"]} if "https" in proxies else {}
        opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler(https))
        try:
            response: Response = opener.open(request, timeout=self._answer_seconds)
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
    future = Future[T]()

    def work() -> None:
        try:
            future.set_result(call())
        except Exception as error:  # raised by `result`
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return future.result(seconds)
    except TimeoutError:
        raise TimeoutError(f"no whole answer came within {seconds} s") from None


def _refused(response: urllib.error.HTTPError, content: Any) -> Refused:
    told = content if isinstance(content, dict) else {}
    sentence = told.get("error") or f"the server answered {response.code}"
    if "Location" in response.headers:
        sentence += f", see {response.headers['Location']}"
    seconds = re.fullmatch("[0-9]{1,9}", response.headers.get("Retry-After", ""))
    return Refused(response.code, str(sentence), int(seconds[0]) if seconds else 0)


def _with_texts(value: Any, *names: str) -> dict[str, Any]:
    """An object of an answer, in which these members are texts. Raises `StartupError`."""
    if isinstance(value, dict) and all(isinstance(value.get(name), str) for name in names):
        return value
    raise StartupError(STRANGE)


def _check(value: Any) -> CheckJson:
    return _with_texts(value, "id", "name", "status", "deadline_at")


def _list_in(answer: Mapping[str, Any], name: str) -> list[Any]:
    if isinstance(answer.get(name), list):
        return list(answer[name])
    raise StartupError(STRANGE)


def _path(check_id: str, end: str = "") -> str:
    return f"/checks/{_quoted(check_id)}{end}"


def _quoted(text: object) -> str:
    return quote(str(text), safe="", errors="replace")
