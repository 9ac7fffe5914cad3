"""The card builder: choose a look, type, see the card and its crops, copy."""

import re
import urllib.request

import linkpreview
import pytest
from playwright.sync_api import expect

from tests.artifact.browser.board import Api, press, shows

TEXTS = ("Title", "Description", "Author", "Tag", "Domain")
HOSTILE = """Tom & "Jerry's" + 100 % #1 東京 <img src=x onerror="window.hacked = 1"> </title>"""
GET_KEY = "Get a key and draw it"


@pytest.fixture
def page(server, open_tab):
    return open_tab(server.url)


def get_key(page, title="A title"):
    """Types a title, gets a cards key with one click, and waits for the card."""
    page.get_by_label("Title").fill(title)
    press(page, GET_KEY)
    expect_drawn(page)


def expect_drawn(page):
    expect(page.locator("#stage")).to_have_attribute(
        "data-state", "shown"
    )
    expect(
        page.get_by_role("status").filter(has_text="PNG, 1200 × 630")
    ).to_be_visible()


def type_title(page, title):
    """Fills the title in and waits for its card."""
    with page.expect_response(lambda response: "/og?" in response.url):
        page.get_by_label("Title").fill(title)
    expect_drawn(page)


def copied(page, what="URL only"):
    page.get_by_role("radio", name=what).check()
    press(page, "Copy")
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    return page.evaluate("navigator.clipboard.readText()")


def cards_asked(page):
    """The URLs of cards that the page asks for from now on."""
    asked = []
    page.on(
        "request",
        lambda request: (
            asked.append(request.url) if "/og?" in request.url else None
        ),
    )
    return asked


def pictures(page):
    """What the card and its three crops show."""
    return set(
        page.locator("[data-shown]").evaluate_all(
            "them => them.map((it) => it.src)"
        )
    )


def test_it_shows_a_look_before_it_asks_and_then_the_own_card_and_its_crops(
    server, page
):
    asked = cards_asked(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    for name in ("Article light", "Blog dark"):
        page.get_by_role("radio", name=name).check()
        assert pictures(page) == {
            f"{server.url}/pages/looks/{name.replace(' ', '-').lower()}.png"
        }
    shows(page, "An example. Type a title to see your own card.")
    expect(page.get_by_role("button", name=GET_KEY)).to_be_hidden()
    assert asked == []
    get_key(page, "Alone")
    assert re.fullmatch(
        r".*/og\?title=Alone&template=blog&key=sk_[\w-]+", copied(page)
    )
    (picture,) = pictures(page)
    assert picture.startswith("blob:")
    assert (
        page.locator(".crops").evaluate(
            "it => it.getBoundingClientRect().bottom"
        )
        <= 900
    )
    page.get_by_label("Title").fill("")
    shows(page, "An example.")
    expect(page.get_by_role("button", name="Copy")).to_be_hidden()


def test_a_look_is_chosen_by_keyboard(page):
    page.get_by_role("radio", name="Default dark").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Blog dark")).to_be_checked()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Title")).to_be_focused()


def test_an_open_graph_reader_finds_the_card_in_the_copied_head(page):
    get_key(page)
    page.get_by_role("radio", name="Blog dark").check()
    page.get_by_label("Description").fill("What it says")
    page.get_by_label("Domain").fill("blog.example.com")
    type_title(page, HOSTILE)
    html = f"<!doctype html><html>{copied(page, 'Whole head')}<body></body></html>"
    found = linkpreview.link_preview(
        "https://blog.example.com/post", html
    )
    told = (found.title, found.description, found.site_name)
    assert told == (HOSTILE, "What it says", "blog.example.com")
    with urllib.request.urlopen(
        found.absolute_image, timeout=10
    ) as image:
        assert image.headers["X-Cache"] == "HIT"
        assert image.read(8) == b"\x89PNG\r\n\x1a\n"
    assert page.evaluate("window.hacked") is None


def test_the_copied_lines_are_the_ones_that_networks_read(server, page):
    get_key(page, "Café & crème")
    url = copied(page)
    assert url.startswith(
        f"{server.url}/og?title=Caf%C3%A9%20%26%20cr%C3%A8me&"
    )
    lines = re.findall(
        r'<meta (?:property|name)="([^"]+)" content="([^"]+)">',
        copied(page, "Image lines"),
    )
    assert lines == [
        ("og:image", url.replace("&", "&amp;")),
        ("og:image:width", "1200"),
        ("og:image:height", "630"),
        ("og:image:alt", "Café &amp; crème"),
        ("twitter:card", "summary_large_image"),
        ("twitter:image:alt", "Café &amp; crème"),
    ]


