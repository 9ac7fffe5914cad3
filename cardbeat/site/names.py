"""Places for cards that every system can have, and the site's name, which the pages' titles share. Pure."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

_INDEX: Final = re.compile(r"(.*)/index\.html?", re.IGNORECASE | re.DOTALL)
_NOT_ON_WINDOWS: Final = re.compile(
    r".*[<>:\"\\|?*\x00-\x1f\x7f\ud800-\udfff].*|.*[. ]|(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?",
    re.IGNORECASE | re.DOTALL,
)
_MOST_BYTES: Final = 255  # of one name, on all usual file systems
_MOST_PATH_BYTES: Final = 4096  # Linux takes no longer path
_BETWEEN: Final = re.compile(r"(?<!\s)\s++(?:(?:[|·•–—»«›‹/~-]|::)\s++|:(?=\S))")
"""What stands between a title and the site's name behind it; read backwards, also the colon after a name before it."""
_LONGEST_NAME: Final = 200  # characters of a site's name and of what stands between


def problem_of(output: str) -> str | None:
    """Why this path, with slashes, can't be a card's place in its folder; None if it can."""
    if len(output.encode(errors="replace")) > _MOST_PATH_BYTES:
        return f"is longer than {_MOST_PATH_BYTES} bytes"
    path = PurePosixPath(output)
    if path.is_absolute() or ".." in path.parts or re.match(r"\\|[A-Za-z]:", output):
        return "must be a path inside the folder of the cards"
    if any(part.lower().startswith(".cardbeat") for part in path.parts):
        return "holds a name that cardbeat keeps for itself"
    if path.suffix.lower() != ".png":
        return "must end with .png"
    if any(_NOT_ON_WINDOWS.fullmatch(part) or len(part.encode()) > _MOST_BYTES for part in path.parts):
        return "holds a name that Windows can't have"
    return None


def same_file(output: str) -> str:
    """One text for all paths that are the same file on some system."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", output).casefold())


def card_names(pages: Iterable[str]) -> dict[str, str]:
    """The places of the pages' cards, all different, by the pages' paths: `a/index.html` has `a.png`, `b.html` `b.png`.

    If there are both `a/index.html` and `a.html`, the latter has `a.html.png`.
    """
    names, taken = {}, set()
    for page in sorted(pages, key=lambda page: (not _INDEX.fullmatch(page), page)):
        index = _INDEX.fullmatch(page)
        plain = index[1] if index else page.rpartition(".")[0]
        # For what is no name on Windows, or where a card would stand in place of a folder.
        digest = hashlib.sha256(page.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        other = f"{re.sub('[^A-Za-z0-9]+', '-', plain)[:40]}-{digest}.png".lstrip("-")
        usual = [
            name for name in (f"{plain}.png", f"{page}.png") if not problem_of(name) and ".png/" not in name.lower()
        ]
        names[page] = next(name for name in (*usual, other) if same_file(name) not in taken)
        taken.add(same_file(names[page]))
    return names


def without_site_name(titles: Mapping[str, str]) -> dict[str, str]:
    """The titles by their pages' paths, without what all end or begin with, such as " | My site".

    The front page does not count: often its title is the site's name, or more than that.
    """
    of_pages = [title for page, title in titles.items() if title and page != "index.html"]
    end = _shared_end(of_pages)
    beginning = "" if end else _shared_end([title[::-1] for title in of_pages])[::-1]
    return {page: title.removesuffix(end).removeprefix(beginning) for page, title in titles.items()}


def _shared_end(titles: Sequence[str]) -> str:
    """The longest end that at least two titles have; each of the others must be the name in it."""
    longest = max(titles, key=len, default="")
    for between in _BETWEEN.finditer(longest, max(0, len(longest) - _LONGEST_NAME)):
        end, name = longest[between.start() :], longest[between.end() :]
        if sum(title.endswith(end) for title in titles) > 1 and all(t.endswith(end) or t == name for t in titles):
            return end
    return ""
