"""Draws one card here and with each peer, in one run.

    python -m tests.bench.cards [FOLDER]

FOLDER holds the peers, installed there with
`npm install @takumi-rs/core satori @resvg/resvg-js @vercel/og@0.11.1 @fontsource/inter`; without it only ours is drawn.
Prints the median time of a warm drawing in process, the CPU time of one, the size of the PNG, and the ratios of ours
to theirs. All are drawn in turn, several times, and the fastest turn of each counts; on a busy machine the CPU time is
the fairer figure.
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
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.painter import ALLOCATOR
from cardbeat.cards.request import TEMPLATES, card_from
from cardbeat.typeset.faces.fonts import Fonts
from tests.bench.running import parser_of

ROUNDS = 40
TURNS = 3
CONTENTS = json.loads(
    Path(__file__).with_name("contents.json").read_text("utf-8")
)
CARD: dict[str, str] = CONTENTS["all fields"]
FIGURES = ("median_ms", "cpu_ms", "kilobytes")
Result = dict[str, Any]
PEERS = Path(__file__).with_name("cards_peers.mjs")


def main(arguments: argparse.Namespace) -> None:
    ours: list[Result] = []
    peers: list[Result] = []
    for _ in range(TURNS):
        ours += map(_ours, TEMPLATES)
        peers += _peers(arguments.folder) if arguments.folder else []
    ours = _fastest(ours)
    peers = _fastest(peers)
    for result in (*ours, *peers):
        figures = " ".join(f"{result[what]:10.1f} {what}" for what in FIGURES)
        print(f"{result['name']:20} {figures}")
    for one, peer in product(ours, peers):
        figures = ", ".join(
            f"{one[what] / peer[what]:.2f} of {what}" for what in FIGURES
        )
        print(f"{one['name']} to {peer['name']}: {figures}")


def _fastest(results: list[Result]) -> list[Result]:
    """Of each name the result of its fastest turn."""
    found: dict[str, Result] = {}
    for result in sorted(results, key=itemgetter("median_ms")):
        found.setdefault(result["name"], result)
    return list(found.values())


def _ours(template: str) -> Result:
    renderer = Renderer(Fonts())
    drawing = renderer.render(card_from({**CARD, "template": template}))
    times = []
    begin_cpu = time.process_time()
    for number in range(ROUNDS):
        new = {
            name: turned(CARD[name], number)
            for name in ("title", "description")
        }
        card = card_from({**CARD, **new, "template": template})
        start = time.perf_counter()
        drawing = renderer.render(card)
        times.append((time.perf_counter() - start) * 1000)
    return {
        "name": f"cardbeat {template}",
        "median_ms": statistics.median(times),
        "cpu_ms": (time.process_time() - begin_cpu) * 1000 / ROUNDS,
        "kilobytes": len(drawing.png) / 1000,
    }


def turned(text: str, number: int) -> str:
    """The same words, another one first."""
    words = text.split()
    at = number % len(words)
    return " ".join(words[at:] + words[:at])


def _peers(folder: str) -> list[Result]:
    command = [
        "node",
        str(PEERS),
        str(Path(folder).resolve()),
        str(ROUNDS),
        json.dumps(CARD),
    ]
    run = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=300
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="where npm has installed the peers",
    )
    given = parser.parse_args()
    if not os.environ.keys() >= ALLOCATOR.keys():
        # The process that draws has these from its start.
        command = [sys.executable, "-m", "tests.bench.cards", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | ALLOCATOR)
    main(given)
