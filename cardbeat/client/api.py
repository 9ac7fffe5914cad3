"""The API of a running server, as a client calls it for one key."""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from cardbeat import __version__
from cardbeat.errors import StartupError

Check = dict[str, Any]
"""A check as the server shows it."""

TIMEOUT_SECONDS = 30
PAGE_CHECKS = 1000
RETRY_SECONDS = (1, 2, 4, 8)
"""How long it waits before each further try."""
_TRY_AGAIN = (429, 503)
"""Answers that say: nothing was done, come back."""


class Refused(Exception):
    """An answer that is not the one asked for, in the server's own words."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Api:
    """Every call raises `Refused` for an answer of another status than 2xx, and `StartupError` for none.

    What is answered 429 or 503 is asked again, as nothing was done; so is, by a patient client, a server that takes no
    connections, because it may be starting again.
    """

    def __init__(
        self, url: str, key: str, *, is_patient: bool = False, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._url = url
        self._key = key
        self._is_patient = is_patient
        self._sleep = sleep

    def checks(self) -> list[Check]:
        """All checks of the key, oldest first."""
        found: list[Check] = []
        path: str | None = f"/checks?limit={PAGE_CHECKS}"
        while path:
            page = self._ask("GET", path)
            found += page["checks"]
            path = f"/checks?limit={PAGE_CHECKS}&after={page['next']}" if page["next"] else None
        return found

    def create(self, settings: Mapping[str, Any]) -> Check:
        return dict(self._ask("POST", "/checks", settings)["check"])

    def read(self, check_id: str) -> Check:
        return dict(self._ask("GET", f"/checks/{check_id}")["check"])

    def change(self, check: Check, settings: Mapping[str, Any]) -> Check:
        """Raises `Refused` 409 or 412, and nothing is done, where the check is not as it was read any more."""
        return dict(self._ask("PATCH", f"/checks/{check['id']}", settings, if_match=check["version"])["check"])

    def delete(self, check: Check) -> None:
        """Raises `Refused` 412, and nothing is done, where the check is not as it was read any more."""
        self._ask("DELETE", f"/checks/{check['id']}", if_match=check["version"])

    def ping(self, check_id: str) -> dict[str, Any]:
        """What the ping was answered."""
        return self._ask("GET", f"/ping/{check_id}")

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, if_match: int | None = None
    ) -> dict[str, Any]:
        request = self._request(method, path, body, if_match)
        for seconds in (*RETRY_SECONDS, None):
            try:
                return self._answer(request)
            except Refused as refused:
                if seconds is None or refused.status not in _TRY_AGAIN:
                    raise
            except ConnectionRefusedError:
                if seconds is None or not self._is_patient:
                    raise _unreachable(self._url, "it takes no connections") from None
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
                raise Refused(error.code, _sentence(error)) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, ConnectionRefusedError):
                raise reason from None
            raise _unreachable(self._url, str(reason) or type(reason).__name__) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other: the key must not be sent to whoever it names."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _object(body: bytes) -> dict[str, Any]:
    """Raises `ValueError` where it is none."""
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError("its answer is no JSON object")
    return value


def _sentence(error: urllib.error.HTTPError) -> str:
    try:
        return str(_object(error.read())["error"])
    except (KeyError, OSError, ValueError, http.client.HTTPException):
        location = error.headers.get("Location")
        return f"the server answered {error.code}" + (f", see {location}" if location else "")


def _unreachable(url: str, reason: str) -> StartupError:
    return StartupError(f"can't use the server at {url}: {reason}; CARDBEAT_URL or --url says where it is")
