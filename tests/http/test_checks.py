import contextlib
import json
import re

import pytest

from cardbeat.config import Tier
from cardbeat.heartbeat.checks import Checks
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import GOOD_CHECK, App, service_of

pytestmark = BOTH_ENGINES

MEMBERS = [
    *("id", "api_key_id", "name", "period_seconds", "grace_seconds", "webhook_url", "status", "last_ping_at"),
    *("deadline_at", "ping_count", "created_at", "updated_at", "version", "ping_url", "delivery"),
    *("failed_at", "snoozed_until", "repeat_seconds"),
]
ALERT_MEMBERS = ["id", "type", "state", "attempts", "last_status", "last_error", "created_at", "next_attempt_at"]
UNKNOWN_ID = "0" * 32


@contextlib.contextmanager
def serving(config, clock):
    service = service_of(config, clock)
    yield App(service, clock)
    service.close()


def read(app, check, key):
    return app.json("GET", f"/checks/{check['id']}", key=key)["check"]


def test_a_created_check_is_on_time_and_its_clock_runs(app, key):
    answer = app("POST", "/checks", GOOD_CHECK, key=key)
    check = json.loads(answer.body)["check"]
    assert answer.status == 201
    assert list(check) == MEMBERS
    assert re.fullmatch(r"[A-Za-z0-9_-]{22,}", check["id"])
    assert answer.headers["Location"] == f"/checks/{check['id']}"
    assert check["ping_url"] == f"https://cards.example/ping/{check['id']}"
    assert {name: check[name] for name in GOOD_CHECK} == GOOD_CHECK
    assert (check["status"], check["last_ping_at"], check["ping_count"], check["version"]) == ("on_time", None, 0, 1)
    assert check["created_at"] == check["updated_at"] == "2027-01-15 08:00:00"
    assert check["deadline_at"] == "2027-01-15 09:01:00"


@SQLITE
def test_a_created_check_is_located_below_the_base_urls_path(config, clock):
    with serving(config._replace(base_url="https://h.example/cb"), clock) as app:
        answer = app("POST", "/checks", GOOD_CHECK, key=app.checks_key())
    check = json.loads(answer.body)["check"]
    assert check["ping_url"] == f"https://h.example/cb/ping/{check['id']}"
    assert answer.headers["Location"] == f"/cb/checks/{check['id']}"


@SQLITE
@pytest.mark.parametrize("sent", [(b"junk", "text/plain", 415), (b'{"a": 1}', "application/json", 400)])
@pytest.mark.parametrize("call", ["POST /test-alert", "DELETE "])
def test_what_takes_no_body_changes_nothing_when_one_says_something(app, key, check, call, sent):
    method, path = call.split(" ")
    body, content_type, status = sent
    headers = {"content-type": content_type}
    assert app(method, f"/checks/{check['id']}{path}", key=key, body=body, headers=headers).status == status
    assert app.json("GET", f"/checks/{check['id']}/alerts", key=key) == {"alerts": []}


@SQLITE
@pytest.mark.parametrize("missing", ["name", "period_seconds", "grace_seconds"])
def test_a_creation_needs_its_three_fields(app, key, missing):
    answer = app("POST", "/checks", {name: GOOD_CHECK[name] for name in GOOD_CHECK if name != missing}, key=key)
    assert answer.status == 400
    assert json.loads(answer.body)["field"] == missing
    assert app.json("GET", "/checks", key=key)["checks"] == []


@SQLITE
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("name", None),
        ("period_seconds", 0),
        ("period_seconds", "60"),
        ("grace_seconds", True),
        ("grace_seconds", 10**40),
        ("webhook_url", "ftp://x.example/"),
        ("webhook_url", "http://127.0.0.1/"),
        ("webhook_url", "http://0x7f000001/"),
        ("webhook_url", "https://user@x.example/"),
        ("webhook_url", "x" * 3000),
        ("webhook_url", ""),
        ("webhook_url", 5),
        ("version", 3),
    ],
)
def test_a_bad_field_is_named_and_changes_nothing(app, key, check, field, value):
    for method, path in (("POST", "/checks"), ("PATCH", f"/checks/{check['id']}")):
        answer = app(method, path, GOOD_CHECK | {field: value}, key=key)
        assert answer.status == 400
        assert json.loads(answer.body)["field"] == field
    assert app.json("GET", "/checks", key=key)["checks"] == [check]


