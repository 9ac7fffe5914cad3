"""For benchmarks: wrk on the second CPU, which asks for a random target as a random client each time.

Needs `apt-get install wrk`. wrk keeps its connections; after a share of the requests it closes one and opens another.
"""

import json
import os
import random
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.running import cpu_seconds

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


def measure(server, load, seconds):
    """Ask a server for a while, on one thread.

    `wrk` is the share of its CPU that wrk used: near 1 it was wrk that set the pace. On a shared
    machine the requests for each second of the server's CPU are fairer than those for each second.
    """
    server_cpu = cpu_seconds(server.pid)
    wrk_cpu = children_cpu()
    began = time.monotonic()
    done = run(server.port, load, seconds)
    used = cpu_seconds(server.pid) - server_cpu
    return {
        "a second": done["requests"] / done["seconds"],
        "a CPU second": done["requests"] / max(used, 0.01),
        "p50 ms": done["p50_ms"],
        "p99 ms": done["p99_ms"],
        "longest ms": done["longest_ms"],
        "wrk": (children_cpu() - wrk_cpu) / (time.monotonic() - began),
        "not 2xx": done["not_2xx"],
        "socket errors": done["socket_errors"],
    }


def run(port, load, seconds):
    with tempfile.TemporaryDirectory() as name:
        targets = Path(name) / "targets"
        targets.write_text("\n".join(load.targets))
        clients = Path(name) / "clients"
        clients.write_text("\r\n".join([*load.clients, ""]), newline="")
        command = [
            "wrk",
            "-t1",
            f"-c{load.connections}",
            f"-d{seconds:g}s",
        ]
        command += ["-s", SCRIPT, f"http://127.0.0.1:{port}"]
        seed = random.randrange(10**9)
        numbers = [load.closing, seed, load.pause_ms]
        command += ["--", targets, clients, *map(str, numbers)]
        if len(os.sched_getaffinity(0)) > 1:
            command = ["taskset", "-c", "1", *command]
        ran = subprocess.run(command, stdout=-1, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
