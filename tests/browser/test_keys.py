"""Keys in the browser: which are kept where, what one is told of them, and how they are replaced."""

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.board import edit, open_row, refresh, sign_in
from tests.support import wait_until


@pytest.fixture
def dashboard(server, open_tab):
    """Opens the dashboard with a key."""

    def open_with(key: str, *, remember: bool = False) -> Page:
        page = open_tab(f"{server.url}/dashboard")
        sign_in(page, key, remember=remember)
        return page

    return open_with


def opened_again(page: Page, url: str) -> Page:
    """Another tab of the same browser."""
    other = page.context.new_page()
    other.goto(f"{url}/dashboard")
    return other


def add_key(page: Page, key: str, *, remember: bool = False) -> None:
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_role("button", name="Add another key").click()
    sign_in(page, key, remember=remember)


def test_the_key_stays_in_its_tab(api, server, dashboard):
    page = dashboard(api.checks_key())
    page.reload()
    expect(page.get_by_role("button", name="New check")).to_be_visible()
    other = page.context.new_page()
    other.goto(f"{server.url}/dashboard")
    expect(other.get_by_label("Checks key")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.reload()
    expect(page.get_by_label("Checks key")).to_have_value("")


def test_a_key_is_remembered_on_the_device_by_choice_until_one_signs_out_of_all_tabs(api, server, dashboard):
    page = dashboard(api.checks_key(), remember=True)
    other = opened_again(page, server.url)
    expect(other.get_by_role("button", name="New check")).to_be_visible()
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_label("Checks key")).to_be_focused()
    expect(page.get_by_label("Checks key")).to_be_visible()
    expect(page.get_by_label("Remember on this device")).not_to_be_checked()
    expect(opened_again(page, server.url).get_by_label("Checks key")).to_be_visible()


def test_several_keys_are_opened_in_turn_and_forgotten_one_by_one(api, server, dashboard):
    first, second = api.checks_key(), api.checks_key()
    api.check(first, "Job of the first")
    page = dashboard(first, remember=True)
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_role("button", name="Add another key").click()
    page.get_by_role("button", name="Back to the checks").click()
    add_key(page, second, remember=True)
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()
    other = opened_again(page, server.url)
    other.get_by_role("button", name=f"Open ops@example.com · {first[:8]}").click()
    expect(other.get_by_role("heading", name="Job of the first")).to_be_visible()
    other.get_by_role("button", name="Key and limits").click()
    other.get_by_role("button", name=f"Forget ops@example.com · {second[:8]}").click()
    other.get_by_role("button", name=f"Forget ops@example.com · {first[:8]}").click()
    expect(other.get_by_label("Checks key")).to_be_visible()
    assert other.evaluate("localStorage.length + sessionStorage.length") == 0


def test_a_key_that_is_held_anew_stays_open_in_every_tab(api, server, dashboard):
    first, second = api.checks_key(), api.checks_key()
    api.check(first, "Job of the first")
    page = dashboard(second)
    add_key(page, first)
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_label("Remember this key on this device").check()
    page.reload()
    expect(page.get_by_role("heading", name="Job of the first")).to_be_visible()
    other = opened_again(page, server.url)
    page.evaluate("addEventListener('storage', ({ key }) => (window.heard = key))")
    for remember, mark in ((True, "with the tick"), (False, "without")):
        add_key(other, first, remember=remember)
        other.evaluate("(mark) => localStorage.setItem(mark, 'set')", mark)
        page.wait_for_function("(mark) => window.heard === mark", arg=mark)
        expect(page.get_by_role("heading", name="Job of the first")).to_be_visible()
    expect(opened_again(page, server.url).get_by_role("heading", name="Job of the first")).to_be_visible()


def test_a_remembered_key_is_kept_in_the_tab_alone_once_that_is_chosen(api, server, dashboard):
    page = dashboard(api.checks_key(), remember=True)
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_label("Remember this key on this device").uncheck()
    expect(opened_again(page, server.url).get_by_label("Checks key")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="New check")).to_be_visible()


def test_the_limits_of_a_key_and_their_use_are_shown(api, dashboard):
    key = api.checks_key()
    api.check(key)
    page = dashboard(key)
    page.get_by_role("button", name="Key and limits").click()
    account = page.get_by_role("dialog", name="Key and limits")
    expect(account).to_contain_text(re.compile("Checks.*1 of 100", re.DOTALL))
    expect(account).to_contain_text(re.compile("Test alerts.*0 of 30", re.DOTALL))
    expect(account).to_contain_text(re.compile("Tier.*free", re.DOTALL))
    expect(account).to_contain_text(f"ops@example.com · {key[:8]}")
    assert key not in page.content()
    account.get_by_role("button", name="Close").click()
    expect(account).to_be_hidden()


def test_a_key_is_replaced_and_the_one_before_is_dead(api, dashboard):
    key = api.checks_key()
    api.check(key)
    page = dashboard(key, remember=True)
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_role("button", name="Replace the key").click()
    page.get_by_role("dialog", name="Replace this key?").get_by_role("button", name="Replace the key").click()
    expect(page.get_by_role("heading", name="Save the new key now")).to_be_focused()
    replaced = page.locator("#new-key").inner_text()
    assert replaced != key
    expect(page.locator("#new-secret")).to_be_hidden()
    page.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_role("heading", name="Nightly backup")).to_be_visible()
    assert len(api("GET", "checks", key=replaced)["checks"]) == 1
    page.reload()
    expect(page.get_by_role("heading", name="Nightly backup")).to_be_visible()


