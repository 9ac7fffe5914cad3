"""`/checks/{id}/snooze`: a check that is to be silent for a time."""

import json

import pytest

from tests.postgresql import BOTH_ENGINES

pytestmark = BOTH_ENGINES

DAY = 86_400


class Snoozed:
    """A check of a key, and what is asked about it."""

    def __init__(self, app, key, check):
        self.app, self.key, self.check = app, key, check
        self.path = f"/checks/{check['id']}"

    def snooze(self, seconds=DAY, **options):
        body = {"seconds": seconds}
        return self.app("PUT", f"{self.path}/snooze", body, key=self.key, **options)

    def read(self):
        return self.app.json("GET", self.path, key=self.key)["check"]

    def types(self):
        alerts = self.app.json("GET", f"{self.path}/alerts", key=self.key)["alerts"]
        return [alert["type"] for alert in reversed(alerts)]

    def ping(self, signal=""):
        return self.app.json("GET", f"/ping/{self.check['id']}{signal}")


@pytest.fixture
def one(app, key, check):
    return Snoozed(app, key, check)


def test_the_clock_of_a_snoozed_check_starts_at_its_end(app, one):
    app.clock.advance(7)
    answer = one.snooze()
    assert (answer.status, answer.headers["ETag"]) == (200, '"2"')
    changed = {
        "snoozed_until": "2027-01-16 08:00:07",
        "deadline_at": "2027-01-16 09:01:07",
        "updated_at": "2027-01-15 08:00:07",
        "version": 2,
    }
    assert json.loads(answer.body)["check"] == one.check | changed == one.read()
    app.clock.advance(DAY)
    assert one.read()["snoozed_until"] is None
    for seconds, types in ((3660, []), (1, ["check.overdue"])):
        app.clock.advance(seconds)
        app.service.sweep.sweep_once()
        assert one.types() == types


def test_a_snooze_outlives_pings_and_failures(app, one):
    snoozed = json.loads(one.snooze().body)["check"]
    app.clock.advance(60)
    told = {"status": "on_time", "recovered": False, "deadline_at": snoozed["deadline_at"]}
    assert [one.ping(), one.ping("/1")] == [told, told]
    now = one.read()
    assert now["failed_at"] == "2027-01-15 08:01:00"
    assert now["snoozed_until"] == snoozed["snoozed_until"]
    assert one.types() == []




def test_a_further_snooze_replaces_the_first_one_and_one_can_be_ended(app, one):
    one.snooze()
    again = json.loads(one.snooze(60).body)["check"]
    assert again["snoozed_until"] == "2027-01-15 08:01:00"
    app.clock.advance(5)
    # The second time there is none to end.
    for _ in range(2):
        answer = app("DELETE", f"{one.path}/snooze", key=one.key)
        ended = json.loads(answer.body)["check"]
        assert (answer.status, answer.headers["ETag"]) == (200, '"4"')
        assert (ended["snoozed_until"], ended["deadline_at"]) == (None, "2027-01-15 09:01:05")
    assert one.read() == ended


def test_it_lasts_from_a_minute_to_90_days(one):
    for seconds in (59, 0, -60, 7_776_001, 10**30, 60.0, "60", True, [60], None):
        answer = one.snooze(seconds)
        assert (answer.status, json.loads(answer.body)["field"]) == (400, "seconds")
    assert one.read() == one.check
    for seconds in (60, 7_776_000):
        assert one.snooze(seconds).status == 200
    assert one.app("GET", f"{one.path}/snooze", key=one.key).headers["Allow"] == "PUT, DELETE"


def test_it_takes_an_if_match_and_makes_another_version(app, one):
    headers = {"if-match": '"1"'}
    assert one.snooze(headers=headers).status == 200
    before = one.read()
    for call, body in (("PUT /snooze", {"seconds": 60}), ("DELETE /snooze", None), ("PATCH ", {})):
        method, target = call.split(" ")
        answer = app(method, one.path + target, body, key=one.key, headers=headers)
        assert (answer.status, json.loads(answer.body)["code"]) == (412, "precondition_failed")
    assert one.read() == before
