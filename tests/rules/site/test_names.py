"""The places of cards, and the titles of pages without the site's name."""

import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardbeat.site.names import (
    card_names,
    problem_of,
    same_file,
    without_site_name,
)

PLACES = {
    "index.html": "index.png",
    "posts/hello/index.html": "posts/hello.png",
    "posts/bye.html": "posts/bye.png",
    "Über uns/INDEX.HTM": "Über uns.png",
    "a.b/c.d.html": "a.b/c.d.png",
    "a/index.html": "a.png",
    "a.html": "a-7aa267cfbf8e.png",
    "b/index.html": "b.png",
    "b.html": "b.html.png",
    "a.htm": "a.htm.png",
    "A.html": "A.html.png",
    "what?.html": "what-d2868ebf6c29.png",
    "\udcff.html": "-1548b429dde8.png",
}
"""Pages of one site, and their cards; those that can't have their page's name have a digest."""


def test_a_card_has_the_name_of_its_page_and_no_two_have_one():
    assert card_names(PLACES) == PLACES


def untold(titles):
    """The titles of pages that tell no language."""
    return {page: (title, "") for page, title in titles.items()}


_PART = st.text(
    st.sampled_from(string.ascii_letters + "._-%?: \udc80é"),
    min_size=1,
    max_size=6,
)
_NAME = st.sampled_from(
    [
        "index.html",
        "Index.htm",
        "a.html",
        "a.htm",
        "A.HTML",
        "index.html.html",
    ]
)
_PAGE = st.builds(
    lambda parts, name: "/".join([*parts, name]),
    st.lists(_PART, max_size=2),
    _NAME,
)


@settings(deadline=None)
@given(st.sets(_PAGE))
def test_all_pages_have_different_cards_that_every_system_can_have(pages):
    names = card_names(pages)
    assert names.keys() == pages
    assert len(set(map(same_file, names.values()))) == len(pages)
    assert not [name for name in names.values() if problem_of(name)]
    assert names == card_names(sorted(pages, reverse=True))


WRONG = {
    "inside": ["/a.png", "../a.png", "a/../../b.png"],
    "end with .png": ["a", ".", "", "a.jpg", ".cardbeat-x.png"],
    "character": [
        "C:/a.png",
        "\\a.png",
        "a?.png",
        "a\x00.png",
        "\ud800.png",
    ],
    "255 bytes": ["é" * 130 + ".png"],
}


@pytest.mark.parametrize("words", WRONG)
def test_a_place_outside_or_not_on_every_system_is_refused(words):
    assert [
        output
        for output in WRONG[words]
        if words not in problem_of(output)
    ] == []


def test_other_places_are_allowed():
    for output in (
        "a.png",
        "a/b.PNG",
        "東京/é.png",
        ".hidden/a b.png",
        "東" * 83 + "/a.png",
    ):
        assert problem_of(output) == ""


@pytest.mark.parametrize(
    ("titles", "without"),
    [
        ("A | Site, B | Site", "A, B"),
        ("A – Blog – Site, B – Blog – Site", "A, B"),
        ("A | x | Site, B | y | Site", "A | x, B | y"),
        ("Site - A, Site - B", "A, B"),
        ("Site: A, Site: B", "A, B"),
        ("Site: A: x, Site: B: y", "A: x, B: y"),
        ("A | Site, B | Site, ", "A, B, "),
        ("A | Site, B", "A | Site, B"),
        ("A | Site", "A | Site"),
        (
            "A | Site, B | Site, C | Site, D | Site, None",
            "A, B, C, D, None",
        ),
        (
            "A | Site, B | Site, C | Site, None",
            "A | Site, B | Site, C | Site, None",
        ),
        ("A: more | Site, B: more | Site", "A: more, B: more"),
        ("A-Site, B-Site", "A-Site, B-Site"),
    ],
)
def test_what_nearly_all_titles_share_is_the_name_of_the_site(
    titles, without
):
    pages = {
        f"{number}.html": title
        for number, title in enumerate(titles.split(", "))
    }
    assert list(
        without_site_name(untold(pages)).values()
    ) == without.split(", ")


TITLES = {
    "index.html": ("Site | All about it",) * 2,
    "404.html": ("Not found",) * 2,
    "de/index.html": ("Meine Seite, ganz neu",) * 2,
    "de/a.html": ("A | Meine Seite", "A"),
    "de/b/index.html": ("B | Meine Seite", "B"),
    "en/a.html": ("A | My site", "A"),
    "en/b/index.html": ("B | My site", "B"),
    "c.html": ("C | My site", "C"),
    "c.fr.html": ("C | Mon site", "C"),
    "d.fr.html": ("D | Mon site", "D"),
}


def test_a_folder_or_language_has_a_name_of_its_own_and_front_pages_another_title():
    pages = {}
    for page, (title, _) in TITLES.items():
        pages[page] = (title, "fr" if ".fr" in page else "")
    shown = {page: without for page, (_, without) in TITLES.items()}
    assert without_site_name(pages) == shown


@pytest.mark.parametrize("part", ["\u00a0", "a - ", " :", ": ", " - "])
def test_a_title_without_an_end_takes_no_longer_than_its_length(part):
    """300,000 no-break spaces took hours, and two titles of 200,000 times `a - ` 24 s."""
    titles = {
        f"{number}.html": f"{number}{part * 20_000}{number % 2}x{number}"
        for number in range(50)
    }
    began = time.process_time()
    assert len(without_site_name(untold(titles))) == 50
    assert time.process_time() - began < 2
