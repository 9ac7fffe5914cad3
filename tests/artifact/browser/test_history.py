"""How the last days went: bars by the share of the day, and a text for who sees none."""

import json

import pytest
from playwright.sync_api import expect

from tests.artifact.browser.board import open_row, refresh, row
from tests.kit.lists import each

NOW = "Date.UTC(2026, 2, 10, 12)"


def outage(began, ended=None):
    return {
        "began_at": f"2026-03-{began}:00:00",
        "ended_at": ended and f"2026-03-{ended}:00:00",
    }


CHECK = {
    "created_at": "2026-01-01 00:00:00",
    "updated_at": "2026-03-09 18:00:00",
    "snoozed_until": None,
}


@pytest.fixture
def of_four_days(run):
    """What a function of the script says of the last four days of a check."""

    def evaluate(
        function, outages, kept_since="2026-01-01 00:00:00", **check
    ):
        values = (
            CHECK | check,
            {"outages": outages, "kept_since": kept_since},
        )
        arguments = ", ".join(map(json.dumps, values))
        return run(
            "dashboard/history.js", f"m.{function}({arguments}, 4, {NOW})"
        )

    return evaluate


@pytest.mark.parametrize(
    ("outages", "shares"),
    [
        ([], [0, 0, 0, 0]),
        ([outage("08 06", "08 12")], [0, 0.25, 0, 0]),
        # It spans midnight, and goes on.
        ([outage("09 18")], [0, 0, 0.25, 0.5]),
        (
            [outage("06 00", "07 06"), outage("07 12", "07 18")],
            [0.5, 0, 0, 0],
        ),
    ],
)
def test_a_day_is_red_by_its_share_of_outage(
    of_four_days, outages, shares
):
    assert each(of_four_days("daysOf", outages), "share") == shares


def test_days_are_unknown_before_they_were_kept_and_hatched_from_a_snooze_on(
    of_four_days,
):
    def states(**check):
        return each(of_four_days("daysOf", [], **check), "state")

    assert states() == ["good"] * 4
    assert states(kept_since="2026-03-08 10:00:00") == [
        "unknown",
        "good",
        "good",
        "good",
    ]
    assert states(created_at="2026-03-10 00:00:00") == ["unknown"] * 3 + [
        "good"
    ]
    assert states(snoozed_until="2026-03-20 00:00:00") == [
        "good",
        "good",
        "snoozed",
        "snoozed",
    ]


@pytest.mark.parametrize(
    ("outages", "kept_since", "text"),
    [
        (
            [outage("02 00", "03 00")],
            "2026-03-09 00:00:00",
            "No outage since 9 Mar",
        ),
        (
            [outage("10 10"), outage("08 06", "08 12")],
            "2026-01-01 00:00:00",
            "2 outages in 4 days, 8 hours in all, longest 6 hours (8 Mar)",
        ),
    ],
)
def test_number_sum_and_longest_are_told(
    of_four_days, outages, kept_since, text
):
    assert of_four_days("historyText", outages, kept_since) == text


def test_an_outage_is_seen_on_the_board_and_in_the_opened_check(
    api, key, dashboard
):
    check = api.check(key, period_seconds=1, grace_seconds=0)
    api.check(key, "Calm")
    for value in (key, api("POST", "key/read-only", key=key)["key"]):
        page = dashboard(value)
        for name, told in (
            ("Nightly backup", "1 outage since"),
            ("Calm", "No outage since"),
        ):
            expect(
                row(page, name).get_by_role("img", name=told)
            ).to_be_visible()
        assert (
            row(page, "Nightly backup").locator(".days .bad").count() == 1
        )
        opened = open_row(page, "Nightly backup")
        expect(opened.locator(".quarter")).to_contain_text(
            "1 outage since"
        )
    api.ping(check)
    api.ping(check, "/fail")
    refresh(page)
    told = row(page, "Nightly backup").get_by_role(
        "img", name="2 outages since"
    )
    expect(told.first).to_be_visible()
