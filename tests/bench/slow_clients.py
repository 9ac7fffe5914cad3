"""Clients that hold connections, and how the others fare meanwhile.

    python -m tests.bench.slow_clients [--tree DIR] [--beside DIR] [--rounds N]

First 5,000 idle and 1,000 half-sent connections; then 400 at a limit of 256 descriptors; then, where it is installed
(`apt-get install slowhttptest`), its header, body and read modes with 1,000 connections each. "Others" ask for
`/healthz` 100 times a second on new connections. About a minute and a half for each round and tree.
"""

import argparse
import resource
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.bench.running import HEALTH, Figures, Probe, Server, add_rounds, compare, parser_of, serving

MIB = 1024 * 1024
SLOW = ["slowhttptest", "-c", "1000", "-r", "200", "-l", "12", "-p", "3", "-i", "1"]
MODES = {
    "headers": [*SLOW, "-H", "-u", "http://127.0.0.1:{port}/"],
    "body": [*SLOW, "-B", "-s", "60000", "-u", "http://127.0.0.1:{port}/register"],
    "reading": [*SLOW, "-X", "-k", "3", "-n", "2", "-w", "10", "-y", "20", "-z", "1", "-u", "http://127.0.0.1:{port}/"],
}


def main(arguments: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    compare(arguments, measure)
    if not shutil.which("slowhttptest"):
        print("slowhttptest is not installed: its modes were left out")


def measure(tree: Path) -> Figures:
    with serving(tree=tree) as server:
        figures = many_idle(server)
    with serving(tree=tree, descriptors=256) as server:
        figures |= few_descriptors(server)
    for mode in MODES if shutil.which("slowhttptest") else ():
        with serving(tree=tree) as server:
            figures |= slowhttptest(server, mode)
    return figures


def count_closed(clients: list[socket.socket]) -> int:
    closed = 0
    for client in clients:
        client.setblocking(False)
        try:
            while client.recv(65536):
                pass
            closed += 1
        except BlockingIOError:
            pass
        except OSError:
            closed += 1
    return closed


def many_idle(server: Server) -> Figures:
    before = server.memory_bytes()
    clients = [server.connect() for _ in range(2500)]
    clients += [server.connect(HEALTH) for _ in range(2500)]
    clients += [server.connect(HEALTH[:-4]) for _ in range(1000)]
    opened = time.monotonic()
    with Probe(server) as probe:
        time.sleep(3)
        grown = server.memory_bytes() - before
        time.sleep(max(0, 12 - (time.monotonic() - opened)))
    return {
        **probe.figures("6,000 held, others"),
        "6,000 held: MiB more": grown / MIB,
        "6,000 held: closed after 12 s": count_closed(clients),
    }


def few_descriptors(server: Server) -> Figures:
    clients = [server.connect() for _ in range(400)]
    used, started = server.cpu_seconds(), time.monotonic()
    with Probe(server) as probe:
        time.sleep(5)
    beside_others = (server.cpu_seconds() - used) / (time.monotonic() - started)
    closed = count_closed(clients)
    clients = [server.connect() for _ in range(400)]
    used, started = server.cpu_seconds(), time.monotonic()
    time.sleep(3)
    alone = (server.cpu_seconds() - used) / (time.monotonic() - started)
    return {
        **probe.figures("256 descriptors, others"),
        "256 descriptors: closed of 400": closed,
        "256 descriptors: CPU % beside others": 100 * beside_others,
        "256 descriptors: CPU % while all wait": 100 * alone,
    }


def slowhttptest(server: Server, mode: str) -> Figures:
    command = [part.format(port=server.port) for part in MODES[mode]]
    before = server.memory_bytes()
    with Probe(server) as probe:
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        grown = server.memory_bytes() - before
    said = [line.split()[-1] for line in output.splitlines() if "service available" in line]
    return {
        **probe.figures(f"slow {mode}, others"),
        f"slow {mode}: MiB more": grown / MIB,
        f"slow {mode}: times it looked": len(said),
        f"slow {mode}: unavailable in its eyes": sum("YES" not in word for word in said),
    }


if __name__ == "__main__":
    parser = parser_of(__doc__)
    add_rounds(parser)
    main(parser.parse_args())
