"""Measures how 200 titles are set: sizes, ragged lines, small words at line ends.

    python -m tests.bench.titles [--description]

The titles, in ten languages, are written after the shape of real feeds: posts, documentation, news,
shops, towns. Prints the figures of all titles and of those longer than 70 characters, each as a
part of the titles that have more than one line, but for the axis and the sizes, which are of all.
"""

import re
from collections import Counter
from pathlib import Path
from statistics import median
from typing import NamedTuple

from cardbeat.cards.drawing.templates import lay_out
from cardbeat.cards.request import TEMPLATES, card_from
from cardbeat.typeset.faces.fonts import Fonts
from tests.bench.running import arguments_of

LONG = 70
AXIS_PX = 8
FOLDER = Path(__file__).parent
DESCRIPTION = (
    "How we moved two million jobs a day from a message broker to a single file, and what we"
    " learned."
)
COLON = re.compile(r"\w ?[:：](?=\s|[^\x00-\x7f])")


class Title(NamedTuple):
    """A title as it is set: its lines, and where each begins and how wide it is, in pixels."""

    language: str
    text: str
    size_px: int
    lines: list[str]
    starts: list[float]
    widths: list[int]

    def is_ragged(self):
        return min(self.widths) * 2 < max(self.widths)

    def keeps_colon(self):
        return any(line.endswith((":", "：")) for line in self.lines[:-1])

    def ends_small(self, small):
        ends = {
            line.split()[-1].lower() for line in self.lines[:-1] if line
        }
        return not ends.isdisjoint(small.split())


def main():
    arguments = arguments_of(__doc__, trees=0, description=False)
    small = dict(rows_of("small_words.txt"))
    fonts = Fonts()
    for template in TEMPLATES:
        titles = []
        for language, _, text in rows_of("titles.txt"):
            values = {"title": text, "template": template}
            if arguments.description:
                values |= {"description": DESCRIPTION, "lang": language}
            titles.append(set_title(fonts, language, values))
        axis, _ = Counter(one.starts[0] for one in titles).most_common(1)[
            0
        ]
        long = [one for one in titles if len(one.text) > LONG]
        for name, chosen in (("all", titles), ("long", long)):
            print(f"{template} {name} {len(chosen)}:", end=" ")
            print(*figures(chosen, small, axis), sep=", ")


def rows_of(name):
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines]


def set_title(fonts, language, values):
    card = card_from(values | {"domain": "blog.example.com"})
    texts = lay_out(fonts, card).texts
    beside_signs = [
        placed for placed in texts if placed.align != "center"
    ]
    largest = max(beside_signs, key=lambda placed: placed.block.size_px)
    title = Title(
        language, values["title"], largest.block.size_px, [], [], []
    )
    left = {"left": 0, "right": 1}[largest.align]
    for line in largest.block.lines:
        title.lines.append(line.text.strip())
        title.widths.append(line.width_px)
        room = largest.width - line.width_px
        title.starts.append(largest.x + left * room)
    return title


def figures(titles, small, axis):
    dashes = off_axis = 0
    for title in titles:
        dashes += sum(line[:1] in "-–—" for line in title.lines)
        off_axis += sum(abs(x - axis) > AXIS_PX for x in title.starts)
    sizes = [title.size_px for title in titles]
    return [
        *shares(titles, small),
        f"dash at a start {dashes}",
        f"lines off the axis {off_axis}",
        f"size {min(sizes)}/{median(sizes):.0f}/{max(sizes)}",
    ]


def shares(titles, small):
    """Of the titles that have more than one line."""
    found = {
        "a line under half": [],
        "small word at an end": [],
        "colon kept": [],
    }
    ragged, small_ends, colons = found.values()
    for title in titles:
        if len(title.lines) > 1:
            ragged.append(title.is_ragged())
            small_ends.append(title.ends_small(small[title.language]))
            if COLON.search(title.text):
                colons.append(title.keeps_colon())
    for name, of in found.items():
        share = sum(of) / max(1, len(of))
        yield f"{name} {sum(of)}/{len(of)} = {share:.0%}"


if __name__ == "__main__":
    main()
