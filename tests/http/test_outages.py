"""`GET /checks/{id}/outages` and `GET /checks/outages`: when checks were overdue, and why."""

import json
import re

import pytest

from cardbeat.clock import utc_text
from cardbeat.database import monitor
from cardbeat.heartbeat.outages import DAY_SECONDS
from cardbeat.heartbeat.tidy import Tidy
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import GOOD_CHECK, FakeClock

pytestmark = BOTH_ENGINES

DAY = DAY_SECONDS
INSERT = """INSERT INTO outages (check_id, key_id, outage, began_at, noticed_at, ended_at, reason)
    VALUES (?, ?, ?, ?, ?, ?, 'late')"""


def new_check(app, key, **changes):
    return app.json("POST", "/checks", GOOD_CHECK | changes, key=key)["check"]


def sweep(app, seconds):
    """Let time pass in steps that are no outage of the monitor."""
    while seconds > 0:
        app.clock.advance(min(seconds, 60))
        seconds -= 60
        app.service.sweep.sweep_once()


def outages_of(app, check, key):
    return app.json("GET", f"/checks/{check['id']}/outages", key=key)["outages"]


def fail_and_ping(app, check, after=5):
    app("GET", f"/ping/{check['id']}/fail")
    app.clock.advance(after)
    app("GET", f"/ping/{check['id']}")


def test_a_late_and_a_failed_outage_are_kept_also_without_a_webhook(app, key):
    check = new_check(app, key, webhook_url=None, period_seconds=90, grace_seconds=0)
    created = app.clock.now
    sweep(app, 120)
    noticed = app.clock.now
    late = {
        "began_at": utc_text(created + 90),
        "noticed_at": utc_text(noticed),
        "ended_at": None,
        "reason": "late",
    }
    answer = app.json("GET", f"/checks/{check['id']}/outages", key=key)
    assert answer == {"outages": [late], "kept_since": check["created_at"]}
    # A further failure is the same outage.
    fail_and_ping(app, check)
    late["ended_at"] = utc_text(app.clock.now)
    app.clock.advance(10)
    failed_at = utc_text(app.clock.now)
    fail_and_ping(app, check, after=7)
    failed = {
        "began_at": failed_at,
        "noticed_at": failed_at,
        "ended_at": utc_text(app.clock.now),
        "reason": "failed",
    }
    assert outages_of(app, check, key) == [failed, late]


def pages(app, key, target):
    """The outages of each page, and the `Link` to the next one must agree with `next`."""
    while target:
        answer = app("GET", target, key=key)
        page = json.loads(answer.body)
        yield page["outages"]
        link = answer.headers.get("Link")
        assert (link is None) == (page["next"] is None)
        target = link and re.search("/checks/outages[^>]+", link)[0]
        assert target is None or target.endswith(f"limit=2&days=7&after={page['next']}")


def test_those_of_all_checks_come_newest_first_and_in_pages(app, key):
    one, other = new_check(app, key), new_check(app, key)
    strangers = app.checks_key()
    for check in (one, other, one, new_check(app, strangers), one, other):
        app.clock.advance(60)
        fail_and_ping(app, check)
    found = list(pages(app, key, "/checks/outages?limit=2&days=7"))
    seen = [[outage["check_id"] for outage in page] for page in found]
    assert seen == [[other["id"], one["id"]], [one["id"], other["id"]], [one["id"]]]
    assert list(found[0][0]) == ["check_id", "began_at", "noticed_at", "ended_at", "reason"]
    after = app.json("GET", "/checks/outages?limit=1", key=key)["next"]
    assert app("GET", f"/checks/outages?after={after}", key=strangers).status == 400


@pytest.mark.parametrize("asked", [(29, 30, 1), (31, 30, 0), (31, 90, 1)])
def test_of_days_that_are_asked_for_and_no_others(app, key, check, asked):
    ended, days, seen = asked
    fail_and_ping(app, check)
    app.clock.advance(ended * DAY)
    answer = app.json("GET", f"/checks/outages?days={days}", key=key)
    assert len(answer["outages"]) == seen
    # One that lasts is of every day.
    app("GET", f"/ping/{check['id']}/fail")
    app.clock.advance(100 * DAY)
    assert len(app.json("GET", "/checks/outages?days=1", key=key)["outages"]) == 1


def test_they_are_kept_for_92_days(app, key, check):
    fail_and_ping(app, check)
    elapsed = FakeClock(0)
    tidy = Tidy(app.service.database, app.clock, elapsed)
    for days, left in ((92, 1), (1, 0)):
        app.clock.advance(days * DAY)
        elapsed.advance(DAY)
        tidy.tidy()
        with app.service.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM outages").fetchone()[0] == left
        assert len(outages_of(app, check, key)) == left
    since = app.json("GET", f"/checks/{check['id']}/outages", key=key)["kept_since"]
    assert since == utc_text(app.clock.now - 92 * DAY)


def store_outages(app, check, count):
    """Outages of a second each, one after the other from now on."""

    def insert(transaction):
        for n in range(count):
            at = int(app.clock.now) + n
            values = (check["id"], check["api_key_id"], n + 1, at, at, at + 1)
            transaction.execute(INSERT, values)
        transaction.execute("UPDATE checks SET outage = ? WHERE id = ?", (count, check["id"]))

    app.service.database.write(insert)
    app.clock.advance(count)


@SQLITE
def test_of_a_check_the_newest_1000_are_kept(app, key, check):
    other = new_check(app, key)
    store_outages(app, check, 1000)
    for _ in range(3):
        fail_and_ping(app, check, after=1)
    answer = app.json("GET", f"/checks/{check['id']}/outages", key=key)
    assert len(answer["outages"]) == 1000
    assert (
        answer["kept_since"]
        == answer["outages"][-1]["noticed_at"]
        == utc_text(app.clock.now - 1000)
    )
    assert app.json("GET", "/checks/outages", key=key)["kept_since"] == answer["kept_since"]
    since = app.json("GET", f"/checks/{other['id']}/outages", key=key)["kept_since"]
    assert since == other["created_at"]


def test_before_the_upgrade_none_were_kept(app, key, check):
    upgraded = int(app.clock.now) + 100
    app.service.database.write(lambda it: monitor.note(it, outages_kept_since=upgraded))
    for path in ("/checks/outages", f"/checks/{check['id']}/outages"):
        assert app.json("GET", path, key=key)["kept_since"] == utc_text(upgraded)


def test_they_go_with_their_check(app, key, check):
    fail_and_ping(app, check)
    app("DELETE", f"/checks/{check['id']}", key=key)
    assert app.json("GET", "/checks/outages", key=key)["outages"] == []
    assert app("GET", f"/checks/{check['id']}/outages", key=key).status == 404


@SQLITE
@pytest.mark.parametrize(
    "query",
    [
        *("days=0", "days=91", "days=", "days=x", "limit=0", "limit=1001", "after=", "after=x"),
        *("after=0", "after=999999", "after=99999999999999999999", "days=1&days=2"),
    ],
)
def test_a_bad_parameter_is_refused(app, key, query):
    answer = app("GET", f"/checks/outages?{query}", key=key)
    assert answer.status == 400
    assert json.loads(answer.body)["field"] == query.partition("=")[0]
