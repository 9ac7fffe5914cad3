"""For `stock.py`: stores cards as the package does that PYTHONPATH names.

    python -P tests/bench/sealing.py < ORDER

It imports nothing of `tests`. ORDER is JSON: the `folder` of the stored cards, `png`, the file of a
drawn card, the average `size` in bytes of those that are made of it, and their request `targets`.
It prints a JSON list of the names of their files.
"""

import json
import random
import sys
import zlib
from pathlib import Path

from cardbeat.cards.seal import seal
from cardbeat.cards.store import file_name

IEND = b"\x00\x00\x00\x00IEND\xaeB`\x82"
SPREAD = 0.1
"""A card is at most this part larger or smaller than it should be on average."""


def main():
    order = json.load(sys.stdin)
    png = Path(order["png"]).read_bytes()
    chance = random.Random(order["size"])
    names = []
    for target in order["targets"]:
        name = file_name(target)
        wanted = order["size"] * chance.uniform(1 - SPREAD, 1 + SPREAD)
        comment = chance.randbytes(max(int(wanted) - len(png), 16))
        sealed = seal(name, with_comment(png, comment), 0)
        Path(order["folder"], name).write_bytes(sealed.png)
        names.append(name)
    print(json.dumps(names))


def with_comment(png, text):
    """The same picture with a chunk before its end that nothing reads."""
    chunk = b"crDb" + text
    length = len(text).to_bytes(4, "big")
    checksum = zlib.crc32(chunk).to_bytes(4, "big")
    return png.removesuffix(IEND) + length + chunk + checksum + IEND


if __name__ == "__main__":
    main()
