"""`/ping/{id}/{signal}`: what a job tells besides its pings, in the words of scripts written for Healthchecks."""

import json
import uuid
from itertools import cycle

import pytest

from tests.postgresql import BOTH_ENGINES
from tests.support import GOOD_CHECK

pytestmark = BOTH_ENGINES

METHODS = ("GET", "HEAD", "POST")


def read(app, key, check):
    return app.json("GET", f"/checks/{check['id']}", key=key)["check"]


def types(app, key, check):
    alerts = app.json("GET", f"/checks/{check['id']}/alerts", key=key)["alerts"]
    return [alert["type"] for alert in reversed(alerts)]


FAILURES = [
    *(
        "/fail",
        "/1",
        "/255",
        "/256",
        "/1603",
        "/3221225477",
        "/-1073741510",
        "/99999999999999999999",
    ),
    *(
        "/KILL",
        "/SIGTERM",
        "/RTMIN+1",
        "/fail/",
        "?status=down",
        "?a=b&status=FAILED",
        "/?status=Error",
    ),
    *("/0?status=fail", "/1?status=up", "/SEGV?x"),
]
"""What is behind the id where a job says that it has failed."""


@pytest.mark.parametrize(("word", "method"), [*zip(FAILURES, cycle(METHODS), strict=False)])
def test_a_failure_is_answered_200_and_told_at_once(app, key, check, method, word):
    app.clock.advance(7)
    answer = app(method, f"/ping/{check['id']}{word}")
    assert answer.status == 200
    told = {"status": "overdue", "recovered": False, "deadline_at": check["deadline_at"]}
    assert json.loads(answer.body) == told
    now = read(app, key, check)
    changed = {name: now[name] for name in now if now[name] != check[name]}
    assert changed == {"status": "overdue", "failed_at": "2027-01-15 08:00:07"}
    assert types(app, key, check) == ["check.overdue"]


PINGS = [
    "",
    "/",
    "/0",
    "/00",
    "/-0",
    "/0/",
    "?status=up",
    "?status=down2&x",
    "/?statuses=down",
    "?status",
]


@pytest.mark.parametrize(("word", "method"), [*zip(PINGS, cycle(METHODS), strict=False)])
def test_a_ping_ends_the_outage(app, key, check, method, word):
    app("POST", f"/ping/{check['id']}/fail")
    app.clock.advance(9)
    assert app(method, f"/ping/{check['id']}{word}").status == 200
    now = read(app, key, check)
    assert (now["status"], now["ping_count"], now["failed_at"]) == ("on_time", 1, None)
    assert types(app, key, check) == ["check.overdue", "check.recovered"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("signal", ["start", "log"])
def test_a_start_and_a_line_of_the_log_change_nothing(app, key, check, method, signal):
    app.clock.advance(9)
    answer = app(method, f"/ping/{check['id']}/{signal}")
    assert answer.status == 200
    assert json.loads(answer.body) == {
        "status": "on_time",
        "recovered": False,
        "deadline_at": check["deadline_at"],
    }
    assert read(app, key, check) == check


@pytest.mark.parametrize(
    "signal",
    [
        *(
            "999999999999999999999",
            "--1",
            "-",
            "1.0",
            "+1",
            "Fail",
            "failed",
            "down",
            "kill",
            "SIG",
        ),
        *("KILL9", "x", "%31x", "//", "0/0", "fail//"),
    ],
)
def test_any_other_suffix_is_unknown(app, key, check, signal):
    assert app("POST", f"/ping/{check['id']}/{signal}").status == 404
    assert read(app, key, check) == check


@pytest.mark.parametrize("signal", ["", "/", "/0", "/KILL", "?status=down", "/start"])
def test_an_unknown_check_is_404_whatever_it_signals(app, key, check, signal):
    deleted = app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]["id"]
    app("DELETE", f"/checks/{deleted}", key=key)
    for check_id in (deleted, str(uuid.UUID(deleted)), "x" * 5000, "é", "\x00", "' OR 1=1 --"):
        assert app("GET", f"/ping/{check_id}{signal}").status == 404


def test_the_id_may_be_a_uuid_with_its_dashes(app, key, check):
    dashed = str(uuid.UUID(check["id"]))
    assert app.json("GET", f"/ping/{dashed}/fail")["status"] == "overdue"
    assert app.json("GET", f"/ping/{dashed}")["recovered"]
    assert app("GET", f"/ping/{dashed[:-1]}").status == 404
    assert app("GET", f"/ping/{dashed.replace('-', '', 1)}").status == 404


