"""For benchmarks: a data folder with thousands of different stored cards of a size.

The server draws one card. The others are that picture again with other bytes behind it, stored as
the server stores what it has drawn.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from tests.bench.running import create_key, serving
from tests.kit.client import ask

KEYS = 8
TEMPLATES = ("blog", "blog", "blog", "default", "article")
STORE_MB = "16384"
SEALING = Path(__file__).with_name("sealing.py")
ROWS = (
    Path(__file__).with_name("titles.txt").read_text("utf-8").splitlines()
)
TITLES = [row.split("\t")[2] for row in ROWS]
"""Of posts, documentation, news, shops and towns, in ten languages."""


def stock(tree, data, count, kilobytes):
    """Fill a data folder with `count` cards for the server of a tree.

    The targets, and the files with the bytes that they are answered with.
    """
    keys = [create_key(tree, data) for _ in range(KEYS)]
    with serving("--store-mb", STORE_MB, tree=tree, data=data) as server:
        drawn = ask(server, "GET", f"/og?title=Card&key={keys[0]}").body
    (data / "drawn.png").write_bytes(drawn)
    (folder,) = (data / "cards").iterdir()
    order = {
        "folder": str(folder),
        "png": str(data / "drawn.png"),
        "size": int(kilobytes * 1000),
        "targets": targets_of(keys, count),
    }
    # In a process with the package of the tree: names and seals of files are its own affair.
    # -P: the script's folder is not one to import from.
    stored = subprocess.run(
        [sys.executable, "-P", SEALING],
        env=os.environ | {"PYTHONPATH": str(tree)},
        input=json.dumps(order),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    files = [folder / name for name in json.loads(stored.stdout)]
    return order["targets"], files


def targets_of(keys, count):
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
            "template": chance.choice(TEMPLATES),
            "theme": chance.choice(("light", "dark")),
            "key": keys[number % len(keys)],
        }
        targets.append(f"/og?{urlencode(fields)}")
    return targets
