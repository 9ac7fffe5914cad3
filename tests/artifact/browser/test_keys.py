"""The key in the browser: where it is kept, what is told of it, how it is replaced, and what a reader sees."""

import re

from playwright.sync_api import expect

from tests.artifact.browser.board import (
    edit,
    name_field,
    open_row,
    press,
    refresh,
    shows,
)
from tests.kit.support import wait_until

FOR_OWNERS = (
    "New check",
    "Edit",
    "Delete",
    "Send a test alert",
    "Copy",
    "Snooze",
)
FOR_OWNERS_OF_KEYS = (
    "Replace the key",
    "Make a new secret",
    "Make a read-only key",
    "End it",
)


def opened_again(page):
    """Another tab of the same browser."""
    other = page.context.new_page()
    other.goto(page.url)
    return other


def open_account(page):
    press(page, "Key and limits")
    return page.get_by_role("dialog", name="Key and limits")


def test_a_key_stays_in_its_tab_or_on_the_device_until_one_signs_out_of_all_tabs(
    key, dashboard
):
    page = dashboard(key)
    page.reload()
    expect(page.get_by_role("button", name="New check")).to_be_visible()
    expect(opened_again(page).get_by_label("Checks key")).to_be_visible()
    open_account(page).get_by_label(
        "Remember this key on this device"
    ).check()
    other = opened_again(page)
    expect(other.get_by_role("button", name="New check")).to_be_visible()
    press(other, "Sign out")
    for tab in (page, other, opened_again(page)):
        expect(tab.get_by_label("Checks key")).to_have_value("")
        expect(
            tab.get_by_label("Remember on this device")
        ).not_to_be_checked()
    assert (
        page.evaluate("localStorage.length + sessionStorage.length") == 0
    )


def test_a_key_is_replaced_and_the_new_one_remembered(
    api, key, dashboard
):
    api.check(key)
    page = dashboard(key, remember=True)
    press(open_account(page), "Replace the key")
    press(page.locator("#confirm"), "Replace the key")
    expect(
        page.get_by_role("heading", name="Save the new key now")
    ).to_be_focused()
    replaced = page.locator("#new-key").inner_text()
    expect(page.locator("#new-secret")).to_be_hidden()
    press(page, "I have saved it")
    expect(
        page.get_by_role("heading", name="Nightly backup")
    ).to_be_visible()
    assert len(api("GET", "checks", key=replaced)["checks"]) == 1
    page.reload()
    expect(
        page.get_by_role("heading", name="Nightly backup")
    ).to_be_visible()


def test_nothing_of_a_key_comes_back_once_it_is_signed_out_in_another_tab(
    api, key, dashboard
):
    check = api.check(key)
    page = dashboard(key, remember=True)
    edit(page, "Nightly backup")
    name_field(page).fill("Renamed")
    held = []

    def hold(route):
        held.append(route)

    page.route(f"**/checks/{check['id']}", hold, times=1)
    page.get_by_role("button", name="Save", exact=True).click()
    wait_until(lambda: held or page.wait_for_timeout(10))
    press(opened_again(page), "Sign out")
    expect(page.get_by_label("Checks key")).to_be_focused()
    held[0].continue_()
    expect(page.locator("#editor-save")).to_be_enabled()
    expect(
        page.locator("#checks li").or_(page.get_by_role("dialog"))
    ).to_have_count(0)


def test_a_wrong_a_public_and_a_revoked_key_are_told_apart_and_whom_to_ask(
    api, key, server, dashboard, open_tab
):
    page = open_tab(f"{server.url}/dashboard")
    public = api("POST", "register")["key"]
    for wrong, words in (
        ("sk_1234…", "That is not a key"),
        ("sk_nonsense", "key"),
        (public, "That is a cards key."),
    ):
        page.get_by_label("Checks key").fill(wrong)
        press(page, "Open the checks")
        expect(
            page.get_by_label("Checks key")
        ).to_have_accessible_description(re.compile(words))
    expect(page.locator("#sign-in")).to_contain_text(
        "Lost your key? Ask the operator of this server: keys replace"
    )
    page = dashboard(key)
    shows(page, "Refreshes itself")
    api("DELETE", "key", key=key)
    refresh(page)
    expect(
        page.get_by_label("Checks key")
    ).to_have_accessible_description(re.compile("or it was revoked"))


def test_a_reader_sees_the_checks_and_no_button_that_is_refused(
    api, key, dashboard
):
    check = api.check(key, webhook_url="http://127.0.0.1:9/secret")
    api("POST", f"checks/{check['id']}/test-alert", key=key)
    reader = api("POST", "key/read-only", key=key)["key"]
    page = dashboard(reader, remember=True)
    for _ in range(2):
        opened = open_row(page, "Nightly backup")
        expect(
            opened.get_by_role("cell", name="Test", exact=True)
        ).to_be_visible()
        expect(opened).to_contain_text("to 127.0.0.1")
        for name in FOR_OWNERS:
            expect(
                page.get_by_role("button", name=re.compile(f"^{name}"))
            ).to_have_count(0)
        expect(opened.get_by_role("tab")).to_have_count(0)
        assert check["id"] not in page.content()
        assert "secret" not in opened.inner_text()
        page.reload()
    account = open_account(page)
    expect(account).to_contain_text(f"Read-only · {reader[:8]}")
    expect(account).to_contain_text(
        re.compile("Checks.*1 of 100", re.DOTALL)
    )
    for name in FOR_OWNERS_OF_KEYS:
        expect(account.get_by_role("button", name=name)).to_have_count(0)


def test_a_read_only_key_is_made_replaced_and_ended_on_the_page(
    api, key, dashboard
):
    page, values = dashboard(key), []
    for question in ("", "Make another one"):
        press(open_account(page), "Make a read-only key")
        if question:
            press(page, question)
        expect(
            page.get_by_role("heading", name="Save the read-only key now")
        ).to_be_focused()
        values.append(page.locator("#new-key").inner_text())
        press(page, "I have saved it")
        expect(
            page.get_by_role("button", name="New check")
        ).to_be_visible()
    assert api("GET", "key", key=values[1])["scope"] == "read"
    account = open_account(page)
    expect(account.locator("#account-reader")).to_contain_text(
        values[1][:8]
    )
    press(account, "End it")
    press(page, "End the read-only key")
    expect(account.locator("#account-reader")).to_contain_text(
        "changes nothing"
    )
    expect(account.get_by_role("button", name="End it")).to_be_hidden()
