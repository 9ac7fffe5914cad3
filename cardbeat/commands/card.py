"""The command `card`: draws a card into a file, without a server."""

import json
from collections.abc import Sequence
from pathlib import Path

from cardbeat import pillow
from cardbeat.errors import StartupError, refusals_as_startup_errors
from cardbeat.options import Parser, file_path
from cardbeat.output import say


def run(argv: Sequence[str]) -> int:
    parser = Parser("card --title TEXT --output FILE [options]", "Draw a card into a PNG file.")
    parser.add_argument("--title", metavar="TEXT", required=True)
    for name in ("description", "author", "tag", "domain"):
        parser.add_argument(f"--{name}", metavar="TEXT", default="")
    parser.add_argument("--template", metavar="NAME", default="default", help="default, blog or article [default]")
    parser.add_argument("--theme", metavar="NAME", default="dark", help="dark or light [dark]")
    parser.add_argument("--output", metavar="FILE", required=True, type=file_path)
    parser.add_argument("--json", action="store_true", help="print what was drawn, as JSON")
    given = vars(parser.parse_args(list(argv)))
    output: Path = given.pop("output")
    as_json: bool = given.pop("json")
    if problem := pillow.problem():
        raise StartupError(problem)
    from cardbeat.cards.layout import HEIGHT, WIDTH  # noqa: PLC0415
    from cardbeat.cards.render import Renderer  # noqa: PLC0415
    from cardbeat.cards.request import card_from  # noqa: PLC0415
    from cardbeat.typeset.fonts import Fonts  # noqa: PLC0415 - importing it needs Pillow

    with refusals_as_startup_errors():
        drawing = Renderer(Fonts()).render(card_from(given))
    try:
        output.write_bytes(drawing.png)
    except OSError as error:
        raise StartupError(f"can't write {output}: {error.strerror}") from None
    if as_json:
        drawn = {"output": str(output), "width": WIDTH, "height": HEIGHT, "bytes": len(drawing.png)}
        say([json.dumps({**drawn, "missing_glyphs": drawing.missing_glyphs})])
    return 0
