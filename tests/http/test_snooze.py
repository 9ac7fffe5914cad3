"""`/checks/{id}/snooze` and `repeat_seconds`: a check that is to be silent for a time, and one that keeps reminding."""

import json

import pytest

from cardbeat.errors import REASONS
from tests.postgresql import BOTH_ENGINES
from tests.support import GOOD_CHECK

pytestmark = BOTH_ENGINES

DAY = 86_400


def path(check):
    return f"/checks/{check['id']}"


def snooze(app, key, check, seconds=DAY, **options):
    return app("PUT", f"{path(check)}/snooze", {"seconds": seconds}, key=key, **options)


def read(app, key, check):
    return app.json("GET", path(check), key=key)["check"]


def sweep(app):
    app.service.sweep.sweep_once()


def types(app, key, check):
    alerts = app.json("GET", f"{path(check)}/alerts", key=key)["alerts"]
    return [alert["type"] for alert in reversed(alerts)]


def test_a_snooze_is_answered_with_the_check_whose_clock_starts_at_its_end(app, key, clock, check):
    clock.advance(7)
    answer = snooze(app, key, check)
    assert (answer.status, answer.headers["ETag"]) == (200, '"2"')
    snoozed = json.loads(answer.body)["check"]
    changed = {name: snoozed[name] for name in snoozed if snoozed[name] != check[name]}
    assert changed == {
        "snoozed_until": "2027-01-16 08:00:07",
        "deadline_at": "2027-01-16 09:01:07",
        "updated_at": "2027-01-15 08:00:07",
        "version": 2,
    }
    assert read(app, key, check) == snoozed


def test_a_snoozed_check_turns_overdue_only_once_its_clock_has_run_out_after_the_snooze(app, key, clock, check):
    snooze(app, key, check)
    clock.advance(DAY)
    assert read(app, key, check)["snoozed_until"] is None
    clock.advance(3660)
    sweep(app)
    assert types(app, key, check) == []
    clock.advance(1)
    sweep(app)
    assert types(app, key, check) == ["check.overdue"]


def test_a_snooze_outlives_pings_and_failures(app, key, clock, check):
    snoozed = json.loads(snooze(app, key, check).body)["check"]
    clock.advance(60)
    assert app.json("GET", f"/ping/{check['id']}")["deadline_at"] == snoozed["deadline_at"]
    assert app.json("GET", f"/ping/{check['id']}/1") == {
        "status": "on_time",
        "recovered": False,
        "deadline_at": snoozed["deadline_at"],
    }
    now = read(app, key, check)
    assert (now["failed_at"], now["snoozed_until"]) == ("2027-01-15 08:01:00", snoozed["snoozed_until"])
    assert types(app, key, check) == []


def test_of_a_snoozed_check_that_is_overdue_the_recovery_is_told(app, key, clock, check):
    app("GET", f"/ping/{check['id']}/fail")
    snooze(app, key, check)
    assert read(app, key, check)["status"] == "overdue"
    assert app.json("GET", f"/ping/{check['id']}")["recovered"]
    assert types(app, key, check) == ["check.overdue", "check.recovered"]
    assert read(app, key, check)["snoozed_until"] is not None


def test_a_further_snooze_replaces_the_first_one_and_a_snooze_can_be_ended(app, key, clock, check):
    snooze(app, key, check)
    assert json.loads(snooze(app, key, check, 60).body)["check"]["snoozed_until"] == "2027-01-15 08:01:00"
    clock.advance(5)
    answer = app("DELETE", f"{path(check)}/snooze", key=key)
    ended = json.loads(answer.body)["check"]
    assert (answer.status, answer.headers["ETag"]) == (200, '"4"')
    assert (ended["snoozed_until"], ended["deadline_at"]) == (None, "2027-01-15 09:01:05")


