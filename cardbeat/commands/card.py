"""The command `card`: draws a card into a file, without a server."""

import os
from argparse import Namespace
from pathlib import Path

from cardbeat.cards.request import LOOKS, card_from
from cardbeat.commands.options import ACCENT, Parser, command, tell
from cardbeat.errors import StartupError, refusals_as_startup_errors
from cardbeat.host.output import complain, say
from cardbeat.host.staging import written_whole
from cardbeat.host.surroundings import require_pillow
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
    add = made.add_argument
    add("--title", metavar="TEXT", required=True, help="the large text")
    for name, what in _TEXTS.items():
        add(f"--{name}", metavar="TEXT", default="", help=what)
    add_look(made)
    add(
        "--output",
        metavar="FILE",
        required=True,
        help="ends with .png; - is standard output",
    )
    return made


def add_look(parser: Parser) -> None:
    """The options of how a card looks. `card_from` refuses other values."""
    for name, allowed in LOOKS.items():
        usual = allowed[0]
        parser.add_argument(
            f"--{name}",
            metavar="|".join(allowed),
            default=usual,
            help=f"one of these [{usual}]",
        )
    ACCENT.add_to(parser)


def run(given: Namespace) -> int:
    if given.output != "-" and not given.output.lower().endswith(".png"):
        # Drawn there, a card would take the place of a device or of a page.
        raise StartupError(
            "--output must end with .png, or be - for standard output"
        )
    with refusals_as_startup_errors():
        card = card_from(vars(given))
    require_pillow()
    from cardbeat.cards.drawing.render import Renderer  # noqa: PLC0415
    from cardbeat.typeset.faces.fonts import Fonts  # noqa: PLC0415 - importing it needs Pillow

    drawing = Renderer(Fonts(), given.accent).render(card)
    if drawing.unshaped:
        complain(UNSHAPED)
    if given.output == "-":
        say(drawing.png)
        return 0
    try:
        place = Path(os.path.realpath(given.output))
        with written_whole(place) as file:
            file.write(drawing.png)
    except OSError as error:
        raise StartupError(
            f"can't write {given.output}: {error.strerror}"
        ) from None
    lack = drawing.missing_glyphs
    tell(
        given,
        {
            "output": given.output,
            "bytes": len(drawing.png),
            "missing_glyphs": lack,
        },
    )
    return 0
