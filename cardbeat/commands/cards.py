"""The command `cards`: draws the cards of a whole site, or of a list, into a folder, without a server."""

import argparse
import json
import os
import urllib.parse
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cardbeat.cards.request import card_from
from cardbeat.commands.card import add_look
from cardbeat.commands.options import ACCENT, Parser, add_options, base_url, file_path
from cardbeat.errors import StartupError, refusals_as_startup_errors
from cardbeat.host import pillow
from cardbeat.host.output import complain, say, show_progress
from cardbeat.host.stopping import RequireGoing, stop_signals_noted
from cardbeat.host.system import UNSHAPED

if TYPE_CHECKING:
    from cardbeat.site.folder import Folder
    from cardbeat.site.source import Source

NAMED = 5
"""So many pages or cards are named in a line of the summary."""

_EPILOG = """\
SOURCE is a folder of built HTML, or a file with a JSON object in each line: the
fields of /og, and output, the PNG's path in DIR. A page a/index.html has the
card a.png. What would be the same is not drawn again; your own PNGs stay."""


def parser() -> Parser:
    made = Parser("cards SOURCE --output DIR [options]", "Draw the cards of a whole site, or of a list.", _EPILOG)
    made.add_argument("source", metavar="SOURCE", type=file_path, help="folder of built HTML, or file of JSON lines")
    made.add_argument("--output", metavar="DIR", required=True, type=file_path, help="folder of the cards")
    add_look(made)
    made.add_argument("--base-url", metavar="URL", type=base_url, help="the site's; its host is the cards' domain")
    made.add_argument("--write-tags", action="store_true", help="name the card in each page without og:image")
    made.add_argument("--prune", action="store_true", help="remove cards whose page or line is gone")
    add_options(made)
    return made


def run(argv: Sequence[str]) -> int:
    given = parser().parse_args(list(argv))
    given.accent = ACCENT.value(given)
    with refusals_as_startup_errors():
        card_from({"title": "any", **_usual(given)})
    if given.write_tags and (given.base_url is None or given.source.is_file()):
        raise StartupError("--write-tags needs --base-url, the site's URL, and as SOURCE a folder of built HTML")
    if problem := pillow.problem():
        raise StartupError(problem)
    with stop_signals_noted("nothing was drawn", at_once=True):
        source = _read(given)
    with stop_signals_noted("the cards drawn so far are kept, run it again for the others") as require_going:
        done = _made(given, source, require_going)
    say([json.dumps(vars(done))] if given.json else _told(done))
    return 1 if done.failed else 0


@dataclass
class Summary:
    """What was done, with cards named by their places and pages by their paths."""

    drawn: int = 0
    unchanged: int = 0
    tagged: int = 0
    redirects: int = 0
    failed: int = 0
    without_title: list[str] = field(default_factory=list)
    missing_glyphs: dict[str, int] = field(default_factory=dict)
    other_card: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def fail(self, *sentences: str) -> None:
        """Tell what went wrong, each with one card or page."""
        for sentence in sentences:
            complain(sentence)
            self.failed += 1


def _told(done: Summary) -> Iterator[str]:
    yield ", ".join(f"{n} {what}" for what, n in vars(done).items() if isinstance(n, int) and (n or what == "drawn"))
    listed = {
        "pages without a title, which have no card": done.without_title,
        "pages that name the card of another page; if they should not, remove their image tags": done.other_card,
        _lacking(): [*done.missing_glyphs],
        "cards whose file others changed, which stays; remove it to have the card drawn again": done.replaced,
        "cards whose page or line is gone, which --prune removes": done.unused,
        "removed cards whose page or line is gone": done.removed,
    }
    for what, names in listed.items():
        if names:
            yield f"{len(names)} {what}: {', '.join([*names[:NAMED], *['...'] * (len(names) > NAMED)])}"


def _lacking() -> str:
    from PIL import features  # noqa: PLC0415 - a wrong option is told without Pillow

    lacking = "cards with characters that no font has"
    return lacking if features.check("raqm") else f"{lacking}, or that are not shaped ({UNSHAPED})"


def _usual(given: argparse.Namespace) -> dict[str, str]:
    """The values for what a page or a line does not say."""
    host = urllib.parse.urlsplit(given.base_url or "").hostname or ""
    return {"template": given.template, "theme": given.theme, "domain": host}


