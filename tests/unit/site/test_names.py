"""The places of cards, and the titles of pages without the site's name."""

import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardbeat.site.names import card_names, problem_of, same_file, without_site_name


@pytest.mark.parametrize(
    ("page", "card"),
    [
        ("index.html", "index.png"),
        ("404.html", "404.png"),
        ("posts/hello/index.html", "posts/hello.png"),
        ("posts/hello.html", "posts/hello.png"),
        ("Über uns/INDEX.HTM", "Über uns.png"),
        ("a.b/c.d.html", "a.b/c.d.png"),
    ],
)
def test_a_card_has_the_name_of_its_page(page: str, card: str) -> None:
    assert card_names([page]) == {page: card}


def test_no_two_pages_have_one_card() -> None:
    pages = ["a.html", "a/index.html", "a.htm", "A.html", "index.html", "index/index.html", "a.html/index.html"]
    names = card_names(pages)
    assert names["a/index.html"] == "a.png"
    assert names["a.html/index.html"] == "a.html.png"
    assert names["a.htm"] == "a.htm.png"
    assert len(set(map(same_file, names.values()))) == len(pages)


@pytest.mark.parametrize(
    "page",
    [
        "what?.html",
        "aux/index.html",
        "con.html",
        "a:b/c.html",
        "x ./a.html",
        "é" * 200 + ".html",
        "\udcff.html",
        "p.png/a.html",
    ],
)
def test_a_page_that_windows_cannot_have_gets_another_name(page: str) -> None:
    name = card_names([page])[page]
    assert problem_of(name) is None
    assert ".png/" not in name
    assert name == card_names([page, "other.html"])[page]


_PART = st.text(st.sampled_from(string.ascii_letters + "._-%?: \udc80é"), min_size=1, max_size=6)
_PAGE = st.builds(
    lambda folders, name: "/".join([*folders, name]),
    st.lists(_PART, max_size=2),
    st.sampled_from(["index.html", "Index.htm", "a.html", "a.htm", "A.HTML", "aux.html", "index.html.html"]),
)


@settings(deadline=None)
@given(st.sets(_PAGE))
def test_all_pages_have_different_cards_that_every_system_can_have(pages: set[str]) -> None:
    names = card_names(pages)
    assert names.keys() == pages
    assert len(set(map(same_file, names.values()))) == len(pages)
    assert not [name for name in names.values() if problem_of(name)]
    assert names == card_names(sorted(pages, reverse=True))


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("/a.png", "inside"),
        ("../a.png", "inside"),
        ("a/../../b.png", "inside"),
        ("C:/a.png", "inside"),
        ("\\a.png", "inside"),
        ("a", "end with .png"),
        (".", "end with .png"),
        ("a.jpg", "end with .png"),
        ("a\\b.png", "Windows"),
        ("a?.png", "Windows"),
        ("nul.png", "Windows"),
        ("LPT1/a.png", "Windows"),
        ("com1.tar.png", "Windows"),
        ("a./b.png", "Windows"),
        ("a /b.png", "Windows"),
        ("a\x00.png", "Windows"),
        ("\ud800.png", "Windows"),
        ("é" * 130 + ".png", "Windows"),
        ("東/" * 1024 + "a.png", "longer than 4096 bytes"),
    ],
)
def test_a_place_outside_or_not_on_every_system_is_refused(output: str, words: str) -> None:
    assert words in str(problem_of(output))


@pytest.mark.parametrize(
    "output", ["a.png", "a/b.PNG", "console.png", "com.png", "東京/é.png", ".hidden/a b.png", "東/" * 1022 + "a.png"]
)
def test_other_places_are_allowed(output: str) -> None:
    assert problem_of(output) is None


@pytest.mark.parametrize(
    ("titles", "without"),
    [
        (["A | Site", "B | Site"], ["A", "B"]),
        (["A – Blog – Site", "B – Blog – Site"], ["A", "B"]),
        (["A | x | Site", "B | y | Site"], ["A | x", "B | y"]),
        (["Site - A", "Site - B"], ["A", "B"]),
        (["Site: A", "Site: B"], ["A", "B"]),
        (["A | Site", "Site", "B | Site"], ["A", "Site", "B"]),
        (["A | Site", "B | Site", ""], ["A", "B", ""]),
        (["A | Site", "B"], ["A | Site", "B"]),
        (["A | Site"], ["A | Site"]),
        (["A: more | Site", "B: more | Site"], ["A: more", "B: more"]),
        (["A-Site", "B-Site"], ["A-Site", "B-Site"]),
        (["Well-known", "Unknown"], ["Well-known", "Unknown"]),
        ([], []),
    ],
)
def test_what_all_titles_share_is_the_name_of_the_site(titles: list[str], without: list[str]) -> None:
    pages = {f"{number}.html": title for number, title in enumerate(titles)}
    assert list(without_site_name(pages).values()) == without


def test_the_front_page_may_have_another_title() -> None:
    titles = {"index.html": "Site | All about it", "a.html": "A | Site", "b.html": "B | Site"}
    assert without_site_name(titles) == {"index.html": "Site | All about it", "a.html": "A", "b.html": "B"}


@pytest.mark.parametrize("part", ["\u00a0", "a - ", " :", " - "])
def test_a_title_without_an_end_takes_no_longer_than_its_length(part: str) -> None:
    """300,000 no-break spaces took hours, and two titles of 200,000 times `a - ` 24 s."""
    titles = {f"{number}.html": f"{number}{part * 20_000}{number % 2}" for number in range(50)}
    began = time.process_time()
    assert without_site_name(titles) == titles
    assert time.process_time() - began < 0.5
