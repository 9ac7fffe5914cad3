"""A client of a server's HTTP API, for one checks key."""

import http.client
import json
import math
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Container, Mapping
from typing import Any

from cardbeat import __version__
from cardbeat.client.transport import Answer, answer_to
from cardbeat.clock import Clock
from cardbeat.errors import StartupError
from cardbeat.host.output import printable

CheckJson = dict[str, Any]
"""A check as the server shows it."""
Kind = type | tuple[type, ...] | str

COMMAND_SECONDS, CHANGE_SECONDS = 1800, 1
"""After this time no request begins; each change adds to it, so that thousands of them can go over a slow link."""
PAGE_CHECKS = 1000
PAGE = f"/checks?limit={PAGE_CHECKS}"
PAGES = 200
LIST_BYTES = 128 * 2**20
SENTENCE_CHARACTERS = 500
"""Of a server's words more are not shown."""
RETRY_SECONDS = (1, 2, 4, 8, 16)
"""The pause before each further try, as curl's with five retries. An answer's `Retry-After` can make it longer."""
LONGEST_RETRY_SECONDS = 30
LOOK_SECONDS = 0.5
"""The pause before each look whether a test alert was sent."""
_ID = "[A-Za-z0-9_-]{1,100}"
_TIME = "[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}"
_WORD = "[a-z_]{1,30}"
_CHECK: dict[str, Kind] = {
    **dict.fromkeys(("period_seconds", "grace_seconds", "version"), int),
    **dict.fromkeys(("ping_count", "repeat_seconds"), (int, type(None))),
    **dict.fromkeys(("last_ping_at", "created_at", "updated_at", "failed_at", "snoozed_until"), f"|{_TIME}"),
    "id": _ID,
    "api_key_id": f"|{_ID}",
    "name": ".{1,100}",
    "status": _WORD,
    "deadline_at": _TIME,
    "delivery": f"|{_WORD}",
    "ping_url": "|[!-~]{1,2000}",
    "webhook_url": ".{0,2000}",
}
"""The members of a check: types, or a pattern of the text. null counts as an empty text. Others are not kept: of a list
with 90 more in each check, they took 600 MB."""
_ALERT: dict[str, Kind] = {
    "id": _ID,
    "type": "[a-z.]{1,30}",
    "state": _WORD,
    "attempts": int,
    "last_status": (int, type(None)),
    "last_error": ".{0,500}",
    **dict.fromkeys(("created_at", "next_attempt_at"), f"|{_TIME}"),
}
_PAGE: dict[str, Kind] = {"checks": list, "next": f"|{_ID}"}
_PING: dict[str, Kind] = {"status": _WORD, "recovered": bool, "deadline_at": _TIME}
NOT_FOUND = 404
_NOTHING_DONE = (429, 503)
"""After these the server has done nothing, so every client asks again."""
_MAY_PASS = (408, 429, 500, 502, 503, 504)
"""After these a client asks again with `keeps_trying`: only for requests that may be done twice, such as a ping."""
_NO_TLS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""What OpenSSL, by its version, says of an answer in clear."""
_MAYBE_DONE = (500, 502, 504)
"""After these it may be done: the server failed on the way, or a proxy got no answer."""


class Refused(Exception):
    """An answer with an error status, and the server's sentence and code."""

    def __init__(self, status: int, sentence: str, retry_after: str | None = None, code: object = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after
        self.may_be_done = status in _MAYBE_DONE or code == "unconfirmed"


class Unanswered(StartupError):
    """The request was sent, but no answer of a cardbeat server came."""


class Api:
    """Calls the API. Every method raises `Refused` for a status other than 2xx, and `StartupError` without an answer.

    After 429 and 503 it tries again. With `keeps_trying` it also does so if the server accepts no connections, or if a
    proxy has no answer of it: the server may be restarting.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        keeps_trying: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        self._url = url
        self._key = key
        self._keeps_trying = keeps_trying
        self._sleep = sleep
        self._clock = clock
        self._ends = clock() + COMMAND_SECONDS

    def checks(self) -> list[CheckJson]:
        """All checks of the key, oldest first."""
        found: list[CheckJson] = []
        path, room = PAGE, LIST_BYTES
        for _ in range(PAGES):
            try:
                answer = self._ask("GET", path)
            except Refused as refused:
                if refused.status == NOT_FOUND:
                    raise StartupError(self._unusable("it has nothing at /checks")) from None
                raise
            room -= len(answer.body)
            if room < 0:
                break
            page = self._object(answer, _PAGE)
            if len(page["checks"]) > PAGE_CHECKS:
                raise StartupError(self._unusable(f"its page has more than {PAGE_CHECKS} checks"))
            found += [self._known(check, _CHECK) for check in page["checks"]]
            if not page.get("next"):
                return found
            path = f"{PAGE}&after={page['next']}"
        raise StartupError(self._unusable("its list of checks does not end"))

    def create(self, settings: Mapping[str, Any]) -> CheckJson:
        return self._check(self._ask("POST", "/checks", settings))

    def change(self, check: CheckJson, settings: Mapping[str, Any]) -> CheckJson:
        """The check as changed. Raises `Refused` 409 or 412, and changes nothing, if it has another version now."""
        return self._check(self._ask("PATCH", f"/checks/{check['id']}", settings, if_match=check["version"]))

    def snooze(self, check: CheckJson, seconds: int) -> CheckJson:
        """The check, snoozed for so many seconds; with 0 its snooze has ended."""
        method, body = ("PUT", {"seconds": seconds}) if seconds else ("DELETE", None)
        return self._check(self._ask(method, f"/checks/{check['id']}/snooze", body))

    def delete(self, check: CheckJson) -> None:
        """Delete the check. Raises `Refused` 412, and deletes nothing, if it has another version now."""
        self._ask("DELETE", f"/checks/{check['id']}", if_match=check["version"])

    def ping(self, check_id: str) -> dict[str, Any]:
        """The answer to a ping."""
        return self._object(self._ask("GET", f"/ping/{check_id}"), _PING)

    def test(self, check_id: str, seconds: float) -> dict[str, Any]:
        """Send a test alert. Returns it after its first attempt, or as it is when these seconds are over.

        Earlier ones that wait are tried before it. If one of them fails again, that one is returned.
        """
        before = {alert["id"]: alert["attempts"] for alert in self._alerts(check_id)}
        # Not asked again after 429: it says that too many tests were sent.
        self._ask("POST", f"/checks/{check_id}/test-alert", again=(503,))
        ends = self._clock() + seconds
        while True:
            tests = [it for it in self._alerts(check_id) if it["type"] == "check.test"]
            new = [it for it in tests if it["id"] not in before]
            is_over = self._clock() >= ends
            tried = [it for it in tests if it["attempts"] > before.get(it["id"], 0) and (it in new or it["last_error"])]
            if tried or (new and is_over):
                return [*tried, *new][0]
            if is_over:
                raise StartupError(self._unusable("its list of alerts lacks the test alert"))
            self._sleep(LOOK_SECONDS)

    def _alerts(self, check_id: str) -> list[dict[str, Any]]:
        listed = self._object(self._ask("GET", f"/checks/{check_id}/alerts"), {"alerts": list})["alerts"]
        return [self._known(alert, _ALERT) for alert in listed]

    def _check(self, answer: Answer) -> CheckJson:
        return self._known(self._object(answer, {"check": dict})["check"], _CHECK)

    def _object(self, answer: Answer, members: Mapping[str, Kind]) -> dict[str, Any]:
        return self._known(_json(answer.body), members)

    def _known(self, value: object, members: Mapping[str, Kind]) -> dict[str, Any]:
        """These members of an object, as far as it has them. Raises `Unanswered` for any other value."""
        if isinstance(value, dict) and all(_fits(value.get(name), kind) for name, kind in members.items()):
            return {name: it for name, it in value.items() if name in members}
        raise Unanswered(self._unusable("its answer is not that of a cardbeat server"))

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        again: Container[int] | None = None,
    ) -> Answer:
        request = self._request(method, path, body, if_match)
        again = again or (_MAY_PASS if self._keeps_trying else _NOTHING_DONE)
        self._ends += CHANGE_SECONDS if method != "GET" else 0
        for seconds in (*RETRY_SECONDS, None):
            if self._clock() > self._ends:
                raise StartupError(self._unusable(f"it took longer than {COMMAND_SECONDS // 60} minutes"))
            try:
                return self._answer(request)
            except Refused as refused:
                if seconds is None or refused.status not in again or (refused.may_be_done and not self._keeps_trying):
                    raise
                self._sleep(max(seconds, _asked_seconds(refused.retry_after)))
            except ConnectionRefusedError:
                if seconds is None or not self._keeps_trying:
                    raise StartupError(self._unusable("it takes no connections")) from None
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

    def _answer(self, request: urllib.request.Request) -> Answer:
        """The answer, if its status is 2xx. Raises `ConnectionRefusedError` if the server accepts no connections."""
        try:
            answer = answer_to(request)
        except urllib.error.URLError as error:
            # urllib raises this error only before the whole request is sent.
            if isinstance(error.reason, ConnectionRefusedError):
                raise error.reason from None
            raise StartupError(self._unusable(_reason(error.reason))) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unanswered(self._unusable(_reason(error))) from None
        if not 200 <= answer.status < 300:
            raise _refused(answer)
        return answer

    def _unusable(self, reason: str) -> str:
        return f"can't use the server at {self._url}: {reason}; CARDBEAT_URL or --url says where it is"


def may_be_done(error: Refused | StartupError) -> bool:
    """Whether the server may have done what was asked, although the call raised this error."""
    return isinstance(error, Unanswered) or (isinstance(error, Refused) and error.may_be_done)


def _fits(value: object, kind: Kind) -> bool:
    """Whether a value has this type or one of these, or is a text that this pattern describes."""
    if not isinstance(kind, str):
        return type(value) in (kind if isinstance(kind, tuple) else (kind,))
    text = "" if value is None else value
    return isinstance(text, str) and re.fullmatch(kind, text, re.DOTALL) is not None


def _json(body: bytes) -> Any:
    """The value of a JSON text; None if it is not valid."""
    try:
        return json.loads(body, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError
    return float(text)


def _refused(answer: Answer) -> Refused:
    answered = _json(answer.body)
    told = answered if isinstance(answered, dict) else {}
    sentence = told.get("error")
    if not isinstance(sentence, str):
        sentence = f"the server answered {answer.status}" + (f", see {answer.location}" if answer.location else "")
    return Refused(answer.status, _shown(sentence), answer.retry_after, told.get("code"))


def _asked_seconds(retry_after: str | None) -> int:
    seconds = re.fullmatch("[0-9]{1,9}", retry_after or "")
    return min(int(seconds[0]), LONGEST_RETRY_SECONDS) if seconds else 0


def _reason(error: str | BaseException) -> str:
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return "it does not answer with TLS, try http:// in place of https://"
    return _shown(str(error) or type(error).__name__)


def _shown(text: str) -> str:
    return printable(text[:SENTENCE_CHARACTERS])
