"""The endpoints of checks and pings; `docs/checks.md` lists them."""

import re
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from cardbeat.clock import utc_text
from cardbeat.concurrency.later import Later
from cardbeat.errors import Invalid
from cardbeat.heartbeat.check import CHANGEABLE, Check, Settings, validated, validated_snooze
from cardbeat.heartbeat.checks import Checks, Told, other_version
from cardbeat.heartbeat.outbox.alerts import Alerts
from cardbeat.heartbeat.pings import Signal
from cardbeat.heartbeat.webhooks.resolver import is_own
from cardbeat.heartbeat.webhooks.target import refused_url, shown_of
from cardbeat.keys.bearer import Bearer, key_of
from cardbeat.keys.key import CHECKS, READ, Key
from cardbeat.keys.store import Keys
from cardbeat.web.message import JSON_HEADERS, Request, Response, json_page
from cardbeat.web.query import known_among
from cardbeat.web.router import Route

PAGE_CHECKS = 100
LARGEST_PAGE_CHECKS = 1000

SIGNAL_PATTERN = "start|log|fail|0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]"
"""The last segment of `/ping/{id}/{signal}`, as scripts for Healthchecks send it: a word, or the job's exit status."""

_SIGNALS = {"start": Signal.OTHER, "log": Signal.OTHER, "0": Signal.PING}
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LIMIT = re.compile(r"[0-9]{1,9}")


