import contextlib
import re
import urllib.request

import linkpreview
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.api import Api

TEXTS = ("Title", "Description", "Author", "Tag", "Domain")
HOSTILE = """Tom & "Jerry's" + 100 % #1 東京 <img src=x onerror="window.hacked = 1"> </title>"""


def get_key(page: Page) -> None:
    """Gets a cards key, and draws the card of the title that is there, or of one."""
    if not page.get_by_label("Title").input_value():
        page.get_by_label("Title").fill("A title")
    page.get_by_role("button", name="Get a cards key").click()
    expect_drawn(page)


def expect_drawn(page: Page) -> None:
    expect(page.locator("#stage")).to_have_attribute("data-state", "shown")
    expect(page.get_by_role("status").filter(has_text="PNG, 1200 × 630")).to_have_text(re.compile(r"[\d.]+ KB"))


def type_title(page: Page, title: str) -> None:
    """Fills the title in and waits for its card."""
    with page.expect_response(lambda response: "/og?" in response.url):
        page.get_by_label("Title").fill(title)
    expect_drawn(page)


def copied(page: Page, what: str) -> str:
    page.get_by_role("radio", name=what).check()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    return page.evaluate("navigator.clipboard.readText()")


def test_an_open_graph_reader_finds_the_card_in_the_copied_head(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    page.get_by_role("radio", name="Blog").check()
    page.get_by_label("Description").fill("What it says")
    page.get_by_label("Domain").fill("blog.example.com")
    type_title(page, HOSTILE)
    html = f"<!doctype html><html>{copied(page, 'Whole head')}<body></body></html>"
    found = linkpreview.link_preview("https://blog.example.com/post", html)
    assert (found.title, found.description, found.site_name) == (HOSTILE, "What it says", "blog.example.com")
    with urllib.request.urlopen(found.absolute_image, timeout=10) as image:
        assert image.headers["X-Cache"] == "HIT"
        assert image.read(8) == b"\x89PNG\r\n\x1a\n"
    assert page.evaluate("window.hacked") is None


def test_the_copied_lines_are_the_ones_that_networks_read(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    type_title(page, "Café & crème")
    url = copied(page, "URL only")
    lines = re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]+)">', copied(page, "Image lines"))
    assert lines == [
        ("og:image", url.replace("&", "&amp;")),
        ("og:image:width", "1200"),
        ("og:image:height", "630"),
        ("og:image:alt", "Café &amp; crème"),
        ("twitter:card", "summary_large_image"),
        ("twitter:image:alt", "Café &amp; crème"),
    ]
    assert url.startswith(f"{server.url}/og?title=Caf%C3%A9%20%26%20cr%C3%A8me&")


