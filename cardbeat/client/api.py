"""A client of a server's HTTP API, for one checks key."""

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from cardbeat import __version__
from cardbeat.errors import StartupError
from cardbeat.host.output import printable

CheckJson = dict[str, Any]
"""A check as the server shows it."""

TIMEOUT_SECONDS = 30
PAGE = "/checks?limit=1000"
RETRY_SECONDS = (1, 2, 4, 8, 16)
"""The pause before each further try, as curl's with five retries. An answer's `Retry-After` can make it longer."""
LONGEST_RETRY_SECONDS = 30
_CHECK: dict[str, type] = {
    **dict.fromkeys(("id", "name", "status", "deadline_at", "ping_url"), str),
    **dict.fromkeys(("period_seconds", "grace_seconds", "version"), int),
}
"""The members of a check that this client uses, with their types."""
_NOTHING_DONE = (429, 503)
"""After these the server has done nothing, so every client asks again."""
_MAY_PASS = (408, 429, 500, 502, 503, 504)
"""After these a client asks again with `keeps_trying`: only for requests that may be done twice, such as a ping."""
_MAYBE_DONE = (500, 502, 504)
"""After these the server may have done what was asked: it failed on the way, or a proxy got no answer."""


class Refused(Exception):
    """An answer with an error status, and the server's sentence."""

    def __init__(self, status: int, sentence: str, retry_after: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after


class Unanswered(StartupError):
    """The request was sent, but no answer of a cardbeat server came."""


class Api:
    """Calls the API. Every method raises `Refused` for a status other than 2xx, and `StartupError` without an answer.

    After 429 and 503 it tries again. With `keeps_trying` it also does so if the server accepts no connections, or if a
    proxy has no answer of it: the server may be restarting.
    """

    def __init__(
        self, url: str, key: str, *, keeps_trying: bool = False, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._url = url
        self._key = key
        self._keeps_trying = keeps_trying
        self._try_again = _MAY_PASS if keeps_trying else _NOTHING_DONE
        self._sleep = sleep

    def checks(self) -> list[CheckJson]:
        """All checks of the key, oldest first."""
        found: list[CheckJson] = []
        path: str | None = PAGE
        while path:
            page = self._ask("GET", path)
            found += [self._known(check, _CHECK) for check in self._known(page, {"checks": list})["checks"]]
            after = page.get("next")
            path = f"{PAGE}&after={quote(str(after), safe='')}" if after else None
        return found

    def create(self, settings: Mapping[str, Any]) -> CheckJson:
        return self._known(self._ask("POST", "/checks", settings).get("check"), _CHECK)

    def change(self, check: CheckJson, settings: Mapping[str, Any]) -> CheckJson:
        """The check as changed. Raises `Refused` 409 or 412, and changes nothing, if it has another version now."""
        changed = self._ask("PATCH", f"/checks/{check['id']}", settings, if_match=check["version"])
        return self._known(changed.get("check"), _CHECK)

    def delete(self, check: CheckJson) -> None:
        """Delete the check. Raises `Refused` 412, and deletes nothing, if it has another version now."""
        self._ask("DELETE", f"/checks/{check['id']}", if_match=check["version"])

    def ping(self, check_id: str) -> dict[str, Any]:
        """The answer to a ping."""
        return self._known(self._ask("GET", f"/ping/{check_id}"), {"recovered": bool, "deadline_at": str})

    def _known(self, value: object, members: Mapping[str, type]) -> dict[str, Any]:
        """The value, if it is an object with these members. Raises `Unanswered` if not."""
        if isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in members.items()):
            return value
        raise Unanswered(_unreachable(self._url, "its answer is not that of a cardbeat server"))

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, if_match: int | None = None
    ) -> dict[str, Any]:
        request = self._request(method, path, body, if_match)
        for seconds in (*RETRY_SECONDS, None):
            try:
                return self._answer(request)
            except Refused as refused:
                if seconds is None or refused.status not in self._try_again:
                    raise
                self._sleep(max(seconds, _asked_seconds(refused.retry_after)))
            except ConnectionRefusedError:
                if seconds is None or not self._keeps_trying:
                    raise StartupError(_unreachable(self._url, "it takes no connections")) from None
                self._sleep(seconds)
        raise AssertionError("the last try returns or raises")

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None, if_match: int | None
    ) -> urllib.request.Request:
        headers = {"Authorization": f"Bearer {self._key}", "User-Agent": f"cardbeat/{__version__}"}
        if if_match is not None:
            headers["If-Match"] = f'"{if_match}"'
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        # The URL is http or https: the option checks that.
        return urllib.request.Request(self._url + path, data, headers, method=method)  # noqa: S310

    def _answer(self, request: urllib.request.Request) -> dict[str, Any]:
        """The JSON of the answer. Raises `ConnectionRefusedError` if the server accepts no connections."""
        try:
            with _opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return _object(answer.read()) if answer.status != http.HTTPStatus.NO_CONTENT else {}
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error) from None
        except urllib.error.URLError as error:
            # urllib raises this error only before the whole request is sent.
            if isinstance(error.reason, ConnectionRefusedError):
                raise error.reason from None
            raise StartupError(_unreachable(self._url, _reason(error.reason))) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unanswered(_unreachable(self._url, _reason(error))) from None


def may_be_done(error: Refused | StartupError) -> bool:
    """Whether the server may have done what was asked, although the call raised this error."""
    return isinstance(error, Unanswered) or (isinstance(error, Refused) and error.status in _MAYBE_DONE)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key must not be sent to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer. Raises `ValueError` if it is not one."""
    try:
        value = json.loads(body)
    except RecursionError as error:
        raise ValueError("its answer is nested too deep") from error
    if not isinstance(value, dict):
        raise ValueError("its answer is no JSON object")
    return value


def _refused(error: urllib.error.HTTPError) -> Refused:
    retry_after = error.headers.get("Retry-After")
    try:
        answer = _object(error.read())
        return Refused(error.code, printable(str(answer["error"])), retry_after)
    except (KeyError, OSError, ValueError, http.client.HTTPException):
        location = error.headers.get("Location")
        sentence = f"the server answered {error.code}" + (f", see {printable(location)}" if location else "")
        return Refused(error.code, sentence, retry_after)


def _asked_seconds(retry_after: str | None) -> int:
    seconds = re.fullmatch("[0-9]{1,9}", retry_after or "")
    return min(int(seconds[0]), LONGEST_RETRY_SECONDS) if seconds else 0


def _reason(error: str | BaseException) -> str:
    return str(error) or type(error).__name__


def _unreachable(url: str, reason: str) -> str:
    return f"can't use the server at {url}: {reason}; CARDBEAT_URL or --url says where it is"
