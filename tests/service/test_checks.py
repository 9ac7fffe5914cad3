"""`/checks` and `/ping`: what owners create, read, change and delete, and what a ping changes."""

import json
import re

import pytest

from cardbeat.config import Tier
from cardbeat.heartbeat.checks import Checks
from tests.kit.lists import each
from tests.kit.postgresql import BOTH_ENGINES, SQLITE
from tests.kit.support import GOOD_CHECK
from tests.service.conftest import create, pages

pytestmark = BOTH_ENGINES

ALERT_MEMBERS = "id type state attempts last_status last_error created_at next_attempt_at"
UNKNOWN_ID = "0" * 32


def path(check):
    return f"/checks/{check['id']}"


def read(app, check, key):
    return app.json("GET", path(check), key=key)["check"]


def refused(answer, status, code=None):
    """The body of a refusal."""
    body = json.loads(answer.body)
    assert answer.status == status
    assert body["code"] == (code or body["code"])
    return body


def test_a_created_check_is_on_time_and_its_clock_runs(app, key):
    answer = app("POST", "/checks", GOOD_CHECK, key=key)
    check = json.loads(answer.body)["check"]
    assert answer.status == 201
    assert answer.headers["Location"] == path(check)
    assert re.fullmatch(r"[A-Za-z0-9_-]{22,}", check["id"])
    times = {
        "created_at": "2027-01-15 08:00:00",
        "deadline_at": "2027-01-15 09:01:00",
    }
    new = {
        "status": "on_time",
        "last_ping_at": None,
        "ping_count": 0,
        "version": 1,
    }
    assert check == check | GOOD_CHECK | times | new
    answer = app("GET", path(check), key=key)
    assert answer.status == 200
    assert answer.headers["ETag"] == '"1"'
    assert json.loads(answer.body) == {"check": check}


@SQLITE
def test_urls_begin_with_the_base_url(app_of):
    app = app_of(base_url="https://h.example/cb")
    key = app.checks_key()
    answer = app("POST", "/checks", GOOD_CHECK, key=key)
    check = json.loads(answer.body)["check"]
    assert check["ping_url"] == f"https://h.example/cb/ping/{check['id']}"
    assert answer.headers["Location"] == f"/cb/checks/{check['id']}"
    create(app, key)
    link = app("GET", "/checks?limit=1", key=key).headers["Link"]
    assert (
        link
        == f'<https://h.example/cb/checks?limit=1&after={check["id"]}>; rel="next"'
    )


def test_absent_fields_are_kept_and_present_ones_replaced(app, one):
    app.clock.advance(5)
    answer = one("PATCH", "", {"name": " b ", "grace_seconds": 0})
    patched = json.loads(answer.body)["check"]
    changes = {"name": "b", "grace_seconds": 0, "version": 2}
    changes |= {
        "updated_at": "2027-01-15 08:00:05",
        "deadline_at": "2027-01-15 09:00:00",
    }
    assert answer.status == 200
    assert answer.headers["ETag"] == '"2"'
    assert patched == one.check | changes
    # An empty one is an update too.
    assert one("PATCH", "", {}).status == 200
    assert one.read() == patched | {"version": 3}
    for change in (
        {"webhook_url": None},
        {"repeat_seconds": 300},
        {"repeat_seconds": None},
    ):
        one("PATCH", "", change)
        assert change.items() <= one.read().items()
    assert (
        create(app, one.key, repeat_seconds=300)["repeat_seconds"] == 300
    )


@SQLITE
def test_the_merged_check_is_validated_under_the_keys_tier(app_of):
    app = app_of()
    key = app.checks_key()
    check = create(app, key)
    app = app_of(tiers={"free": Tier(min_period_seconds=7200)})
    answer = app("PATCH", path(check), {"name": "b"}, key=key)
    assert refused(answer, 400)["field"] == "period_seconds"
    assert read(app, check, key) == check
    assert (
        app(
            "PATCH", path(check), {"period_seconds": 7200}, key=key
        ).status
        == 200
    )


IF_MATCH = {
    True: ['"1"', 'W/"1"', '"7", "1"', "*", ' "1" '],
    False: ['"2"', '"11"', "1", "", '"7", "8"', '"1'],
}


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize("matches", IF_MATCH)
def test_if_match_must_name_the_version(app, key, method, matches):
    for if_match in IF_MATCH[matches]:
        check = create(app, key)
        body = {"name": "b"} if method == "PATCH" else None
        answer = app(
            method,
            path(check),
            body,
            key=key,
            headers={"if-match": if_match},
        )
        if matches:
            assert answer.status == (200 if method == "PATCH" else 204)
        else:
            refused(answer, 412, "precondition_failed")
            assert read(app, check, key) == check