@SQLITE
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/checks"),
        ("GET", "/checks"),
        ("GET", "/checks/{id}"),
        ("PATCH", "/checks/{id}"),
        ("DELETE", "/checks/{id}"),
        ("GET", "/checks/{id}/alerts"),
        ("POST", "/checks/{id}/test-alert"),
    ],
)
def test_a_checks_key_is_needed(app, check, method, path):
    path = path.replace("{id}", check["id"])
    body = GOOD_CHECK if method in ("POST", "PATCH") else None
    missing = app(method, path, body)
    assert (missing.status, missing.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert app(method, path, body, key="sk_unknown").status == 401
    assert app(method, path, body, key=app.cards_key()).status == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/checks/{id}"),
        ("PATCH", "/checks/{id}"),
        ("DELETE", "/checks/{id}"),
        ("GET", "/checks/{id}/alerts"),
        ("POST", "/checks/{id}/test-alert"),
    ],
)
def test_another_keys_check_is_like_none(app, key, check, method, path):
    other, body = app.checks_key(), {} if method == "PATCH" else None
    answers = [
        app(method, path.replace("{id}", check_id), body, key=other)
        for check_id in (check["id"], UNKNOWN_ID, "x" * 5000, "é\x00")
    ]
    assert {answer.status for answer in answers} == {404}
    assert len({answer.body for answer in answers}) == 1
    assert read(app, check, key) == check


def test_a_check_is_read_with_its_version_as_etag(app, key, check):
    answer = app("GET", f"/checks/{check['id']}", key=key)
    assert (answer.status, answer.headers["ETag"]) == (200, '"1"')
    assert json.loads(answer.body) == {"check": check}


def test_absent_fields_are_kept_and_present_ones_replaced(app, key, check):
    app.clock.advance(5)
    answer = app("PATCH", f"/checks/{check['id']}", {"name": " b ", "grace_seconds": 0}, key=key)
    patched = json.loads(answer.body)["check"]
    changes = {"name": "b", "grace_seconds": 0, "version": 2}
    changes |= {"updated_at": "2027-01-15 08:00:05", "deadline_at": "2027-01-15 09:00:00"}
    assert (answer.status, answer.headers["ETag"]) == (200, '"2"')
    assert patched == check | changes
    assert read(app, check, key) == patched


def test_an_empty_patch_is_an_update(app, key, check):
    assert app.json("PATCH", f"/checks/{check['id']}", {}, key=key)["check"] == check | {"version": 2}


def test_null_takes_the_webhook_away_and_absence_keeps_it(app, key, check):
    path = f"/checks/{check['id']}"
    assert app.json("PATCH", path, {"name": "b"}, key=key)["check"]["webhook_url"] == GOOD_CHECK["webhook_url"]
    assert app.json("PATCH", path, {"webhook_url": None}, key=key)["check"]["webhook_url"] is None


@SQLITE
def test_the_merged_check_is_validated_under_the_keys_tier(config, clock):
    with serving(config, clock) as app:
        key = app.checks_key()
        check = app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]
    with serving(config._replace(tiers={"free": Tier(min_period_seconds=7200)}), clock) as app:
        answer = app("PATCH", f"/checks/{check['id']}", {"name": "b"}, key=key)
        assert answer.status == 400
        assert json.loads(answer.body)["field"] == "period_seconds"
        assert read(app, check, key) == check
        assert app("PATCH", f"/checks/{check['id']}", {"period_seconds": 7200}, key=key).status == 200


@SQLITE
@pytest.mark.parametrize("if_match", ['"1"', 'W/"1"', '"7", "1"', "*", ' "1" '])
def test_if_match_with_the_version_passes(app, key, check, if_match):
    assert app("PATCH", f"/checks/{check['id']}", {}, key=key, headers={"if-match": if_match}).status == 200


@SQLITE
@pytest.mark.parametrize("if_match", ['"2"', '"11"', "1", "", '"7", "8"', '"1'])
def test_if_match_with_another_version_is_refused(app, key, check, if_match):
    answer = app("PATCH", f"/checks/{check['id']}", {"name": "b"}, key=key, headers={"if-match": if_match})
    assert answer.status == 412
    assert read(app, check, key) == check


def be_overtaken(app, key, monkeypatch):
    """Let somebody rename the next check that is read, right after it was."""

    def get_and_be_overtaken(checks, key_id, check_id):
        read = get(checks, key_id, check_id)
        monkeypatch.undo()
        assert app("PATCH", f"/checks/{check_id}", {"name": "first"}, key=key).status == 200
        return read

    get = Checks.get
    monkeypatch.setattr(Checks, "get", get_and_be_overtaken)


def test_a_check_changed_since_it_was_read_is_a_conflict(app, key, check, monkeypatch):
    be_overtaken(app, key, monkeypatch)
    answer = app("PATCH", f"/checks/{check['id']}", {"period_seconds": 5}, key=key)
    assert (answer.status, json.loads(answer.body)["code"]) == (409, "conflict")
    assert read(app, check, key) == check | {"name": "first", "version": 2}


