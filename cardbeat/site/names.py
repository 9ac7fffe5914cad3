"""Places for cards in their folder, and titles without the site's name. Pure."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import PurePosixPath
from typing import Final

_INDEX: Final = re.compile(r"(.*)/index\.html?", re.IGNORECASE | re.DOTALL)
_NOT_IN_NAMES: Final = re.compile(r"[<>:\"\\|?*\x00-\x1f\x7f\ud800-\udfff]")
_MOST_BYTES: Final = 255  # of one name, on all usual file systems
_BEFORE_NAME: Final = re.compile(r"(?<=\S)\s++(?:[|·•–—»«›‹/~-]|::)\s++(?=\S)")
_BEHIND_NAME: Final = re.compile(r"(?<=\S)(?:\s++(?:[|·•–—»«›‹/~-]|::)|:)\s++(?=\S)")
_LONGEST_NAME: Final = 200  # characters of a site's name and of what stands between
_SHARE: Final = 0.8


def problem_of(output: str) -> str:
    """Why this path, with slashes, can't be a card's place in its folder; empty if it can."""
    path = PurePosixPath(output)
    if path.is_absolute() or ".." in path.parts:
        return "must be a path inside the folder of the cards"
    if path.suffix.lower() != ".png" or output.startswith(".cardbeat"):
        return "must end with .png and not begin with .cardbeat"
    if _NOT_IN_NAMES.search(output):
        return "holds a character that not every system can have in a name"
    if any(len(part.encode()) > _MOST_BYTES for part in path.parts):
        return f"holds a name of more than {_MOST_BYTES} bytes"
    return ""


def same_file(output: str) -> str:
    """One text for all paths that are the same file on some system."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", output).casefold())


def card_names(pages: Iterable[str]) -> dict[str, str]:
    """The places of the pages' cards, all different, by the pages' paths.

    `a/index.html` has `a.png`, and so has `a.html`. If there are both, the latter has `a.html.png`.
    What can't be a name is replaced by a digest.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for page in sorted(pages, key=lambda page: (not _INDEX.fullmatch(page), page)):
        index = _INDEX.fullmatch(page)
        plain = index[1] if index else page.rpartition(".")[0]
        digest = hashlib.sha256(page.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        readable = re.sub("[^A-Za-z0-9]+", "-", plain)[:40].strip("-")
        for name in (f"{plain}.png", f"{page}.png", f"{readable}-{digest}.png"):
            if not problem_of(name) and same_file(name) not in taken:
                names[page] = name
                taken.add(same_file(name))
                break
    return names


def without_site_name(pages: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The titles by their pages' paths, without the site's name, as in `Title | My site`.

    `pages` has a title and a language for each path. The name is what the titles of the whole site,
    of one language or of one folder end or begin with; one of five may lack it. Front pages do not
    count: often theirs is the name, or longer.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for page, (title, language) in pages.items():
        folder, slash, _ = page.partition("/")
        if not title or page in ("index.html", "404.html"):
            continue
        groups.setdefault(("site", ""), []).append(title)
        groups.setdefault(("language", language.lower()), []).append(title)
        if page != f"{folder}/index.html":
            groups.setdefault(("folder", folder if slash else ""), []).append(title)
    names = set[str]().union(*map(_shared, groups.values()))
    return {page: _shortened(title, names) for page, (title, _) in pages.items()}


def _shared(titles: list[str]) -> set[str]:
    """What nearly all titles end or begin with, or are. Beginnings only if they have no end."""
    whole = Counter(titles)
    for parts_of in (_ends_of, _beginnings_of):
        counts = Counter(chain.from_iterable(map(parts_of, titles)))
        found = set()
        for part, count in counts.items():
            # The name alone: `My site` of ` | My site` and of `My site: `.
            name = re.sub(r"^\s+\S+\s+|(\s+\S+|:)\s+$", "", part)
            if count > 1 and count + whole[name] >= _SHARE * len(titles):
                found.add(part)
        if found:
            return found
    return set()


def _ends_of(title: str) -> list[str]:
    """What may be a site's name with the sign before it, the longest first."""
    found = _BEFORE_NAME.finditer(title, max(0, len(title) - _LONGEST_NAME))
    return [title[sign.start() :] for sign in found]


def _beginnings_of(title: str) -> list[str]:
    """What may be a site's name with the sign behind it, the longest first."""
    found = [title[: sign.end()] for sign in _BEHIND_NAME.finditer(title, 0, _LONGEST_NAME)]
    return found[::-1]


def _shortened(title: str, names: set[str]) -> str:
    for end in _ends_of(title):
        if end in names:
            return title.removesuffix(end)
    for beginning in _beginnings_of(title):
        if beginning in names:
            return title.removeprefix(beginning)
    return title
