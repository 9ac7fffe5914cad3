"""What is to be drawn: read from a folder of built HTML, or from a file of JSON lines."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from cardbeat.cards.request import TEXTS, Card, card_from
from cardbeat.errors import Invalid
from cardbeat.host.system import READ_FLAGS
from cardbeat.site.names import card_names, problem_of, same_file, without_site_name
from cardbeat.site.page import READ_BYTES, BuiltPage, read_page

LINE_BYTES: Final = 64 * 1024
FIELDS: Final = (*TEXTS, "template", "theme", "output")
"""What a line may hold. Other fields are ignored, as other parameters of `/og` are."""


@dataclass
class Source:
    """The cards that are asked for, by their places; the pages and the images that they name, by those places too.

    `images` are those of all pages, also of pages without a card. `problems` are sentences on what could not be read,
    each for one page or line.
    """

    cards: dict[str, Card] = field(default_factory=dict)
    pages: dict[str, tuple[Path, str]] = field(default_factory=dict)
    images: set[str] = field(default_factory=set)
    untitled: list[str] = field(default_factory=list)
    redirects: int = 0
    problems: list[str] = field(default_factory=list)


def read_folder(folder: Path, left_out: Path, usual: Mapping[str, str]) -> Source:
    """The cards of the pages in a folder, with `usual` values for what pages don't say.

    Links, hidden files and folders, and the folder `left_out` are not read.
    """
    found, pages = Source(), dict[str, BuiltPage]()
    for path in _pages_in(folder, left_out, found.problems):
        try:
            with open(os.open(folder / path, READ_FLAGS), "rb") as file:
                pages[path] = read_page(file.read(READ_BYTES))
        except OSError as error:
            found.problems.append(f"can't read {folder / path}: {error.strerror}")
        except ValueError:
            found.problems.append(f"can't read {folder / path}: it holds a number with thousands of digits")
    if not pages and not found.problems:
        found.problems.append(f"there is no HTML page in {folder}")
    found.images = {page.image for page in pages.values() if page.image}
    found.redirects = sum(page.is_redirect for page in pages.values())
    pages = {path: page for path, page in pages.items() if not page.is_redirect}
    names = without_site_name({path: page.name for path, page in pages.items()})
    for path, output in card_names(pages).items():
        said = {**pages[path]._asdict(), "title": pages[path].title or names[path]}
        try:
            found.cards[output] = card_from({**usual, **{name: said[name] for name in TEXTS if name in said}})
        except Invalid:
            found.untitled.append(path)
        else:
            found.pages[output] = folder / path, pages[path].image
    return found


def _pages_in(folder: Path, left_out: Path, problems: list[str]) -> Iterator[str]:
    """The paths of the HTML files below a folder, with slashes, in order."""

    def note(error: OSError) -> None:
        problems.append(f"can't read {error.filename}: {error.strerror}")

    # One folder a call: Python 3.11 walks into each folder by one more call, and some hundreds are too many for it.
    places = [folder]
    while places:
        place, folders, files = next(os.walk(places.pop(), onerror=note), (folder, [], []))
        inside = (Path(place, name) for name in sorted(folders, reverse=True) if name[0] != ".")
        places += [path for path in inside if path != left_out and not os.path.islink(path)]
        for path in (Path(place, name) for name in sorted(files) if name[0] != "."):
            try:
                if path.suffix.lower() in (".html", ".htm") and not path.is_symlink() and path.is_file():
                    yield path.relative_to(folder).as_posix()
            except OSError as error:  # Its path is too long.
                note(error)


def read_lines(file: BinaryIO, usual: Mapping[str, str]) -> Source:
    """The cards that the lines of a file ask for, with `usual` values for what a line leaves out. Raises `OSError`."""
    found, lines = Source(), dict[str, int]()
    for number, line in enumerate(_lines_of(file), 1):
        try:
            if line.strip():
                fields = _fields_of(line)
                output = PurePosixPath(fields.pop("output")).as_posix()
                if problem := problem_of(output):
                    raise ValueError(f"the output {output:.200} {problem}")
                if first := lines.get(same_file(output)):
                    raise ValueError(f"the output {output} is that of line {first} too")
                found.cards[output] = card_from({**usual, **fields})
                lines[same_file(output)] = number
        except (ValueError, Invalid) as error:
            found.problems.append(f"{file.name}, line {number}: {error}")
    if not found.cards and not found.problems:
        found.problems.append(f"there is no line in {file.name}")
    return found


def _lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. Of one that is too long only the beginning, which is still too long."""
    is_rest = False
    while line := file.readline(LINE_BYTES + 1):
        if not is_rest:
            yield line
        is_rest = len(line) > LINE_BYTES and not line.endswith(b"\n")


def _fields_of(line: bytes) -> dict[str, str]:
    """The fields of one line. Raises `ValueError` with a sentence."""
    try:
        read = json.loads(line.decode("utf-8-sig")) if len(line) <= LINE_BYTES else None
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise ValueError(f"this is not a JSON object of at most {LINE_BYTES} bytes")
    fields = {name: read[name] for name in FIELDS if name in read}
    if wrong := [name for name, value in fields.items() if not isinstance(value, str)]:
        raise ValueError(f"the field {wrong[0]} must be a text")
    if "output" not in fields:
        raise ValueError("the field output is missing")
    return fields
