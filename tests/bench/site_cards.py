"""The cards of a site of 1,000 pages: `cards` beside Takumi, and a second run that draws nothing.

    python -m tests.bench.site_cards [--tree DIR] [--pages N] [FOLDER]

FOLDER holds Takumi, installed there with `npm install @takumi-rs/core @fontsource/inter`; without it only ours are
drawn. Takumi draws the same texts in one Node process, one after the other, and then as many at once as there are
cores; the faster counts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.cards import CARD, turned
from tests.bench.running import parser_of

PEER = Path(__file__).with_name("cards_peers.mjs")
HTML = """<!doctype html>
<html><head><meta charset="utf-8"><title>{title} | Blog</title><meta name="description" content="{description}">
<meta name="author" content="{author}"><meta property="article:tag" content="{tag}"></head><body>{body}</body></html>
"""
WORDS = (
    "lake",
    "river",
    "stone",
    "cloud",
    "paper",
    "light",
    "wind",
    "field",
    "summer",
    "garden",
)


def main(arguments: argparse.Namespace) -> None:
    cards = [card_of(number) for number in range(arguments.pages)]
    run = partial(seconds_of, arguments.tree)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_site(folder / "site", cards)
        options = (
            "--base-url",
            f"https://{CARD['domain']}",
            "--template",
            "blog",
        )
        command = ("cards", "site", "--output", "out", *options)
        drawing = run(folder, *command)
        second = run(folder, *command)
    speeds = {"cards": len(cards) / drawing}
    if arguments.folder:
        speeds["takumi"] = takumi(arguments.folder, cards)
    for side, speed in speeds.items():
        ratio = speeds["cards"] / speed
        print(
            f"{side:20} {speed:8.1f} cards/s; cards draws {ratio:6.1f} times as many"
        )
    print(f"a second run of {len(cards)} unchanged pages: {second:.2f} s")


def card_of(number: int) -> dict[str, str]:
    """A card with a title and a description of its own."""
    word = f"{WORDS[number % len(WORDS)]} {number}"
    return {
        **CARD,
        **{
            field: f"{turned(CARD[field], number)} {word}"
            for field in ("title", "description")
        },
    }


def write_site(site: Path, cards: list[dict[str, str]]) -> None:
    body = "<p>Text of a page.</p>\n" * 500
    for number, card in enumerate(cards):
        page = site / "posts" / str(number) / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(HTML.format(**card, body=body))


def seconds_of(tree: Path, folder: Path, *command: str) -> float:
    """How long one run of the command line takes."""
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(tree)}
    line = [sys.executable, "-m", "cardbeat", *command]
    subprocess.run(
        line,
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def takumi(folder: str, cards: list[dict[str, str]]) -> float:
    """Cards a second, with the start of the process."""
    at_once = (1, os.cpu_count() or 1)
    times = []
    for number in at_once:
        start = time.perf_counter()
        command = [
            "node",
            str(PEER),
            str(Path(folder).resolve()),
            "many",
            str(number),
        ]
        subprocess.run(
            command,
            input=json.dumps(cards),
            text=True,
            check=True,
            timeout=600,
        )
        times.append(time.perf_counter() - start)
    return len(cards) / min(times)


if __name__ == "__main__":
    parser = parser_of(__doc__, beside=False)
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="where npm has installed Takumi",
    )
    parser.add_argument(
        "--pages",
        metavar="N",
        type=int,
        default=1000,
        help="pages of the site [1000]",
    )
    main(parser.parse_args())
