"""A real browser, Debian's Chromium, on the built artifact."""

import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.artifact.browser.board import Api, sign_in
from tests.kit.artifact import starter

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

expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail(
            "These tests drive Chromium, and there is none: apt-get install chromium"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=ARGUMENTS
        )
        yield browser
        browser.close()


def is_failure(request):
    """A file of ours that did not come; one that a page no longer waited for when it was left is none."""
    return (
        "/pages/" in request.url and request.failure != "net::ERR_ABORTED"
    )


@pytest.fixture
def open_tab(browser):
    """Opens URLs, each in a browser profile of its own. No page may log an error or fail to load a file of its own."""
    contexts = []
    problems = []

    def note(problem, is_one=True):
        if is_one:
            problems.append(problem)

    def watch(page):
        page.on("pageerror", lambda error: note(str(error)))
        page.on(
            "console",
            lambda message: note(message.text, is_problem(message)),
        )
        page.on(
            "requestfailed",
            lambda request: note(request.url, is_failure(request)),
        )

    def open_one(url, **options):
        options.setdefault("viewport", {"width": 1280, "height": 900})
        options.setdefault(
            "permissions", ["clipboard-read", "clipboard-write"]
        )
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        context.on("page", watch)
        page = context.new_page()
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert problems == []


def is_problem(message):
    """Chromium logs every answer from 400 on by itself; a refusal that the page explains is no defect of the page."""
    if message.text.startswith("Failed to load resource"):
        return "/pages/" in message.location["url"]
    return message.type in ("error", "warning")


@pytest.fixture(scope="module")
def server(python, pyz, tmp_path_factory):
    """One server for all tests of a module: each has its own keys."""
    with starter(
        python, pyz, tmp_path_factory.mktemp("server")
    ) as start_one:
        yield start_one(
            "--sweep-seconds",
            "1",
            "--allow-private-webhooks",
            "--register-per-minute",
            "1000",
        )


@pytest.fixture(scope="module")
def run(browser, server):
    """Evaluates an expression with one of the scripts at hand as `m`, in a browser whose time zone is UTC."""
    page = browser.new_page(timezone_id="UTC")
    page.goto(server.url)
    yield lambda script, expression: page.evaluate(
        f"import('./pages/{script}').then((m) => {expression})"
    )
    page.close()


@pytest.fixture
def api(server):
    return Api(server)


@pytest.fixture
def key(api):
    return api.checks_key()


@pytest.fixture
def dashboard(server, open_tab):
    """Opens the dashboard with a key, at a link or without one."""

    def open_with(key, link="", *, remember=False, **options):
        page = open_tab(link or f"{server.url}/dashboard", **options)
        sign_in(page, key, remember=remember)
        return page

    return open_with
