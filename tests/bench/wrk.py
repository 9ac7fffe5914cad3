"""For benchmarks: wrk on the second CPU, which asks for a random target as a random client each time.

Needs `apt-get install wrk`. wrk keeps its connections; after a share of the requests it closes one and opens another.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from math import nan
from pathlib import Path

from tests.bench.running import Figures, Server, Trees, add_rounds

RATES = ("a second", "a CPU second")

SCRIPT = """
local targets, headers = {}, %(headers)s
for line in io.lines(%(targets)s) do targets[#targets + 1] = line end
local kept, last = " HTTP/1.1\\r\\n", " HTTP/1.1\\r\\nConnection: close\\r\\n"
for number, lines in ipairs(headers) do
    headers[number] = {kept = kept .. lines .. "\\r\\n", last = last .. lines .. "\\r\\n"}
end
local random = math.random
local closing = %(closing)s

init = function() math.randomseed(%(seed)d) end

-- A card's line and a client's lines are put together for each request: all pairs of them would take hundreds of MB.
request = function()
    local lines = headers[random(#headers)]
    return targets[random(#targets)] .. (random() < closing and lines.last or lines.kept)
end

done = function(summary, latency)
    local errors = summary.errors
    local line = '\\n{"requests": %%d, "seconds": %%f, "p50_ms": %%f, "p99_ms": %%f, "longest_ms": %%f, ' ..
        '"not_2xx": %%d, "socket_errors": %%d}\\n'
    io.write(string.format(line, summary.requests, summary.duration / 1e6,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
        errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """What is asked for: `targets` with their method ("GET /a"), and for each kind of client its header lines.

    Each client's lines end with CRLF. A share `closing` of the requests, 0 to 1, says `Connection: close`.
    """

    targets: list[str]
    clients: list[str]
    connections: int
    closing: float = 0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", metavar="N", type=float, default=5, help="for each server and round [5]")
    add_rounds(parser, 3)
    parser.add_argument("--pinned", action="store_true", help="every server on the first CPU alone")


def measure(server: Server, load: Load, seconds: float, seed: int) -> Figures:
    """Ask a server for a while, on one thread. Another seed asks in another order.

    `wrk` is the share of its CPU that wrk used: near 1 it was wrk that set the pace. On a shared machine the requests
    for each second of the server's CPU are fairer than those for each second.
    """
    server_cpu, wrk_cpu, began = server.cpu_seconds(), _children_cpu(), time.monotonic()
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
    print(f"\n{title:12}", *(f"{what:>13}" for what in next(iter(found.values()))))
    for name, figures in found.items():
        numbers = (figures.get(what, nan) for what in next(iter(found.values())))
        print(f"{name:>12}", *(f"{number:13,.{2 if number < 100 else 0}f}" for number in numbers))
    names = list(found)
    for tree in trees:
        for other in names[names.index(tree) + 1 :]:
            ratios = (f"{found[tree][what] / found[other][what]:.2f} {what}" for what in RATES)
            print(f"{tree}/{other}: {', '.join(ratios)}", flush=True)


def _run(port: int, load: Load, seconds: float, seed: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        script = _script(Path(name), load, seed)
        wrk = ["wrk", "-t1", f"-c{load.connections}", f"-d{seconds:g}s", "-s", str(script), f"http://127.0.0.1:{port}"]
        output = subprocess.run(["taskset", "-c", "1", *wrk], stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(output.rstrip().rpartition("\n")[2])


def _script(folder: Path, load: Load, seed: int) -> Path:
    targets = folder / "targets"
    targets.write_text("".join(f"{target}\n" for target in load.targets))
    script = folder / "script.lua"
    # Lua reads JSON's strings as its own as long as they are ASCII.
    headers = "{" + ", ".join(map(json.dumps, load.clients)) + "}"
    values = {"headers": headers, "targets": json.dumps(str(targets)), "closing": load.closing, "seed": seed}
    script.write_text(SCRIPT % values)
    return script


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
