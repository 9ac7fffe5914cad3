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

import json
import os
import statistics
import subprocess
import sys
import time
from itertools import product
from operator import itemgetter
from pathlib import Path

from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.painter import ALLOCATOR
from cardbeat.cards.request import TEMPLATES, card_from
from cardbeat.typeset.faces.fonts import Fonts
from tests.bench.running import arguments_of

ROUNDS = 40
TURNS = 3
CONTENTS = Path(__file__).with_name("contents.json").read_text("utf-8")
CARD = json.loads(CONTENTS)["all fields"]
FIGURES = ("median_ms", "cpu_ms", "kilobytes")
PEERS = Path(__file__).with_name("cards_peers.mjs")


def main(folder):
    ours = []
    peers = []
    for _ in range(TURNS):
        ours += map(drawn_here, TEMPLATES)
        if folder:
            lines = node(
                folder, str(ROUNDS), json.dumps(CARD)
            ).splitlines()
            peers += map(json.loads, lines)
    ours = fastest(ours)
    peers = fastest(peers)
    for result in (*ours, *peers):
        show(result["name"], {what: result[what] for what in FIGURES})
    for one, peer in product(ours, peers):
        ratios = {what: one[what] / peer[what] for what in FIGURES}
        show(f"{one['name']} to {peer['name']}", ratios)


def show(name, figures):
    cells = [f"{number:10.2f} {what}" for what, number in figures.items()]
    print(f"{name:42}", *cells)


def fastest(results):
    """Of each name the result of its fastest turn."""
    found = {}
    for result in sorted(results, key=itemgetter("median_ms")):
        found.setdefault(result["name"], result)
    return list(found.values())


def drawn_here(template):
    renderer = Renderer(Fonts())
    renderer.render(card_from({**CARD, "template": template}))
    times = []
    began_cpu = time.process_time()
    for number in range(ROUNDS):
        card = card_from({**other_card(number), "template": template})
        began = time.perf_counter()
        drawing = renderer.render(card)
        times.append((time.perf_counter() - began) * 1000)
    return {
        "name": f"cardbeat {template}",
        "median_ms": statistics.median(times),
        "cpu_ms": (time.process_time() - began_cpu) * 1000 / ROUNDS,
        "kilobytes": len(drawing.png) / 1000,
    }


def other_card(number, word=""):
    """The card with other words first in its title and its description, and one more at their ends."""
    changed = dict(CARD)
    for name in ("title", "description"):
        words = CARD[name].split()
        at = number % len(words)
        changed[name] = " ".join(
            [*words[at:], *words[:at], word]
        ).rstrip()
    return changed


def node(folder, *arguments, **options):
    """What the peers' program prints, with what npm has installed in the folder."""
    command = ["node", PEERS, Path(folder).resolve(), *arguments]
    options |= {"stdout": subprocess.PIPE, "text": True}
    return subprocess.run(
        command, check=True, timeout=600, **options
    ).stdout


if __name__ == "__main__":
    given = arguments_of(__doc__, "folder", trees=0, folder=None)
    if not os.environ.keys() >= ALLOCATOR.keys():
        # The process that draws has these from its start.
        command = [
            sys.executable,
            "-m",
            "tests.bench.cards",
            *sys.argv[1:],
        ]
        os.execve(sys.executable, command, os.environ | ALLOCATOR)
    main(given.folder)
