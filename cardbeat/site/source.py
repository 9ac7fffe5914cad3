"""What is to be drawn: read from a folder of built HTML, which may get tags, or from JSON lines."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from cardbeat.cards.request import Card, card_from
from cardbeat.errors import Invalid
from cardbeat.host.staging import written_whole
from cardbeat.host.system import READ_FLAGS
from cardbeat.site.head import with_tags
from cardbeat.site.names import (
    card_names,
    problem_of,
    same_file,
    without_site_name,
)
from cardbeat.site.page import BuiltPage, read_page

MOST_BYTES = 32 * 1024 * 1024


@dataclass
class Source:
    """The cards that are asked for, by their places, and the pages that were read, by their paths.

    `page_of` has the page's path of each card. `untitled` are the pages that have no card.
    `problems` are sentences on what could not be read, each for one page or line.
    """

    cards: dict[str, Card] = field(default_factory=dict)
    pages: dict[str, BuiltPage] = field(default_factory=dict)
    page_of: dict[str, str] = field(default_factory=dict)
    untitled: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_folder(
    folder: Path, left_out: Path, usual: Mapping[str, str]
) -> Source:
    """The cards of the pages in a folder, with `usual` values for what pages don't say.

    The folder `left_out` is not read.
    """
    found = Source()

    def fail(error: OSError) -> None:
        problem = f"can't read {error.filename}: {error.strerror}"
        found.problems.append(problem)

    told = {}  # titles and languages of the pages that get a card
    for path in names_in(folder, (".html", ".htm"), left_out, fail):
        try:
            page = read_page(bytes_of(folder / path))
        except OSError as error:
            error.filename = folder / path
            fail(error)
            continue
        found.pages[path] = page
        if not page.is_redirect:
            told[path] = (page.name, page.lang)
    if not found.pages and not found.problems:
        found.problems.append(f"there is no HTML page in {folder}")
    titles = without_site_name(told)
    for path, output in card_names(titles).items():
        fields = _fields_of_page(found.pages[path], titles[path])
        try:
            found.cards[output] = card_from({**usual, **fields})
            found.page_of[output] = path
        except Invalid:
            found.untitled.append(path)
    return found


def bytes_of(path: Path) -> bytes:
    """The bytes of a file. Raises `OSError`, also for a link, or past `MOST_BYTES`."""
    with open(os.open(path, READ_FLAGS), "rb") as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise OSError(
                0, f"it is longer than {MOST_BYTES // 2**20} MiB"
            )
        return file.read() or b""  # of a pipe that has nothing yet


def names_in(
    folder: Path,
    endings: tuple[str, ...],
    unread: Path | None = None,
    fail: Callable[[OSError], None] | None = None,
) -> Iterator[str]:
    """The files with these endings below a folder, by their paths in it, with slashes.

    Left out are links, hidden files and folders, and the folder `unread`. `fail` is told of
    folders that can't be read.
    """
    for place, folders, files in os.walk(folder, onerror=fail):
        for name in [*folders]:
            if name.startswith(".") or Path(place, name) == unread:
                folders.remove(name)
        inside = Path(place).relative_to(folder).as_posix()
        for name in files:
            if name.startswith(".") or not name.lower().endswith(endings):
                continue
            if not os.path.islink(f"{place}/{name}"):
                yield f"{inside}/{name}".removeprefix("./")


def write_tags(
    path: Path, page: BuiltPage, url: str, title: str
) -> BuiltPage:
    """Let a page name its image, and return what it says then. Raises `OSError`."""
    written = with_tags(bytes_of(path), page, url, title)
    if written is None:
        raise OSError(0, "its head has no place for them")
    with written_whole(path) as file:
        file.write(written[0])
    return written[1]


def _fields_of_page(page: BuiltPage, name: str) -> dict[str, str]:
    title = page.said("og:title") or name
    description = page.said("og:description", "description")
    if description in (title, page.name):
        description = ""
    return {
        "title": title,
        "description": description,
        "author": page.said("author"),
        "tag": page.said("article:tag", "article:section"),
        "lang": page.lang,
    }


def read_lines(file: BinaryIO, usual: Mapping[str, str]) -> Source:
    """The cards that the lines of a file ask for, with `usual` values for what a line leaves out.

    Raises `OSError`.
    """
    found = Source()
    lines: dict[str, int] = {}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            fields = _fields_of_line(line)
            output = PurePosixPath(fields.pop("output", "")).as_posix()
            problem = problem_of(output)
            first = lines.setdefault(same_file(output), number)
            if first != number:
                problem = problem or f"is that of line {first} too"
            if problem:
                raise ValueError(f"the output {output:.200} {problem}")
            found.cards[output] = card_from({**usual, **fields})
        except (ValueError, Invalid) as error:
            found.problems.append(f"{file.name}, line {number}: {error}")
    if not found.cards and not found.problems:
        found.problems.append(f"there is no line in {file.name}")
    return found


def _fields_of_line(line: bytes) -> dict[str, str]:
    """The fields of one line. Raises `ValueError` with a sentence."""
    try:
        read = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise ValueError("this is not a JSON object")
    fields = {}
    # Other fields are ignored, as other parameters of `/og` are.
    for name in {*Card._fields, "output"} & read.keys():
        if not isinstance(read[name], str):
            raise ValueError(f"the field {name} must be a text")
        fields[name] = read[name]
    return fields
