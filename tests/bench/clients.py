"""For benchmarks: eight kinds of client as they come to a site's preview cards.

`clients.txt` has the headers that each sends. Half of them come through a proxy, which names the
visitor's address and gives every request an id of its own.
"""

import random
import re
from pathlib import Path

KINDS = Path(__file__).with_suffix(".txt").read_text().split("\n\n")
PLACE = re.compile("<([^>]+)>")
VARIANTS = 64
"""Of each kind: visitors with addresses, versions and languages of their own."""
LANGUAGES = (
    "en-US,en;q=0.9",
    "de-DE,de;q=0.9,en;q=0.6",
    "ja,en-US;q=0.7,en;q=0.3",
    "pt-BR,pt;q=0.8",
    "fr;q=0.9, en;q=0.5",
)


def header_blocks(seed=1):
    """The header lines of `VARIANTS` clients of every kind, each block ending with CRLF."""
    chance = random.Random(seed)
    return [
        lines_of(kind, chance) for kind in KINDS for _ in range(VARIANTS)
    ]


def lines_of(kind, chance):
    def value(place):
        what, *numbers = place[1].split()
        if what == "int":
            return str(chance.randint(*map(int, numbers)))
        if what == "hex":
            return chance.randbytes(int(numbers[0])).hex()[
                : int(numbers[0])
            ]
        if what == "address":
            return f"203.0.{chance.randrange(256)}.{chance.randrange(1, 255)}"
        return chance.choice(LANGUAGES)

    return "\r\n".join([*PLACE.sub(value, kind).splitlines(), ""])
