"""For `stock.py`: seals cards with the package of whatever checkout PYTHONPATH names, so it imports nothing of `tests`.

    python -P tests/bench/sealing.py FOLDER < TARGETS

FOLDER is that of the stored cards; the drawn ones that the others are made from are `*.drawn` files two folders up.
TARGETS is a JSON list of request targets; prints a JSON list of their file names.
"""

import argparse
import json
import sys
import zlib
from pathlib import Path

IEND = b"\x00\x00\x00\x00IEND\xaeB`\x82"


def seal_all(folder: Path, targets: list[str]) -> list[str]:
    """Store what was not drawn; the file names of all. The one place that uses the package."""
    from cardbeat.cards.seal import file_name, seal

    drawn = [path.read_bytes() for path in sorted(folder.parents[1].glob("*.drawn"))]
    names = [file_name(target) for target in targets]
    for number in range(len(drawn), len(targets)):
        png = with_comment(drawn[number % len(drawn)], f"card {number} ".encode() * (1 + number % 50))
        (folder / names[number]).write_bytes(seal(names[number], png, 0).png)
    return names


def with_comment(png: bytes, text: bytes) -> bytes:
    """The same picture with a text chunk before its end."""
    chunk = b"tEXtComment\x00" + text
    whole = (len(chunk) - 4).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    return png.removesuffix(IEND) + whole + IEND


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    print(json.dumps(seal_all(parser.parse_args().folder, json.load(sys.stdin))))
