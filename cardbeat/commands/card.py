"""The command `card`: draws a card into a file, without a server."""

import os
from argparse import ArgumentTypeError, Namespace
from pathlib import Path

from cardbeat.cards.request import LOOKS, card_from
from cardbeat.commands.options import ACCENT, Parser, command, file_path, tell
from cardbeat.errors import StartupError, refusals_as_startup_errors
from cardbeat.host import pillow
from cardbeat.host.output import complain, say
from cardbeat.host.staging import written_whole
from cardbeat.host.system import UNSHAPED

_TEXTS = {
    "description": "a sentence below the title",
    "author": "who wrote the page",
    "tag": "its subject, such as Guides",
    "domain": "its site, such as example.com",
    "lang": "the texts' language, such as ja or zh-TW [guessed]",
}


def parser() -> Parser:
    made = command("card", "Draw a card into a PNG file.")
    made.add_argument("--title", metavar="TEXT", required=True, help="the large text")
    for name, what in _TEXTS.items():
        made.add_argument(f"--{name}", metavar="TEXT", default="", help=what)
    add_look(made)
    made.add_argument(
        "--output",
        metavar="FILE",
        required=True,
        type=_png_path,
        help="ends with .png; - is standard output",
    )
    return made


def add_look(parser: Parser) -> None:
    """The options of how a card looks. `card_from` refuses other values."""
    for name, allowed in LOOKS.items():
        usual = allowed[0]
        parser.add_argument(
            f"--{name}", metavar="|".join(allowed), default=usual, help=f"one of these [{usual}]"
        )
    ACCENT.add_to(parser)


def _png_path(text: str) -> Path | None:
    """The path of the file; None for standard output."""
    path = None if text == "-" else file_path(text)
    if path and path.suffix.lower() != ".png":
        raise ArgumentTypeError("must end with .png, or be - for standard output")
    return path


def run(given: Namespace) -> int:
    if given.output is None and given.json:
        raise StartupError("--json prints to standard output, where the card goes; name a file")
    with refusals_as_startup_errors():
        card = card_from(vars(given))
    pillow.require()
    from cardbeat.cards.drawing.layout import HEIGHT, WIDTH  # noqa: PLC0415
    from cardbeat.cards.drawing.render import Renderer  # noqa: PLC0415
    from cardbeat.typeset.faces.fonts import Fonts  # noqa: PLC0415 - importing it needs Pillow

    drawing = Renderer(Fonts(), given.accent).render(card)
    if drawing.unshaped:
        complain(UNSHAPED)
    if given.output is None:
        say(drawing.png)
        return 0
    place = Path(os.path.realpath(given.output))
    try:
        with written_whole(place) as file:
            file.write(drawing.png)
    except OSError as error:
        raise StartupError(f"can't write {given.output}: {error.strerror}") from None
    size = {"width": WIDTH, "height": HEIGHT, "bytes": len(drawing.png)}
    lack = {"missing_glyphs": drawing.missing_glyphs}
    tell(given, {"output": str(given.output), **size, **lack}, ())
    return 0
