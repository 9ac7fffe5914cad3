"""The dashboard: from nothing to a watched job, and what it shows of many."""

import re

from playwright.sync_api import expect

from tests.artifact.browser.board import (
    Api,
    edit,
    fill_check,
    name_field,
    open_row,
    press,
    refresh,
    row,
    shows,
    sign_in,
)
from tests.kit.artifact import shell
from tests.kit.receiver import Receiver, answer
from tests.kit.support import wait_until

MARKUP = '<img src=x onerror="window.hacked = 1">'
SOON = {"period_seconds": 1, "grace_seconds": 0}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
TOP = "(node) => node.getBoundingClientRect().top"
BOTTOM = "(node) => node.getBoundingClientRect().bottom"


def save(page, name="Save"):
    page.get_by_role("button", name=name, exact=True).click()


def test_from_nothing_to_a_watched_job_and_back(
    server, open_tab, tmp_path
):
    page = open_tab(f"{server.url}/dashboard")
    expect(page.locator("#example li")).to_have_count(3)
    page.get_by_label("E-mail address").fill("ops@example.com")
    press(page, "Get a checks key")
    expect(page.locator("#new-secret")).to_have_text(re.compile("whsec_"))
    value = page.locator("#new-key").inner_text()
    press(page, "I have saved both")
    expect(page.locator("#ghost li")).to_have_count(1)
    shell(
        page.locator("#create-curl").inner_text(),
        tmp_path,
        CHECKS_KEY=value,
    )
    refresh(page)
    press(open_row(page, "Nightly backup"), "Delete")
    press(page.get_by_role("dialog"), "Delete")
    press(page, "Create your first check")
    watch_a_job(page, server, tmp_path)


def watch_a_job(page, server, folder):
    with Receiver() as receiver:
        fill_check(
            page,
            "Nightly sync",
            every=1,
            late=1,
            unit="seconds",
            webhook=receiver.url,
        )
        shows(page, "Overdue after 2 seconds without a ping.")
        press(page, "Create and send a test alert")
        check = row(page, "Nightly sync")
        expect(check.get_by_role("status")).to_contain_text(
            "The test alert arrived"
        )
        assert receiver.received[0].json["type"] == "check.test"
        press(check, "Copy")
        crontab = page.evaluate("navigator.clipboard.readText()")
        ping = rf"curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null {server.url}/ping/[0-9a-f]+"
        assert re.fullmatch(
            rf"\* \* \* \* \* /path/to/job && {ping}", crontab
        )
        expect(check).to_contain_text("Overdue")
        expect(page).to_have_title("(1) Checks · cardbeat")
        expect(check.get_by_role("row")).to_contain_text(
            ["Alert", "Overdue", "Test"]
        )
        shell(crontab[10:].replace("/path/to/job", "true"), folder)
        refresh(page)
        told = page.get_by_role("status").filter(
            has_text="Nightly sync has recovered."
        )
        expect(told).to_be_attached()
        expect(check.get_by_role("row")).to_contain_text(
            ["Alert", "Recovered", "Overdue", "Test"]
        )


def test_a_test_alert_says_what_the_receiver_answered(
    api, key, dashboard
):
    page = dashboard(key)
    press(page, "New check")
    with Receiver(answer(404), answer()) as receiver:
        fill_check(
            page,
            "Job",
            every=1,
            late=1,
            unit="days",
            webhook=receiver.url,
        )
        press(page, "Create and send a test alert")
        check = row(page, "Job")
        note = check.get_by_role("status")
        expect(note).to_have_text(
            "The test alert did not arrive: no such webhook (404)."
        )
        expect(check.locator("summary")).to_contain_text(
            "don't arrive: no such webhook (404)"
        )
        expect(page.locator("#summary")).to_have_text(
            "1 check's alerts don't arrive · 1 waiting · 1 in all"
        )
        press(check, "Send a test alert")
        expect(note).to_contain_text("The test alert arrived")


def test_two_that_edit_one_check_lose_nothing(api, key, dashboard):
    check = api.check(key)
    page = dashboard(key)
    edit(page, "Nightly backup")
    api(
        "PATCH",
        f"checks/{check['id']}",
        {"name": "Theirs", "grace_seconds": 300},
        key,
    )
    name_field(page).fill("Mine")
    save(page)
    told = page.get_by_role("alert").filter(
        has_text="This check was changed in another place"
    )
    expect(told).to_contain_text(
        "Saved there: Name: Theirs; May be late by: 5 minutes."
    )
    expect(name_field(page)).to_have_value("Mine")
    expect(page.get_by_label("May be late by", exact=True)).to_have_value(
        "5"
    )
    save(page)
    expect(row(page, "Mine")).to_be_visible()
    stored = api.read(check, key)
    assert stored["name"] == "Mine"
    assert stored["grace_seconds"] == 300
    assert stored["version"] == 3


