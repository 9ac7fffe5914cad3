import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.artifact import free_port
from tests.browser.api import Api
from tests.support import wait_until

MARKUP = '<img src=x onerror="window.hacked = 1">'


def sign_in(page: Page, key: str) -> None:
    page.get_by_label("Checks key").fill(key)
    page.get_by_role("button", name="Open the checks").click()
    expect(page.get_by_role("heading", name="Checks", exact=True)).to_be_visible()


def refresh(page: Page) -> None:
    """What the page does by itself every few seconds, and when it is looked at again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=name))


def fill_check(page: Page, name: str, *, every: int, late: int, unit: str, webhook: str = "") -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Runs every").fill(str(every))
    page.get_by_label("Unit of the period").select_option(unit)
    page.get_by_label("May be late by").fill(str(late))
    page.get_by_label("Unit of the lateness").select_option(unit)
    page.get_by_label("Webhook").fill(webhook)


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
    webhook = f"http://127.0.0.1:{free_port()}/hook"
    fill_check(page, "Nightly backup", every=1, late=1, unit="seconds", webhook=webhook)
    expect(page.get_by_text("Overdue after 2 seconds without a ping.")).to_be_visible()
    page.get_by_role("button", name="Create", exact=True).click()
    check = row(page, "Nightly backup")
    expect(check).to_contain_text("Never")
    check.get_by_role("button", name="Copy").click()
    crontab = page.evaluate("navigator.clipboard.readText()")
    schedule, command = crontab[:10], crontab[10:]
    assert schedule == "* * * * * "
    ping = rf"curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null {server.url}/ping/[0-9a-f]+"
    assert re.fullmatch(rf"/path/to/job && {ping}", command)
    expect(check).to_contain_text(crontab)
    expect(check).to_contain_text("Overdue")
    expect(page).to_have_title("(1) Checks · cardbeat")
    check.get_by_text("Alerts go to").click()
    expect(check.get_by_role("row")).to_contain_text(["Alert", "Overdue"])
    subprocess.run(["bash", "-c", command.replace("/path/to/job", "true")], check=True, timeout=30)
    refresh(page)
    expect(check).to_contain_text("1 ping")
    expect(page.get_by_role("status").filter(has_text="Nightly backup has recovered.")).to_be_attached()
    expect(check.get_by_role("row")).to_contain_text(["Alert", "Recovered", "Overdue"])
    check.get_by_role("button", name="Send a test alert").click()
    expect(check.get_by_role("row")).to_contain_text(["Alert", "Test", "Recovered", "Overdue"])
    check.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()


def test_two_tabs_that_edit_one_check_lose_nothing(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    first, second = dashboard(key), dashboard(key)
    for page in (first, second):
        row(page, "Nightly backup").get_by_role("button", name="Edit").click()
    first.get_by_label("Name", exact=True).fill("Renamed first")
    first.get_by_label("May be late by").fill("5")
    first.get_by_role("button", name="Save", exact=True).click()
    expect(row(first, "Renamed first")).to_be_visible()
    second.get_by_label("Name", exact=True).fill("Renamed second")
    second.get_by_label("Webhook").fill("https://chat.example.com/hook")
    second.get_by_role("button", name="Save", exact=True).click()
    conflict = second.get_by_role("dialog", name="Changed by someone else meanwhile")
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
    row(page, "Nightly backup").get_by_role("button", name="Edit").click()
    api("PATCH", f"checks/{check['id']}", {"name": "Theirs"}, key)
    page.get_by_label("Name", exact=True).fill("Mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Theirs")
    api("PATCH", f"checks/{check['id']}", {"name": "Theirs again"}, key)
    page.get_by_role("button", name="Save what is chosen").click()
    expect(page.get_by_role("alert")).to_contain_text("It was changed once more in this moment.")
    expect(page.get_by_role("radio", name="Theirs again")).to_be_visible()
    page.get_by_role("button", name="Discard mine").click()
    expect(row(page, "Theirs again")).to_be_visible()
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["version"] == 3


def test_an_edit_that_changes_nothing_makes_no_new_version(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    row(page, "Nightly backup").get_by_role("button", name="Edit").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert api("GET", f"checks/{check['id']}", key=key)["check"] == check


def test_an_edit_that_changes_nothing_brings_back_no_old_state(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    row(page, "Nightly backup").get_by_role("button", name="Edit").click()
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
    expect(page.get_by_role("alert")).to_contain_text("This is no key")


def test_a_check_that_is_gone_is_told_and_nothing_is_made_of_it(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    row(page, "Nightly backup").get_by_role("button", name="Edit").click()
    api("DELETE", f"checks/{check['id']}", key=key)
    page.get_by_label("Name", exact=True).fill("Too late")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("This check was deleted meanwhile, so nothing was saved.")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()


def test_what_is_typed_survives_refreshes(api, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key)
    row(page, "Nightly backup").get_by_role("button", name="Edit").click()
    page.get_by_label("Name", exact=True).fill("Half typ")
    api("POST", f"ping/{check['id']}")
    with page.expect_response("**/checks?*"):
        refresh(page)
    expect(row(page, "Nightly backup")).to_contain_text("1 ping")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Half typ")
    page.keyboard.press("Escape")
    expect(row(page, "Nightly backup").get_by_role("button", name="Edit")).to_be_focused()


def test_a_refusal_stands_beside_its_field(api, dashboard):
    page = dashboard(api.checks_key())
    page.get_by_role("button", name="New check").click()
    fill_check(page, " ", every=1, late=1, unit="minutes")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_label("Name", exact=True)).to_have_accessible_description(re.compile("1 to 100 characters"))
    fill_check(page, "Job", every=1, late=1, unit="minutes", webhook="ftp://example.com")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_label("Webhook")).to_be_focused()
    page.get_by_label("Webhook").fill("")
    page.get_by_label("Runs every").fill("1.5")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_label("Runs every")).to_have_accessible_description(re.compile("whole number"))
    page.get_by_label("Runs every").fill("2")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(row(page, "Job")).to_contain_text("Every 2 minutes, 1 minute grace")


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


def test_the_key_stays_in_its_tab(api, server, dashboard):
    page = dashboard(api.checks_key())
    page.reload()
    expect(page.get_by_role("button", name="New check")).to_be_visible()
    other = page.context.new_page()
    other.goto(f"{server.url}/dashboard")
    expect(other.get_by_label("Checks key")).to_be_visible()
    page.get_by_role("button", name="Forget the key").click()
    page.reload()
    expect(page.get_by_label("Checks key")).to_have_value("")


def test_a_wrong_key_is_told_apart_from_a_cards_key(api, server, open_tab):
    page = open_tab(f"{server.url}/dashboard")
    for key, words in (("sk_nonsense", "key"), (api("POST", "register")["key"], "This is a key for cards.")):
        page.get_by_label("Checks key").fill(key)
        page.get_by_role("button", name="Open the checks").click()
        expect(page.get_by_label("Checks key")).to_have_accessible_description(re.compile(words))


def test_a_revoked_key_is_told_without_losing_the_page(api, dashboard):
    key = api.checks_key()
    page = dashboard(key)
    expect(page.get_by_text("Refreshes itself")).to_be_visible()
    api("DELETE", "key", key=key)
    refresh(page)
    expect(page.get_by_role("alert").filter(has_text="Forget the key")).to_be_visible()


def test_a_row_says_when_its_alerts_do_not_arrive(api, dashboard):
    key = api.checks_key()
    check = api.check(key, webhook_url=f"http://127.0.0.1:{free_port()}/hook")
    api.check(key, "Silent")
    page = dashboard(key)
    expect(row(page, "Nightly backup").get_by_text("and don't arrive")).to_have_count(0)
    api("POST", f"checks/{check['id']}/test-alert", key=key)
    wait_until(lambda: api("GET", f"checks/{check['id']}", key=key)["check"]["delivery"] == "failing")
    refresh(page)
    expect(row(page, "Nightly backup").get_by_text("and don't arrive")).to_be_visible()
    expect(row(page, "Silent").get_by_text("and don't arrive")).to_have_count(0)


def test_text_from_checks_is_only_text(api, dashboard):
    key = api.checks_key()
    api.check(key, MARKUP)
    page = dashboard(key)
    expect(page.get_by_role("heading", name=MARKUP)).to_be_visible()
    row(page, MARKUP).get_by_role("button", name="Delete").click()
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
    headings = page.get_by_role("listitem").get_by_role("heading")
    expect(page.get_by_text("1–100 of 102")).to_be_visible()
    expect(headings.first).to_have_text("Late job")
    page.get_by_role("button", name="Next").click()
    expect(headings).to_have_text(["Job 099", "Job 100"])
    page.get_by_label("Find by name").fill("job 05")
    expect(headings).to_have_count(10)
    page.get_by_role("radio", name="Overdue").check()
    expect(page.get_by_text("No check matches.")).to_be_visible()
