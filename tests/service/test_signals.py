"""`/ping/{id}/{signal}`: what a job tells besides its pings, in the words of scripts written for Healthchecks."""

import json
import uuid
from itertools import cycle

import pytest

from tests.kit.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES

METHODS = ("GET", "HEAD", "POST")


def cases(words):
    return pytest.mark.parametrize(
        ("word", "method"),
        [*zip(words.split(), cycle(METHODS), strict=False)],
    )


def require_answer(answer, one, status):
    assert answer.status == 200
    assert json.loads(answer.body) == {
        "status": status,
        "recovered": False,
        "deadline_at": one.check["deadline_at"],
    }


@cases(
    """/fail /1 /3221225477 /-1073741510 /99999999999999999999 /KILL /SIGTERM /RTMIN+1 /fail/ ?status=down
    ?a=b&status=FAILED ?status=up&status=down /?status=Error /0?status=fail /1?status=up"""
)
def test_a_failure_is_answered_200_and_told_at_once(
    app, one, method, word
):
    app.clock.advance(7)
    require_answer(one.ping(word, method), one, "overdue")
    assert one.read() == one.check | {
        "status": "overdue",
        "failed_at": "2027-01-15 08:00:07",
    }
    assert one.types() == ["check.overdue"]


@cases(
    "? / /0 /00 /-0 /0/ ?status=up ?status=down2&x /?statuses=down ?status"
)
def test_a_ping_ends_the_outage(app, one, method, word):
    one.ping("/fail")
    app.clock.advance(9)
    assert one.ping(word, method).status == 200
    now = one.read()
    assert now["status"] == "on_time"
    assert now["ping_count"] == 1
    assert now["failed_at"] is None
    assert one.types() == ["check.overdue", "check.recovered"]


@cases("/start /log /start/")
def test_a_start_and_a_line_of_the_log_change_nothing(
    app, one, method, word
):
    app.clock.advance(9)
    require_answer(one.ping(word, method), one, "on_time")
    assert one.read() == one.check


OTHERS = "999999999999999999999 --1 - 1.0 +1 Fail down kill SIG KILL9 %31x // 0/0 fail//"


def test_any_other_suffix_is_unknown(one):
    for suffix in OTHERS.split():
        assert one.ping(f"/{suffix}", "POST").status == 404, suffix
    assert one.read() == one.check


def test_an_unknown_check_is_404_whatever_it_signals(app, one):
    one("DELETE")
    deleted = one.check["id"]
    for check_id in (
        deleted,
        str(uuid.UUID(deleted)),
        "x" * 5000,
        "é",
        "\x00",
        "' OR 1=1 --",
    ):
        for signal in ("", "/", "/0", "/KILL", "?status=down", "/start"):
            assert app("GET", f"/ping/{check_id}{signal}").status == 404


def test_the_id_may_be_a_uuid_with_its_dashes(app, check):
    dashed = str(uuid.UUID(check["id"]))
    assert app.json("GET", f"/ping/{dashed}/fail")["status"] == "overdue"
    assert app.json("GET", f"/ping/{dashed}")["recovered"]
    for other in (dashed[:-1], dashed.replace("-", "", 1)):
        assert app("GET", f"/ping/{other}").status == 404
