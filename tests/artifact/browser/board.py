"""The dashboard as a test drives it, and the server as a program calls it."""

import json

from playwright.sync_api import expect

from tests.kit.client import ask, checks_key, new_check


class Api:
    def __init__(self, server):
        self.server = server

    def __call__(self, method, path, body=None, key=None):
        answer = ask(self.server, method, f"/{path}", body, key)
        assert answer.status < 400, answer.body
        return json.loads(answer.body or b"{}")

    def checks_key(self):
        return checks_key(self.server)

    def check(self, key, name="Nightly backup", **fields):
        return new_check(self.server, key, name=name, **fields)

    def read(self, check, key):
        return self("GET", f"checks/{check['id']}", key=key)["check"]

    def ping(self, check, signal=""):
        self("GET", f"ping/{check['id']}{signal}")


def sign_in(page, key, *, remember=False):
    page.get_by_label("Checks key").fill(key)
    page.get_by_label("Remember on this device").set_checked(remember)
    page.get_by_role("button", name="Open the checks").click()
    expect(
        page.get_by_role("heading", name="Checks", exact=True)
    ).to_be_visible()


def press(place, name):
    place.get_by_role("button", name=name).click()


def shows(place, text):
    expect(place.get_by_text(text)).to_be_visible()


def name_field(page):
    return page.get_by_label("Name", exact=True)


def refresh(page):
    """What the page does by itself every few seconds, and when it is looked at again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def row(page, name):
    return (
        page.locator("#checks")
        .get_by_role("listitem")
        .filter(has=page.get_by_role("heading", name=name))
    )


def open_row(page, name):
    """The row of a check, with its details shown."""
    found = row(page, name)
    expect(found).to_be_visible()
    if found.locator("details").get_attribute("open") is None:
        found.locator("summary").click()
    return found


def edit(page, name):
    open_row(page, name).get_by_role("button", name="Edit").click()


def fill_check(page, name, *, every, late, unit, webhook=""):
    name_field(page).fill(name)
    page.get_by_label("Runs every").fill(str(every))
    page.get_by_label("Unit of the period").select_option(unit)
    page.get_by_label("May be late by").fill(str(late))
    page.get_by_label("Unit of the lateness").select_option(unit)
    page.get_by_label("Webhook").fill(webhook)
