"""Sites made with the documentation's recipes: each page names a card with its own title."""

import pytest

from tests.artifact.sites.programs import FROM_NPM, HOST, PROGRAMS, Texts
from tests.artifact.sites.recipes import (
    KEY,
    builder_recipes,
    documented_recipes,
    metas,
    texts_of,
)
from tests.kit.documentation import blocks

TITLE = """Tom & "Jerry's" + 100 % #1 <b> 東京 &amp; %26"""
PAGE = Texts(
    TITLE, '50 % & "more" + C# 大阪', "Zoë O'Hara & Sons", 'C# & "Rust"'
)
SITE = Texts('Söhne & Co. + "100 %" #東京', "All <of> it & more")
HOSTILE = """O'Hara \\ & "Söhne" {{ x }} {% y %} ${z} <?php ?> 東京"""
FIXED = {"template": "blog", "key": KEY}
WITHOUT_NAME_OF_SITE = ("Astro", "Next.js", "PHP")
WITHOUT_DOMAIN = ("Next.js", "PHP")
WITHOUT_TAG = ("Eleventy",)
"""Its tags are names of collections, such as `posts`."""


@pytest.fixture
def made(request, tmp_path):
    """Makes a site with one of the programs: the metas of its page and of its front page."""

    def make(program, recipe, page, site):
        if program in FROM_NPM:
            (tmp_path / "node_modules").symlink_to(
                request.getfixturevalue("node_modules")
            )
        found = [
            *map(metas, PROGRAMS[program](tmp_path, recipe, page, site))
        ]
        for names in found:
            names.pop("generator", None)  # Hugo's own
        return found

    return make


def drawn(program, texts):
    """What a card shows of a page, or of a site, made with this program."""
    domain = {} if program in WITHOUT_DOMAIN else {"domain": HOST}
    shown = {**texts.written(), **domain, **FIXED}
    return {
        name: text
        for name, text in shown.items()
        if not (name == "tag" and program in WITHOUT_TAG)
    }


def test_the_documentation_shows_what_the_builder_gives(tmp_path):
    recipes, lines = builder_recipes(
        tmp_path,
        {
            "title": "Designing reliable background jobs",
            "template": "blog",
        },
    )
    assert documented_recipes() == recipes
    assert list(recipes) == list(PROGRAMS)
    assert blocks("recipes", "html") == [f"{lines}\n"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_page_names_a_card_with_its_own_title(program, made):
    for texts, found in zip(
        (PAGE, SITE),
        made(program, documented_recipes()[program], PAGE, SITE),
        strict=True,
    ):
        url = found.pop("og:image")
        assert texts_of(url) == drawn(program, texts)
        assert found.pop("twitter:image", url) == url  # Next.js's own
        assert found == {
            "og:image:width": "1200",
            "og:image:height": "630",
            "og:image:alt": texts.title,
            "twitter:card": "summary_large_image",
            "twitter:image:alt": texts.title,
        }


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("site", [SITE, Texts(None, "Of the site")])
def test_a_page_without_a_title_gets_the_card_of_the_site_or_none(
    program, site, made
):
    page, front = made(
        program,
        documented_recipes()[program],
        Texts(None, "Of the page"),
        site,
    )
    assert site.title or front == {}
    if site.title is None or program in WITHOUT_NAME_OF_SITE:
        assert page == {}
    else:
        assert texts_of(page["og:image"]) == drawn(
            program, Texts(SITE.title, "Of the page")
        )
        assert page["og:image:alt"] == SITE.title


@pytest.mark.parametrize(
    "program",
    [program for program in PROGRAMS if program not in FROM_NPM],
)
def test_what_was_chosen_for_all_pages_comes_out_as_chosen(
    program, made, tmp_path
):
    (tmp_path / "builder").mkdir()
    recipes, _ = builder_recipes(
        tmp_path / "builder",
        {"title": "Any", "theme": "light"},
        key=HOSTILE,
    )
    page, _ = made(program, recipes[program], PAGE, SITE)
    expected = {
        name: text
        for name, text in drawn(program, PAGE).items()
        if name not in FIXED
    }
    assert texts_of(page["og:image"]) == {
        **expected,
        "theme": "light",
        "key": HOSTILE,
    }
