"""The cards of a site of 1,000 pages: `cards` beside Takumi, and a second run that draws nothing.

    python -m tests.bench.site_cards [--tree DIR] [--pages N] [FOLDER]

FOLDER holds Takumi, installed there with `npm install @takumi-rs/core @fontsource/inter`; without it only ours are
drawn. Takumi draws the same texts in one Node process, one after the other, and then as many at once as there are
cores; the faster counts.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.cards import CARD, node, other_card
from tests.bench.running import arguments_of

HTML = """<!doctype html>
<html><head><meta charset="utf-8"><title>{title} | Blog</title><meta name="description" content="{description}">
<meta name="author" content="{author}"><meta property="article:tag" content="{tag}"></head><body>{body}</body></html>
"""
WORDS = (
    "lake river stone cloud paper light wind field summer garden".split()
)
COMMAND = "-m cardbeat cards site --output out --template blog --base-url"


def main():
    arguments = arguments_of(
        __doc__, "folder", trees=1, folder=None, pages=1000
    )
    count = arguments.pages
    cards = list(cards_of_pages(count))
    with tempfile.TemporaryDirectory() as folder:
        write_site(Path(folder) / "site", cards)
        command = [
            sys.executable,
            *COMMAND.split(),
            f"https://{CARD['domain']}",
        ]
        environment = os.environ | {"PYTHONPATH": str(arguments.tree)}
        run = partial(
            subprocess.run,
            command,
            cwd=folder,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        ours = count / seconds_of(run)
        print(f"{ours:.1f} cards a second")
        again = seconds_of(run)
        print(f"{again:.2f} s for {count} unchanged pages")
    if arguments.folder:
        theirs = count / takumi_seconds(
            arguments.folder, json.dumps(cards)
        )
        print(
            f"{theirs:.1f} of Takumi, {ours / theirs:.2f} times as many here"
        )


def cards_of_pages(count):
    for number in range(count):
        word = WORDS[number % len(WORDS)]
        yield other_card(number, f"{word} {number}")


def write_site(site, cards):
    body = "<p>Text of a page.</p>\n" * 500
    for number, card in enumerate(cards):
        page = site / "posts" / str(number) / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(HTML.format(**card, body=body))


def seconds_of(run):
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def takumi_seconds(folder, cards):
    """For all cards, with the start of the process."""
    times = []
    for at_once in (1, os.cpu_count() or 1):
        run = partial(node, folder, "many", str(at_once), input=cards)
        times.append(seconds_of(run))
    return min(times)


if __name__ == "__main__":
    main()
