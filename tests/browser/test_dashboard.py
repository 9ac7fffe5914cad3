import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.artifact import free_port
from tests.browser.api import Api
from tests.browser.board import edit, fill_check, open_row, refresh, row, sign_in
from tests.receiver import Receiver, answer
from tests.support import wait_until

MARKUP = '<img src=x onerror="window.hacked = 1">'


@pytest.fixture
def dashboard(server, open_tab):
    """Opens the dashboard with a key."""

    def open_with(key: str, **options) -> Page:
        page = open_tab(f"{server.url}/dashboard", **options)
        sign_in(page, key)
        return page

    return open_with


def test_from_nothing_to_a_watched_job_and_back(server, open_tab):
    page = open_tab(f"{server.url}/dashboard")
    page.get_by_label("E-mail address").fill("ops@example.com")
    page.get_by_role("button", name="Get a checks key").click()
    expect(page.locator("#new-key")).to_have_text(re.compile("sk_"))
    expect(page.locator("#new-secret")).to_have_text(re.compile("whsec_"))
    page.get_by_role("button", name="I have saved both").click()
    page.get_by_role("button", name="Create your first check").click()
    with Receiver() as receiver:
        fill_check(page, "Nightly backup", every=1, late=1, unit="seconds", webhook=receiver.url)
        expect(page.get_by_text("Overdue after 2 seconds without a ping.")).to_be_visible()
        page.get_by_role("button", name="Create and send a test alert").click()
        check = row(page, "Nightly backup")
        expect(check.get_by_role("status")).to_contain_text("The test alert arrived")
        assert receiver.received[0].json["type"] == "check.test"
        check.get_by_role("button", name="Copy").click()
        crontab = page.evaluate("navigator.clipboard.readText()")
        schedule, command = crontab[:10], crontab[10:]
        assert schedule == "* * * * * "
        ping = rf"curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null {server.url}/ping/[0-9a-f]+"
        assert re.fullmatch(rf"/path/to/job && {ping}", command)
        expect(check.get_by_role("tabpanel")).to_contain_text(crontab)
        expect(check).to_contain_text("Overdue")
        expect(page).to_have_title("(1) Checks · cardbeat")
        expect(check.get_by_role("row")).to_contain_text(["Alert", "Overdue", "Test"])
        subprocess.run(["bash", "-c", command.replace("/path/to/job", "true")], check=True, timeout=30)
        refresh(page)
        expect(page.get_by_role("status").filter(has_text="Nightly backup has recovered.")).to_be_attached()
        expect(check.get_by_role("row")).to_contain_text(["Alert", "Recovered", "Overdue", "Test"])
    check.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()


@pytest.mark.parametrize(("status", "words"), [(404, "no such webhook (404)"), (410, "webhook removed (410)")])
def test_a_receiver_that_is_not_there_is_told_at_once(api, dashboard, status, words):
    page = dashboard(api.checks_key())
    page.get_by_role("button", name="New check").click()
    with Receiver(answer(status)) as receiver:
        fill_check(page, "Job", every=1, late=1, unit="days", webhook=receiver.url)
        page.get_by_role("button", name="Create and send a test alert").click()
        check = row(page, "Job")
        expect(check.get_by_role("status")).to_have_text(f"The test alert did not arrive: {words}.")
        expect(check.locator("summary")).to_contain_text(f"don't arrive: {words}")
        expect(check.get_by_text(f"The receiver answered {status}.")).to_be_visible()
        expect(page.get_by_text("1 check's alerts don't arrive · 1 waiting for its first ping")).to_be_visible()
        expect(page.get_by_role("heading", name="Needs attention")).to_be_visible()
        expect(page).to_have_title("(1) Checks · cardbeat")


def test_a_test_alert_is_offered_for_another_receiver_only(api, dashboard):
    key = api.checks_key()
    with Receiver(answer(500)) as broken, Receiver() as receiver:
        check = api.check(key, webhook_url=broken.url)
        page = dashboard(key)
        edit(page, "Nightly backup")
        expect(page.get_by_label("Send a test alert now")).to_be_hidden()
        page.get_by_label("Webhook").fill(receiver.url)
        page.get_by_label("Send a test alert now").uncheck()
        expect(page.get_by_role("button", name="Save", exact=True)).to_be_visible()
        page.get_by_label("Send a test alert now").check()
        page.get_by_role("button", name="Save and send a test alert").click()
        expect(row(page, "Nightly backup").get_by_role("status")).to_contain_text("The test alert arrived")
        assert (broken.connections, receiver.connections) == (0, 1)
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["webhook_url"] == receiver.url


def test_the_receivers_and_their_urls_are_shown_while_editing(api, dashboard):
    page = dashboard(api.checks_key())
    page.get_by_role("button", name="New check").click()
    page.get_by_text("Which URL do I need?").click()
    expect(page.get_by_role("row", name="Slack")).to_contain_text("https://hooks.slack.com/services/")


