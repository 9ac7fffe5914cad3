"""For benchmarks: a data folder with thousands of different stored cards of a size.

The server draws one card. The others are that picture again with other bytes behind it, stored as
the server stores what it has drawn.
"""

import json
import os
import random
import subprocess
import sys
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.bench.running import create_key, serving

KEYS = 8
STORE_MB = "16384"
SEALING = Path(__file__).with_name("sealing.py")
ROWS = Path(__file__).with_name("titles.txt").read_text("utf-8").splitlines()
TITLES = [row.split("\t")[2] for row in ROWS]
"""Of posts, documentation, news, shops and towns, in ten languages."""


@dataclass(frozen=True)
class Stock:
    """`targets[n]` is answered with the bytes of `files[n]`."""

    data: Path
    targets: list[str]
    files: list[Path]


def stock(tree: Path, data: Path, count: int, kilobytes: float) -> Stock:
    """Fill a data folder with `count` cards for the server of a tree."""
    keys = [create_key(tree, data, "--tier", "unlimited") for _ in range(KEYS)]
    with serving("--store-mb", STORE_MB, tree=tree, data=data) as server:
        png = _get(f"{server.url}/og?title=Card&key={keys[0]}")
    (folder,) = (data / "cards").iterdir()
    targets = targets_of(keys, count)
    names = _store(tree, folder, targets, png, kilobytes)
    return Stock(data, targets, [folder / name for name in names])


def targets_of(keys: list[str], count: int) -> list[str]:
    """Request targets of different cards, as a site's pages would have them."""
    chance = random.Random(1)
    targets = []
    for number in range(count):
        fields = {
            "title": f"{chance.choice(TITLES)} {number}",
            "description": chance.choice(TITLES),
            "author": "Zoë Müller",
            "tag": "Engineering",
            "domain": "blog.example.com",
            "template": chance.choice(
                ("blog", "blog", "blog", "default", "article")
            ),
            "theme": chance.choice(("light", "dark")),
            "key": keys[number % len(keys)],
        }
        targets.append(f"/og?{urllib.parse.urlencode(fields)}")
    return targets


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def _store(
    tree: Path, folder: Path, targets: list[str], png: bytes, kilobytes: float
) -> list[str]:
    """In a process with the package of the tree: names and seals of files are its own affair."""
    drawn = folder.parents[1] / "drawn.png"
    drawn.write_bytes(png)
    size = int(kilobytes * 1000)
    order = {
        "folder": str(folder),
        "png": str(drawn),
        "size": size,
        "targets": targets,
    }
    environment = os.environ | {"PYTHONPATH": str(tree)}
    # -P: the script's folder is not one to import from.
    command = [sys.executable, "-P", str(SEALING)]
    stored = subprocess.run(
        command,
        env=environment,
        input=json.dumps(order),
        stdout=-1,
        text=True,
        check=True,
    )
    return json.loads(stored.stdout)