def click_and_hold(page: Page, path: str, button: Locator) -> Route:
    """Clicks, and holds the request that follows back before the server."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(f"**/{path}", hold, times=1)
    button.click()
    wait_until(lambda: held or page.wait_for_timeout(10))
    return held[0]


def ask_for(page: Page, path: str, button: str) -> Route:
    """Asks for what is issued at a path, with the request held back."""
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_role("button", name=button).click()
    return click_and_hold(page, path, page.locator("#confirm").get_by_role("button", name=button))


def test_nothing_of_a_key_stays_open_or_comes_back_once_it_is_signed_out_in_another_tab(api, server, dashboard):
    key = api.checks_key()
    check = api.check(key)
    page = dashboard(key, remember=True)
    shown = page.get_by_role("dialog").or_(page.get_by_role("heading", name="Nightly backup"))

    def rename(name: str) -> Locator:
        edit(page, "Nightly backup")
        page.get_by_label("Name", exact=True).fill(name)
        api("PATCH", f"checks/{check['id']}", {"grace_seconds": len(name)}, key)
        return page.get_by_role("button", name="Save", exact=True)

    def sign_out_elsewhere() -> None:
        opened_again(page, server.url).get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Checks key")).to_be_focused()
        expect(shown).to_have_count(0)

    request = click_and_hold(page, f"checks/{check['id']}", rename("Renamed"))
    sign_out_elsewhere()
    request.continue_()
    expect(page.locator("#editor-save")).to_be_enabled()
    expect(shown).to_have_count(0)
    sign_in(page, key, remember=True)
    rename("Renamed again").click()
    expect(page.get_by_role("dialog", name="This check was changed in another place")).to_be_visible()
    sign_out_elsewhere()
    expect(page.locator("#checks li")).to_have_count(0)


def test_what_is_issued_is_shown_also_when_its_question_was_left_or_the_key_signed_out_meanwhile(
    api, server, dashboard
):
    page = dashboard(api.checks_key(), remember=True)
    request = ask_for(page, "key/webhook-secret", "Make a new secret")
    page.keyboard.press("Escape")
    expect(page.locator("#confirm")).to_be_hidden()
    request.continue_()
    expect(page.locator("#new-secret")).to_have_text(re.compile("whsec_"))
    other = opened_again(page, server.url)
    page.get_by_role("button", name="I have saved it").click()
    request = ask_for(page, "key/rotate", "Replace the key")
    other.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Checks key")).to_be_visible()
    request.continue_()
    expect(page.get_by_role("heading", name="Save the new key now")).to_be_focused()
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    other.evaluate("localStorage.setItem('another', 'change')")
    replaced = page.locator("#new-key").inner_text()
    page.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()
    assert api("GET", "key", key=replaced)["email"] == "ops@example.com"


def test_a_new_webhook_secret_is_shown_once(api, dashboard):
    page = dashboard(api.checks_key())
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_role("button", name="Make a new secret").click()
    page.get_by_role("dialog", name="Make a new webhook secret?").get_by_role("button", name="Make a new").click()
    expect(page.locator("#new-secret")).to_have_text(re.compile("whsec_"))
    expect(page.locator("#new-key")).to_be_hidden()
    page.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()
    assert "whsec_" not in page.content()


def test_a_password_manager_finds_the_fields_that_it_fills_and_saves(server, open_tab):
    page = open_tab(f"{server.url}/dashboard")
    expect(page.get_by_label("Checks key")).to_have_attribute("autocomplete", "current-password")
    assert page.locator("#sign-in input[autocomplete=username]").count() == 1
    page.get_by_label("E-mail address").fill("ops@example.com")
    page.get_by_role("button", name="Get a checks key").click()
    expect(page.locator("#issued-form input[autocomplete=username]")).to_have_value("ops@example.com")
    expect(page.locator("#issued-form input[autocomplete=new-password]")).to_have_value(re.compile("sk_"))


def test_a_wrong_key_is_told_apart_from_a_cards_key(api, server, open_tab):
    page = open_tab(f"{server.url}/dashboard")
    for key, words in (("sk_nonsense", "key"), (api("POST", "register")["key"], "That is a cards key.")):
        page.get_by_label("Checks key").fill(key)
        page.get_by_role("button", name="Open the checks").click()
        expect(page.get_by_label("Checks key")).to_have_accessible_description(re.compile(words))


def test_a_revoked_key_is_told_and_what_was_seen_stays_in_grey(api, dashboard):
    key = api.checks_key()
    api.check(key, webhook_url="https://chat.example.com/hook")
    page = dashboard(key)
    expect(page.get_by_text("Refreshes itself")).to_be_visible()
    api("DELETE", "key", key=key)
    refresh(page)
    expect(page.get_by_role("alert").filter(has_text="Sign out, and open another key.")).to_be_visible()
    expect(page.locator("#board")).to_have_attribute("data-dead", "")
    details = open_row(page, "Nightly backup")
    for button in ("Edit", "Delete", "Send a test alert"):
        expect(details.get_by_role("button", name=button)).to_be_disabled()
    expect(page.get_by_role("button", name="New check")).to_be_disabled()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, api.checks_key())
    expect(page.get_by_role("button", name="New check")).to_be_enabled()