class CheckRoutes:
    """`base_url` has no slash at its end. `allow_private_webhooks` allows webhooks in the operator's own network."""

    def __init__(self, checks: Checks, keys: Keys, alerts: Alerts, base_url: str, allow_private_webhooks: bool) -> None:
        self._checks = checks
        self._bearer = Bearer(keys, CHECKS)
        self._reader = Bearer(keys, CHECKS, READ)
        self._alerts = alerts
        self._base_url = base_url
        self._base_path = urlsplit(base_url).path
        self._refused_url = partial(refused_url, allow_private=allow_private_webhooks, is_own=is_own)

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/ping/{id}", self.ping, in_loop=True, ignores_body=True),
            Route("POST", "/ping/{id}", self.ping, in_loop=True, ignores_body=True),
            Route("POST", "/checks", self.create, guard=self._bearer),
            Route("GET", "/checks", self.page, guard=self._reader),
            Route("GET", "/checks/{id}", self.read, guard=self._reader),
            Route("PATCH", "/checks/{id}", self.update, guard=self._bearer),
            Route("DELETE", "/checks/{id}", self.delete, guard=self._bearer),
            Route("PUT", "/checks/{id}/snooze", self.snooze, guard=self._bearer),
            Route("DELETE", "/checks/{id}/snooze", self.end_snooze, guard=self._bearer),
            Route("GET", "/checks/{id}/alerts", self.list_alerts, guard=self._reader),
            Route("POST", "/checks/{id}/test-alert", self.test_alert, guard=self._bearer),
            *(
                Route(method, "/ping/{id}/{signal}", self.signal, True, True, segments={"signal": SIGNAL_PATTERN})
                for method in ("GET", "POST")
            ),
        ]

    def create(self, request: Request) -> Later[Response]:
        key = key_of(request)
        created = self._checks.create(key, self._validated(request.json_object(CHANGEABLE), key))
        return created.map(lambda check: self._answer(201, check, {"Location": f"{self._base_path}/checks/{check.id}"}))

    def page(self, request: Request) -> Response:
        key = key_of(request)
        parameters = known_among(("limit", "after"), request.query)
        limit, after = _limit(parameters.get("limit")), parameters.get("after")
        if key.scope != READ:
            checks, following = self._checks.page(key.id, limit, after)
        else:
            checks, following = self._checks.page(key.id, limit, after and self._checks.whole_id(key.id, after))
            following = following and checks[-1].short_id
        listed = (self._shown(check, key) for check in checks)
        # The header that names the next page (RFC 8288).
        size = f"limit={parameters['limit']}&" if "limit" in parameters else ""
        link = {"Link": f'<{self._base_url}/checks?{size}after={following}>; rel="next"'} if following else {}
        return Response(200, json_page("checks", listed, {"next": following}), JSON_HEADERS | link)

    def read(self, request: Request) -> Response:
        key = key_of(request)
        return self._answer(200, self._own(request, key), key=key)

    def update(self, request: Request) -> Later[Response]:
        """Change the given fields, with optimistic locking.

        1. Read the check with its version. 2. Absent fields keep their values. 3. Validate the merged settings as a
        whole. 4. An `If-Match` must name the version that was read, else 412. 5. Write the row only if it still has
        that version. 6. If it has another one, write nothing: 409.
        """
        key = key_of(request)
        changes = request.json_object(CHANGEABLE)
        check = self._checks.get(key.id, request.params["id"])
        merged = {field: getattr(check, field) for field in CHANGEABLE} | changes
        settings = self._validated(merged, key)
        if "if-match" in request.headers:
            _matched(request, check)
        return self._checks.update(check, settings).map(partial(self._answer, 200))

    def delete(self, request: Request) -> Later[Response]:
        key = key_of(request)
        request.expect_no_body()
        version = self._expected(request, key)
        return self._checks.delete(key.id, request.params["id"], version).map(lambda _: Response(204))

    def snooze(self, request: Request) -> Later[Response]:
        return self._snooze(request, validated_snooze(request.json_object(("seconds",))))

    def end_snooze(self, request: Request) -> Later[Response]:
        request.expect_no_body()
        return self._snooze(request, 0)

    def _snooze(self, request: Request, seconds: int) -> Later[Response]:
        key = key_of(request)
        snoozed = self._checks.snooze(key.id, request.params["id"], seconds, self._expected(request, key))
        return snoozed.map(partial(self._answer, 200))

    def _expected(self, request: Request, key: Key) -> int | None:
        """The version that the check must have. Raises `Refusal` 412 if the header If-Match does not name it."""
        return _matched(request, self._own(request, key)).version if "if-match" in request.headers else None

    def list_alerts(self, request: Request) -> Response:
        return Response.json(200, {"alerts": self._alerts.newest(self._own(request, key_of(request)).id)})

    def test_alert(self, request: Request) -> Later[Response]:
        key = key_of(request)
        request.expect_no_body()
        return self._checks.test_alert(key.id, request.params["id"]).map(partial(self._answer, 202))

    def ping(self, request: Request) -> Later[Response]:
        """Record a ping. The answer is settled when it is on disk; until then no thread waits."""
        return self._checks.ping(_pinged_id(request), request.network).map(_ping_answer)

    def signal(self, request: Request) -> Later[Response]:
        """As `ping`, for an exit status or a word: all but `0`, `start` and `log` say that the job has failed."""
        signal = _SIGNALS.get(request.params["signal"], Signal.FAILURE)
        return self._checks.signal(_pinged_id(request), signal, request.network).map(_ping_answer)

    def _own(self, request: Request, key: Key) -> Check:
        check_id = request.params["id"]
        return self._checks.get(key.id, self._checks.whole_id(key.id, check_id) if key.scope == READ else check_id)

    def _shown(self, check: Check, key: Key | None) -> dict[str, Any]:
        check = check.as_of(self._checks.clock())
        if key is not None and key.scope == READ:
            return check.as_read(shown_of)
        return check.as_json(self._base_url)

    def _validated(self, values: dict[str, Any], key: Key) -> Settings:
        return validated(values, key.limits.min_period_seconds, self._refused_url)

    def _answer(
        self, status: int, check: Check, headers: dict[str, str] | None = None, *, key: Key | None = None
    ) -> Response:
        etag = {"ETag": f'"{check.version}"'}
        return Response.json(status, {"check": self._shown(check, key)}, etag | (headers or {}))


def _matched(request: Request, check: Check) -> Check:
    """The check. Raises `Refusal` 412 if the header If-Match does not name its version."""
    if not request.names_tag("if-match", f'"{check.version}"'):
        raise other_version(check)
    return check


def _pinged_id(request: Request) -> str:
    """The id of the check, which may be written as a UUID with its dashes."""
    check_id = request.params["id"]
    return check_id.replace("-", "") if _UUID.fullmatch(check_id) else check_id


def _ping_answer(told: Told) -> Response:
    answer = {"status": told.status, "recovered": told.recovered, "deadline_at": utc_text(told.deadline_at)}
    return Response.json(200, answer)


def _limit(text: str | None) -> int:
    if text is None:
        return PAGE_CHECKS
    if not _LIMIT.fullmatch(text) or not 1 <= int(text) <= LARGEST_PAGE_CHECKS:
        sentence = f"The parameter limit must be an integer from 1 to {LARGEST_PAGE_CHECKS}."
        raise Invalid("invalid_parameter", sentence, field="limit")
    return int(text)
