"""`GET /checks/{id}/outages` and `GET /checks/outages`: when checks were overdue, and why."""

from cardbeat.clock import utc_text
from cardbeat.database import set_numbers
from cardbeat.heartbeat.outages import DAY_SECONDS as DAY
from cardbeat.heartbeat.tidy import Tidy
from tests.kit.lists import each
from tests.kit.postgresql import BOTH_ENGINES, SQLITE
from tests.kit.support import FakeClock
from tests.service.conftest import create, pages

pytestmark = BOTH_ENGINES

INSERT = """INSERT INTO outages (check_id, key_id, outage, began_at, noticed_at, ended_at, reason)
    VALUES (?, ?, ?, ?, ?, ?, 'late')"""


def outages_of(app, check, key):
    return app.json("GET", f"/checks/{check['id']}/outages", key=key)


def fail_and_ping(app, check, after=5):
    app("GET", f"/ping/{check['id']}/fail")
    app.clock.advance(after)
    app("GET", f"/ping/{check['id']}")


def test_a_late_and_a_failed_outage_are_kept_also_without_a_webhook(
    app, key
):
    check = create(
        app, key, webhook_url=None, period_seconds=90, grace_seconds=0
    )
    created = app.clock.now
    for _ in range(2):
        app.clock.advance(60)
        app.service.sweep.sweep_once()
    late = outage(created + 90, app.clock.now, None, "late")
    assert outages_of(app, check, key) == {
        "outages": [late],
        "kept_since": check["created_at"],
    }
    # A failure begins no other outage than the sweep has found.
    fail_and_ping(app, check)
    late["ended_at"] = utc_text(app.clock.now)
    app.clock.advance(10)
    failed_at = app.clock.now
    fail_and_ping(app, check, after=7)
    failed = outage(failed_at, failed_at, app.clock.now, "failed")
    assert outages_of(app, check, key)["outages"] == [failed, late]


def outage(began, noticed, ended, reason):
    moments = {
        "began_at": began,
        "noticed_at": noticed,
        "ended_at": ended,
    }
    return {name: at and utc_text(at) for name, at in moments.items()} | {
        "reason": reason
    }


def test_those_of_all_checks_come_newest_first_and_in_pages(app, key):
    one, other = create(app, key), create(app, key)
    strangers = app.checks_key()
    for check in (one, other, one, create(app, strangers), one, other):
        app.clock.advance(60)
        fail_and_ping(app, check)
    found = each(
        pages(app, key, "/checks/outages?limit=2&days=7"), "outages"
    )
    seen = [each(page, "check_id") for page in found]
    assert seen == [
        [other["id"], one["id"]],
        [one["id"], other["id"]],
        [one["id"]],
    ]
    assert list(found[0][0]) == [
        "check_id",
        "began_at",
        "noticed_at",
        "ended_at",
        "reason",
    ]
    after = app.json("GET", "/checks/outages?limit=1", key=key)["next"]
    assert (
        app("GET", f"/checks/outages?after={after}", key=strangers).status
        == 400
    )


def test_of_days_that_are_asked_for_and_no_others(app, key, check):
    def seen(days):
        return len(
            app.json("GET", f"/checks/outages?days={days}", key=key)[
                "outages"
            ]
        )

    fail_and_ping(app, check)
    app.clock.advance(29 * DAY)
    assert seen(30) == 1
    app.clock.advance(2 * DAY)
    assert seen(30) == 0
    assert seen(90) == 1
    # One that lasts is of every day.
    app("GET", f"/ping/{check['id']}/fail")
    app.clock.advance(100 * DAY)
    assert seen(1) == 1


def test_they_are_kept_for_92_days(app, key, check):
    fail_and_ping(app, check)
    elapsed = FakeClock(0)
    tidy = Tidy(app.service.database, app.clock, elapsed)
    for days, left in ((92, 1), (1, 0)):
        app.clock.advance(days * DAY)
        elapsed.advance(DAY)
        tidy.tidy()
        with app.service.database.read() as connection:
            assert (
                connection.execute(
                    "SELECT count(*) FROM outages"
                ).fetchone()[0]
                == left
            )
    kept = {
        "outages": [],
        "kept_since": utc_text(app.clock.now - 92 * DAY),
    }
    assert outages_of(app, check, key) == kept


@SQLITE
def test_of_a_check_the_newest_1000_are_kept(app, key, check):
    other = create(app, key)

    def insert(transaction):
        """Outages of a second each, one after the other from now on."""
        for number in range(1, 1001):
            at = app.clock.now + number
            values = (
                check["id"],
                check["api_key_id"],
                number,
                at,
                at,
                at + 1,
            )
            transaction.execute(INSERT, values)
        transaction.execute(
            "UPDATE checks SET outage = 1000 WHERE id = ?", (check["id"],)
        )

    app.service.database.write(insert)
    app.clock.advance(1001)
    for _ in range(3):
        fail_and_ping(app, check, after=1)
    answer = outages_of(app, check, key)
    assert len(answer["outages"]) == 1000
    since = answer["kept_since"]
    assert (
        since
        == answer["outages"][-1]["noticed_at"]
        == utc_text(app.clock.now - 1000)
    )
    assert (
        app.json("GET", "/checks/outages", key=key)["kept_since"] == since
    )
    assert (
        outages_of(app, other, key)["kept_since"] == other["created_at"]
    )


def test_before_the_upgrade_none_were_kept(app, key, check):
    upgraded = int(app.clock.now) + 100
    app.service.database.write(
        lambda it: set_numbers(it, outages_kept_since=upgraded)
    )
    for path in ("/checks/outages", f"/checks/{check['id']}/outages"):
        assert app.json("GET", path, key=key)["kept_since"] == utc_text(
            upgraded
        )


def test_they_go_with_their_check(app, key, check):
    fail_and_ping(app, check)
    app("DELETE", f"/checks/{check['id']}", key=key)
    assert app.json("GET", "/checks/outages", key=key)["outages"] == []
    assert (
        app("GET", f"/checks/{check['id']}/outages", key=key).status
        == 404
    )