def test_a_card_is_drawn_on_pause_and_its_address_is_the_copied_one(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/og?" in request.url else None)
    page.get_by_label("Title").fill("")
    page.get_by_label("Title").press_sequentially("Typed letter by letter", delay=20)
    expect(page.locator("#stage")).to_have_attribute("data-state", "shown")
    assert asked == [copied(page, "URL only")]


def test_the_page_remembers_the_card_and_the_browser_the_key(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    page.get_by_role("radio", name="Light").check()
    type_title(page, "Remembered")
    url = copied(page, "URL only")
    assert "sk_" not in page.evaluate("location.href")
    page.reload()
    expect_drawn(page)
    assert copied(page, "URL only") == url


def test_the_card_of_a_link_is_drawn_only_when_the_visitor_asks(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/og?" in request.url else None)
    page.clock.install()
    for way in ("location.href = '#title=From%20elsewhere&key=sk_foreign'", "location.reload()"):
        with page.expect_event("load") if "reload" in way else contextlib.nullcontext():
            page.evaluate(way)
        expect(page.get_by_label("Title")).to_have_value("From elsewhere")
        expect(page.get_by_text("The text came with a link.")).to_be_visible()
        page.clock.run_for(60_000)
        assert asked == []
    page.get_by_role("button", name="Draw this card").click()
    expect_drawn(page)
    expect(page.get_by_label("Title")).to_be_focused()
    assert asked == [copied(page, "URL only")]
    assert "sk_foreign" not in asked[0]


def test_typing_draws_the_card_of_a_link_too(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    page.get_by_label("Title").fill("Typed a moment before")
    page.evaluate("location.hash = 'title=From%20elsewhere'")
    expect(page.get_by_role("button", name="Draw this card")).to_be_visible()
    with page.expect_request("**/og?*") as asked:
        page.get_by_label("Description").fill("Now mine")
    assert "/og?title=From%20elsewhere&description=Now%20mine" in asked.value.url
    expect_drawn(page)


def test_a_link_looked_at_without_a_key_is_not_drawn_once_there_is_one(server, open_tab):
    page = open_tab(f"{server.url}/#title=From%20elsewhere")
    expect(page.get_by_role("button", name="Get a cards key")).to_be_visible()
    page.evaluate("localStorage.setItem('cardbeat.cards_key', 'sk_of_another_tab')")
    page.reload()
    expect(page.get_by_role("button", name="Draw this card")).to_be_visible()
    expect(page.get_by_role("button", name="Get a cards key")).to_be_hidden()


def test_a_bookmarked_card_comes_back_whole(server, open_tab):
    page = open_tab(f"{server.url}/#title=From%20a%20bookmark&template=article&length=1&key=sk_foreign")
    get_key(page)
    assert "/og?title=From%20a%20bookmark&template=article&key=" in copied(page, "URL only")
    page.evaluate("location.hash = 'title=Another'")
    expect(page.get_by_label("Title")).to_have_value("Another")


def test_a_card_needs_a_title_and_then_no_more(server, open_tab):
    page = open_tab(server.url)
    page.get_by_role("button", name="Get a cards key").click()
    expect(page.get_by_text("A card needs a title")).to_be_visible()
    expect(page.get_by_label("Title")).to_be_focused()
    expect(page.get_by_role("button", name="Copy")).to_be_hidden()
    type_title(page, "Alone")
    assert re.fullmatch(r".*/og\?title=Alone&key=sk_[\w-]+", copied(page, "URL only"))


def test_characters_that_no_font_has_are_told(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    type_title(page, "Private: \u0378")
    expect(page.get_by_text("One character of this card is in none of the fonts")).to_be_visible()
    type_title(page, "Public")
    expect(page.get_by_text("in none of the fonts")).to_be_hidden()


def test_nothing_of_the_examples_is_copied(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    examples = [page.get_by_label(label).get_attribute("placeholder").removeprefix("e.g. ") for label in TEXTS]
    for what in page.locator("input[name=form]").evaluate_all("them => them.map(it => it.parentNode.textContent)"):
        text = copied(page, what)
        assert len(text) > 50
        assert [example for example in examples if example in text] == []


def test_fields_of_text_show_right_to_left_scripts_from_the_right(server, open_tab):
    page = open_tab(server.url)
    for label in TEXTS:
        page.get_by_label(label).fill("سلام")
        assert page.get_by_label(label).evaluate("it => getComputedStyle(it).direction") == "rtl"


def test_a_description_that_the_title_leaves_no_room_for_is_told(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    told = page.get_by_text("The title leaves no room for the description")
    page.get_by_label("Description").fill("Not on the card")
    type_title(page, "A title that fills the whole card " * 12)
    expect(told).to_be_visible()
    type_title(page, "Short")
    expect(told).to_be_hidden()


def test_a_closed_registration_is_explained_and_a_given_key_works(start, open_tab):
    open_server = start()
    key = Api(open_server.url)("POST", "register")["key"]
    open_server.process.kill()
    open_server.process.wait(15)
    page = open_tab(start("--registration", "closed").url)
    page.get_by_label("Title").fill("A title")
    page.get_by_role("button", name="Get a cards key").click()
    expect(page.get_by_text("Registration is closed here")).to_contain_text("Paste it into the field “Cards key”.")
    page.get_by_label("Cards key").fill("sk_nonsense")
    expect(page.get_by_text("This card can’t be drawn")).to_be_visible()
    page.get_by_label("Cards key").fill(key)
    expect_drawn(page)


def test_a_used_up_minute_is_explained_and_waited_for(start, open_tab, tmp_path):
    (tmp_path / "tiers.toml").write_text("[free]\nrenders_per_minute = 1\n")
    page = open_tab(start("--tiers", "tiers.toml").url)
    get_key(page)
    page.clock.install()
    page.get_by_label("Title").fill("One too many")
    page.clock.run_for(1000)
    expect(page.get_by_text("Not drawn yet")).to_be_visible()
    expect(page.locator("#cover-text")).to_have_text(
        re.compile(r"may draw 1 new cards? a minute.* Trying again in \d+ s")
    )
    with page.expect_response(lambda response: "/og?" in response.url):
        page.clock.run_for(61_000)


def test_a_lost_server_is_told_and_asked_again(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    page.clock.install()
    page.route("**/og?*", lambda route: route.abort())
    page.get_by_label("Title").fill("Lost")
    page.clock.run_for(1000)
    expect(page.get_by_text("The server does not answer. Trying again in 5 s.")).to_be_visible()
    page.unroute("**/og?*")
    page.clock.run_for(5000)
    expect_drawn(page)


def test_both_pages_work_behind_a_path_prefix(server, open_tab):
    def proxy(route: Route) -> None:
        route.fulfill(response=route.fetch(url=route.request.url.replace("/tools/cards/", "/")))

    page = open_tab(server.url)
    page.context.route("**/tools/cards/**", proxy)
    page.goto(f"{server.url}/tools/cards/")
    get_key(page)
    assert copied(page, "URL only").startswith(f"{server.url}/tools/cards/og?title=")
    page.get_by_role("link", name="Checks").click()
    expect(page.get_by_role("heading", name="Know when a job goes silent")).to_be_visible()
    assert page.url == f"{server.url}/tools/cards/dashboard"
    page.get_by_role("link", name="Cards", exact=True).click()
    expect_drawn(page)
    expect(page.get_by_label("Title")).to_have_value("A title")


def test_copying_works_without_the_clipboard_interface(server, open_tab):
    page = open_tab("about:blank")
    page.context.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto(server.url)
    get_key(page)
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    page.get_by_label("Description").fill("")
    page.get_by_label("Description").press("Control+V")
    assert page.get_by_label("Description").input_value().startswith('<meta property="og:image" content=')


def test_the_recipe_of_a_program_is_shown_and_copied_with_what_was_typed(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    page.get_by_role("radio", name="Article").check()
    page.get_by_label("Author").fill("Ada & Co.")
    page.get_by_label("Tag").fill("Of one page")
    text = copied(page, "Hugo")
    expect(page.get_by_text("Save it as layouts/partials/card.html, and put")).to_be_visible()
    assert f'content="{server.url}/og?{{{{ $query }}}}&amp;template=article&amp;key=sk_' in text
    assert "Ada" not in text
    assert "Of one page" not in text
    expect(page.get_by_text("Each page’s card has its own texts, not those typed here.")).to_be_visible()
    page.get_by_role("radio", name="Hugo").press("ArrowRight")
    expect(page.get_by_role("radio", name="Eleventy")).to_be_checked()
    expect(page.get_by_label("Text to copy")).to_contain_text("{% set cardTitle = title or cardSite.title -%}")


def test_nothing_can_be_copied_with_a_key_that_the_server_refuses(server, api, open_tab):
    page = open_tab(server.url)
    get_key(page)
    copy, key = page.get_by_role("button", name="Copy"), page.get_by_label("Cards key")
    taken = key.input_value()
    for bad, sentence in (("sk_nonsense", "not known here"), (api.checks_key(), "secret checks key. Click Get a")):
        key.fill(bad)
        expect(copy).to_be_disabled()
        expect(key).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_role("alert").filter(has_text=sentence)).to_be_visible()
        expect(page.get_by_text("There is nothing to copy with this key")).to_be_visible()
    key.fill(taken)
    expect(copy).to_be_enabled()
    expect(key).to_have_attribute("aria-invalid", "false")
    page.get_by_label("Title").fill("Another")
    expect(copy).to_be_enabled()


def test_nothing_can_be_copied_of_a_card_that_the_server_refuses(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    copy, title = page.get_by_role("button", name="Copy"), page.get_by_label("Title")
    for bad, reason in (("long " * 2000, "Its texts are too long together"), ("\u2800", "no visible character")):
        title.fill(bad)
        expect(page.locator("#cover-text")).to_contain_text(reason)
        expect(page.get_by_role("button", name="Get a cards key")).to_be_hidden()
        for what in ("URL only", "Hugo"):
            page.get_by_role("radio", name=what).check()
            expect(copy).to_be_disabled()
            expect(page.get_by_text("the server does not draw this card")).to_be_visible()
        type_title(page, "Short")
        expect(copy).to_be_enabled()


def test_only_a_key_that_the_server_takes_is_kept_in_the_browser(server, api, open_tab):
    def kept() -> str | None:
        return page.evaluate("localStorage.getItem('cardbeat.cards_key')")

    page, key = open_tab(server.url), api.checks_key()
    page.get_by_label("Title").fill("A title")
    field, refused = page.get_by_label("Cards key"), page.locator("#key-error")
    field.fill(key)
    expect(refused).to_contain_text("checks key")
    assert kept() is None
    page.evaluate("key => localStorage.setItem('cardbeat.cards_key', key)", key)
    page.reload()
    expect(refused).to_contain_text("checks key")
    assert kept() is None
    taken = api("POST", "register")["key"]
    field.fill(taken)
    expect_drawn(page)
    assert kept() == taken
    field.fill("")
    expect(page.get_by_role("button", name="Get a cards key")).to_be_visible()
    assert kept() is None
    page.route("**/og?*", lambda route: route.abort())
    page.get_by_role("button", name="Get a cards key").click()
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    assert kept() == field.input_value() != ""


def test_a_key_is_no_longer_copied_once_the_server_has_revoked_it(server, open_tab):
    page = open_tab(server.url)
    get_key(page)
    refusal = {"status": 401, "json": {"error": "This key is gone.", "code": "unknown_key"}}
    page.route("**/og?*", lambda route: route.fulfill(**refusal))
    page.get_by_label("Title").fill("Another")
    expect(page.get_by_role("button", name="Copy")).to_be_disabled()
    expect(page.get_by_role("alert").filter(has_text="This key is gone.")).to_be_visible()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://localhost:8443", "localhost:8443: only this computer"),
        ("https://192.168.7.7", "192.168.7.7: only its own network"),
        ("https://cards.example.com", None),
    ],
)
def test_an_address_that_nobody_elsewhere_reaches_is_told(server, open_tab, address, told):
    def proxy(route: Route) -> None:
        route.fulfill(response=route.fetch(url=route.request.url.replace(address, server.url)))

    page = open_tab("about:blank")
    page.context.route(f"{address}/**", proxy)
    page.goto(f"{address}/")
    get_key(page)
    expect(page.get_by_label("Text to copy")).to_contain_text(f"{address}/og?")
    warning = page.get_by_text("Chats and networks can’t fetch a card from")
    if told:
        expect(warning).to_contain_text(f"{told} reaches that address.")
    else:
        expect(warning).to_be_hidden()
