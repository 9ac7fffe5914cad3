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
_SIGN: Final = re.compile(r"(?<=\S)(?:\s++(?:[|·•–—»«›‹/~-]|::)|:)\s++(?=\S)")
_LONGEST_NAME: Final = 200  # characters, with the sign beside it
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
    return unicodedata.normalize(
        "NFC", unicodedata.normalize("NFC", output).casefold()
    )


def card_names(pages: Iterable[str]) -> dict[str, str]:
    """The places of the pages' cards, all different, by the pages' paths.

    `a/index.html` has `a.png`, and so has `a.html`. If there are both, the latter has `a.html.png`.
    What can't be a name is replaced by a digest.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for page in sorted(
        pages, key=lambda page: (not _INDEX.fullmatch(page), page)
    ):
        index = _INDEX.fullmatch(page)
        plain = index[1] if index else page.rpartition(".")[0]
        digest = hashlib.sha256(
            page.encode("utf-8", "surrogateescape")
        ).hexdigest()[:12]
        readable = re.sub("[^A-Za-z0-9]+", "-", plain)[:40].strip("-")
        for name in (
            f"{plain}.png",
            f"{page}.png",
            f"{readable}-{digest}.png",
        ):
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
        folder, slash, name = page.partition("/")
        if not title or page in ("index.html", "404.html"):
            continue
        groups.setdefault(("site", ""), []).append(title)
        groups.setdefault(("language", language.lower()), []).append(title)
        if name != "index.html":
            groups.setdefault(("folder", folder if slash else ""), []).append(
                title
            )
    names: set[str] = set()
    for titles in groups.values():
        counts = Counter(chain.from_iterable(map(_parts_of, titles)))
        for part, count in counts.items():
            if count > 1 and count >= _SHARE * len(titles):
                names.add(part)
    return {
        page: _shortened(title, names) for page, (title, _) in pages.items()
    }


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
        title[: sign.end()] for sign in _SIGN.finditer(title[:_LONGEST_NAME])
    ]
    return ends + beginnings[::-1]


def _shortened(title: str, names: set[str]) -> str:
    for part in _parts_of(title):
        if part in names:
            return title.removesuffix(part).removeprefix(part)
    return title
