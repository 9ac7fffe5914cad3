"""How much memory the server and the process that draws take.

    python -m tests.bench.memory [--tree DIR] [--beside DIR] [--rounds N]

The server: some seconds after its start; when 2,000 clients have asked for something and stay; when
1,500 stored cards of 55 KB (82 MB) were asked for, more than the memory for cards holds. The
process that draws: after 200 cards, the titles of `titles.txt` in ten languages. Goals: at the start at most 40 MB, with full memory
for cards 125 MB, the process that draws 45 MB.
"""

import argparse
import contextlib
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from tests.bench.checks import seconds_of
from tests.bench.running import (
    HEALTH,
    Figures,
    Server,
    children_of,
    compare,
    create_key,
    memory_bytes,
    parser_of,
    raise_descriptor_limit,
    serving,
)
from tests.bench.stock import STORE_MB, TITLES, stock
from tests.kit.client import connect

LOADED_SECONDS = 3
CLIENTS = 2000
CARDS = 1500
KILOBYTES = 55


def main(arguments: argparse.Namespace) -> None:
    raise_descriptor_limit()
    compare(arguments, measure)


def measure(tree: Path) -> Figures:
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        stored = stock(tree, Path(folder) / "data", CARDS, KILOBYTES)
        with serving(
            "--store-mb", STORE_MB, tree=tree, data=stored.data
        ) as server:
            time.sleep(LOADED_SECONDS)
            figures["at the start, MB"] = memory_bytes(server.pid) / 1e6
            with contextlib.ExitStack() as stack:
                for _ in range(CLIENTS):
                    stack.enter_context(server.connect(HEALTH)).recv(4096)
                figures[f"with {CLIENTS:,} clients, MB"] = (
                    memory_bytes(server.pid) / 1e6
                )
            ask(server, stored.targets)
            figures["with full memory for cards, MB"] = (
                memory_bytes(server.pid) / 1e6
            )
    with serving(tree=tree) as server:
        key = create_key(tree, server.data, "--tier", "unlimited")
        # Not more than the 240 new cards that one client gets a minute.
        texts = [quote(title) for title in TITLES]
        ask(
            server,
            [f"/og?title={it}&description={it}&key={key}" for it in texts],
        )
        (painter,) = children_of(server.pid)
        figures["the process that draws, MB"] = memory_bytes(painter) / 1e6
    return figures


def ask(server: Server, targets: list[str]) -> None:
    with contextlib.closing(connect(server)) as connection:
        for target in targets:
            seconds_of(connection, "GET", target)


if __name__ == "__main__":
    main(parser_of(__doc__, rounds=1).parse_args())
