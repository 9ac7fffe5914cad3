"""Places for cards in their folder, and titles without the site's name. Pure."""

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import PurePosixPath

_ENDING = re.compile(r"(/index)?\.html?\Z", re.IGNORECASE)
_NOT_IN_NAMES = re.compile(r"[<>:\"\\|?*\x00-\x1f\x7f\ud800-\udfff]")
_MOST_BYTES = 255  # of one name, on all usual file systems
_SIGN = re.compile(r"(?<=\S)(?:\s++(?:[|·•–—»«›‹/~-]|::)|:)\s++(?=\S)")
_LONGEST_NAME = 200  # characters, with the sign beside it
_SHARE = 0.8


def problem_of(output: str) -> str:
    """Why this path, with slashes, can't be a card's place in its folder; empty if it can."""
    path = PurePosixPath(output)
    if path.is_absolute() or ".." in path.parts:
        return "must be a path inside the folder of the cards"
    if path.suffix.lower() != ".png" or output.startswith(".cardbeat"):
        return "must end with .png and not begin with .cardbeat"
    if _NOT_IN_NAMES.search(output):
        return (
            "holds a character that not every system can have in a name"
        )
    if any(len(part.encode()) > _MOST_BYTES for part in path.parts):
        return f"holds a name of more than {_MOST_BYTES} bytes"
    return ""


def same_file(output: str) -> str:
    """One text for all paths that are the same file on some system."""
    return unicodedata.normalize("NFC", output.casefold())


def card_names(pages: Iterable[str]) -> dict[str, str]:
    """The places of the pages' cards, all different, by the pages' paths.

    `a/index.html` has `a.png`, and so has `a.html`. If there are both, the latter has `a.html.png`.
    What can't be a name is replaced by a digest.
    """
    names: dict[str, str] = {}
    taken = set()
    for page in sorted(
        pages, key=lambda page: ("/index." not in page, page)
    ):
        plain = _ENDING.sub("", page)
        digest = hashlib.sha256(page.encode("utf-8", "surrogateescape"))
        readable = re.sub("[^A-Za-z0-9]+", "-", plain)[:40].strip("-")
        special = f"{readable}-{digest.hexdigest()[:12]}"
        for stem in (plain, page, special):
            name = f"{stem}.png"
            if not problem_of(name) and same_file(name) not in taken:
                names[page] = name
                taken.add(same_file(name))
                break
    return names


def without_site_name(
    pages: Mapping[str, tuple[str, str]],
) -> dict[str, str]:
    """The titles by their pages' paths, without the site's name, as in `Title | My site`.

    `pages` has a title and a language for each path. The name is what the titles of the whole site,
    of one language or of one folder end or begin with; one of five may lack it. Front pages do not
    count: often theirs is the name, or longer.
    """
    groups = defaultdict(list)
    for page, (title, language) in pages.items():
        if not title or page in ("index.html", "404.html"):
            continue
        folder = page[: page.find("/") + 1]
        groups["site"].append(title)
        groups[f"language {language.lower()}"].append(title)
        if page != f"{folder}index.html":
            groups[f"folder {folder}"].append(title)
    names = set()
    for titles in groups.values():
        enough = max(2, _SHARE * len(titles))
        counts = Counter(chain.from_iterable(map(_parts_of, titles)))
        names |= {
            part for part, count in counts.items() if count >= enough
        }
    shown = {}
    for page, (title, _) in pages.items():
        part = next(filter(names.__contains__, _parts_of(title)), "")
        shown[page] = title.removesuffix(part).removeprefix(part)
    return shown


def _parts_of(title: str) -> list[str]:
    """What may be a site's name with the sign beside it: ends, then beginnings, the longest first.

    `A - B: C` has ` - B: C`, `A - B: ` and `A - `.
    """
    end = title[-_LONGEST_NAME:]
    ends = [
        end[sign.start() :]
        for sign in _SIGN.finditer(end)
        if sign[0][0].isspace()
    ]
    beginnings = [
        title[: sign.end()]
        for sign in _SIGN.finditer(title[:_LONGEST_NAME])
    ]
    return ends + beginnings[::-1]
