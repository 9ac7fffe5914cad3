"""The lines that are written into a page's head, and what is told of a page's own."""

import re
from xml.etree import ElementTree

import pytest

from cardbeat.site.head import NETWORKS_READ, image_tags, warnings_of
from cardbeat.site.page import read_page
from tests.kit.documentation import blocks
from tests.rules.site.standard import (
    OWN,
    STYLE,
    URL,
    is_first_in_head,
    with_tags,
)

TITLE = '<meta property="og:title" content="A">'
LINES = [*image_tags(URL, "A"), TITLE]


def test_the_tags_are_those_of_the_builder_escaped_and_on_one_line():
    lines = blocks("recipes", "html")[0].splitlines()
    url, title = (
        re.search('content="(.*?)"', lines[n])[1].replace("&amp;", "&")
        for n in (0, 3)
    )
    assert image_tags(url, title) == lines
    alt = '<meta property="og:image:alt" content="a &quot;b&quot; &lt;c&gt; &amp; d">'
    assert image_tags("u", 'a "b" <c>\n& d')[3] == alt


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<!doctype html><html><head>", "<title>A</title></head>"),
        (
            "<html><head>\n<META CHARSET=utf-8>",
            "\n<title>A</title>\n</head>",
        ),
        ("<HTML>\r\n<HEAD>", "\r\n<title>A</title>\r\n</HEAD>\r\n<body>"),
        (
            "<head><title></head></title><meta charset=utf-8>",
            "</head><p>",
        ),
        (
            "<head><base href=/><meta http-equiv=content-type content='text/html; charset=utf-8'>",
            "</head>",
        ),
        ("<head>", "<meta charset=none><title>A</title>"),
        ("<head>", "<title>A</title></head><meta charset=utf-8>"),
        ("<head>", f"{STYLE * 48}<meta charset=utf-8><title>A</title>"),
        (
            "<head>",
            "<template><p></template><meta charset=utf-8><title>A</title>",
        ),
        (
            "<head>",
            "<noscript><img></noscript><meta charset=utf-8><title>A</title>",
        ),
        ("<!doctype html><!-- x -->", "<title>A</title><p>"),
        ("<!doctype html>\n<html lang=en>", "\n<title>A</title><p>"),
        ("", "<title>A</title>"),
        ("\ufeff", "<title>\udcff\udcfe\x00</title>\udcf0"),
    ],
)
def test_lines_are_behind_the_charset_or_the_start_of_the_head_and_all_else_stays(
    before, after
):
    end = "\r\n" if "\r\n" in before else "\n"
    lines = end.join(LINES)
    added = end + lines if before.strip("\ufeff") else lines + end
    expected = (before + added + after).encode("utf-8", "surrogateescape")
    assert (
        with_tags((before + after).encode("utf-8", "surrogateescape"))
        == expected
    )
    assert is_first_in_head(expected)
    assert expected.index(URL.encode()) < NETWORKS_READ


@pytest.mark.parametrize(
    ("html", "added"),
    [
        ("<meta property=og:title content=own>", []),
        ("<meta name='og:title' content=own>", []),
        ("<meta property=og:title content=' '>", [TITLE]),
        (
            "<link rel='x canonical' href=https://x.example/a?b&amp;c>",
            [
                TITLE,
                '<meta property="og:url" content="https://x.example/a?b&amp;c">',
            ],
        ),
        (
            "<link rel=canonical href=https://x.example/><meta property=og:url content=u>",
            [TITLE],
        ),
        ("<link rel=canonical href=/a/>", [TITLE]),
        ("<link rel=alternate href=https://x.example/>", [TITLE]),
    ],
)
def test_title_and_url_are_added_where_there_is_none(html, added):
    lines = "\n".join(["<head>", *image_tags(URL, "A"), *added])
    assert with_tags(f"<head>{html}").decode() == lines + html


def test_xhtml_stays_well_formed():
    start = '<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml">'
    tagged = with_tags(
        f"{start}<head><title>A</title></head></html>", "A > B & C"
    )
    head = ElementTree.fromstring(tagged)[0]
    assert [meta.get("content") for meta in head][3:5] == [
        "A > B & C",
        "summary_large_image",
    ]


@pytest.mark.parametrize(
    "html", ["", "text", "<p>", "<title>A</title><![x", "<script>"]
)
def test_a_page_that_has_no_head_at_all_gets_one_or_stays(html):
    tagged = with_tags(html)
    assert tagged is None or read_page(tagged).image == URL


IMAGE = "<meta property=og:image content={}>"
SUMMARY = "<meta name=twitter:card content=summary>"
WARNED = [
    *(
        (IMAGE.format(url), ["relative_image"])
        for url in ("//x.example/a", "data:x")
    ),
    (IMAGE.format("' '"), ["empty_image"]),
    (
        IMAGE.format(OWN)
        + SUMMARY
        + "<meta property=twitter:card content=summary_large_image>",
        ["twitter_card"],
    ),
    (STYLE + IMAGE.format(OWN), ["late_tags"]),
    (IMAGE.format(OWN) + SUMMARY, []),
]


@pytest.mark.parametrize(("html", "names"), WARNED)
def test_what_networks_do_not_see_is_told(html, names):
    assert [
        *warnings_of(read_page(html.encode()), names_card=False)
    ] == names


def test_a_small_card_of_x_is_told_where_ours_is_the_image():
    page = read_page((IMAGE.format(URL) + SUMMARY).encode())
    assert [*warnings_of(page, names_card=True)] == ["twitter_card"]
