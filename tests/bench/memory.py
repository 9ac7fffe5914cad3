"""How much memory the server and the process that draws take.

    python -m tests.bench.memory [--tree DIR] [--beside DIR] [--rounds N]

The server: some seconds after its start; when 2,000 clients have asked for something and stay; when
1,500 stored cards of 55 KB (82 MB) were asked for, more than the memory for cards holds. The
process that draws: after 200 cards, the titles of `titles.txt` in ten languages. Goals: at the start at most 40 MB, with full memory
for cards 125 MB, the process that draws 45 MB.
"""

import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

from tests.bench.checks import seconds_of
from tests.bench.running import (
    arguments_of,
    children_of,
    compare_trees,
    create_key,
    memory_mb,
    raise_descriptor_limit,
    serving,
)
from tests.bench.stock import STORE_MB, TITLES, stock
from tests.kit.client import connect

LOADED_SECONDS = 3
CLIENTS = 2000
CARDS = 1500
KILOBYTES = 55


def measure(tree):
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        targets, _ = stock(tree, data, CARDS, KILOBYTES)
        figures = of_server(tree, data, targets)
    with serving(tree=tree) as server:
        key = create_key(tree, server.data)
        targets = []
        # Not more than the 240 new cards that one client gets a minute.
        for title in map(quote, TITLES):
            text = f"title={title}&description={title}"
            targets.append(f"/og?{text}&key={key}")
        ask(server, targets)
        (painter,) = children_of(server.pid)
        figures["the process that draws, MB"] = memory_mb(painter)
    return figures


def of_server(tree, data, targets):
    figures = {}
    options = ("--store-mb", STORE_MB)
    with serving(*options, tree=tree, data=data) as server:
        time.sleep(LOADED_SECONDS)
        figures["at the start, MB"] = memory_mb(server.pid)
        with ExitStack() as stack:
            for _ in range(CLIENTS):
                client = stack.enter_context(closing(connect(server)))
                seconds_of(client, "GET", "/healthz")
            figures[f"with {CLIENTS:,} clients, MB"] = memory_mb(
                server.pid
            )
        ask(server, targets)
        figures["with full memory for cards, MB"] = memory_mb(server.pid)
    return figures


def ask(server, targets):
    with closing(connect(server)) as connection:
        for target in targets:
            seconds_of(connection, "GET", target)


if __name__ == "__main__":
    raise_descriptor_limit()
    compare_trees(arguments_of(__doc__, rounds=1), measure)
