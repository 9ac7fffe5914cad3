"""All pages for everybody: axe finds nothing, the keyboard reaches everything, and nothing is wider than a phone."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.board import edit, open_row, sign_in
from tests.documentation import DOCS

PHONE = {"width": 390, "height": 844}
TABLET = {"width": 768, "height": 1024}
DESKTOP = {"width": 1280, "height": 900}
WIDE = {"width": 1440, "height": 900}


def check(page: Page) -> None:
    """Axe finds nothing, and no part of the page hangs out of it."""
    result = Axe().run(page)
    assert result.violations_count == 0, result.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_the_builder_in_all_its_states(server, open_tab, size, scheme):
    page = open_tab(server.url, viewport=size, color_scheme=scheme, reduced_motion="reduce")
    expect(page.get_by_role("button", name="Get a cards key")).to_be_visible()
    check(page)
    page.get_by_role("button", name="Get a cards key").click()
    expect(page.get_by_text("A card needs a title")).to_be_visible()
    check(page)
    page.get_by_label("Description").fill("Without room")
    page.get_by_label("Title").fill("A title that fills the card " * 12)
    expect(page.get_by_text("The title leaves no room")).to_be_visible()
    check(page)
    page.get_by_label("Title").fill("Private: \u0378")
    expect(page.get_by_text("in none of the fonts")).to_be_visible()
    page.get_by_role("radio", name="WordPress").check()
    check(page)
    page.get_by_label("Cards key").fill("sk_nonsense")
    expect(page.get_by_text("There is nothing to copy with this key")).to_be_visible()
    check(page)


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "dark"), (PHONE, "light")])
def test_the_dashboard_in_all_its_states(server, api, open_tab, size, scheme):
    key = api.checks_key()
    checks = [api.check(key, f"A check with a rather long name, number {number}") for number in range(5)]
    api.check(key, "Late", period_seconds=1, grace_seconds=0, webhook_url="http://127.0.0.1:9/hook")
    page = open_tab(f"{server.url}/dashboard", viewport=size, color_scheme=scheme, reduced_motion="reduce")
    check(page)
    sign_in(page, key)
    expect(page).to_have_title("(1) Checks · cardbeat")
    check(page)
    late = open_row(page, "Late")
    expect(late.get_by_role("row").nth(1)).to_be_visible()
    expect(late.get_by_text("Alerts of this check don't arrive.")).to_be_visible()
    check(page)
    late.get_by_role("button", name="Delete").click()
    check(page)
    page.keyboard.press("Escape")
    edit(page, checks[0]["name"])
    page.get_by_text("Which URL do I need?").click()
    check(page)
    api("PATCH", f"checks/{checks[0]['id']}", {"name": "Renamed elsewhere"}, key)
    page.get_by_label("Name", exact=True).fill("Renamed here")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog", name="This check was changed in another place")).to_be_visible()
    check(page)


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(size, scheme, id=f"{scheme}-{size['width']}")
        # A scheme changes colours alone.
        for size, scheme in [(PHONE, "light"), (TABLET, "light"), (WIDE, "light"), (PHONE, "dark")]
    ],
)
def test_the_documentation(server, open_tab, size, scheme):
    page = open_tab(f"{server.url}/docs", viewport=size, color_scheme=scheme)
    check(page)
    for name in DOCS:
        page.goto(f"{server.url}/docs/{name}")
        check(page)


def test_the_documentation_is_read_by_keyboard_alone_and_without_scripts(server, open_tab):
    page = open_tab(f"{server.url}/docs", java_script_enabled=False)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the text")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="A tour on one machine").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="A tour on one machine", level=1)).to_be_visible()
    expect(page.get_by_text("until grep check.overdue")).to_be_visible()


def test_what_is_shown_of_keys(server, api, open_tab):
    key = api.checks_key()
    api.check(key)
    page = open_tab(f"{server.url}/dashboard", viewport=PHONE, color_scheme="dark", reduced_motion="reduce")
    sign_in(page, key, remember=True)
    page.get_by_role("button", name="Key and limits").click()
    expect(page.get_by_text("1 of 100")).to_be_visible()
    check(page)
    page.get_by_role("button", name="Add another key").click()
    check(page)
    page.get_by_role("button", name="Back to the checks").click()
    page.get_by_role("button", name="Key and limits").click()
    page.get_by_role("button", name="Replace the key").click()
    page.get_by_role("dialog", name="Replace this key?").get_by_role("button", name="Replace the key").click()
    expect(page.get_by_role("button", name="I have saved it")).to_be_visible()
    check(page)
    api("DELETE", "key", key=page.locator("#new-key").inner_text())
    page.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_role("alert").filter(has_text="key")).to_be_visible()
    check(page)


def test_a_check_is_made_by_keyboard_alone(server, api, open_tab):
    page = open_tab(f"{server.url}/dashboard")
    expect(page.get_by_label("Checks key")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the checks")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type(api.checks_key())
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No checks yet")).to_be_visible()
    page.get_by_role("button", name="Create your first check").press("Enter")
    page.keyboard.type("By keyboard")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="By keyboard")).to_be_visible()
    expect(page.get_by_role("button", name="Copy")).to_be_focused()
