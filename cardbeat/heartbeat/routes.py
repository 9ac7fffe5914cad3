"""The endpoints of checks and pings; `docs/checks.md` lists them."""

import re
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

from cardbeat.clock import utc_text
from cardbeat.errors import Invalid
from cardbeat.heartbeat.alerts.outbox import Outbox
from cardbeat.heartbeat.alerts.target import refused_url, shown_of
from cardbeat.heartbeat.check import (
    CHANGEABLE,
    SHORT_ID_CHARACTERS,
    Check,
    Settings,
    validated,
    validated_snooze,
)
from cardbeat.heartbeat.checks import Checks, no_check, other_version
from cardbeat.heartbeat.outages import Outages
from cardbeat.heartbeat.pings import Pings, Told
from cardbeat.keys.key import CHECKS, READ, Key
from cardbeat.keys.store import Bearer, Keys, key_of
from cardbeat.web.message import (
    Request,
    Response,
    known_among,
    values_of,
)
from cardbeat.web.router import Answer, Awaited, Route

PAGE_CHECKS = 100
LARGEST_PAGE = 1000
DAYS = 30
MOST_DAYS = 90
"""Days of which outages are listed, at first and at most."""

FAILED_WORDS = ("down", "fail", "failed", "error")
"""Values of the parameter `status`, in any case, that say that the job failed."""
CHANGES_NOTHING = ("start", "log")
SIGNAL_PATTERN = (
    "(?:start|log|fail|-?[0-9]{1,20}|(?:SIG)?(?:ABRT|ALRM|BUS|CHLD|CONT|EMT|FPE|HUP|ILL|INFO|INT"
    "|IO|IOT|KILL|PIPE|POLL|PROF|PWR|QUIT|SEGV|STKFLT|STOP|SYS|TERM|TRAP|TSTP|TTIN|TTOU|URG|USR1"
    r"|USR2|VTALRM|WINCH|XCPU|XFSZ|RTMIN(?:\+[0-9]{1,2})?|RTMAX(?:-[0-9]{1,2})?))/?"
)
"""The end of `/ping/{id}/{signal}`: a word, an exit status, or the name of a signal that ended the
job, as systemd's `$EXIT_STATUS` has it."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGITS = re.compile("[0-9]{1,9}")


class CheckRoutes:
    """`base_url` has no slash at its end.

    `allow_private_webhooks` allows webhooks in the operator's own network.
    """

    def __init__(
        self,
        checks: Checks,
        pings: Pings,
        keys: Keys,
        alerts: Outbox,
        outages: Outages,
        *,
        base_url: str,
        allow_private_webhooks: bool = False,
    ) -> None:
        self._checks = checks
        self._pings = pings
        self._bearer = Bearer(keys, CHECKS)
        self._reader = Bearer(keys, CHECKS, READ)
        self._alerts = alerts
        self._outages = outages
        self._base_url = base_url
        self._refused_url = partial(
            refused_url, allow_private=allow_private_webhooks
        )

    def routes(self) -> list[Route]:
        bearer = self._bearer
        reader = self._reader
        return [
            *self._ping_routes("/ping/{id}", id="[^/]+/?"),
            Route("POST", "/checks", self.create, guard=bearer),
            Route("GET", "/checks", self.page, guard=reader),
            Route(
                "GET",
                "/checks/outages",
                self.page_of_outages,
                guard=reader,
            ),
            Route("GET", "/checks/{id}", self.read, guard=reader),
            Route("PATCH", "/checks/{id}", self.update, guard=bearer),
            Route("DELETE", "/checks/{id}", self.delete, guard=bearer),
            Route(
                "PUT", "/checks/{id}/snooze", self.snooze, guard=bearer
            ),
            Route(
                "DELETE",
                "/checks/{id}/snooze",
                self.end_snooze,
                guard=bearer,
            ),
            Route(
                "GET",
                "/checks/{id}/alerts",
                self.list_alerts,
                guard=reader,
            ),
            Route(
                "GET",
                "/checks/{id}/outages",
                self.list_outages,
                guard=reader,
            ),
            Route(
                "POST",
                "/checks/{id}/test-alert",
                self.test_alert,
                guard=bearer,
            ),
            *self._ping_routes(
                "/ping/{id}/{signal}", signal=SIGNAL_PATTERN
            ),
        ]

    def _ping_routes(self, pattern: str, **segments: str) -> list[Route]:
        return [
            Route(
                method, pattern, self.ping, True, True, segments=segments
            )
            for method in ("GET", "POST")
        ]

    def create(self, request: Request) -> Response:
        key = key_of(request)
        check = self._checks.create(
            key, self._validated(request.json_object(), key)
        )
        path = urlsplit(self._base_url).path
        location = {"Location": f"{path}/checks/{check.id}"}
        return self._answer(request, 201, check, location)

    def page(self, request: Request) -> Response:
        key = key_of(request)
        parameters = known_among(("limit", "after"), request.query)
        limit = _number(parameters, "limit", LARGEST_PAGE, PAGE_CHECKS)
        after = parameters.get("after")
        if after and key.scope == READ:
            after = self._checks.whole_id(key.id, after)
        checks, following = self._checks.page(key.id, limit, after)
        if following and key.scope == READ:
            following = checks[-1].short_id
        listed = [self._shown(check, key) for check in checks]
        link = self._link("/checks", parameters, following)
        return Response.json(
            200, {"checks": listed, "next": following}, link
        )

    def read(self, request: Request) -> Response:
        return self._answer(request, 200, self._own(request))

    def update(self, request: Request) -> Response:
        """Change the given fields, with optimistic locking.

        1. Read the check with its version. 2. Absent fields keep their values. 3. Validate the
        merged settings as a whole. 4. An `If-Match` must name the version that was read, else 412.
        5. Write the row only if it still has that version. 6. If it has another one, write
        nothing: 409.
        """
        key = key_of(request)
        changes = request.json_object()
        check = self._checks.get(key.id, request.params["id"])
        merged = {
            field: getattr(check, field) for field in CHANGEABLE
        } | changes
        settings = self._validated(merged, key)
        if "if-match" in request.headers:
            _matched(request, check)
        return self._answer(
            request, 200, self._checks.update(check, settings)
        )

    def delete(self, request: Request) -> Response:
        key = key_of(request)
        request.expect_no_body()
        self._checks.delete(
            key.id, request.params["id"], self._expected(request)
        )
        return Response(204)

    def snooze(self, request: Request) -> Response:
        return self._snooze(
            request, validated_snooze(request.json_object())
        )

    def end_snooze(self, request: Request) -> Response:
        request.expect_no_body()
        return self._snooze(request, 0)

    def _snooze(self, request: Request, seconds: int) -> Response:
        key = key_of(request)
        version = self._expected(request)
        check = self._checks.snooze(
            key.id, request.params["id"], seconds, version
        )
        return self._answer(request, 200, check)

    def _expected(self, request: Request) -> int | None:
        """The version that the check must have, None for any.

        Raises `Refusal` 412 if the header If-Match does not name it.
        """
        if "if-match" not in request.headers:
            return None
        return _matched(request, self._own(request)).version

    def list_alerts(self, request: Request) -> Response:
        check = self._own(request)
        return Response.json(
            200, {"alerts": self._alerts.newest(check.id)}
        )

    def list_outages(self, request: Request) -> Response:
        check = self._own(request)
        return Response.json(200, self._outages.of_check(check))

    def page_of_outages(self, request: Request) -> Response:
        key = key_of(request)
        parameters = known_among(
            ("days", "limit", "after"), request.query
        )
        days = _number(parameters, "days", MOST_DAYS, DAYS)
        limit = _number(parameters, "limit", LARGEST_PAGE, PAGE_CHECKS)
        after = parameters.get("after")
        answer = self._outages.page(key, days, limit, after)
        if key.scope == READ:
            for outage in answer["outages"]:
                outage["check_id"] = outage["check_id"][
                    :SHORT_ID_CHARACTERS
                ]
        link = self._link("/checks/outages", parameters, answer["next"])
        return Response.json(200, answer, link)

    def test_alert(self, request: Request) -> Response:
        request.expect_no_body()
        check = self._checks.test_alert(
            key_of(request).id, request.params["id"]
        )
        return self._answer(request, 202, check)

    def ping(self, request: Request) -> Answer:
        """Record what a job signals. It is answered when that is on disk; no thread waits."""
        word = request.params.get("signal", "0").removesuffix("/")
        if word in CHANGES_NOTHING:
            return self._look
        signal = self._pings.fail
        if not word.strip("-0") and not _says_failure(request.query):
            signal = self._pings.ping
        return Awaited(
            signal(_pinged_id(request), request.network), _ping_answer
        )

    def _look(self, request: Request) -> Response:
        return _ping_answer(self._pings.look(_pinged_id(request)))

    def _own(self, request: Request) -> Check:
        key = key_of(request)
        check_id = request.params["id"]
        if key.scope == READ:
            check_id = self._checks.whole_id(key.id, check_id)
        return self._checks.get(key.id, check_id)

    def _shown(self, check: Check, key: Key) -> dict[str, Any]:
        check = check.as_of(self._checks.clock())
        if key.scope == READ:
            return check.as_read(shown_of)
        return check.as_json(self._base_url)

    def _validated(self, values: dict[str, Any], key: Key) -> Settings:
        return validated(
            values, key.limits.min_period_seconds, self._refused_url
        )

    def _link(
        self, path: str, parameters: dict[str, str], following: str | None
    ) -> dict[str, str]:
        """The header that names the next page (RFC 8288), if there is one."""
        if following is None:
            return {}
        query = urlencode(parameters | {"after": following})
        return {"Link": f'<{self._base_url}{path}?{query}>; rel="next"'}

    def _answer(
        self,
        request: Request,
        status: int,
        check: Check,
        headers: dict[str, str] | None = None,
    ) -> Response:
        etag = {"ETag": f'"{check.version}"'}
        shown = {"check": self._shown(check, key_of(request))}
        return Response.json(status, shown, etag | (headers or {}))


def _matched(request: Request, check: Check) -> Check:
    """The check. Raises `Refusal` 412 if the header If-Match does not name its version."""
    if not request.names_tag("if-match", f'"{check.version}"'):
        raise other_version(check)
    return check


def _says_failure(query: str) -> bool:
    """Whether a ping's query says that the job failed, as Uptime Kuma's `?status=down` does."""
    return bool(query) and any(
        value.lower() in FAILED_WORDS
        for value in values_of(query, "status")
    )


def _pinged_id(request: Request) -> str:
    """The id of the check, which may be written as a UUID with its dashes."""
    check_id = request.params["id"].removesuffix("/")
    return (
        check_id.replace("-", "")
        if _UUID.fullmatch(check_id)
        else check_id
    )


def _ping_answer(told: Told | None) -> Response:
    if told is None:
        raise no_check()
    return Response.json(
        200,
        {
            "status": told.status,
            "recovered": told.recovered,
            "deadline_at": utc_text(told.deadline_at),
        },
    )


def _number(
    parameters: dict[str, str], name: str, most: int, default: int
) -> int:
    """The value of a parameter that is an integer from 1 to `most`. Raises `Invalid`."""
    text = parameters.get(name)
    if text is None:
        return default
    if not _DIGITS.fullmatch(text) or not 1 <= int(text) <= most:
        sentence = (
            f"The parameter {name} must be an integer from 1 to {most}."
        )
        raise Invalid("invalid_parameter", sentence, field=name)
    return int(text)