def test_a_deleted_check_is_gone_with_its_alerts(app, key, check):
    app("POST", f"/checks/{check['id']}/test-alert", key=key)
    assert app("DELETE", f"/checks/{check['id']}", key=key).status == 204
    for method, path in [("DELETE", "/checks/"), ("GET", "/checks/"), ("GET", "/ping/"), ("POST", "/ping/")]:
        assert app(method, path + check["id"], key=key).status == 404
    with app.service.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM alerts").fetchone()[0] == 0


@pytest.mark.parametrize(("if_match", "status"), [('"2"', 412), ("", 412), ('"1"', 204), ('"7", "1"', 204), ("*", 204)])
def test_only_the_version_that_if_match_names_is_deleted(app, key, check, if_match, status):
    path = f"/checks/{check['id']}"
    assert app("DELETE", path, key=key, headers={"if-match": if_match}).status == status
    assert app("GET", path, key=key).status == (200 if status == 412 else 404)


def test_a_check_changed_since_if_match_was_compared_is_not_deleted(app, key, check, monkeypatch):
    be_overtaken(app, key, monkeypatch)
    answer = app("DELETE", f"/checks/{check['id']}", key=key, headers={"if-match": '"1"'})
    assert (answer.status, json.loads(answer.body)["code"]) == (412, "precondition_failed")
    assert read(app, check, key)["name"] == "first"


def test_pages_go_from_the_oldest_to_the_newest(app, key):
    ids = [app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]["id"] for _ in range(5)]
    seen, target = [], "/checks?limit=2"
    while target:
        page = app.json("GET", target, key=key)
        seen.append([check["id"] for check in page["checks"]])
        target = page["next"] and f"/checks?after={page['next']}&limit=2&unknown=1&unknown=2"
    assert seen == [ids[:2], ids[2:4], ids[4:]]
    assert app.json("GET", "/checks?limit=5", key=key)["next"] is None
    assert app.json("GET", f"/checks?after={ids[4]}", key=key) == {"checks": [], "next": None}


@SQLITE
def test_a_header_links_to_the_next_page_below_the_base_url(config, clock):
    with serving(config._replace(base_url="https://h.example/cb"), clock) as app:
        key = app.checks_key()
        for _ in range(5):
            app("POST", "/checks", GOOD_CHECK, key=key)
        target, pages = "/checks?limit=2", 0
        while target:
            answer, pages = app("GET", target, key=key), pages + 1
            following = json.loads(answer.body)["next"]
            link = f'<https://h.example/cb/checks?limit=2&after={following}>; rel="next"' if following else None
            assert answer.headers.get("Link") == link
            target = link and re.search("/checks[^>]+", link)[0]
        assert pages == 3


def test_a_page_is_of_100_checks_at_first(app, key, config):
    for _ in range(100):
        app("POST", "/checks", GOOD_CHECK, key=key)
    page = app.json("GET", "/checks", key=key)
    assert (len(page["checks"]), page["next"]) == (100, None)


@SQLITE
@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=1001", "limit=-1", "limit=", "limit=1.0", "limit=+5", "limit=%D9%A3", "limit=1_0"),
        *("limit=99999999999999999999", f"after={UNKNOWN_ID}", "after=", "after=%00", "after=%FF"),
        *("limit=2&limit=2", "after=a&after=a"),
    ],
)
def test_a_bad_page_is_refused(app, key, query):
    answer = app("GET", f"/checks?{query}", key=key)
    assert answer.status == 400
    assert json.loads(answer.body)["field"] == query.partition("=")[0]


def test_another_keys_check_is_no_place_to_go_on_after(app, check):
    assert app("GET", f"/checks?after={check['id']}", key=app.checks_key()).status == 400


def test_no_more_checks_than_the_tier_allows(app, key):
    for _ in range(100):
        assert app("POST", "/checks", GOOD_CHECK, key=key).status == 201
    answer = app("POST", "/checks", GOOD_CHECK, key=key)
    assert (answer.status, json.loads(answer.body)["code"]) == (403, "too_many_checks")
    assert app("POST", "/checks", GOOD_CHECK, key=app.checks_key()).status == 201


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_ping_starts_the_clock_anew_and_changes_nothing_else(app, key, check, method):
    app.clock.advance(100)
    answer = app(method, f"/ping/{check['id']}", body=b"\x00any", headers={"content-type": "what/ever"})
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    pinged = {"last_ping_at": "2027-01-15 08:01:40", "deadline_at": "2027-01-15 09:02:40", "ping_count": 1}
    expected = {"status": "on_time", "recovered": False, "deadline_at": pinged["deadline_at"]}
    assert json.loads(answer.body) == expected
    assert read(app, check, key) == check | pinged


