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


def store_all(
    folder: Path, png: bytes, size: int, targets: list[str]
) -> list[str]:
    """The names of the files. Each card has the same picture, and bytes of its own."""
    chance = random.Random(size)
    names = []
    for target in targets:
        name = file_name(target)
        wanted = int(size * chance.uniform(1 - SPREAD, 1 + SPREAD))
        comment = chance.randbytes(max(wanted - len(png), 16))
        (folder / name).write_bytes(
            seal(name, with_comment(png, comment), 0).png
        )
        names.append(name)
    return names


def with_comment(png: bytes, text: bytes) -> bytes:
    """The same picture with a chunk before its end that nothing reads."""
    chunk = b"crDb" + text
    length = len(text).to_bytes(4, "big")
    checksum = zlib.crc32(chunk).to_bytes(4, "big")
    return png.removesuffix(IEND) + length + chunk + checksum + IEND


if __name__ == "__main__":
    order = json.load(sys.stdin)
    png = Path(order["png"]).read_bytes()
    print(
        json.dumps(
            store_all(
                Path(order["folder"]), png, order["size"], order["targets"]
            )
        )
    )
