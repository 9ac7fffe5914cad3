"""`/checks/{id}/snooze`: a check that is to be silent for a time."""

import json

from tests.kit.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES

DAY = 86_400


def snooze(one, seconds=DAY, **options):
    return one("PUT", "/snooze", {"seconds": seconds}, **options)


def test_the_clock_of_a_snoozed_check_starts_at_its_end(app, one):
    app.clock.advance(7)
    answer = snooze(one)
    assert answer.status == 200
    assert answer.headers["ETag"] == '"2"'
    changed = {
        "snoozed_until": "2027-01-16 08:00:07",
        "deadline_at": "2027-01-16 09:01:07",
        "updated_at": "2027-01-15 08:00:07",
        "version": 2,
    }
    assert (
        json.loads(answer.body)["check"]
        == one.check | changed
        == one.read()
    )
    # It outlives pings and failures.
    told = {
        "status": "on_time",
        "recovered": False,
        "deadline_at": changed["deadline_at"],
    }
    for signal in ("", "/1"):
        assert json.loads(one.ping(signal).body) == told
    assert one.read()["snoozed_until"] == changed["snoozed_until"]
    app.clock.advance(DAY)
    assert one.read()["snoozed_until"] is None
    for seconds, types in ((3660, []), (1, ["check.overdue"])):
        app.clock.advance(seconds)
        app.service.sweep.sweep_once()
        assert one.types() == types


def test_a_further_snooze_replaces_the_first_one_and_one_can_be_ended(
    app, one
):
    snooze(one)
    again = json.loads(snooze(one, 60).body)["check"]
    assert again["snoozed_until"] == "2027-01-15 08:01:00"
    app.clock.advance(5)
    # The second time there is none to end.
    for _ in range(2):
        answer = one("DELETE", "/snooze")
        ended = json.loads(answer.body)["check"]
        assert answer.status == 200
        assert answer.headers["ETag"] == '"4"'
        assert ended["snoozed_until"] is None
        assert ended["deadline_at"] == "2027-01-15 09:01:05"
    assert one.read() == ended


def test_it_lasts_from_a_minute_to_90_days(one):
    for seconds in (59, -60, 7_776_001, 10**30, 60.0, "60", True, None):
        answer = snooze(one, seconds)
        assert answer.status == 400
        assert json.loads(answer.body)["field"] == "seconds"
    assert one.read() == one.check
    for seconds in (60, 7_776_000):
        assert snooze(one, seconds).status == 200
    assert one("GET", "/snooze").headers["Allow"] == "PUT, DELETE"


def test_it_takes_an_if_match_and_makes_another_version(one):
    headers = {"if-match": '"1"'}
    assert snooze(one, headers=headers).status == 200
    before = one.read()
    for answer in (
        snooze(one, headers=headers),
        one("DELETE", "/snooze", headers=headers),
    ):
        assert answer.status == 412
        assert json.loads(answer.body)["code"] == "precondition_failed"
    assert one.read() == before
