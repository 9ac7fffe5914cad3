"""For benchmarks: a data folder with thousands of different stored cards.

A few hundred are drawn by the server itself. The others are those again with a text chunk that differs, so that each
is a PNG with bytes of its own, sealed as the store seals what it has drawn.
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

DRAWN = 200
KEYS = 8
STORE_MB = "16384"
SEALING = Path(__file__).with_name("sealing.py")
TEXT = """Designing reliable background jobs with nothing but SQLite and how we moved two million of them a day
from message broker to single file what learned about locks retries back-pressure along the way Überlegungen für
größere Café naïve résumé São Paulo Łódź Привет Новости документация 日本語 設計 데이터"""
WORDS = TEXT.split()
AUTHORS = ("Ada Lovelace", "Grace Hopper", "Zoë Müller", "Renée Ångström", "Linus T.", "Мария Иванова")
TAGS = ("Engineering", "Release", "Essays", "How-to", "Product")


@dataclass(frozen=True)
class Stock:
    """`targets[n]` is answered with the bytes of `files[n]`."""

    data: Path
    targets: list[str]
    files: list[Path]


def stock(tree: Path, data: Path, count: int) -> Stock:
    """Fill a data folder with `count` cards for the server of a tree."""
    keys = [create_key(tree, data, "--tier", "unlimited") for _ in range(KEYS)]
    targets = targets_of(keys, count)
    with serving("--store-mb", STORE_MB, tree=tree, data=data) as server:
        drawn = [_get(f"{server.url}{target}") for target in targets[:DRAWN]]
    (folder,) = (data / "cards").iterdir()
    names = _seal_in(tree, folder, targets, drawn)
    return Stock(data, targets, [folder / name for name in names])


def targets_of(keys: list[str], count: int, seed: int = 1) -> list[str]:
    """Request targets of different cards, as a site's pages would have them."""
    chance = random.Random(seed)
    return [f"/og?{urllib.parse.urlencode(_card(chance, number, keys))}" for number in range(count)]


def _card(chance: random.Random, number: int, keys: list[str]) -> dict[str, str]:
    return {
        "title": f"{' '.join(chance.choices(WORDS, k=chance.randint(4, 9)))} {number}",
        "description": " ".join(chance.choices(WORDS, k=chance.randint(18, 30))),
        "author": chance.choice(AUTHORS),
        "tag": chance.choice(TAGS),
        "domain": "blog.example.com",
        "template": chance.choice(("blog", "blog", "blog", "default", "article")),
        "theme": chance.choice(("light", "dark")),
        "key": keys[number % len(keys)],
    }


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def _seal_in(tree: Path, folder: Path, targets: list[str], drawn: list[bytes]) -> list[str]:
    """In a process with the package of the tree: file names, formats and seals are its own affair."""
    for number, png in enumerate(drawn):
        (folder.parents[1] / f"{number}.drawn").write_bytes(png)
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    given = json.dumps(targets)
    # -P: the script's folder is not one to import from.
    command = [sys.executable, "-P", str(SEALING), str(folder)]
    run = subprocess.run(command, env=environment, input=given, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)
