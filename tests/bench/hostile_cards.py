"""Draws thousands of random and hostile texts.

    python -m tests.bench.hostile_cards [CARDS] [--basic]

Every one must be a PNG of 1200 x 630 under 100 KB. Prints the median time, the 99th percentile and the slowest, the
largest PNG, and the memory after a tenth, half and all of them. With --basic it does without raqm.
"""

import argparse
import random
import resource
import statistics
import time
from array import array
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import PIL
from PIL import Image

from cardbeat.cards.render import Renderer
from cardbeat.cards.request import TEMPLATES, TEXTS, THEMES, Card, card_from
from cardbeat.typeset.fonts import Fonts
from tests.bench.running import parser_of

CHANCE = random.Random(1200_630)
SCRIPTS = (
    *((0x20, 0x7F), (0xA0, 0x250), (0x370, 0x400), (0x400, 0x530), (0x531, 0x590), (0x590, 0x600), (0x600, 0x700)),
    *((0x900, 0x980), (0x980, 0xA00), (0xB80, 0xC00), (0xE00, 0xE80), (0xF00, 0x1000), (0x1000, 0x10A0)),
    *((0x1200, 0x1380), (0x1780, 0x1800), (0x2000, 0x2070), (0x2190, 0x2300), (0x3040, 0x3100), (0x4E00, 0x9FFF)),
    *((0xAC00, 0xD7A4), (0xFE00, 0xFE10), (0x1F300, 0x1F700), (0xE0000, 0xE0080), (0x10000, 0x110000), (0, 0x110000)),
)
FIXED = (
    "w" * 100_000,
    "lorem ipsum " * 8_000,
    "漢" * 100_000,
    "שלום " * 20_000,
    "a" + "\u0301" * 100_000,
    "👩‍👩‍👧‍👦" * 10_000,
    "\u202e" * 50_000 + "x",
    "(" * 100_000,
    "\u200d" * 100_000 + "x",
)


def main(arguments: argparse.Namespace) -> None:
    count = arguments.cards
    fonts = Fonts(shaping=False if arguments.basic else None)
    renderer = Renderer(fonts)
    memory = []
    times, sizes = array("d"), array("I")
    slowest = 0.0, ""
    for number in range(count):
        card = _card(number)
        start = time.thread_time()
        png = renderer.render(card).png
        times.append((time.thread_time() - start) * 1000)
        sizes.append(len(png))
        slowest = max(slowest, (times[-1], card.title[:40]))
        with Image.open(BytesIO(png)) as image:
            image.load()
            assert image.size == (1200, 630), card
        assert len(png) < 100_000, card
        if number in (count // 10, count // 2, count - 1):
            memory.append(_memory_mb())
    median, p99 = statistics.median(times), sorted(times)[int(count * 0.99)]
    print(f"Pillow {PIL.__version__}, {'with' if fonts.faces.shaping else 'without'} raqm, {count} cards:")
    print(
        f"median {median:.1f} ms, p99 {p99:.1f} ms ({p99 / median:.1f} x), slowest {slowest[0]:.1f} ms: {slowest[1]!r}"
    )
    shown = " -> ".join(f"{mb:.1f}" for mb in memory)
    print(f"largest PNG {max(sizes) / 1000:.1f} KB; memory after a tenth, half and all: {shown} MB")


def _card(number: int) -> Card:
    make: Callable[[], str] = _fixed if number % 20 == 0 else _random
    values = {name: make() for name in TEXTS if name == "title" or CHANCE.random() < 0.6}
    values["title"] = "x" + values["title"]
    return card_from({**values, "template": CHANCE.choice(TEMPLATES), "theme": CHANCE.choice(THEMES)})


def _fixed() -> str:
    return CHANCE.choice(FIXED)


def _random() -> str:
    first, end = CHANCE.choice(SCRIPTS)
    length = int(CHANCE.expovariate(1 / 60)) + 1
    text = (chr(CHANCE.randrange(first, end)) if CHANCE.random() < 0.85 else " " for _ in range(length))
    return "".join(text).encode("utf-8", "replace").decode()


def _memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("cards", metavar="CARDS", nargs="?", type=int, default=10_000, help="[10000]")
    parser.add_argument("--basic", action="store_true", help="without raqm")
    main(parser.parse_args())
