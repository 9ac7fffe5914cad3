"""A page as `html5lib` reads it, which follows the standard, and as our command writes it."""

import warnings

import html5lib

from cardbeat.site import head
from cardbeat.site.page import read_page

URL = "https://x.example/cards/a.png"
OWN = "https://o.example/own.png"
STYLE = f"<style>{'p{margin:0}' * 4000}</style>"
_HTML = "{http://www.w3.org/1999/xhtml}"


def with_tags(html, title="A"):
    """The page, in text or bytes, as it is after our command; None if it gets no tags."""
    raw = html if isinstance(html, bytes) else html.encode()
    page = read_page(raw)
    if page.image:
        return raw
    written = head.with_tags(raw, page, URL, title)
    return written and written[0]


def judged(raw, *, scripting):
    """A page's title and its metas, those of its head and all, each a list of contents by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parser = html5lib.HTMLParser(
            tree=html5lib.getTreeBuilder("etree")
        )
        root = parser.parse(raw, scripting=scripting)
    title = next(root.iter(f"{_HTML}title"), None)
    text = (
        ""
        if title is None
        else " ".join("".join(title.itertext()).split())
    )
    return text, metas_in(root.find(f"{_HTML}head")), metas_in(root)


def metas_in(element):
    found = {}
    for meta in element.iter(f"{_HTML}meta"):
        name = (meta.get("property") or meta.get("name") or "").lower()
        found.setdefault(name, []).append(meta.get("content") or "")
    return found


def is_first_in_head(tagged):
    """Whether our image is the first that any reader finds, in the head, with scripts on and off."""
    for scripting in (True, False):
        _, in_head, everywhere = judged(tagged, scripting=scripting)
        if (
            not in_head.get("og:image", [""])[0]
            == everywhere["og:image"][0]
            == URL
        ):
            return False
    return True
