"""What is to be drawn: read from a folder of built HTML, which may get tags, or from JSON lines."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

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

LINE_BYTES: Final = 64 * 1024
PAGE_BYTES: Final = 32 * 1024 * 1024


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

    Links, hidden files and folders, and the folder `left_out` are not read.
    """
    found = Source()
    pages: dict[str, BuiltPage] = {}  # those that get a card
    for path in _pages_in(folder, left_out, found.problems):
        try:
            page = read_page(page_bytes(path))
        except OSError as error:
            found.problems.append(f"can't read {path}: {error.strerror}")
            continue
        name = path.relative_to(folder).as_posix()
        found.pages[name] = page
        if not page.is_redirect:
            pages[name] = page
    if not found.pages and not found.problems:
        found.problems.append(f"there is no HTML page in {folder}")
    titles = without_site_name(
        {name: (page.name, page.lang) for name, page in pages.items()}
    )
    for name, output in card_names(pages).items():
        try:
            fields = _fields_of_page(pages[name], titles[name])
            found.cards[output] = card_from({**usual, **fields})
            found.page_of[output] = name
        except Invalid:
            found.untitled.append(name)
    return found


def page_bytes(path: Path) -> bytes:
    """The bytes of a page. Raises `OSError`, also for a link."""
    with open(os.open(path, READ_FLAGS), "rb") as file:
        raw = file.read(PAGE_BYTES + 1)
    if len(raw) > PAGE_BYTES:
        raise OSError(0, f"it is longer than {PAGE_BYTES // 2**20} MiB")
    return raw


def write_tags(path: Path, url: str, title: str) -> BuiltPage:
    """Let a page name its image, and return what it says then. Raises `OSError`."""
    raw = page_bytes(path)
    written = with_tags(raw, url, title)
    if written is None:
        raise OSError(0, "its head has no place for them")
    tagged, page = written
    if tagged != raw:
        with written_whole(path) as file:
            file.write(tagged)
    return page


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


def _pages_in(
    folder: Path, left_out: Path, problems: list[str]
) -> Iterator[Path]:
    """The HTML files below a folder, in order."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        problems.append(f"can't read {folder}: {error.strerror}")
        return
    for path in paths:
        if path.name.startswith(".") or path == left_out or path.is_symlink():
            continue
        if path.is_dir():
            yield from _pages_in(path, left_out, problems)
        elif path.suffix.lower() in (".html", ".htm") and path.is_file():
            yield path


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
            if problem:
                raise ValueError(f"the output {output:.200} {problem}")
            first = lines.setdefault(same_file(output), number)
            if first != number:
                raise ValueError(
                    f"the output {output} is that of line {first} too"
                )
            found.cards[output] = card_from({**usual, **fields})
        except (ValueError, Invalid) as error:
            found.problems.append(f"{file.name}, line {number}: {error}")
    if not found.cards and not found.problems:
        found.problems.append(f"there is no line in {file.name}")
    return found


def _fields_of_line(line: bytes) -> dict[str, str]:
    """The fields of one line. Raises `ValueError` with a sentence."""
    try:
        read = (
            json.loads(line.decode("utf-8-sig"))
            if len(line) <= LINE_BYTES
            else None
        )
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise ValueError(
            f"this is not a JSON object of at most {LINE_BYTES} bytes"
        )
    # Other fields are ignored, as other parameters of `/og` are.
    fields = {
        name: read[name] for name in (*Card._fields, "output") if name in read
    }
    for name, value in fields.items():
        if not isinstance(value, str):
            raise ValueError(f"the field {name} must be a text")
    return fields
