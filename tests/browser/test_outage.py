"""The dashboard at 3 a.m.: what an alert's link opens, what has happened to a check, and how it is silenced."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.board import edit, fill_check, open_row, refresh, row, sign_in
from tests.receiver import Receiver, answer
from tests.support import wait_until

SOON = {"period_seconds": 1, "grace_seconds": 0}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

COLOUR = "(node) => getComputedStyle(node).color"
IS_WIDER = "(part) => part.scrollWidth > part.parentElement.clientWidth"


@pytest.fixture
def key(api):
    return api.checks_key()


@pytest.fixture
def open_with(server, open_tab):
    """Opens the dashboard, at a link or without one, and signs in."""

    def open_one(key: str, link: str = "", **options) -> Page:
        page = open_tab(link or f"{server.url}/dashboard", **options)
        sign_in(page, key)
        return page

    return open_one


def is_open(found: Locator) -> bool:
    return found.locator("details").get_attribute("open") is not None


def test_an_alerts_link_opens_the_check_that_it_tells_of_as_often_as_it_is_followed(api, key, open_with):
    for number in range(20):
        api.check(key, f"Job {number:02}")
    with Receiver() as receiver:
        check = api.check(key, "Late job", webhook_url=receiver.url, **SOON)
        wait_until(lambda: receiver.received)
    link = receiver.received[0].json["data"]["url"]
    assert check["id"] not in link
    page = open_with(key, link)
    late = row(page, "Late job")
    expect(late.locator("summary")).to_be_focused()
    expect(late.get_by_text("Late for")).to_be_visible()
    expect(late.get_by_role("row")).to_contain_text(["Alert", "Overdue"])
    late.locator("summary").click()
    with page.expect_response("**/checks?*"):
        refresh(page)
    expect(page.get_by_text("Refreshes itself")).to_be_visible()
    assert not is_open(late)
    page.goto(link)
    expect(late.locator("summary")).to_be_focused()
    expect(late.get_by_text("Late for")).to_be_visible()
    # The last one of the list is brought into the screen too.
    last = api("GET", "checks", key=key)["checks"][19]
    page.goto(f"{link[:-8]}{last['id'][:8]}")
    expect(row(page, "Job 19").locator("summary")).to_be_in_viewport()
    assert is_open(row(page, "Job 19"))


def test_a_link_to_a_check_of_another_key_says_so_and_works_with_that_key(api, key, server, open_with):
    check, other = api.check(key), api.checks_key()
    page = open_with(other, f"{server.url}/dashboard#{check['id'][:8]}")
    expect(page.get_by_role("alert")).to_contain_text(f"This key has no check {check['id'][:8]}…")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("alert").filter(has_text="no check")).to_have_count(0)
    sign_in(page, key)
    expect(row(page, "Nightly backup").locator("summary")).to_be_focused()
    assert is_open(row(page, "Nightly backup"))


def test_a_failed_job_is_told_as_one_and_stands_first(api, key, open_with):
    api.check(key, "Late job", **SOON)
    check = api.check(key)
    api("GET", f"ping/{check['id']}")
    page = open_with(key)
    expect(row(page, "Late job")).to_contain_text("Overdue")
    api("GET", f"ping/{check['id']}/3")
    refresh(page)
    expect(page.get_by_role("heading", level=3)).to_have_text(["Nightly backup", "Late job"])
    failed = open_row(page, "Nightly backup")
    expect(failed.locator("summary")).to_contain_text("Failed")
    expect(failed).to_contain_text(re.compile(r"The job failed \d+ seconds? ago: \d"))
    expect(page.get_by_text("2 of 2 overdue")).to_be_visible()
    api("GET", f"ping/{check['id']}")
    refresh(page)
    expect(failed.get_by_text("The job failed")).to_be_hidden()


def test_what_happened_stands_above_how_to_ping_once_the_job_has_pinged(api, key, open_with):
    check = api.check(key)
    page = open_with(key)
    opened = open_row(page, "Nightly backup")

    def is_above(first: Locator, second: Locator) -> bool:
        boxes = [found.bounding_box() for found in (first, second)]
        order = first.evaluate("(node, other) => node.compareDocumentPosition(other)", second.element_handle())
        return boxes[0]["y"] < boxes[1]["y"] and order & 4 > 0

    setup, alerts = opened.get_by_role("tablist"), opened.get_by_text("Alerts", exact=True)
    assert is_above(setup, alerts)
    api("GET", f"ping/{check['id']}")
    api("GET", f"ping/{check['id']}/fail")
    refresh(page)
    expect(opened.locator("summary")).to_contain_text("Failed")
    assert is_above(alerts, setup)
    assert is_above(opened.get_by_text("The job failed"), alerts)


def test_tests_bury_no_outage_in_the_list_of_alerts(api, key, open_with):
    with Receiver() as receiver:
        check = api.check(key, webhook_url=receiver.url, **SOON)
        wait_until(lambda: receiver.received)
        for count in range(2, 8):
            api("POST", f"checks/{check['id']}/test-alert", key=key)
            wait_until(lambda count=count: len(receiver.received) == count)
    page = open_with(key)
    rows = open_row(page, "Nightly backup").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows).to_contain_text(["Alert", "Test", "Overdue"])
    page.get_by_role("button", name="Show 5 more").click()
    expect(rows).to_have_count(8)


def test_a_test_after_a_failed_one_waits_for_no_retry(api, key, open_with):
    with Receiver(answer(404), answer(502), answer()) as receiver:
        api.check(key, webhook_url=receiver.url)
        opened = open_row(open_with(key), "Nightly backup")
        for says in ("did not arrive: no such webhook", "did not arrive: receiver failed", "The test alert arrived"):
            opened.get_by_role("button", name="Send a test alert").click()
            expect(opened.get_by_role("status")).to_contain_text(says)


def test_each_time_names_its_zone_and_hovering_tells_it_in_utc(api, key, open_with):
    with Receiver() as receiver:
        check = api.check(key, webhook_url=receiver.url, **SOON)
        wait_until(lambda: receiver.received)
    page = open_with(key, timezone_id="Asia/Kathmandu")
    opened = open_row(page, "Nightly backup")
    deadline = api("GET", f"checks/{check['id']}", key=key)["check"]["deadline_at"]
    raised = api("GET", f"checks/{check['id']}/alerts", key=key)["alerts"][-1]["created_at"]
    for text in (deadline, raised):
        expect(opened.get_by_title(f"{text} UTC").filter(has_text="GMT+5:45").first).to_be_visible()
    for shown in opened.locator("time").filter(has_text="GMT+5:45").all():
        assert re.fullmatch(r"[-0-9]{10} [:0-9]{8} UTC", shown.get_attribute("title"))
    expect(page.get_by_text(re.compile(r"As of .*GMT\+5:45"))).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_alert_that_did_not_arrive_looks_otherwise_than_one_that_did(api, key, open_with, scheme):
    page = open_with(key, color_scheme=scheme)
    looks = []
    with Receiver(answer(404)) as broken, Receiver() as receiver:
        for name, url in (("Broken", broken.url), ("Good", receiver.url)):
            api.check(key, name, webhook_url=url)
            refresh(page)
            opened = open_row(page, name)
            opened.get_by_role("button", name="Send a test alert").click()
            note = opened.get_by_role("status")
            expect(note).to_contain_text(re.compile("arrive"))
            looks += [look_of(shown) for shown in (note, opened.locator("[data-head=Delivery]").first)]
    told_badly, listed_badly, told_well, listed_well = looks
    assert all(bad != good for bad, good in zip(told_badly, told_well, strict=True))
    assert listed_badly[:2] == ['"✕ "', told_badly[1]]
    assert listed_well[:2] == ['"✓ "', told_well[1]]


def look_of(shown: Locator) -> list[str]:
    """Its mark, its colour and the one behind it."""
    return shown.evaluate(
        """node => [getComputedStyle(node, "::before").content.split(" /")[0],
        getComputedStyle(node).color, getComputedStyle(node).backgroundColor]"""
    )


def test_a_check_is_snoozed_and_woken_by_a_button_and_a_reader_sees_it(api, key, open_with):
    check = api.check(key, **SOON)
    reader = open_with(api("POST", "key/read-only", key=key)["key"], **PHONE)
    page = open_with(key)
    opened = open_row(page, "Nightly backup")
    expect(opened.get_by_text("Late for")).to_be_visible()
    opened.get_by_role("button", name="Snooze Nightly backup for 8 hours").click()
    expect(opened).to_contain_text(re.compile(r"Snoozed until \d.*: no overdue alert and no reminder"))
    expect(opened.locator("summary")).to_contain_text("Overdue, snoozed")
    expect(page.get_by_text("1 of 1 overdue · 1 snoozed")).to_be_visible()
    # Its deadline is to come now, so it is no longer told in red.
    assert opened.locator(".deadline").evaluate(COLOUR) == opened.locator(".last").evaluate(COLOUR)
    until = api("GET", f"checks/{check['id']}", key=key)["check"]["snoozed_until"]
    expect(opened.get_by_title(f"{until} UTC")).to_be_visible()
    refresh(reader)
    seen = open_row(reader, "Nightly backup")
    expect(seen).to_contain_text("Snoozed until")
    expect(seen.get_by_role("button", name=re.compile("nooze"))).to_have_count(0)
    api("GET", f"ping/{check['id']}")
    refresh(page)
    expect(opened.locator("summary")).to_contain_text("Snoozed")
    expect(opened.get_by_text("Overdue until its next ping.")).to_be_hidden()
    api("GET", f"ping/{check['id']}/fail")
    refresh(page)
    expect(opened.locator("summary")).to_contain_text("Snoozed, failed")
    assert opened.locator(".status").evaluate(COLOUR) == opened.get_by_text("The job failed").evaluate(COLOUR)
    end = opened.get_by_role("button", name="End the snooze of Nightly backup")
    end.focus()
    page.keyboard.press("Enter")
    expect(opened.get_by_text("Snoozed until")).to_be_hidden()
    expect(end).to_be_hidden()
    expect(opened.get_by_role("button", name="Snooze Nightly backup for 1 hour")).to_be_focused()
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["snoozed_until"] is None
    expect(page.get_by_role("heading", name="Needs attention")).to_be_visible()
    expect(page.get_by_text("1 failed during a snooze")).to_be_visible()


def test_a_snooze_that_is_refused_says_why(api, key, open_with):
    check = api.check(key)
    page = open_with(key)
    opened = open_row(page, "Nightly backup")
    page.route("**/snooze", lambda route: route.fulfill(status=503, json={"error": "Try again in a moment."}))
    opened.get_by_role("button", name="Snooze Nightly backup for 1 day").click()
    expect(opened.get_by_role("alert").filter(has_text="Try again in a moment.")).to_be_visible()
    page.unroute("**/snooze")
    opened.get_by_role("button", name="Snooze Nightly backup for 1 day").click()
    expect(opened.get_by_text("Snoozed until")).to_be_visible()
    expect(opened.get_by_text("Try again in a moment.")).to_be_hidden()
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["snoozed_until"]


def test_reminders_are_set_and_ended_in_the_editor(api, key, open_with):
    page = open_with(key)
    page.get_by_role("button", name="New check").click()
    fill_check(page, "Nightly backup", every=1, late=1, unit="days")
    page.get_by_label("Remind every").fill("3")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(row(page, "Nightly backup")).to_contain_text("may be 1 day late; reminds every 3 hours")
    (check,) = api("GET", "checks", key=key)["checks"]
    assert check["repeat_seconds"] == 10_800
    edit(page, "Nightly backup")
    page.get_by_label("Remind every").fill("1")
    page.get_by_label("Unit of the reminders").select_option("seconds")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("Remind every")).to_have_accessible_description(re.compile("300"))
    expect(page.get_by_label("Remind every")).to_be_focused()
    page.get_by_label("Remind every").fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["repeat_seconds"] is None
    expect(row(page, "Nightly backup")).not_to_contain_text("reminds")


@pytest.mark.parametrize("width", [320, 390, 641, 820, 1101, 1280])
def test_nothing_is_wider_than_the_screen_with_an_outage_open(api, key, open_with, width):
    with Receiver(answer(500)) as receiver:
        check = api.check(key, "W" * 100, webhook_url=f"{receiver.url}{'x' * 500}", **SOON)
        wait_until(lambda: receiver.received)
    api("PUT", f"checks/{check['id']}/snooze", {"seconds": 7_776_000}, key)
    api("GET", f"ping/{check['id']}/1")
    page = open_with(key, viewport={"width": width, "height": 844}, timezone_id="Asia/Kathmandu")
    opened = open_row(page, "W" * 100)
    opened.get_by_role("button", name="Send a test alert").click()
    expect(opened.get_by_role("status")).to_contain_text("did not arrive")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # A section clips what is too wide for it.
    parts = opened.locator(".more > :visible").all()
    assert [part.inner_text() for part in parts if part.evaluate(IS_WIDER)] == []
    opened.get_by_role("button", name="Edit").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.get_by_role("dialog").evaluate("node => node.scrollWidth <= node.clientWidth")
