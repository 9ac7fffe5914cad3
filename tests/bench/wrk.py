"""For benchmarks: wrk on the second CPU, which asks for a random target as a random client each time.

Needs `apt-get install wrk`. wrk keeps its connections; after a share of the requests it closes one and opens another.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.running import Figures, Server, Trees, add_rounds

RATES = ("a second", "a CPU second")

SCRIPT = Path(__file__).with_suffix(".lua")


@dataclass(frozen=True)
class Load:
    """What is asked for: `targets` with their method ("GET /a"), and the header lines of each client.

    Each client's lines end with CRLF. A share `closing` of the requests, 0 to 1, says
    `Connection: close`. Each connection pauses for `pause_ms` between an answer and a request.
    """

    targets: list[str]
    clients: list[str]
    connections: int
    closing: float = 0
    pause_ms: int = 0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", metavar="N", type=float, default=5, help="for each server and round [5]"
    )
    add_rounds(parser, 3)


def measure(server: Server, load: Load, seconds: float, seed: int) -> Figures:
    """Ask a server for a while, on one thread. Another seed asks in another order.

    `wrk` is the share of its CPU that wrk used: near 1 it was wrk that set the pace. On a shared
    machine the requests for each second of the server's CPU are fairer than those for each second.
    """
    server_cpu = server.cpu_seconds()
    wrk_cpu = _children_cpu()
    began = time.monotonic()
    done = _run(server.port, load, seconds, seed)
    return {
        "a second": done["requests"] / done["seconds"],
        "a CPU second": done["requests"] / max(server.cpu_seconds() - server_cpu, 0.01),
        "p50 ms": done["p50_ms"],
        "p99 ms": done["p99_ms"],
        "longest ms": done["longest_ms"],
        "wrk": (_children_cpu() - wrk_cpu) / (time.monotonic() - began),
        "not 2xx": done["not_2xx"],
        "socket errors": done["socket_errors"],
    }


def show(title: str, found: dict[str, Figures], trees: Trees) -> None:
    """A line for each side, and what each of our trees is to all that follow it."""
    columns = list(next(iter(found.values())))
    print(f"\n{title:12}", *(f"{what:>13}" for what in columns))
    for name, figures in found.items():
        print(f"{name:>12}", *(_shown(figures[what]) for what in columns))
    names = list(found)
    for tree in trees:
        for other in names[names.index(tree) + 1 :]:
            ratios = (f"{found[tree][what] / found[other][what]:.2f} {what}" for what in RATES)
            print(f"{tree}/{other}: {', '.join(ratios)}", flush=True)


def _shown(number: float) -> str:
    digits = 2 if number < 100 else 0
    return f"{number:13,.{digits}f}"


def _run(port: int, load: Load, seconds: float, seed: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        targets = Path(name) / "targets"
        targets.write_text("".join(f"{target}\n" for target in load.targets))
        clients = Path(name) / "clients"
        clients.write_bytes("".join(f"{lines}\r\n" for lines in load.clients).encode())
        command = ["wrk", "-t1", f"-c{load.connections}", f"-d{seconds:g}s", "-s", SCRIPT]
        command += [f"http://127.0.0.1:{port}", "--", targets, clients]
        command += [str(load.closing), str(seed), str(load.pause_ms)]
        if len(os.sched_getaffinity(0)) > 1:
            command = ["taskset", "-c", "1", *command]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(output.rstrip().rpartition("\n")[2])


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