def test_all_wrong_fields_are_told_at_once_in_the_words_of_their_labels(
    api, key, dashboard
):
    page = dashboard(key)
    press(page, "New check")
    fill_check(
        page,
        " ",
        every=1,
        late=1,
        unit="minutes",
        webhook="ftp://example.com",
    )
    page.get_by_label("Runs every").fill("1.5")
    page.get_by_label("Remind every").fill("1")
    page.get_by_label("Unit of the reminders").select_option("seconds")
    press(page, "Create and send a test alert")
    for label, sentence in (
        (
            "Name",
            "“Name” must have 1 to 100 characters, not counting spaces around it.",
        ),
        (
            "Runs every",
            "“Runs every” must be a whole number, 1 second to 365 days.",
        ),
        (
            "Remind every",
            "“Remind every” must be a whole number, 5 minutes to 30 days.",
        ),
        (
            "Webhook",
            "Give an absolute URL that begins with http:// or https://",
        ),
    ):
        field = page.get_by_label(label, exact=label == "Name")
        expect(field).to_have_accessible_description(re.compile(sentence))
    expect(name_field(page)).to_be_focused()
    fill_check(page, "Job", every=2, late=1, unit="minutes")
    page.get_by_label("Remind every").fill("3")
    page.get_by_label("Unit of the reminders").select_option("hours")
    save(page, "Create")
    told = "Every 2 minutes, may be 1 minute late; reminds every 3 hours"
    expect(row(page, "Job")).to_contain_text(told)


def test_what_is_typed_survives_refreshes_and_the_focus_is_never_lost(
    api, key, dashboard
):
    checks = [
        api.check(key, name)
        for name in ("Nightly backup", "One", "Two", "Three", "Four")
    ]
    page = dashboard(key)
    create = page.get_by_role("button", name="New check")
    expect(create).to_be_focused()
    edit(page, "Nightly backup")
    name_field(page).fill("Half typ")
    api("POST", f"ping/{checks[0]['id']}")
    refresh(page)
    expect(
        row(page, "Nightly backup").locator("summary")
    ).to_contain_text("On time")
    expect(name_field(page)).to_be_focused()
    expect(name_field(page)).to_have_value("Half typ")
    page.keyboard.press("Escape")
    expect(
        row(page, "Nightly backup").get_by_role("button", name="Edit")
    ).to_be_focused()
    page.get_by_label("Find by name").fill("backup")
    edit(page, "Nightly backup")
    name_field(page).fill("Renamed")
    save(page)
    shows(page, "No check matches.")
    expect(create).to_be_focused()


def test_the_page_says_when_the_server_is_gone_and_when_it_is_back(
    start, open_tab
):
    server = start()
    api = Api(server)
    key = api.checks_key()
    api.check(key)
    page = open_tab(f"{server.url}/dashboard")
    sign_in(page, key)
    expect(row(page, "Nightly backup")).to_be_visible()
    server.kill()
    refresh(page)
    gone = page.get_by_role("alert").filter(
        has_text="The server does not answer. What you see is"
    )
    expect(gone).to_be_visible()
    start(port=server.port)
    refresh(page)
    expect(gone).to_be_hidden()


def test_checks_stand_in_groups_by_names_that_are_only_text(
    api, key, dashboard
):
    names = [f"{MARKUP}: one", f"{MARKUP}: two", "solo: one", MARKUP]
    for name in names:
        check = api.check(key, name)
    api.ping(check)
    api("PUT", f"checks/{check['id']}/snooze", {"seconds": 600}, key)
    api.check(key, "web: logs", **SOON)
    page = dashboard(key)
    headings = page.locator("#checks").get_by_role("heading", level=2)
    expect(headings).to_have_text(
        ["Needs attention 1", f"{MARKUP} 2", "All others 2"]
    )
    headings = page.locator("#checks").get_by_role("heading", level=3)
    expect(headings).to_have_text(["web: logs", *names])
    expect(page.locator("#summary")).to_have_text(
        "1 overdue · 1 snoozed · 3 waiting · 5 in all"
    )
    for kind, count in (("Snoozed", 1), ("On time", 0), ("Waiting", 3)):
        page.get_by_role("radio", name=f"{kind} {count}").check()
        expect(page.locator("#checks .check")).to_have_count(count)
    assert page.evaluate("window.hacked") is None


