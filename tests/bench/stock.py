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
TEXT = """Designing reliable background jobs with nothing but SQLite and how we moved two million of them
a day from message broker to single file what learned about locks retries back-pressure along the
way Überlegungen für größere Café naïve résumé São Paulo Łódź Привет Новости документация
日本語 設計 データ"""
WORDS = TEXT.split()
AUTHORS = (
    "Ada Lovelace",
    "Grace Hopper",
    "Zoë Müller",
    "Renée Ångström",
    "Linus T.",
    "Мария Иванова",
)
TAGS = ("Engineering", "Release", "Essays", "How-to", "Product")


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


def targets_of(keys: list[str], count: int, seed: int = 1) -> list[str]:
    """Request targets of different cards, as a site's pages would have them."""
    chance = random.Random(seed)
    return [
        f"/og?{urllib.parse.urlencode(_card(chance, number, keys[number % len(keys)]))}"
        for number in range(count)
    ]


def _card(chance: random.Random, number: int, key: str) -> dict[str, str]:
    return {
        "title": f"{' '.join(chance.choices(WORDS, k=chance.randint(4, 9)))} {number}",
        "description": " ".join(chance.choices(WORDS, k=chance.randint(18, 30))),
        "author": chance.choice(AUTHORS),
        "tag": chance.choice(TAGS),
        "domain": "blog.example.com",
        "template": chance.choice(("blog", "blog", "blog", "default", "article")),
        "theme": chance.choice(("light", "dark")),
        "key": key,
    }


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def _store(tree: Path, folder: Path, targets: list[str], png: bytes, kilobytes: float) -> list[str]:
    """In a process with the package of the tree: names and seals of files are its own affair."""
    drawn = folder.parents[1] / "drawn.png"
    drawn.write_bytes(png)
    size = int(kilobytes * 1000)
    order = {"folder": str(folder), "png": str(drawn), "size": size, "targets": targets}
    environment = os.environ | {"PYTHONPATH": str(tree)}
    # -P: the script's folder is not one to import from.
    command = [sys.executable, "-P", str(SEALING)]
    stored = subprocess.run(
        command, env=environment, input=json.dumps(order), stdout=-1, text=True, check=True
    )
    return json.loads(stored.stdout)
