"""Pages found in public bug reports and built sites, rewritten small: what is right for each.

Each has the title `A`. One without an image of its own gets the tags, in its head and before all others, as html5lib
finds them; one with an image stays, and what networks will not see of it is told.
"""

import pytest

from cardbeat.site.head import NETWORKS_READ, warnings_of
from cardbeat.site.page import read_page
from tests.rules.site.standard import (
    OWN,
    URL,
    is_first_in_head,
    judged,
    with_tags,
)

FLIGHT = f"<script>self.__next_f.push([1,'{'x' * 40_000}'])</script>"
T = "<title>A</title>"
LARGE = "<meta {}='twitter:card' content='summary'><meta name='twitter:card' content='summary_large_image'>"
UTF_8 = "<meta charset='utf-8'>"


def image(url=OWN, end=">"):
    return f'<meta property="og:image" content="{url}"{end}'


WITH_IMAGE = {
    "next.js 83926: tags behind streamed scripts": (
        f"<head>{FLIGHT}{T}{image()}</head>",
        "late_tags",
    ),
    "next.js: metadata streamed into the body": (
        f"<head>{FLIGHT}</head><body>{T}{image()}",
        "late_tags",
    ),
    "jekyll-seo-tag 493: summary before the large one": (
        T + image() + LARGE.format("name"),
        "twitter_card",
    ),
    "jekyll-seo-tag: property in place of name": (
        T + image() + LARGE.format("property"),
        "twitter_card",
    ),
    "govuk_template 349: the default before the page's": (
        T + image() + image("https://o.example/b.png"),
        "",
    ),
    "18F 693: the site's URL was empty": (
        T + image("/assets/a.png"),
        "relative_image",
    ),
    "chirpy 730: a host without a scheme": (
        T + image("o.example/blog/blog/a.png"),
        "relative_image",
    ),
    "a name, not a property": (
        f"{T}<meta name='og:image' content='{OWN}'/>",
        "",
    ),
    "eleventy-plugin-og-image 360": (
        f"{T}<meta itemprop='image' property='og:image' content='{OWN}'>",
        "",
    ),
    "a JSX build: </meta>": (T + image(end="></meta>"), ""),
    "docusaurus 3: minified, without quotes": (
        f"<!doctype html><html lang=en><meta charset=UTF-8><title data-rh=true>A</title>{image(end=' data-rh=true>')}",
        "",
    ),
    "pkgdown: a prefix on the head": (
        f"<html><head prefix='og: https://ogp.me/ns#'>{UTF_8}{T}{image()}",
        "",
    ),
}
WITHOUT = {
    "next.js: no metadata": f"<!DOCTYPE html><html><head><meta charSet='utf-8'/>{FLIGHT}{T}</head>",
    "jekyll-seo-tag": f"<!-- Begin Jekyll SEO tag -->\n{T}\n<meta name='twitter:card' content='summary' />\n",
    "standardebooks 90: an empty og:title": f"<meta property='og:title' content=''>{T}",
    "gatsby: an empty image by React Helmet": f"{T}<meta data-react-helmet='true' property='og:image' content=''/>",
    "itemprop alone is no image of networks": f"{T}<meta itemprop='image' content='{OWN}'>",
    "svelte: commented out": f"{T}<!-- {image('/path/to/your/og-image.jpg')} -->",
    "a page's text about tags": f'{T}<body><pre>&lt;meta property="og:image" content="x"&gt;</pre>',
    "a page's code, not escaped, in a textarea": f"{T}<textarea>{image()}</textarea>",
    "vitepress": f"<!DOCTYPE html>\n<html lang='en-US' dir='ltr'>\n  <head>\n    {UTF_8}\n    {T}\n  </head>",
    "astro: in one line": f"<!DOCTYPE html><html> <head>{UTF_8}{T}</head> <body> <svg><title>Menu</title></svg>",
    "mkdocs material: svg's title before the page's": f"<body><svg><title>Logo</title></svg></body>{T}",
    "javadoc: a charset behind comments": f"<!DOCTYPE HTML>\n<!-- NewPage -->\n<html>\n<head>\n<!-- x -->\n{T}\n"
    '<meta http-equiv="Content-Type" content="text/html; charset=UTF-8">',
    "doxygen: XHTML": '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "x">\n<html xmlns="x">\n<head>\n'
    f'<meta http-equiv="Content-Type" content="text/xhtml;charset=UTF-8"/>\n{T}',
    "hexo: a tag manager in the head": f"<head><noscript><iframe src=x></iframe></noscript>{T}</head>",
    "wordpress: a facebook pixel in the head": f"<head><noscript><img src='x'/></noscript>{UTF_8}{T}</head>",
    "wordpress: a div of a plugin in the head": f"<head>{UTF_8}<div id='x'></div>{T}</head>",
    "html for each browser": "<!--[if lt IE 9]><html class='ie'><![endif]-->\n<!--[if !IE]><!--><html><!--<![endif]-->"
    f"\n<head>{T}</head>",
    "PHP's warning before the page": f"<br />\n<b>Warning</b>: in <b>y.php</b><br />\n<!doctype html><head>{T}",
    "a title with a newline and spaces": "<title>\n      A\n    </title>",
}


@pytest.mark.parametrize("where", WITH_IMAGE)
def test_a_page_that_was_found_with_an_image_stays_with_what_is_told_of_it(
    where,
):
    html, warning = WITH_IMAGE[where]
    page = read_page(html.encode())
    assert page.name == "A"
    assert [*warnings_of(page, names_card=False)] == [warning] * bool(
        warning
    )
    assert with_tags(html) == html.encode()


@pytest.mark.parametrize("where", WITHOUT)
def test_a_page_that_was_found_without_an_image_gets_the_tags(where):
    html = WITHOUT[where]
    assert (
        read_page(html.encode()).name
        == judged(html.encode(), scripting=True)[0]
        == "A"
    )
    tagged = with_tags(html)
    assert is_first_in_head(tagged)
    assert 0 < tagged.index(URL.encode()) < NETWORKS_READ
    _, in_head, everywhere = judged(tagged, scripting=True)
    assert in_head["twitter:card"][0] == "summary_large_image"
    assert [title for title in everywhere["og:title"] if title] == ["A"]
