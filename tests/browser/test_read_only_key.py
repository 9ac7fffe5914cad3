"""The dashboard with a read-only key: it shows all checks and their alerts, and nothing that would be refused."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.board import open_row, refresh, sign_in

FOR_OWNERS = ("New check", "Create your first check", "Edit", "Delete", "Send a test alert", "Copy")
FOR_OWNERS_OF_KEYS = ("Replace the key", "Make a new secret", "Make a read-only key", "End it")


@pytest.fixture
def dashboard(server, open_tab):
    def open_with(key: str, *, remember: bool = False) -> Page:
        page = open_tab(f"{server.url}/dashboard")
        sign_in(page, key, remember=remember)
        return page

    return open_with


@pytest.fixture
def key(api):
    return api.checks_key()


@pytest.fixture
def reader(api, key):
    return api("POST", "key/read-only", key=key)["key"]


def expect_no_changes(page: Page) -> None:
    for name in FOR_OWNERS:
        expect(page.get_by_role("button", name=re.compile(f"^{name}"))).to_have_count(0)


def test_it_opens_the_checks_and_their_alerts_with_no_button_that_is_refused(api, key, reader, dashboard):
    check = api.check(key, webhook_url="http://127.0.0.1:9/secret")
    api("POST", f"checks/{check['id']}/test-alert", key=key)
    page = dashboard(reader)
    opened = open_row(page, "Nightly backup")
    expect(opened.get_by_role("cell", name="Test", exact=True)).to_be_visible()
    expect(opened).to_contain_text("to 127.0.0.1")
    expect_no_changes(page)
    expect(opened.get_by_role("tab")).to_have_count(0)
    assert check["id"] not in page.content()
    assert "secret" not in opened.inner_text()
    refresh(page)
    expect(opened.get_by_role("cell", name="Test", exact=True)).to_be_visible()
    page.get_by_role("button", name="Key and limits").click()
    account = page.get_by_role("dialog", name="Key and limits")
    expect(account).to_contain_text(f"Read-only · {reader[:8]}")
    expect(account).to_contain_text(re.compile("Checks.*1 of 100", re.DOTALL))
    for name in FOR_OWNERS_OF_KEYS:
        expect(account.get_by_role("button", name=name)).to_have_count(0)


def test_it_is_remembered_as_what_it_is_and_a_checks_key_beside_it_still_changes(api, key, reader, dashboard):
    page = dashboard(reader, remember=True)
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()
    expect(page.get_by_role("button", name="Key and limits")).to_be_focused()
    expect_no_changes(page)
    page.reload()
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()
    expect_no_changes(page)
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_role("button", name="Add another key").click()
    sign_in(page, key)
    expect(page.get_by_role("button", name="New check")).to_be_focused()


def test_it_is_made_replaced_and_ended_on_the_page(api, key, dashboard, open_tab, server):
    page = dashboard(key)

    def make(again: bool) -> str:
        page.get_by_role("button", name="Key and limits").click()
        page.get_by_role("button", name="Make a read-only key").click()
        if again:
            page.get_by_role("button", name="Make another one").click()
        expect(page.get_by_role("heading", name="Save the read-only key now")).to_be_focused()
        expect(page.get_by_label("Remember the key on this device")).to_be_hidden()
        value = page.locator("#new-key").inner_text()
        page.get_by_role("button", name="I have saved it").click()
        expect(page.get_by_role("button", name="New check")).to_be_visible()
        return value

    first, second = make(again=False), make(again=True)
    assert api("GET", "key", key=second)["scope"] == "read"
    page.get_by_role("button", name="Key and limits").click()
    expect(page.locator("#account-reader")).to_contain_text(second[:8])
    page.get_by_role("button", name="End it").click()
    page.get_by_role("button", name="End the read-only key").click()
    expect(page.locator("#account-reader")).to_contain_text("changes nothing")
    expect(page.get_by_role("button", name="End it")).to_be_hidden()
    other = open_tab(f"{server.url}/dashboard")
    for ended in (first, second):
        other.get_by_label("Checks key").fill(ended)
        other.get_by_role("button", name="Open the checks").click()
        expect(other.get_by_role("alert")).to_contain_text("not known here, or was revoked")


def test_a_click_before_the_page_knows_whether_there_is_one_ends_none(api, key, reader, dashboard):
    page, held = dashboard(key), []
    page.route(re.compile("/key$"), lambda route: route.continue_() if held else held.append(route))
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_role("button", name="Make a read-only key").click()
    expect(page.get_by_role("button", name="Make another one")).to_be_visible()
    held[0].continue_()
    assert api("GET", "key", key=reader)["scope"] == "read"


def test_the_page_says_whom_to_ask_when_a_key_is_lost(server, open_tab):
    page = open_tab(f"{server.url}/dashboard")
    expect(page.locator("#sign-in")).to_contain_text("Lost your key? Ask the operator of this server")
    expect(page.locator("#sign-in")).to_contain_text("keys replace")
