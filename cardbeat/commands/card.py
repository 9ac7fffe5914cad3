"""The command `card`: draws a card into a file, without a server."""

import argparse
import json
import os
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path

from cardbeat.cards.request import TEMPLATES, THEMES, card_from
from cardbeat.commands.options import ACCENT, Parser, add_options, file_path
from cardbeat.errors import Invalid, StartupError
from cardbeat.host import pillow
from cardbeat.host.output import complain, say
from cardbeat.host.system import UNSHAPED

STDOUT = "-"

_TEXTS = {
    "description": "a sentence below the title",
    "author": "who wrote the page",
    "tag": "its subject, such as Guides",
    "domain": "its site, such as example.com",
}


def parser() -> Parser:
    made = Parser("card --title TEXT --output FILE [options]", "Draw a card into a PNG file.")
    made.add_argument("--title", metavar="TEXT", required=True, help="the large text")
    for name, what in _TEXTS.items():
        made.add_argument(f"--{name}", metavar="TEXT", default="", help=what)
    add_look(made)
    made.add_argument("--output", metavar="FILE", required=True, type=_png_path, help="ends with .png; - is stdout")
    add_options(made)
    return made


def add_look(parser: argparse.ArgumentParser) -> None:
    """The options of how a card looks. `card_from` refuses other values."""
    parser.add_argument(
        "--template", metavar="|".join(TEMPLATES), default=TEMPLATES[0], help=f"layout [{TEMPLATES[0]}]"
    )
    parser.add_argument("--theme", metavar="|".join(THEMES), default=THEMES[0], help=f"colours [{THEMES[0]}]")
    ACCENT.add_to(parser)


def _png_path(text: str) -> Path:
    path = Path(text) if text == STDOUT else file_path(text)
    if text != STDOUT and path.suffix.lower() != ".png":
        raise ArgumentTypeError("must end with .png, or be - for standard output")
    return path


def run(argv: Sequence[str]) -> int:
    options = parser().parse_args(list(argv))
    given, accent = vars(options), ACCENT.value(options)
    output: Path = given.pop("output")
    as_json: bool = given.pop("json")
    to_stdout = str(output) == STDOUT
    if to_stdout and as_json:
        raise StartupError("--json prints to standard output, where the card goes; give --output a file")
    if problem := pillow.problem():
        raise StartupError(problem)
    from cardbeat.cards.drawing.layout import HEIGHT, WIDTH  # noqa: PLC0415
    from cardbeat.cards.drawing.render import Renderer  # noqa: PLC0415
    from cardbeat.site.folder import written_whole  # noqa: PLC0415
    from cardbeat.typeset.faces.fonts import Fonts  # noqa: PLC0415 - importing it needs Pillow

    try:
        drawing = Renderer(Fonts(), accent).render(card_from(given))
    except Invalid as refused:
        is_empty = refused.code == "missing_parameter"
        raise StartupError("--title is empty" if is_empty else refused.sentence) from None
    if drawing.unshaped:
        complain(UNSHAPED)
    if to_stdout:
        say(drawing.png)
        return 0
    try:
        place = Path(os.path.realpath(output))
        with place.open("wb") if place.exists() and not place.is_file() else written_whole(place) as file:
            file.write(drawing.png)
    except OSError as error:
        raise StartupError(f"can't write {output}: {error.strerror}") from None
    if as_json:
        drawn = {"output": str(output), "width": WIDTH, "height": HEIGHT, "bytes": len(drawing.png)}
        say([json.dumps({**drawn, "missing_glyphs": drawing.missing_glyphs})])
    return 0