def test_two_tabs_that_edit_one_check_lose_nothing(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    first, second = dashboard(key), dashboard(key)
    for page in (first, second):
        edit(page, "Nightly backup")
    first.get_by_label("Name", exact=True).fill("Renamed first")
    first.get_by_label("May be late by").fill("5")
    first.get_by_role("button", name="Save", exact=True).click()
    expect(row(first, "Renamed first")).to_be_visible()
    second.get_by_label("Name", exact=True).fill("Renamed second")
    second.get_by_label("Webhook").fill("https://chat.example.com/hook")
    second.get_by_label("Send a test alert now").uncheck()
    second.get_by_role("button", name="Save", exact=True).click()
    conflict = second.get_by_role("dialog", name="This check was changed in another place")
    expect(conflict.get_by_role("row", name="Name")).to_have_text("NameRenamed firstRenamed second")
    expect(conflict.get_by_role("row", name="May be late by")).to_have_text("May be late by5 minutes1 minute")
    conflict.get_by_role("radio", name="Renamed first").check()
    conflict.get_by_role("button", name="Save what is chosen").click()
    expect(row(second, "Renamed first")).to_be_visible()
    stored = api("GET", f"checks/{check['id']}", key=key)["check"]
    assert (stored["name"], stored["grace_seconds"], stored["version"]) == ("Renamed first", 300, 3)
    assert stored["webhook_url"] == "https://chat.example.com/hook"


def test_a_discarded_conflict_leaves_what_was_saved(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    edit(page, "Nightly backup")
    api("PATCH", f"checks/{check['id']}", {"name": "Theirs"}, key)
    page.get_by_label("Name", exact=True).fill("Mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Theirs")
    api("PATCH", f"checks/{check['id']}", {"name": "Theirs again"}, key)
    page.get_by_role("button", name="Save what is chosen").click()
    expect(page.get_by_role("alert")).to_contain_text("This check was changed again just now, so nothing was saved.")
    expect(page.get_by_role("radio", name="Theirs again")).to_be_visible()
    page.get_by_role("button", name="Discard mine").click()
    expect(row(page, "Theirs again")).to_be_visible()
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["version"] == 3


def test_an_edit_that_changes_nothing_makes_no_new_version(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    edit(page, "Nightly backup")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert api("GET", f"checks/{check['id']}", key=key)["check"] == check


def test_an_edit_that_changes_nothing_brings_back_no_old_state(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    edit(page, "Nightly backup")
    api("PATCH", f"checks/{check['id']}", {"name": "Renamed elsewhere"}, key)
    expect(row(page, "Renamed elsewhere")).to_be_attached(timeout=20_000)
    page.evaluate(
        """window.shown = []; new MutationObserver(() => shown.push(document.body.innerText))
        .observe(document.body, {childList: true, characterData: true, subtree: true})"""
    )
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert "Nightly backup" not in "".join(page.evaluate("shown"))


def test_what_can_not_be_a_key_is_told(server, open_tab):
    page = open_tab(f"{server.url}/dashboard")
    page.get_by_label("Checks key").fill("sk_1234…")
    page.get_by_role("button", name="Open the checks").click()
    expect(page.get_by_role("alert")).to_contain_text("That is not a key")


def test_a_check_that_is_gone_is_told_and_nothing_is_made_of_it(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    edit(page, "Nightly backup")
    api("DELETE", f"checks/{check['id']}", key=key)
    page.get_by_label("Name", exact=True).fill("Too late")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("This check was deleted while you edited it, so nothing was saved.")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()
    check = api.check(key)
    refresh(page)
    edit(page, "Nightly backup")
    api("PATCH", f"checks/{check['id']}", {"name": "Theirs"}, key)
    page.get_by_label("Name", exact=True).fill("Mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Theirs")
    api("DELETE", f"checks/{check['id']}", key=key)
    page.get_by_role("button", name="Save what is chosen").click()
    expect(page.get_by_role("alert")).to_have_text("This check was deleted while you edited it, so nothing was saved.")


def test_the_focus_goes_to_the_button_for_a_new_check_where_it_would_be_lost(api, dashboard):
    key = api.checks_key()
    for name in ("Nightly backup", "One", "Two", "Three", "Four"):
        api.check(key, name)
    page = dashboard(key)
    create = page.get_by_role("button", name="New check")
    expect(create).to_be_focused()
    page.get_by_label("Find by name").fill("backup")
    edit(page, "Nightly backup")
    page.get_by_label("Name", exact=True).fill("Renamed")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("No check matches.")).to_be_visible()
    expect(create).to_be_focused()


def test_what_is_typed_survives_refreshes(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    edit(page, "Nightly backup")
    page.get_by_label("Name", exact=True).fill("Half typ")
    api("POST", f"ping/{check['id']}")
    with page.expect_response("**/checks?*"):
        refresh(page)
    expect(row(page, "Nightly backup").locator("summary")).to_contain_text("On time")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Half typ")
    page.keyboard.press("Escape")
    expect(row(page, "Nightly backup").get_by_role("button", name="Edit")).to_be_focused()


def test_a_refusal_stands_beside_its_field(api, dashboard):
    page = dashboard(api.checks_key())
    page.get_by_role("button", name="New check").click()
    fill_check(page, " ", every=1, late=1, unit="minutes")
    page.get_by_role("button", name="Create", exact=True).click()
    wrong = "Enter a name of up to 100 characters."
    expect(page.get_by_label("Name", exact=True)).to_have_accessible_description(wrong)
    fill_check(page, "Job", every=1, late=1, unit="minutes", webhook="ftp://example.com")
    page.get_by_role("button", name="Create and send a test alert").click()
    expect(page.get_by_label("Webhook")).to_be_focused()
    page.get_by_label("Webhook").fill("")
    page.get_by_label("Runs every").fill("1.5")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_label("Runs every")).to_have_accessible_description(re.compile("whole number"))
    page.get_by_label("Runs every").fill("2")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(row(page, "Job")).to_contain_text("Every 2 minutes, may be 1 minute late")


def test_the_page_says_when_the_server_is_gone_and_when_it_is_back(start, open_tab):
    server = start()
    api = Api(server.url)
    key = api.checks_key()
    api.check(key)
    page = open_tab(f"{server.url}/dashboard")
    sign_in(page, key)
    expect(row(page, "Nightly backup")).to_be_visible()
    server.process.kill()
    server.process.wait(15)
    refresh(page)
    expect(page.get_by_role("alert").filter(has_text="The server does not answer. What you see is")).to_be_visible()
    start(port=server.port)
    refresh(page)
    expect(page.get_by_text("The server does not answer.")).to_be_hidden()


def test_it_refreshes_itself_but_not_while_hidden(api, server, open_tab):
    page = open_tab("about:blank")
    page.clock.install()
    page.goto(f"{server.url}/dashboard")
    sign_in(page, api.checks_key())
    expect(page.get_by_text("Refreshes itself")).to_be_visible()
    with page.expect_response("**/checks?*"):
        page.clock.run_for(6000)
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    refresh(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(60_000)
    assert asked == []
    page.evaluate("delete document.hidden")
    with page.expect_response("**/checks?*"):
        refresh(page)


def test_a_row_says_when_its_alerts_do_not_arrive_and_why(api, dashboard):
    key = api.checks_key()
    check = api.check(key, webhook_url=f"http://127.0.0.1:{free_port()}/hook")
    api.check(key, "Silent")
    page = dashboard(key)
    expect(row(page, "Nightly backup")).to_be_visible()
    expect(page.get_by_text("don't arrive")).to_have_count(0)
    api("POST", f"checks/{check['id']}/test-alert", key=key)
    wait_until(lambda: api("GET", f"checks/{check['id']}", key=key)["check"]["delivery"] == "failing")
    refresh(page)
    expect(row(page, "Nightly backup").locator("summary")).to_contain_text("don't arrive: no answer")
    expect(row(page, "Silent").locator("summary")).to_contain_text("no webhook")
    open_row(page, "Nightly backup")
    expect(page.get_by_text("Alerts of this check don't arrive. The connection was refused.")).to_be_visible()
    alerts = api("GET", f"checks/{check['id']}/alerts", key=key)
    alerts["alerts"][0] |= {"state": "pending", "next_attempt_at": "2026-01-01 00:00:00"}
    page.route("**/alerts", lambda route: route.fulfill(json=alerts))
    refresh(page)
    expect(row(page, "Nightly backup").get_by_role("cell", name="Not taken, due now")).to_be_visible()


def test_a_check_that_was_never_pinged_waits_and_is_not_on_time(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    line = row(page, "Nightly backup").locator("summary")
    expect(line).to_contain_text("Waiting for its first ping")
    expect(page.get_by_text("1 waiting for its first ping")).to_be_visible()
    api("GET", f"ping/{check['id']}")
    refresh(page)
    expect(line).to_contain_text("On time")
    expect(page.get_by_text("It is on time")).to_be_visible()


def test_checks_stand_in_groups_and_those_that_need_attention_before_all(api, dashboard):
    key = api.checks_key()
    for name in ("web: certificates", "db2: backup", "db1: vacuum", "db1: backup", "solo: one", "db2: vacuum"):
        api.check(key, name)
    api.check(key, "web: logs", period_seconds=1, grace_seconds=0)
    page = dashboard(key)
    sections = page.locator("#checks").get_by_role("heading", level=2)
    expect(sections).to_have_text(["Needs attention 1", "db1 2", "db2 2", "web 1", "All others 1"])
    names = ["web: logs", "db1: backup", "db1: vacuum", "db2: backup", "db2: vacuum", "web: certificates", "solo: one"]
    expect(page.get_by_role("heading", level=3)).to_have_text(names)
    page.get_by_role("radio", name="Attention").check()
    expect(sections).to_have_text(["Needs attention 1"])
    page.get_by_role("radio", name="All").check()
    sections.get_by_text("db1").click()
    expect(row(page, "db1: backup")).to_be_hidden()
    refresh(page)
    expect(row(page, "db2: backup")).to_be_visible()
    expect(row(page, "db1: backup")).to_be_hidden()


def test_fifteen_checks_fit_in_one_screen_also_in_five_sections(api, dashboard):
    key = api.checks_key()
    api.check(key, "Late", period_seconds=1, grace_seconds=0)
    for name in [f"host{host}: a job with an ordinary name, {job}" for host in range(3) for job in range(4)]:
        api.check(key, name)
    for name in ("Newsletter", "Yearly report"):
        api.check(key, name)
    page = dashboard(key)
    expect(page).to_have_title("(1) Checks · cardbeat")
    expect(page.get_by_role("heading", level=3)).to_have_count(15)
    assert page.locator("#checks").evaluate("node => node.getBoundingClientRect().bottom") <= 900


def test_each_way_to_ping_has_a_tab_that_is_kept_for_the_next_check(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    details = open_row(page, "Nightly backup")
    panel = details.get_by_role("tabpanel")
    details.get_by_role("tab", name="crontab").press("Home")
    expect(panel).to_contain_text(check["ping_url"])
    expect(details.get_by_role("tab", name="URL")).to_be_focused()
    for name, words in (
        ("crontab", "30 * * * * /path/to/job && curl"),
        ("systemd", "ExecStartPost=-/usr/bin/curl"),
        ("PowerShell", "Invoke-RestMethod"),
        ("Python", "urllib.request.urlopen"),
        ("Docker", "docker run --rm"),
    ):
        page.keyboard.press("ArrowRight")
        expect(details.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
        expect(panel).to_contain_text(words)
        expect(panel).to_contain_text(check["ping_url"])
    expect(panel).to_contain_text("Only jobs on the server's own host reach 127.0.0.1.")
    details.get_by_role("tab", name="Python").click()
    page.reload()
    expect(open_row(page, "Nightly backup").get_by_role("tab", name="Python")).to_have_attribute(
        "aria-selected", "true"
    )


def test_older_alerts_are_shown_on_demand(api, dashboard):
    key = api.checks_key()
    with Receiver() as receiver:
        check = api.check(key, webhook_url=receiver.url)
        for count in range(1, 7):
            api("POST", f"checks/{check['id']}/test-alert", key=key)
            wait_until(lambda count=count: len(receiver.received) == count)
    page = dashboard(key)
    details = open_row(page, "Nightly backup")
    expect(details.get_by_role("row")).to_have_count(6)
    details.get_by_role("button", name="Show 1 more").click()
    expect(details.get_by_role("row")).to_have_count(7)


def test_text_from_checks_is_only_text(api, dashboard):
    key = api.checks_key()
    for name in (MARKUP, f"{MARKUP}: one", f"{MARKUP}: two"):
        api.check(key, name, webhook_url="http://127.0.0.1:9/<b>")
    page = dashboard(key)
    expect(page.get_by_role("heading", name=f"{MARKUP} 2")).to_be_visible()
    expect(page.get_by_role("heading", name=MARKUP, exact=True)).to_be_visible()
    details = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=MARKUP, exact=True))
    details.locator("summary").click()
    details.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text(MARKUP)
    assert page.evaluate("window.hacked") is None


def test_many_checks_are_paged_and_found_with_the_overdue_first(start, open_tab, tmp_path: Path):
    (tmp_path / "tiers.toml").write_text("[free]\nmax_checks = 1000\n")
    server = start("--tiers", "tiers.toml", "--sweep-seconds", "1")
    api = Api(server.url)
    key = api.checks_key()
    for number in range(101):
        api.check(key, f"Job {number:03}")
    api.check(key, "Late job", period_seconds=1, grace_seconds=0)
    page = open_tab(f"{server.url}/dashboard")
    sign_in(page, key)
    headings = page.get_by_role("heading", level=3)
    expect(page.get_by_text("1–100 of 102")).to_be_visible()
    expect(headings.first).to_have_text("Late job")
    page.get_by_role("button", name="Next").click()
    expect(headings).to_have_text(["Job 099", "Job 100"])
    page.get_by_label("Find by name").fill("job 05")
    expect(headings).to_have_count(10)
    page.get_by_role("radio", name="Attention").check()
    expect(page.get_by_text("No check matches.")).to_be_visible()
