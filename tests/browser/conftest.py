"""A real browser, Debian's Chromium, on the built artifact."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from tests import interfaces
from tests.artifact import Running, starter
from tests.browser.api import Api

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

expect.set_options(timeout=15_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("These tests drive Chromium, and there is none: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


def is_failure(request: Request) -> bool:
    """A file of ours that did not come; one that a page no longer waited for when it was left is none."""
    return "/pages/" in request.url and request.failure != "net::ERR_ABORTED"


@pytest.fixture
def open_tab(browser) -> Iterator:
    """Opens URLs, each in a browser profile of its own. No page may log an error or fail to load a file of its own."""
    contexts = []
    problems = []

    def watch(page: Page) -> None:
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: problems.append(message.text) if is_problem(message) else None,
        )
        page.on(
            "requestfailed",
            lambda request: problems.append(request.url) if is_failure(request) else None,
        )

    def open_one(url: str, **options) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        options.setdefault("permissions", ["clipboard-read", "clipboard-write"])
        context = browser.new_context(**options)
        context.set_default_timeout(15_000)
        contexts.append(context)
        context.on("page", watch)
        page = context.new_page()
        page.goto(url)
        return page

    with interfaces.they_stay():
        yield open_one
        for context in contexts:
            context.close()
    assert problems == []


def is_problem(message) -> bool:
    """Chromium logs every answer from 400 on by itself; a refusal that the page explains is no defect of the page."""
    refused = (
        message.text.startswith("Failed to load resource")
        and "/pages/" not in message.location["url"]
    )
    return message.type in ("error", "warning") and not refused


@pytest.fixture(scope="module")
def server(python, pyz, tmp_path_factory) -> Iterator[Running]:
    """One server for all tests of a module: each has its own keys."""
    with starter(python, pyz, tmp_path_factory.mktemp("server")) as start_one:
        yield start_one(
            "--sweep-seconds", "1", "--allow-private-webhooks", "--register-per-minute", "1000"
        )


@pytest.fixture
def api(server) -> Api:
    return Api(server)
