"""The command `cards`: draws the cards of a site, or of a list, into a folder, without a server.

1. Read the pages of a folder, or the lines of a file, into cards by their places.
2. Draw those that are not there yet, on all cores.
3. With `--write-tags` name each card in its page.
4. Look what networks will not see of the pages, and which cards no page needs.

What fails for one page or card is told at once, and the others go on.
"""

import os
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from cardbeat.cards.request import card_from
from cardbeat.commands.card import add_look
from cardbeat.commands.options import (
    Parser,
    base_url,
    command,
    file_path,
    tell,
)
from cardbeat.errors import StartupError, refusals_as_startup_errors
from cardbeat.host.output import complain, show_progress
from cardbeat.host.surroundings import require_pillow
from cardbeat.host.system import UNSHAPED
from cardbeat.site.head import warnings_of
from cardbeat.site.source import (
    Source,
    read_folder,
    read_lines,
    write_tags,
)

if TYPE_CHECKING:
    from cardbeat.site.folder import Folder

NAMED: Final = 5
"""So many pages or cards of a kind are printed without `--json`."""
KINDS: Final = (
    "drawn",
    "unchanged",  # cards, and files that are none in the place of one
    "tagged",
    "failed",  # sentences
    "without_title",  # pages, which have no card
    "replaced",  # files that are no cards in the place of one, which stay
    "unused",  # cards whose page or line is gone
    "other_card",  # pages that name the card of another page
    "relative_image",  # pages whose og:image is no whole URL, which networks do not fetch
    "empty_image",
    "twitter_card",  # pages with another one than summary_large_image, which X may show small
    "late_tags",  # pages whose og:image is past 32 KiB, where Slack does not look
)
_NOTE: Final = """\
SOURCE is a folder of built HTML, or a file with a JSON object in each line: the
fields of /og, and output, the PNG's path in DIR."""

Summary = dict[str, list[str]]
"""The cards and pages of each kind."""


def parser() -> Parser:
    made = command(
        "cards",
        "Draw the cards of a whole site, or of a list.",
        note=_NOTE,
    )
    add = made.add_argument
    add(
        "source",
        metavar="SOURCE",
        type=file_path,
        help="built HTML, or JSON lines",
    )
    add(
        "--output",
        metavar="DIR",
        required=True,
        type=file_path,
        help="folder of the cards",
    )
    add_look(made)
    add(
        "--base-url",
        metavar="URL",
        dest="site",
        type=base_url,
        help="the site's [none]",
    )
    add(
        "--write-tags",
        action="store_true",
        help="name the card in each page without og:image",
    )
    return made


def run(given: Namespace) -> int:
    host = urlsplit(given.site or "").hostname or ""
    usual = {
        "template": given.template,
        "theme": given.theme,
        "domain": host,
    }
    with refusals_as_startup_errors():
        card_from({"title": "any", **usual})
    is_site = given.source.is_dir()
    if given.write_tags and not (given.site and is_site):
        needs = "needs --base-url, the site's URL, and as SOURCE a folder of built HTML"
        raise StartupError(f"--write-tags {needs}")
    require_pillow()
    told: Summary = {kind: [] for kind in KINDS}
    read = _read_site if is_site else _read_list
    try:
        _do(given, read(given, usual), told)
    except OSError as error:
        raise StartupError(
            f"can't write to {given.output}: {error.strerror}"
        ) from None
    shown: dict[str, str] = {}
    for kind, found in told.items():
        if found:
            shown[kind] = f"{len(found)}: {', '.join(found[:NAMED])}"
    tell(given, told, shown)
    return 1 if told["failed"] else 0


def _read_list(given: Namespace, usual: dict[str, str]) -> Source:
    try:
        with given.source.open("rb") as file:
            return read_lines(file, usual)
    except OSError as error:
        problem = f"can't read {given.source}: {error.strerror}"
        return Source(problems=[problem])