def _made(given: argparse.Namespace, source: "Source", require_going: RequireGoing) -> Summary:
    from cardbeat.site.folder import Folder  # noqa: PLC0415 - importing it needs Pillow

    done = Summary(redirects=source.redirects, without_title=source.untitled)
    done.fail(*source.problems)
    if source.problems and not source.cards:
        return done
    try:
        with Folder(given.output, given.accent) as folder:
            there = _draw(folder, source, done, require_going)
            done.missing_glyphs = {output: n for output in there if (n := folder.missing_glyphs(output))}
            gone = folder.unused(source.cards)
            named = _named(given, source.images, {*source.cards, *gone})
            if given.write_tags:
                _write_tags(given, source, there, done, require_going)
                done.other_card = [
                    page.relative_to(given.source.resolve()).as_posix()
                    for output, (page, image) in source.pages.items()
                    if named.get(image, output) != output
                ]
            # Not after an error: the card of a page or line that can't be read may still be needed.
            if not done.failed:
                unused = sorted({*gone} - {*named.values()})
                done.unused, done.removed = ([], unused) if given.prune else (unused, [])
                folder.prune(done.removed)
    except OSError as error:
        raise StartupError(f"can't write to {given.output}: {error.strerror}") from None
    return done


def _read(given: argparse.Namespace) -> "Source":
    from cardbeat.site.source import Source, read_folder, read_lines  # noqa: PLC0415

    try:
        if not given.source.is_dir():
            with given.source.open("rb") as file:
                return read_lines(file, _usual(given))
    except OSError as error:
        return Source(problems=[f"can't read {given.source}: {error.strerror}"])
    # Not `resolve`, which up to Python 3.12 raises `RuntimeError` for a link that leads to itself.
    try:
        folder, output = (Path(os.path.realpath(path)) for path in (given.source, given.output))
    except OSError as error:
        raise StartupError(f"can't find the working folder: {error.strerror}") from None
    if folder.is_relative_to(output) or (given.write_tags and not output.is_relative_to(folder)):
        raise StartupError(f"the cards need a folder of their own, such as {given.source / 'cards'}")
    return read_folder(folder, output, _usual(given))


def _named(given: argparse.Namespace, images: Iterable[str], cards: Container[str]) -> dict[str, str]:
    """Those of the cards that these URLs of images name, by the URLs: on any host, since another may serve them."""
    output, source = (Path(os.path.realpath(path)) for path in (given.output, given.source))
    inside = f"/{output.relative_to(source).as_posix() if output.is_relative_to(source) else output.name}/"
    paths = {image: urllib.parse.unquote(image.partition("?")[0], errors="surrogateescape") for image in images}
    places = {image: path.removeprefix(given.base_url or "").partition(inside)[2] for image, path in paths.items()}
    return {image: place for image, place in places.items() if place in cards}


def _draw(folder: "Folder", source: "Source", done: Summary, require_going: RequireGoing) -> list[str]:
    """Draw the cards that are not there yet, and return the places of those that are there then."""
    from cardbeat.site.workers import draw  # noqa: PLC0415

    there: list[str] = []
    new: list[str] = []
    for output, card in source.cards.items():
        require_going()
        (there if folder.has(output, card) else new).append(output)
    done.unchanged, done.replaced, problems = len(there), folder.replaced, []
    for count, (number, drawn) in enumerate(
        draw([(source.cards[output], folder.accent) for output in new], require_going), 1
    ):
        output = new[number]
        try:
            if isinstance(drawn, str):
                problems.append(f"can't draw {output}: {drawn}")
            else:
                folder.put(output, source.cards[output], drawn)
                there.append(output)
        except OSError as error:
            problems.append(f"can't write {output}: {error.strerror}")
        show_progress(count, len(new))
    done.drawn = len(there) - done.unchanged
    done.unchanged -= len(done.replaced)
    done.fail(*problems)
    return there


def _write_tags(
    given: argparse.Namespace, source: "Source", there: Sequence[str], done: Summary, require_going: RequireGoing
) -> None:
    """Name the cards that are there in pages without an image, and tell of pages that name their card's old place."""
    from cardbeat.site.folder import write_image_tags  # noqa: PLC0415

    inside = given.output.resolve().relative_to(given.source.resolve())
    for output in there:
        require_going()
        page, image = source.pages[output]
        url = f"{given.base_url}/{urllib.parse.quote((inside / output).as_posix(), errors='surrogateescape')}"
        others = (f"{url.removesuffix('.png')}{page.suffix}.png", url.replace(f"{page.suffix}.png", ".png"))
        try:
            if not image:
                write_image_tags(page, url, source.cards[output].title)
                done.tagged += 1
            elif image != url and image in others:
                done.fail(
                    f"{page} names {image}, but its card is {output} now; remove its image tags, and run it again"
                )
        except OSError as error:
            done.fail(f"can't write tags into {page}: {error.strerror}")
