"""The dashboard as a test drives it, and the server as a program calls it."""

import json
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.kit.client import Listening, ask, checks_key


class Api:
    def __init__(self, server: Listening) -> None:
        self.server = server

    def __call__(
        self, method: str, path: str, body: Any = None, key: str | None = None
    ) -> Any:
        answer = ask(self.server, method, f"/{path}", body, key)
        assert answer.status < 400, answer.body
        return json.loads(answer.body or b"{}")

    def checks_key(self) -> str:
        return checks_key(self.server)

    def check(
        self, key: str, name: str = "Nightly backup", **fields: Any
    ) -> Any:
        body = {
            "name": name,
            "period_seconds": 3600,
            "grace_seconds": 60,
            **fields,
        }
        return self("POST", "checks", body, key)["check"]


def sign_in(page: Page, key: str, *, remember: bool = False) -> None:
    page.get_by_label("Checks key").fill(key)
    page.get_by_label("Remember on this device").set_checked(remember)
    page.get_by_role("button", name="Open the checks").click()
    expect(
        page.get_by_role("heading", name="Checks", exact=True)
    ).to_be_visible()


def refresh(page: Page) -> None:
    """What the page does by itself every few seconds, and when it is looked at again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def row(page: Page, name: str) -> Locator:
    return (
        page.locator("#checks")
        .get_by_role("listitem")
        .filter(has=page.get_by_role("heading", name=name))
    )


def open_row(page: Page, name: str) -> Locator:
    """The row of a check, with its details shown."""
    found = row(page, name)
    expect(found).to_be_visible()
    if found.locator("details").get_attribute("open") is None:
        found.locator("summary").click()
    return found


def edit(page: Page, name: str) -> None:
    open_row(page, name).get_by_role("button", name="Edit").click()


def fill_check(
    page: Page,
    name: str,
    *,
    every: int,
    late: int,
    unit: str,
    webhook: str = "",
) -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Runs every").fill(str(every))
    page.get_by_label("Unit of the period").select_option(unit)
    page.get_by_label("May be late by").fill(str(late))
    page.get_by_label("Unit of the lateness").select_option(unit)
    page.get_by_label("Webhook").fill(webhook)