def _read_site(given: Namespace, usual: dict[str, str]) -> Source:
    # Not `resolve`, which up to Python 3.12 raises `RuntimeError` for a link that leads to itself.
    given.source = Path(os.path.realpath(given.source))
    given.output = Path(os.path.realpath(given.output))
    is_inside = given.output.is_relative_to(given.source)
    holds_site = given.source.is_relative_to(given.output)
    if holds_site or (given.write_tags and not is_inside):
        needs = f"the cards need a folder of their own, such as {given.source / 'cards'}"
        raise StartupError(needs)
    return read_folder(given.source, given.output, usual)


def _fail(told: Summary, sentence: str) -> None:
    """Tell what went wrong with one card or page."""
    complain(sentence)
    told["failed"].append(sentence)


def _do(given: Namespace, source: Source, told: Summary) -> None:
    """Draw, write tags and check. Raises `OSError` for a folder that can't be used."""
    from cardbeat.site.folder import Folder  # noqa: PLC0415 - importing it needs Pillow

    for problem in source.problems:
        _fail(told, problem)
    if not source.cards and source.problems:
        return
    told["without_title"] = source.untitled
    folder = Folder(given.output, given.accent)
    there = _draw(source, folder, told)
    inside = _inside(given.output, given.source)
    if given.write_tags:
        _write_tags(given, source, there, inside, told)
    named = _check(given, source, inside, told)
    # Not after an error: the card of a page or line that can't be read may still be needed.
    if not told["failed"]:
        told["unused"] = sorted({*folder.unused(source.cards)} - named)


def _draw(source: Source, folder: "Folder", told: Summary) -> list[str]:
    """Draw the cards that are not there yet. Returns the places of those that are then."""
    from cardbeat.site.workers import draw  # noqa: PLC0415

    new = {}
    for output, card in source.cards.items():
        try:
            if folder.has(output, card):
                told["unchanged"].append(output)
            else:
                new[output] = card
        except OSError as error:
            _fail(told, f"can't write {output}: {error.strerror}")
    unshaped = 0
    for count, (output, drawing) in enumerate(
        draw(new, folder.accent), 1
    ):
        try:
            if isinstance(drawing, str):
                raise OSError(0, drawing)
            folder.put(output, new[output], drawing)
            told["drawn"].append(output)
            unshaped += drawing.unshaped
        except OSError as error:
            _fail(told, f"can't draw {output}: {error.strerror}")
        show_progress(count, len(new))
    if unshaped:
        complain(UNSHAPED)
    told["replaced"] = folder.replaced
    return told["unchanged"] + told["drawn"]


def _write_tags(
    given: Namespace,
    source: Source,
    there: Iterable[str],
    inside: str,
    told: Summary,
) -> None:
    """Name the cards that are there in pages without an image."""
    for output in there:
        path = source.page_of[output]
        said = source.pages[path]
        if said.image:
            continue  # it has one of its own
        page = given.source / path
        url = given.site + quote(
            inside + output, errors="surrogateescape"
        )
        title = source.cards[output].title
        try:
            source.pages[path] = write_tags(page, said, url, title)
            told["tagged"].append(path)
        except OSError as error:
            _fail(told, f"can't write tags into {page}: {error.strerror}")


def _inside(folder: Path, site: Path) -> str:
    """The path of the cards' folder in the site, between slashes."""
    inside = Path(folder.name)
    if folder.is_relative_to(site):
        inside = folder.relative_to(site)
    return f"/{inside.as_posix()}/"


def _check(
    given: Namespace, source: Source, inside: str, told: Summary
) -> set[str]:
    """Note what networks will not see of the pages. Returns the places of cards they name."""
    own = {path: output for output, path in source.page_of.items()}
    named: set[str] = set()
    for path, page in sorted(source.pages.items()):
        image = unquote(
            page.image.partition("?")[0], errors="surrogateescape"
        )
        # On any host, since another one may serve the cards.
        place = image.partition(inside)[2]
        named.add(place)
        if page.is_redirect:
            continue
        is_there = place != "" and os.path.lexists(given.output / place)
        for name in warnings_of(page, names_card=is_there):
            told[name].append(path)
        if given.write_tags and place not in ("", own.get(path, place)):
            told["other_card"].append(path)
    return named
