"""Draws one card here and with each peer, in one run.

    python -m tests.bench.cards [FOLDER]

FOLDER holds the peers, installed there with
`npm install @takumi-rs/core satori @resvg/resvg-js @vercel/og@0.11.1 @fontsource/inter`; without it only ours is drawn.
Prints the median time of a warm drawing in process, the size of the PNG, and both as a ratio of ours to theirs.
Ours, which keeps the labels it has drawn, gets a title and a description it has not seen each time: as on a site,
only the author, the tag and the domain stay.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.painter import ALLOCATOR
from cardbeat.cards.request import card_from
from cardbeat.typeset.faces.fonts import Fonts
from tests.bench.running import parser_of

ROUNDS = 40
CONTENTS = json.loads(Path(__file__).with_name("contents.json").read_text("utf-8"))
CARD: dict[str, str] = CONTENTS["all fields"]
PEERS = Path(__file__).with_name("cards_peers.mjs")


def main(arguments: argparse.Namespace) -> None:
    ours = [_ours(template) for template in ("blog", "default", "article")]
    peers = _peers(arguments.folder) if arguments.folder else []
    for result in (*ours, *peers):
        print(f"{result['name']:20} {result['median_ms']:7.1f} ms {result['bytes'] / 1000:7.1f} KB")
    for peer in peers:
        time_ratio, size_ratio = (ours[0][what] / peer[what] for what in ("median_ms", "bytes"))
        print(
            f"{ours[0]['name']} to {peer['name']}: {time_ratio:.2f} of the time, {size_ratio:.2f} of the bytes"
        )


def _ours(template: str) -> dict[str, float]:
    start = time.perf_counter()
    renderer = Renderer(Fonts())
    drawing = renderer.render(card_from({**CARD, "template": template}))
    first_ms = (time.perf_counter() - start) * 1000
    times = []
    for number in range(ROUNDS):
        new = {name: turned(CARD[name], number) for name in ("title", "description")}
        card = card_from({**CARD, **new, "template": template})
        start = time.perf_counter()
        drawing = renderer.render(card)
        times.append((time.perf_counter() - start) * 1000)
    print(f"first {template} card: {first_ms:.0f} ms")
    return {
        "name": f"cardbeat {template}",
        "median_ms": statistics.median(times),
        "bytes": len(drawing.png),
    }


def turned(text: str, number: int) -> str:
    """The same words, another one first."""
    words = text.split()
    at = number % len(words)
    return " ".join(words[at:] + words[:at])


def _peers(folder: str) -> list[dict[str, float]]:
    command = ["node", str(PEERS), str(Path(folder).resolve()), str(ROUNDS), json.dumps(CARD)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    return [json.loads(line) for line in run.stdout.splitlines()]


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="where npm has installed the peers"
    )
    given = parser.parse_args()
    if not os.environ.keys() >= ALLOCATOR.keys():
        # The process that draws has these from its start.
        command = [sys.executable, "-m", "tests.bench.cards", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | ALLOCATOR)
    main(given)