TYPE = """(field, text) => {
  for (const letter of ["", ...text]) {
    field.value = letter && field.value + letter;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""


def test_a_card_is_drawn_on_pause_and_comes_back_with_its_key(page):
    get_key(page)
    asked = cards_asked(page)
    page.get_by_label("Title").evaluate(TYPE, "Typed letter by letter")
    expect_drawn(page)
    url = copied(page)
    assert asked == [url]
    assert "sk_" not in page.evaluate("location.href")
    page.reload()
    expect_drawn(page)
    assert copied(page) == url


def test_the_card_of_a_link_is_drawn_only_when_the_visitor_asks(page):
    get_key(page)
    asked = cards_asked(page)
    page.clock.install()
    page.evaluate(
        "location.href = '#title=From%20elsewhere&template=article&length=1&key=sk_foreign'"
    )
    shows(page, "The text came with a link.")
    page.clock.run_for(60_000)
    assert asked == []
    press(page, "Draw this card")
    expect_drawn(page)
    expect(page.get_by_label("Title")).to_be_focused()
    assert asked == [copied(page)]
    assert "/og?title=From%20elsewhere&template=article&key=" in asked[0]
    assert "sk_foreign" not in asked[0]


def test_a_recipe_holds_what_is_chosen_and_nothing_that_is_typed_or_an_example(
    server, page
):
    get_key(page, "Of one page")
    page.get_by_role("radio", name="Article dark").check()
    text = copied(page, "Hugo")
    for label in TEXTS:
        example = (
            page.get_by_label(label)
            .get_attribute("placeholder")
            .removeprefix("e.g. ")
        )
        assert example not in text
    shows(page, "Save it as layouts/partials/card.html, and put")
    assert (
        f'content="{server.url}/og?{{{{ $query }}}}&amp;template=article&amp;key=sk_'
        in text
    )
    assert "Of one page" not in text


def test_a_closed_registration_is_explained_and_a_given_key_works(
    start, open_tab
):
    open_server = start()
    key = Api(open_server)("POST", "register")["key"]
    open_server.kill()
    page = open_tab(start("--registration", "closed").url)
    page.get_by_label("Title").fill("A title")
    press(page, GET_KEY)
    expect(
        page.get_by_text("Registration is closed here")
    ).to_contain_text("Paste it into the field “Cards key”.")
    page.get_by_label("Cards key").fill("sk_nonsense")
    shows(page, "This card can’t be drawn")
    page.get_by_label("Cards key").fill(key)
    expect_drawn(page)


def test_a_card_that_must_wait_is_asked_for_again(page):
    get_key(page)
    page.clock.install()
    busy = {
        "status": 429,
        "headers": {"Retry-After": "40"},
        "json": {"error": "One too many."},
    }
    page.route("**/og?*", lambda route: route.fulfill(**busy))
    page.get_by_label("Title").fill("Another")
    page.clock.run_for(1000)
    shows(page, "One too many. Trying again in 40 s.")
    page.unroute("**/og?*")
    page.clock.run_for(40_000)
    expect_drawn(page)


def test_nothing_can_be_copied_with_a_key_that_the_server_refuses(
    api, page
):
    get_key(page)
    copy, key = (
        page.get_by_role("button", name="Copy"),
        page.get_by_label("Cards key"),
    )
    taken = key.input_value()
    for bad, sentence in (
        ("sk_nonsense", "does not know this key"),
        (api.checks_key(), "secret checks key."),
    ):
        key.fill(bad)
        expect(copy).to_be_disabled()
        expect(
            page.get_by_role("alert").filter(has_text=sentence)
        ).to_be_visible()
        # Another page of this server must not find a secret there.
        assert page.evaluate(
            "key => localStorage.getItem('cardbeat.cards_key') !== key",
            bad,
        )
    key.fill(taken)
    expect(copy).to_be_enabled()
    page.get_by_label("Title").fill("long " * 2000)
    expect(page.locator("#cover-text")).to_contain_text(
        "Its texts are too long together"
    )
    expect(copy).to_be_disabled()