@pytest.mark.parametrize(
    ("call", "status", "code"),
    [("PATCH", 409, "conflict"), ("DELETE", 412, "precondition_failed")],
)
def test_a_check_that_changes_meanwhile_is_left_as_it_is(
    one, monkeypatch, call, status, code
):
    get = Checks.get

    def get_and_be_overtaken(checks, key_id, check_id):
        found = get(checks, key_id, check_id)
        monkeypatch.undo()
        assert one("PATCH", "", {"name": "first"}).status == 200
        return found

    monkeypatch.setattr(Checks, "get", get_and_be_overtaken)
    if call == "PATCH":
        answer = one("PATCH", "", {"period_seconds": 5})
    else:
        answer = one("DELETE", headers={"if-match": '"1"'})
    refused(answer, status, code)
    assert one.read() == one.check | {"name": "first", "version": 2}


def test_a_deleted_check_is_gone_with_its_alerts(app, one):
    one("POST", "/test-alert")
    assert one("DELETE").status == 204
    for answer in (one("DELETE"), one("GET"), one.ping()):
        assert answer.status == 404
    with app.service.database.read() as connection:
        assert (
            connection.execute("SELECT count(*) FROM alerts").fetchone()[
                0
            ]
            == 0
        )


def test_pages_go_from_the_oldest_to_the_newest(app, key):
    ids = [create(app, key)["id"] for _ in range(5)]
    found = each(
        pages(app, key, "/checks?limit=2&unknown=1&unknown=2"), "checks"
    )
    assert [each(page, "id") for page in found] == [
        ids[:2],
        ids[2:4],
        ids[4:],
    ]
    assert app.json("GET", "/checks?limit=5", key=key)["next"] is None
    assert app.json("GET", f"/checks?after={ids[4]}", key=key) == {
        "checks": [],
        "next": None,
    }
    assert (
        app("GET", f"/checks?after={ids[4]}", key=app.checks_key()).status
        == 400
    )


def test_no_more_checks_than_the_tier_allows_which_are_a_page(app, key):
    for _ in range(100):
        create(app, key)
    refused(
        app("POST", "/checks", GOOD_CHECK, key=key),
        403,
        "too_many_checks",
    )
    page = app.json("GET", "/checks", key=key)
    assert len(page["checks"]) == 100
    assert page["next"] is None


BAD_PAGES = {
    "/checks": f"""limit=0 limit=1001 limit=-1 limit= limit=1.0 limit=+5 limit=%D9%A3 limit=1_0
    limit=99999999999999999999 after={UNKNOWN_ID} after= after=%00 after=%FF limit=2&limit=2
    after=a&after=a""",
    "/checks/outages": """days=0 days=91 days= days=x limit=0 limit=1001 after= after=x after=0
    after=999999 after=99999999999999999999 days=1&days=2""",
}


@SQLITE
@pytest.mark.parametrize("place", BAD_PAGES)
def test_a_bad_page_is_refused(app, key, place):
    for query in BAD_PAGES[place].split():
        answer = app("GET", f"{place}?{query}", key=key)
        assert refused(answer, 400)["field"] == query.partition("=")[0], (
            query
        )


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_ping_starts_the_clock_again_and_changes_nothing_else(
    app, one, method
):
    app.clock.advance(100)
    answer = one.ping(method=method)
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"
    deadline_at = "2027-01-15 09:02:40"
    expected = {
        "status": "on_time",
        "recovered": False,
        "deadline_at": deadline_at,
    }
    assert json.loads(answer.body) == expected
    pinged = {
        "last_ping_at": "2027-01-15 08:01:40",
        "deadline_at": deadline_at,
        "ping_count": 1,
    }
    assert one.read() == one.check | pinged
    # A change beside it keeps it.
    one("PATCH", "", {"period_seconds": 10})
    assert one.read()["deadline_at"] == "2027-01-15 08:02:50"


@SQLITE
def test_all_wrong_fields_of_a_body_are_named_at_once_and_change_nothing(
    app, key, check
):
    wrong = {
        "name": 5,
        "grace_seconds": True,
        "webhook_url": "http://0x7f000001/",
        "version": 3,
    }
    for method, target in (("POST", "/checks"), ("PATCH", path(check))):
        told = refused(
            app(method, target, GOOD_CHECK | wrong, key=key),
            400,
            "invalid_field",
        )
        assert each(told["fields"], "field") == list(wrong)
    assert app.json("GET", "/checks", key=key)["checks"] == [check]


def test_a_test_alert_is_taken_where_there_is_a_webhook(one):
    assert one("POST", "/test-alert").status == 202
    (alert,) = json.loads(one("GET", "/alerts").body)["alerts"]
    assert list(alert) == ALERT_MEMBERS.split()
    one("PATCH", "", {"webhook_url": None})
    refused(one("POST", "/test-alert"), 400, "no_webhook")