def test_fifteen_checks_fit_in_one_screen_and_the_first_in_half_a_phone(
    api, key, dashboard
):
    api.check(key, "Late", **SOON)
    for number in range(14):
        name = f"host{number % 3}: a job with an ordinary name, {number}"
        api.check(
            key,
            name,
            period_seconds=86_400,
            webhook_url="https://ntfy.sh/a",
        )
    page = dashboard(key)
    expect(page.locator("#checks .check")).to_have_count(15)
    expect(page).to_have_title("(1) Checks · cardbeat")
    assert page.locator("#checks").evaluate(BOTTOM) <= 900
    phone = dashboard(key, **PHONE)
    first = phone.locator("#checks .check").first
    expect(first).to_be_visible()
    assert first.evaluate(TOP) <= 844 / 2
    for shown in (page, phone):
        every = row(shown, "a job with an ordinary name, 3").locator(
            ".every"
        )
        expect(every).to_have_text(re.compile("1 day$"))


def test_each_way_to_ping_has_a_tab_that_is_kept_for_the_next_check(
    api, key, dashboard
):
    check = api.check(key)
    page = dashboard(key)
    details = open_row(page, "Nightly backup")
    panel = details.get_by_role("tabpanel")
    details.get_by_role("tab", name="crontab").press("Home")
    for words in (
        "30 * * * * /path/to/job && curl",
        "ExecStartPost=-/usr/bin/curl",
        "Invoke-RestMethod",
    ):
        page.keyboard.press("ArrowRight")
        expect(panel).to_contain_text(words)
        expect(panel).to_contain_text(check["ping_url"])
    expect(panel).to_contain_text(
        "Only jobs on the server's own host reach 127.0.0.1."
    )
    page.reload()
    kept = open_row(page, "Nightly backup").get_by_role(
        "tab", name="PowerShell"
    )
    expect(kept).to_have_attribute("aria-selected", "true")


def test_an_alerts_link_opens_its_check_also_after_a_sign_in_with_another_key(
    api, key, dashboard
):
    with Receiver() as receiver:
        check = api.check(
            key, "Late job", webhook_url=receiver.url, **SOON
        )
        wait_until(lambda: receiver.received)
    link = receiver.received[0].json["data"]["url"]
    assert check["id"] not in link
    page = dashboard(api.checks_key(), link)
    expect(page.get_by_role("alert")).to_contain_text(
        f"This key has no check {check['id'][:8]}…"
    )
    press(page, "Sign out")
    sign_in(page, key)
    late = row(page, "Late job")
    for _ in range(2):
        expect(late.locator("summary")).to_be_focused()
        shows(late, "Late for")
        late.locator("summary").click()
        page.goto(link)


def test_a_failed_job_is_told_as_one(api, key, dashboard):
    check = api.check(key)
    page = dashboard(key)
    failed = open_row(page, "Nightly backup")
    api.ping(check)
    api.ping(check, "/3")
    refresh(page)
    expect(failed.locator("summary")).to_contain_text("Failed")
    expect(failed).to_contain_text(
        re.compile(r"The job failed \d+ seconds? ago: \d")
    )
    api.ping(check)
    refresh(page)
    expect(failed.get_by_text("The job failed")).to_be_hidden()


def test_a_check_is_snoozed_and_woken_by_a_button(api, key, dashboard):
    check = api.check(key, **SOON)
    page = dashboard(key)
    opened = open_row(page, "Nightly backup")
    shows(opened, "Late for")
    press(opened, "Snooze Nightly backup for 8 hours")
    expect(opened).to_contain_text(
        re.compile(
            r"Snoozed until \d.*: no overdue alert and no reminder"
        )
    )
    expect(opened.locator("summary")).to_contain_text("Overdue, snoozed")
    opened.get_by_role(
        "button", name="End the snooze of Nightly backup"
    ).press("Enter")
    expect(opened.get_by_text("Snoozed until")).to_be_hidden()
    expect(
        opened.get_by_role(
            "button", name="Snooze Nightly backup for 1 hour"
        )
    ).to_be_focused()
    assert api.read(check, key)["snoozed_until"] is None
