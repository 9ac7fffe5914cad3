"""The API of a running server, as a client calls it for one key."""

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
from cardbeat.output import printable

Check = dict[str, Any]
"""A check as the server shows it."""

TIMEOUT_SECONDS = 30
PAGE_CHECKS = 1000
RETRY_SECONDS = (1, 2, 4, 8, 16)
"""How long it waits before each further try, as curl does with five retries, or as long as the answer asks for."""
LONGEST_RETRY_SECONDS = 30
_CHECK = dict.fromkeys(("id", "name", "status", "deadline_at", "ping_url"), str) | dict.fromkeys(
    ("period_seconds", "grace_seconds", "version"), int
)
"""What is relied on in a check, by its type."""
_NOTHING_DONE = (429, 503)
"""Answers that say: nothing was done, come back."""
_MAYBE_LATER = (408, 429, 500, 502, 503, 504)
"""Those after which a patient client asks again: what it asks may be done twice, as a ping may."""
_MAYBE_DONE = (500, 502, 504)
"""Answers of a server that failed underway, and of a proxy that got no answer of it."""


class Refused(Exception):
    """An answer that is not the one asked for, in the server's own words."""

    def __init__(self, status: int, sentence: str, code: str = "", retry_after: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.code = code
        self.retry_after = retry_after


class Unanswered(StartupError):
    """No answer of a cardbeat server came to what it was asked."""


class Api:
    """Every call raises `Refused` for an answer of another status than 2xx, and `StartupError` for none.

    What is answered 429 or 503 is asked again, as nothing was done. A patient client asks again too where a server
    takes no connections, or a proxy has no answer of it: it may be starting again.
    """

    def __init__(
        self, url: str, key: str, *, is_patient: bool = False, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._url = url
        self._key = key
        self._is_patient = is_patient
        self._try_again = _MAYBE_LATER if is_patient else _NOTHING_DONE
        self._sleep = sleep

    def checks(self) -> list[Check]:
        """All checks of the key, oldest first."""
        found: list[Check] = []
        path: str | None = f"/checks?limit={PAGE_CHECKS}"
        while path:
            page = self._ask("GET", path)
            found += [self._check(check) for check in self._known(page, {"checks": list})["checks"]]
            after = page.get("next")
            path = f"/checks?limit={PAGE_CHECKS}&after={quote(str(after), safe='')}" if after else None
        return found

    def create(self, settings: Mapping[str, Any]) -> Check:
        return self._check(self._ask("POST", "/checks", settings).get("check"))

    def read(self, check_id: str) -> Check:
        return self._check(self._ask("GET", f"/checks/{check_id}").get("check"))

    def change(self, check: Check, settings: Mapping[str, Any]) -> Check:
        """Raises `Refused` 409 or 412, and nothing is done, where the check is not as it was read any more."""
        changed = self._ask("PATCH", f"/checks/{check['id']}", settings, if_match=check["version"])
        return self._check(changed.get("check"))

    def delete(self, check: Check) -> None:
        """Raises `Refused` 412, and nothing is done, where the check is not as it was read any more."""
        self._ask("DELETE", f"/checks/{check['id']}", if_match=check["version"])

    def ping(self, check_id: str) -> dict[str, Any]:
        """What the ping was answered."""
        return self._known(self._ask("GET", f"/ping/{check_id}"), {"recovered": bool, "deadline_at": str})

    def _check(self, value: object) -> Check:
        return self._known(value, _CHECK)

    def _known(self, value: object, members: Mapping[str, type]) -> dict[str, Any]:
        """The value, once it is seen to be an object with these members. Raises `StartupError`."""
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
                if seconds is None or not self._is_patient:
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
        # The option takes http and https only.
        return urllib.request.Request(self._url + path, data, headers, method=method)  # noqa: S310

    def _answer(self, request: urllib.request.Request) -> dict[str, Any]:
        """Raises `ConnectionRefusedError` too."""
        try:
            with _opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return _object(answer.read()) if answer.status != http.HTTPStatus.NO_CONTENT else {}
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error) from None
        except urllib.error.URLError as error:
            # Only what fails before the whole request is sent comes so.
            if isinstance(error.reason, ConnectionRefusedError):
                raise error.reason from None
            raise StartupError(_unreachable(self._url, _reason(error.reason))) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unanswered(_unreachable(self._url, _reason(error))) from None


def may_be_done(error: Refused | StartupError) -> bool:
    """Whether a server may have done what a call of `Api` asked though the call raised this."""
    return isinstance(error, Unanswered) or (isinstance(error, Refused) and error.status in _MAYBE_DONE)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other: the key must not be sent to whoever it names."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _object(body: bytes) -> dict[str, Any]:
    """Raises `ValueError` where it is none."""
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
        return Refused(error.code, printable(str(answer["error"])), str(answer.get("code", "")), retry_after)
    except (KeyError, OSError, ValueError, http.client.HTTPException):
        location = error.headers.get("Location")
        sentence = f"the server answered {error.code}" + (f", see {printable(location)}" if location else "")
        return Refused(error.code, sentence, retry_after=retry_after)


def _asked_seconds(retry_after: str | None) -> int:
    return (
        min(int(retry_after), LONGEST_RETRY_SECONDS) if retry_after and re.fullmatch("[0-9]{1,9}", retry_after) else 0
    )


def _reason(error: str | BaseException) -> str:
    return str(error) or type(error).__name__


def _unreachable(url: str, reason: str) -> str:
    return f"can't use the server at {url}: {reason}; CARDBEAT_URL or --url says where it is"