@pytest.mark.parametrize("check_id", [UNKNOWN_ID, "x" * 5000, "é", "\x00", "a b", "' OR 1=1 --"])
def test_a_ping_for_no_check_is_not_found(app, check_id):
    assert app("GET", f"/ping/{check_id}").status == 404


@SQLITE
def test_a_ping_may_have_any_body_and_nothing_else_may(app):
    router = app.service.router
    assert all(router.ignores_body(method, "/ping/x") for method in ("GET", "HEAD", "POST"))
    assert not any(router.ignores_body("POST", path) for path in ("/register", "/checks", "/ping", "/ping/x/y"))
    assert router.ignores_body("POST", "/ping/x/fail")
    assert not router.ignores_body("PUT", "/ping/x")


def test_a_patch_beside_a_ping_keeps_the_ping(app, key, check):
    app.clock.advance(100)
    app("GET", f"/ping/{check['id']}")
    patched = app.json("PATCH", f"/checks/{check['id']}", {"period_seconds": 10}, key=key)["check"]
    assert (patched["last_ping_at"], patched["deadline_at"]) == ("2027-01-15 08:01:40", "2027-01-15 08:02:50")


def test_an_outage_and_its_end_are_alerted_once(app, key, check):
    app.clock.advance(3661)
    app.service.sweep.sweep_once()
    app.service.sweep.sweep_once()
    assert read(app, check, key)["status"] == "overdue"
    assert app.json("GET", f"/ping/{check['id']}")["recovered"] is True
    assert app.json("GET", f"/ping/{check['id']}")["recovered"] is False
    alerts = app.json("GET", f"/checks/{check['id']}/alerts", key=key)["alerts"]
    assert [alert["type"] for alert in alerts] == ["check.recovered", "check.overdue"]
    assert list(alerts[0]) == ALERT_MEMBERS


def test_a_test_alert_is_stored_each_time(app, key, check):
    path = f"/checks/{check['id']}"
    assert [app("POST", f"{path}/test-alert", key=key).status for _ in range(2)] == [202, 202]
    alerts = app.json("GET", f"{path}/alerts", key=key)["alerts"]
    assert [(alert["type"], alert["state"]) for alert in alerts] == [("check.test", "pending")] * 2


def test_past_five_that_wait_or_thirty_in_an_hour_a_test_alert_is_refused(app, key):
    checks = [app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]["id"] for _ in range(7)]
    answers = [app("POST", f"/checks/{check_id}/test-alert", key=key) for check_id in checks for _ in range(6)]
    refused = [json.loads(answer.body)["error"] for answer in answers if answer.status == 429]
    assert [answer.status for answer in answers] == ([202] * 5 + [429]) * 6 + [429] * 6
    assert ["5 test alerts of this check" in sentence for sentence in refused[:6]] == [True] * 6
    assert ["30 test alerts within an hour" in sentence for sentence in refused[6:]] == [True] * 6
    waits = [int(answer.headers["Retry-After"]) for answer in answers if answer.status == 429]
    assert [int(sentence.split()[-2]) for sentence in refused] == waits
    assert min(waits) > 0


@SQLITE
def test_a_test_alert_needs_a_webhook(app, key, check):
    app("PATCH", f"/checks/{check['id']}", {"webhook_url": None}, key=key)
    answer = app("POST", f"/checks/{check['id']}/test-alert", key=key)
    assert (answer.status, json.loads(answer.body)["code"]) == (400, "no_webhook")


def test_a_revoked_keys_checks_go_with_it(app, key, check):
    assert app("DELETE", "/key", key=key).status == 204
    assert app("GET", f"/ping/{check['id']}").status == 404


@SQLITE
def test_the_hosts_own_public_address_is_refused_at_once(config, clock, monkeypatch):
    monkeypatch.setattr("cardbeat.heartbeat.routes.is_own", lambda address: str(address) == "8.8.8.8")
    with serving(config, clock) as app:
        key = app.checks_key()
        check = app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]
        own = {"webhook_url": "http://8.8.8.8:8080/x"}
        for answer in (
            app("POST", "/checks", GOOD_CHECK | own, key=key),
            app("PATCH", f"/checks/{check['id']}", own, key=key),
        ):
            refusal = json.loads(answer.body)
            assert (answer.status, refusal["field"]) == (400, "webhook_url")
            assert "private or reserved" in refusal["error"]
        assert read(app, check, key)["webhook_url"] == GOOD_CHECK["webhook_url"]