def test_to_end_no_snooze_changes_nothing(app, key, clock, check):
    snooze(app, key, check, 60)
    clock.advance(60)
    before = read(app, key, check)
    assert app.json("DELETE", f"{path(check)}/snooze", key=key)["check"] == before == read(app, key, check)


@pytest.mark.parametrize("seconds", [60, 7_776_000])
def test_the_bounds_of_a_snooze_are_taken(app, key, check, seconds):
    assert snooze(app, key, check, seconds).status == 200


@pytest.mark.parametrize(
    "seconds", [59, 0, -60, 7_776_001, 10**30, 60.0, "60", True, [60], pytest.param(None, id="null")]
)
def test_another_time_is_refused(app, key, check, seconds):
    answer = snooze(app, key, check, seconds)
    assert (answer.status, json.loads(answer.body)["field"]) == (400, "seconds")
    assert read(app, key, check) == check


@pytest.mark.parametrize(
    ("body", "code"),
    [({}, "missing_field"), ({"seconds": 60, "until": "x"}, "unknown_field"), ([60], "invalid_json")],
)
def test_another_body_is_refused(app, key, check, body, code):
    answer = app("PUT", f"{path(check)}/snooze", body, key=key)
    assert (answer.status, json.loads(answer.body)["code"]) == (REASONS[code].status, code)
    assert read(app, key, check) == check


def test_it_takes_an_if_match(app, key, check):
    assert snooze(app, key, check, headers={"if-match": '"1"'}).status == 200
    before = read(app, key, check)
    for method, body in (("PUT", {"seconds": 60}), ("DELETE", None)):
        answer = app(method, f"{path(check)}/snooze", body, key=key, headers={"if-match": '"1"'})
        assert (answer.status, json.loads(answer.body)["code"]) == (412, "precondition_failed")
    assert read(app, key, check) == before


def test_a_patch_from_before_a_snooze_is_a_conflict_with_it(app, key, check):
    """Its `If-Match` names a version that is no longer there."""
    snooze(app, key, check)
    assert app("PATCH", path(check), {"name": "b"}, key=key, headers={"if-match": '"1"'}).status == 412


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_no_other_key_snoozes_a_check(app, key, check, method):
    body = {"seconds": 60} if method == "PUT" else None
    reader = app.json("POST", "/key/read-only", key=key)["key"]
    statuses = [
        app(method, f"{path(check)}/snooze", body, key=other).status
        for other in (None, app.cards_key(), reader, app.checks_key())
    ]
    assert statuses == [401, 403, 403, 404]
    assert app(method, "/checks/nothing/snooze", body, key=key).status == 404
    assert read(app, key, check) == check


def test_a_snooze_is_not_read(app, key, check):
    refused = app("GET", f"{path(check)}/snooze", key=key)
    assert (refused.status, refused.headers["Allow"]) == (405, "PUT, DELETE")


@pytest.mark.parametrize("repeat", [300, 2_592_000, None])
def test_the_time_between_reminders_is_set_at_creation_and_changed(app, key, check, repeat):
    assert check["repeat_seconds"] is None
    created = app.json("POST", "/checks", GOOD_CHECK | {"repeat_seconds": repeat}, key=key)["check"]
    assert created["repeat_seconds"] == repeat
    for value in (repeat, None, repeat):
        assert app.json("PATCH", path(check), {"repeat_seconds": value}, key=key)["check"]["repeat_seconds"] == value
    assert app.json("PATCH", path(check), {"name": "b"}, key=key)["check"]["repeat_seconds"] == repeat


@pytest.mark.parametrize("value", [0, 299, 2_592_001, 300.0, "300", True, -300])
def test_another_time_between_reminders_is_refused(app, key, check, value):
    for method, target in (("POST", "/checks"), ("PATCH", path(check))):
        answer = app(method, target, GOOD_CHECK | {"repeat_seconds": value}, key=key)
        assert (answer.status, json.loads(answer.body)["field"]) == (400, "repeat_seconds")
    assert read(app, key, check) == check
