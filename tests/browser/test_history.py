"""How the last days went: bars by the share of the day, a text for who sees none, and a board that opens at once."""

import datetime
import json
import os
import sqlite3
import time
from contextlib import closing

import pytest
from playwright.sync_api import expect

from tests.browser.api import Api
from tests.browser.board import open_row, refresh, row, sign_in

NOW = datetime.datetime(2026, 3, 10, 12, tzinfo=datetime.UTC)
SECONDS = 1
"""Until a board of 100 checks with 90 days of outages is drawn, where a core is left for it."""
BUSY_SECONDS = 10


def outage(began, ended=None):
    return {"began_at": f"2026-03-{began}:00:00", "ended_at": ended and f"2026-03-{ended}:00:00"}


@pytest.fixture
def run(browser, server):
    """Evaluates an expression of the last days, in a browser whose time zone is UTC."""
    page = browser.new_page(timezone_id="UTC")
    page.goto(server.url)

    def evaluate(expression, outages, kept_since="2026-01-01 00:00:00", **check):
        check = {
            "created_at": "2026-01-01 00:00:00",
            "updated_at": "2026-03-09 18:00:00",
            "snoozed_until": None,
        } | check
        arguments = (
            f"{json.dumps(check)}, {json.dumps({'outages': outages, 'kept_since': kept_since})}, 4"
        )
        call = f"m.{expression}({arguments}, {int(NOW.timestamp() * 1000)})"
        return page.evaluate(f"import('./pages/dashboard/history.js').then((m) => {call})")

    yield evaluate
    page.close()


@pytest.mark.parametrize(
    ("outages", "shares"),
    [
        ([], [0, 0, 0, 0]),
        ([outage("08 06", "08 12")], [0, 0.25, 0, 0]),
        # It spans midnight, and goes on.
        ([outage("09 18")], [0, 0, 0.25, 0.5]),
        ([outage("06 00", "07 06"), outage("07 12", "07 18")], [0.5, 0, 0, 0]),
    ],
)
def test_a_day_is_red_by_its_share_of_outage(run, outages, shares):
    assert [day["share"] for day in run("daysOf", outages)] == shares


def test_days_are_unknown_before_they_were_kept_and_hatched_from_a_snooze_on(run):
    def states(**check):
        return [day["state"] for day in run("daysOf", [], **check)]

    assert states() == ["good"] * 4
    assert states(kept_since="2026-03-08 10:00:00") == ["unknown", "good", "good", "good"]
    assert states(created_at="2026-03-10 00:00:00") == ["unknown"] * 3 + ["good"]
    assert states(snoozed_until="2026-03-20 00:00:00") == ["good", "good", "snoozed", "snoozed"]


@pytest.mark.parametrize(
    ("outages", "kept_since", "text"),
    [
        ([], "2026-01-01 00:00:00", "No outage in 4 days"),
        ([outage("02 00", "03 00")], "2026-03-09 00:00:00", "No outage since 9 Mar"),
        ([outage("08 06", "08 12")], "2026-01-01 00:00:00", "1 outage in 4 days, 6 hours (8 Mar)"),
        (
            [outage("10 10"), outage("08 06", "08 12")],
            "2026-01-01 00:00:00",
            "2 outages in 4 days, 8 hours in all, longest 6 hours (8 Mar)",
        ),
    ],
)
def test_number_sum_and_longest_are_told(run, outages, kept_since, text):
    assert run("historyText", outages, kept_since) == text


def test_an_outage_is_seen_on_the_board_and_in_the_opened_check(api, server, open_tab):
    key = api.checks_key()
    check = api.check(key, period_seconds=1, grace_seconds=0)
    api.check(key, "Calm")
    for value in (key, api("POST", "key/read-only", key=key)["key"]):
        page = open_tab(f"{server.url}/dashboard")
        sign_in(page, value)
        expect(
            row(page, "Nightly backup").get_by_role("img", name="1 outage since")
        ).to_be_visible()
        expect(row(page, "Calm").get_by_role("img", name="No outage since")).to_be_visible()
        assert row(page, "Nightly backup").locator(".days .bad").count() == 1
        opened = open_row(page, "Nightly backup")
        expect(opened.locator(".quarter")).to_contain_text("1 outage since")
    api("GET", f"ping/{check['id']}")
    api("GET", f"ping/{check['id']}/fail")
    refresh(page)
    expect(
        row(page, "Nightly backup").get_by_role("img", name="2 outages since").first
    ).to_be_visible()


def store_outages(file, days=90):
    """Each check was an hour overdue on each of the last days."""
    day = 86_400
    now = int(time.time())
    with closing(sqlite3.connect(file)) as database:
        for table in ("keys", "checks"):
            database.execute(f"UPDATE {table} SET created_at = ?", (now - (days + 10) * day,))
        for ago in range(1, days + 1):
            began = now - ago * day
            database.execute(
                "INSERT INTO outages (check_id, key_id, outage, began_at, noticed_at, ended_at, reason)"
                " SELECT id, api_key_id, ?, ?, ?, ?, 'late' FROM checks",
                (-ago, began, began, began + 3600),
            )
        database.commit()


def test_a_hundred_checks_with_ninety_days_of_outages_are_there_within_a_second(
    start, open_tab, tmp_path
):
    server = start()
    api = Api(server)
    key = api.checks_key()
    for number in range(100):
        api.check(key, f"Job {number:02}")
    assert server.stop() == 0
    (file,) = tmp_path.rglob("cardbeat.db")
    store_outages(file)
    server = start(port=server.port)
    page = open_tab(f"{server.url}/dashboard")
    sign_in(page, key)
    last = page.get_by_role("img", name="outage").nth(99)
    expect(last).to_be_attached()
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        page.reload(wait_until="commit")
        expect(last).to_be_attached()
        seconds.append(time.monotonic() - began)
    is_busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    assert min(seconds) < (BUSY_SECONDS if is_busy else SECONDS), seconds
