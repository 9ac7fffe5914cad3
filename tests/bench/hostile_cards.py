"""Draws thousands of hostile cards in one process, and compares the slowest with an ordinary one.

    python -m tests.bench.hostile_cards [CARDS] [--cold] [--basic] [--seed N] [--limit RATIO]

A third of them are random, a third mix a script with another at each letter, and a third are made from the slowest so
far by changing them a little. The blog card is drawn between them, with another title each time; ratios are of CPU
time and of elapsed time to its medians. The ten slowest are drawn four times more, each time with no font opened and
nothing kept but the empty backgrounds, and the blog card beside each: what counts is the fastest of the four, as a
ratio to the median of these blog cards, since a machine is faster at one time and slower at another. Every card must
be a PNG of 1200 x 630 under 100 KB.

With --cold every card is drawn so; with --basic without raqm. Ends with status 1 where a card took more than
RATIO times as long as the blog card.
"""

import argparse
import heapq
import os
import random
import statistics
import time
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import NamedTuple

import PIL
from PIL import Image

from cardbeat.cards.drawing import page, render
from cardbeat.cards.drawing.background import rows_of
from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.request import TEMPLATES, THEMES, card_from
from cardbeat.typeset.faces import emoji
from cardbeat.typeset.faces.files import anchors_of
from cardbeat.typeset.faces.fonts import Fonts
from tests.bench.hostile_texts import Fields, hostile_fields, mixed_scripts, mutated
from tests.bench.running import parser_of

BLOG = {
    "title": "Designing reliable background jobs with nothing but SQLite",
    "description": "How we moved two million jobs a day from a message broker to a single file, and what we learned "
    "about locks, retries and back-pressure along the way.",
    "author": "Ada Lovelace",
    "tag": "Engineering",
    "domain": "blog.example.com",
    "template": "blog",
}
SLOWEST, REDRAWN = 10, 4
PARENTS = 40
"""Slow cards from which others are made."""


class Took(NamedTuple):
    """Milliseconds of one drawing."""

    cpu: float
    wall: float


class Bench:
    """One process that draws cards, and the times of the blog card in it."""

    def __init__(self, shaping: bool | None, cold: bool) -> None:
        self.shaping, self.cold = shaping, cold
        self.ordinary: list[Took] = []
        self.largest = 0
        self._numbers = count()
        self._renderer = self._new()

    def draw(self, fields: Fields, cold: bool | None = None) -> Took:
        """Draws a card and looks at the picture."""
        renderer = self._new() if (self.cold if cold is None else cold) else self._renderer
        card = card_from(fields)
        cpu, wall = time.thread_time(), time.perf_counter()
        png = renderer.render(card).png
        took = Took((time.thread_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000)
        self.largest = max(self.largest, len(png))
        with Image.open(BytesIO(png)) as image:
            assert image.size == (1200, 630), fields
        assert len(png) < 100_000, fields
        return took

    def draw_ordinary(self) -> None:
        """As on a site: the labels are those of the card before, and the fonts are open."""
        for keep in (False, True):
            took = self.draw({**BLOG, "title": f"{BLOG['title']} {next(self._numbers)}"}, cold=False)
            if keep:
                self.ordinary.append(took)

    def median(self) -> Took:
        return Took(*map(statistics.median, zip(*self.ordinary, strict=True)))

    def _new(self) -> Renderer:
        """A renderer that has opened no font and keeps nothing but the empty backgrounds, which are one for a theme."""
        page._label.cache_clear()
        rows_of.cache_clear()
        render.rounded.cache_clear()
        render.triangle.cache_clear()
        for kept in (anchors_of, emoji._drawn, emoji.emoji_characters, emoji.emoji_signs):
            kept.cache_clear()
        return Renderer(Fonts(shaping=self.shaping))


def main(arguments: argparse.Namespace) -> int:
    bench = Bench(False if arguments.basic else None, arguments.cold)
    for template in TEMPLATES:
        for theme in THEMES:
            bench.draw(BLOG | {"template": template, "theme": theme}, cold=False)
    before = _memory_mb()
    times, slowest = _draw_all(bench, arguments.cards, random.Random(arguments.seed))
    _show(bench, times, before)
    return _show_slowest(bench, slowest, arguments.limit)


def _draw_all(bench: Bench, cards: int, chance: random.Random) -> tuple[list[Took], list[tuple[Took, Fields]]]:
    """The time of each card, and the slowest of them with their fields, slowest first."""
    times: list[Took] = []
    slow: list[tuple[float, int, Took, Fields]] = []
    for number in range(cards):
        if number % 20 == 0:
            bench.draw_ordinary()
        made = number % 3
        parent = chance.choice(slow)[3] if slow and made == 2 else None
        fields = mutated(chance, parent) if parent else (mixed_scripts if made else hostile_fields)(chance)
        took = bench.draw(fields)
        times.append(took)
        heapq.heappush(slow, (took.cpu, number, took, fields))
        if len(slow) > PARENTS:
            heapq.heappop(slow)
    return times, [(took, fields) for _, _, took, fields in sorted(slow, key=lambda s: -s[0])[:SLOWEST]]


def _show(bench: Bench, times: list[Took], before: float) -> None:
    raqm = "without" if bench.shaping is False else "with"
    print(f"Pillow {PIL.__version__}, {raqm} raqm, {len(times):,} cards, {'cold' if bench.cold else 'warm'}:")
    print(f"blog card, median: {_shown(bench.median())}")
    for name, part in (("median", 0.5), ("99th percentile", 0.99), ("slowest", 1.0)):
        took = Took(*(sorted(kind)[int((len(times) - 1) * part)] for kind in zip(*times, strict=True)))
        print(f"hostile, {name}: {_shown(took)}, {_ratios(took, bench.median())}")
    print(f"largest PNG {bench.largest / 1000:.1f} KB; memory {before:.1f} MB before, {_memory_mb():.1f} MB after")


def _show_slowest(bench: Bench, slowest: list[tuple[Took, Fields]], limit: float) -> int:
    overall, worst = bench.median(), 0.0
    for first, fields in slowest:
        again: list[Took] = []
        bench.ordinary.clear()
        for _ in range(REDRAWN):
            bench.draw_ordinary()
            again.append(bench.draw(fields, cold=True))
        took, ordinary = Took(*map(min, zip(*again, strict=True))), bench.median()
        worst = max(worst, took.cpu / ordinary.cpu)
        print(f"{_ratios(took, ordinary)}, at first {_ratios(first, overall)}: {_cut(fields)}")
    print(f"worst, drawn again: {worst:.1f} times the blog card; allowed {limit:g}")
    return int(worst > limit)


def _cut(fields: Fields) -> str:
    return ", ".join(f"{name} ({len(text)}) {text[:12]!a}" for name, text in fields.items())


def _shown(took: Took) -> str:
    return f"{took.cpu:.1f} ms of CPU, {took.wall:.1f} ms"


def _ratios(took: Took, ordinary: Took) -> str:
    return f"{took.cpu / ordinary.cpu:.1f} x CPU, {took.wall / ordinary.wall:.1f} x time"


def _memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("cards", metavar="CARDS", nargs="?", type=int, default=10_000, help="[10000]")
    parser.add_argument("--cold", action="store_true", help="with no font opened and nothing kept, each time")
    parser.add_argument("--basic", action="store_true", help="without raqm")
    parser.add_argument(
        "--seed", metavar="N", type=int, default=1200_630, help="another one gives other cards [1200630]"
    )
    parser.add_argument("--limit", metavar="RATIO", type=float, default=10, help="to the blog card's median [10]")
    raise SystemExit(main(parser.parse_args()))
