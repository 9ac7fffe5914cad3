"""A small answer over kept connections, and over one connection for each request: ours beside uvicorn, waitress, nginx.

    python -m tests.bench.small [--tree DIR] [--beside DIR] [--seconds N] [--rounds N] [--pinned]

Ours serves `/robots.txt`, the peers the same bytes, to 16 clients at a time with the headers of `clients.py`. All
servers run all the time and are measured in turn; figures are medians of the rounds, and mean what `varied` says.

Needs what `varied` needs.
"""

import argparse
import contextlib
import tempfile
import urllib.request
from functools import partial
from pathlib import Path

from tests.bench import wrk
from tests.bench.clients import header_blocks
from tests.bench.peers import PEERS, serving_peer
from tests.bench.running import Server, interleaved, parser_of, serving, trees_of

TARGET = "/robots.txt"
CONNECTIONS = 16
WORKLOADS = {"kept": 0.0, "closed": 1.0}
"""The share of requests after which the client closes its connection."""


def main(arguments: argparse.Namespace) -> None:
    with contextlib.ExitStack() as stack:
        servers = start_all(stack, arguments)
        sides = {
            (name, side): partial(wrk.measure, server, load_of(closing), arguments.seconds)
            for name, closing in WORKLOADS.items()
            for side, server in servers.items()
        }
        found = interleaved(sides, arguments.rounds)
    for name in WORKLOADS:
        wrk.show(name, {side: figures for (of, side), figures in found.items() if of == name}, trees_of(arguments))


def load_of(closing: float) -> wrk.Load:
    return wrk.Load([f"GET {TARGET}"], header_blocks(), CONNECTIONS, closing)


def start_all(stack: contextlib.ExitStack, arguments: argparse.Namespace) -> dict[str, Server]:
    servers = {
        name: stack.enter_context(serving(tree=tree, pinned=arguments.pinned))
        for name, tree in trees_of(arguments).items()
    }
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    with urllib.request.urlopen(f"{servers['now'].url}{TARGET}", timeout=10) as answer:
        (folder / TARGET[1:]).write_bytes(answer.read())
    peers = {name: stack.enter_context(serving_peer(name, folder, pinned=arguments.pinned)) for name in PEERS}
    return servers | peers


if __name__ == "__main__":
    parser = parser_of(__doc__)
    wrk.add_options(parser)
    main(parser.parse_args())
