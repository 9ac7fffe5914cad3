"""All pages for everybody: axe finds nothing, the keyboard reaches everything, and nothing is wider than a phone."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.artifact.browser.board import (
    edit,
    open_row,
    press,
    shows,
    sign_in,
)
from tests.kit.documentation import DOCS

PHONE = {"width": 390, "height": 844}
TABLET = {"width": 768, "height": 1024}
WIDE = {"width": 1440, "height": 900}
LOOKS = [
    (WIDE, "light"),
    (TABLET, "light"),
    (PHONE, "dark"),
    (PHONE, "light"),
    (WIDE, "dark"),
]
"""A scheme changes colours alone."""


def check(page):
    """Axe finds nothing, and no part of the page hangs out of it."""
    result = Axe().run(page)
    assert result.violations_count == 0, result.generate_report()
    assert (
        page.evaluate("document.documentElement.scrollWidth")
        <= page.viewport_size["width"]
    )


@pytest.fixture(
    params=LOOKS, ids=lambda look: f"{look[1]}-{look[0]['width']}"
)
def open_look(request, server, open_tab):
    """Opens a page by its path in a window of that size and colour scheme."""
    size, scheme = request.param
    options = {
        "viewport": size,
        "color_scheme": scheme,
        "reduced_motion": "reduce",
    }
    return lambda path: open_tab(f"{server.url}{path}", **options)


def test_the_builder_in_all_its_states(open_look):
    page = open_look("/")
    shows(page, "An example.")
    check(page)
    page.get_by_label("Title").fill("Private: \u0378")
    expect(
        page.get_by_role("button", name="Get a key and draw it")
    ).to_be_visible()
    check(page)
    press(page, "Get a key and draw it")
    shows(page, "in none of the fonts")
    page.get_by_role("radio", name="WordPress").check()
    check(page)
    page.get_by_label("Cards key").fill("sk_nonsense")
    shows(page, "There is nothing to copy with this key")
    check(page)


def test_the_dashboard_in_all_its_states(api, open_look):
    key = api.checks_key()
    page = open_look("/dashboard")
    check(page)
    sign_in(page, key)
    check(page)
    checks = [
        api.check(
            key, f"A check with a rather long name, number {number}"
        )
        for number in range(5)
    ]
    api("PUT", f"checks/{checks[4]['id']}/snooze", {"seconds": 600}, key)
    api.check(
        key,
        "W" * 100,
        period_seconds=1,
        grace_seconds=0,
        webhook_url=f"http://127.0.0.1:9/{'x' * 500}",
    )
    page.reload()
    late = open_row(page, "W" * 100)
    shows(late, "Alerts of this check don't arrive.")
    check(page)
    press(late, "Delete")
    check(page)
    page.keyboard.press("Escape")
    edit(page, checks[0]["name"])
    page.get_by_text("Which URL do I need?").click()
    page.get_by_label("Runs every").fill("1.5")
    page.get_by_role("button", name="Save", exact=True).click()
    check(page)
    page.keyboard.press("Escape")
    open_account(page)


def open_account(page):
    press(page, "Key and limits")
    shows(page, "6 of 100")
    check(page)
    press(page, "Replace the key")
    press(page.locator("#confirm"), "Replace the key")
    expect(
        page.get_by_role("button", name="I have saved it")
    ).to_be_visible()
    check(page)


def test_the_documentation(open_look):
    page = open_look("/docs")
    check(page)
    for name in DOCS:
        page.goto(f"{page.url.partition('/docs')[0]}/docs/{name}")
        check(page)


def test_the_documentation_is_read_by_keyboard_alone_and_without_scripts(
    server, open_tab
):
    page = open_tab(f"{server.url}/docs", java_script_enabled=False)
    page.keyboard.press("Tab")
    expect(
        page.get_by_role("link", name="Skip to the text")
    ).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(
        page.get_by_role("link", name="A tour on one machine").first
    ).to_be_focused()
    page.keyboard.press("Enter")
    expect(
        page.get_by_role("heading", name="A tour on one machine", level=1)
    ).to_be_visible()
    shows(page, "until grep check.overdue")


def test_the_documentation_folds_its_contents_on_a_phone_and_copies_commands(
    server, open_tab
):
    for size, is_open in ((PHONE, False), (WIDE, True)):
        page = open_tab(f"{server.url}/docs/checks", viewport=size)
        expect(
            page.get_by_role("button", name="Copy").first
        ).to_be_visible()
        assert (
            page.locator(".sections details").evaluate("it => it.open")
            == is_open
        )
        page.get_by_role("button", name="Copy").first.click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert f"{server.url}/ping/ID" in page.evaluate(
            "navigator.clipboard.readText()"
        )


def test_a_check_is_made_by_keyboard_alone(server, api, open_tab):
    page = open_tab(f"{server.url}/dashboard")
    expect(page.get_by_label("Checks key")).to_be_visible()
    page.keyboard.press("Tab")
    expect(
        page.get_by_role("link", name="Skip to the checks")
    ).to_be_focused()
    page.get_by_label("Checks key").focus()
    page.keyboard.type(api.checks_key())
    page.keyboard.press("Enter")
    expect(
        page.get_by_role("heading", name="No checks yet")
    ).to_be_visible()
    page.get_by_role("button", name="Create your first check").press(
        "Enter"
    )
    page.keyboard.type("By keyboard")
    page.keyboard.press("Enter")
    expect(
        page.get_by_role("heading", name="By keyboard")
    ).to_be_visible()
    expect(row_copy(page)).to_be_focused()


def row_copy(page):
    return page.locator("#checks").get_by_role("button", name="Copy")
