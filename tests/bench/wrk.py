"""For benchmarks: wrk on the second CPU, which asks for a random target as a random client each time.

Needs `apt-get install wrk`. wrk keeps its connections; after a share of the requests it closes one and opens another.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench import running
from tests.bench.running import Figures, Server

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


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """With the options of what wrk measures."""
    parser = running.parser_of(description, rounds=3)
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=float,
        default=5,
        help="for each server and round [5]",
    )
    return parser


def measure(server: Server, load: Load, seconds: float) -> Figures:
    """Ask a server for a while, on one thread.

    `wrk` is the share of its CPU that wrk used: near 1 it was wrk that set the pace. On a shared
    machine the requests for each second of the server's CPU are fairer than those for each second.
    """
    server_cpu = server.cpu_seconds()
    wrk_cpu = _children_cpu()
    began = time.monotonic()
    done = _run(server.port, load, seconds)
    return {
        "a second": done["requests"] / done["seconds"],
        "a CPU second": done["requests"]
        / max(server.cpu_seconds() - server_cpu, 0.01),
        "p50 ms": done["p50_ms"],
        "p99 ms": done["p99_ms"],
        "longest ms": done["longest_ms"],
        "wrk": (_children_cpu() - wrk_cpu) / (time.monotonic() - began),
        "not 2xx": done["not_2xx"],
        "socket errors": done["socket_errors"],
    }


def _run(port: int, load: Load, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        targets = Path(name) / "targets"
        targets.write_text("".join(f"{target}\n" for target in load.targets))
        clients = Path(name) / "clients"
        clients.write_bytes(
            "".join(f"{lines}\r\n" for lines in load.clients).encode()
        )
        command = [
            "wrk",
            "-t1",
            f"-c{load.connections}",
            f"-d{seconds:g}s",
            "-s",
            SCRIPT,
        ]
        command += [f"http://127.0.0.1:{port}", "--", targets, clients]
        command += [
            str(load.closing),
            str(random.randrange(10**9)),
            str(load.pause_ms),
        ]
        if len(os.sched_getaffinity(0)) > 1:
            command = ["taskset", "-c", "1", *command]
        output = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    return json.loads(output.rstrip().rpartition("\n")[2])


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
