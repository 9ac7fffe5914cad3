"""Measures how 200 titles are set: sizes, ragged lines, small words at line ends.

    python -m tests.bench.titles [--description]

The titles, in ten languages, are written after the shape of real feeds: posts, documentation, news,
shops, towns. Prints the figures of all titles and of those longer than 70 characters, each as a
part of the titles that have more than one line, but for the axis and the sizes, which are of all.
"""

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from cardbeat.cards.drawing.templates import lay_out
from cardbeat.cards.request import TEMPLATES, card_from
from cardbeat.typeset.faces.fonts import Fonts
from tests.bench.running import parser_of

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
    starts: list[int]
    widths: list[int]

    def is_ragged(self) -> bool:
        return min(self.widths) * 2 < max(self.widths)

    def keeps_colon(self) -> bool:
        return any(line.endswith((":", "：")) for line in self.lines[:-1])

    def ends_small(self, small: Sequence[str]) -> bool:
        return any(
            line.split()[-1].lower() in small
            for line in self.lines[:-1]
            if line
        )


def main(arguments: argparse.Namespace) -> None:
    small = dict(rows_of("small_words.txt"))
    fonts = Fonts()
    for template in TEMPLATES:
        titles = [
            set_title(fonts, language, text, template, arguments.description)
            for language, _, text in rows_of("titles.txt")
        ]
        axis, _ = Counter(title.starts[0] for title in titles).most_common(1)[
            0
        ]
        long = [title for title in titles if len(title.text) > LONG]
        for name, chosen in (("all", titles), ("long", long)):
            print(
                f"{template:8} {name:5} {len(chosen):4}  {figures(chosen, small, axis)}"
            )


def rows_of(name: str) -> list[list[str]]:
    return [
        line.split("\t")
        for line in (FOLDER / name).read_text("utf-8").splitlines()
    ]


def figures(titles: Sequence[Title], small: dict[str, str], axis: int) -> str:
    several = [title for title in titles if len(title.lines) > 1]
    kept = [
        title.keeps_colon() for title in several if COLON.search(title.text)
    ]
    small_ends = [
        title.ends_small(small[title.language].split()) for title in several
    ]
    sizes = [title.size_px for title in titles]
    dashes = sum(line[:1] in "-–—" for title in titles for line in title.lines)
    off_axis = sum(
        abs(x - axis) > AXIS_PX for title in titles for x in title.starts
    )
    return ", ".join(
        (
            part(
                "a line under half", [title.is_ragged() for title in several]
            ),
            part("small word at an end", small_ends),
            part("colon kept", kept),
            f"dash at a start {dashes}",
            f"lines off the axis {off_axis}",
            f"size {min(sizes)}/{median(sizes):.0f}/{max(sizes)}",
        )
    )


def part(name: str, found: Sequence[bool]) -> str:
    return f"{name} {sum(found)}/{len(found)} = {sum(found) / max(1, len(found)):.0%}"


def set_title(
    fonts: Fonts, language: str, text: str, template: str, described: bool
) -> Title:
    values = {
        "title": text,
        "template": template,
        "domain": "blog.example.com",
    }
    if described:
        values |= {"description": DESCRIPTION, "lang": language}
    layout = lay_out(fonts, card_from(values))
    beside_signs = [
        placed for placed in layout.texts if placed.align != "center"
    ]
    largest = max(beside_signs, key=lambda placed: placed.block.size_px)
    lines = largest.block.lines
    widths = [line.width_px for line in lines]
    left = {"left": 0, "center": 0.5, "right": 1}[largest.align]
    starts = [
        largest.x + int(left * (largest.width - width)) for width in widths
    ]
    texts = [line.text.strip() for line in lines]
    return Title(language, text, largest.block.size_px, texts, starts, widths)


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument(
        "--description",
        action="store_true",
        help="give each card a description",
    )
    main(parser.parse_args())
