"""For benchmarks: wrk on the second CPU, which asks for a random target as a random client each time.

Needs `apt-get install wrk`. wrk keeps its connections; after a share of the requests it closes one and opens another.
"""

import json
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

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
    io.write(string.format(
        '\\n{"requests": %%d, "seconds": %%f, "p50_ms": %%f, "p99_ms": %%f, "not_2xx": %%d, "socket_errors": %%d}\\n',
        summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
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
    connections: int = 32
    closing: float = 0.0


@dataclass(frozen=True)
class Result:
    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    not_2xx: int
    socket_errors: int
    wrk_cpu: float
    """wrk's own share of its CPU: near 1 it was wrk that set the pace."""

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def run(port: int, load: Load, seconds: float, seed: int = 1) -> Result:
    """Ask the server at this port for a while, on one thread."""
    with tempfile.TemporaryDirectory() as name:
        script = _script(Path(name), load, seed)
        wrk = ["wrk", "-t1", f"-c{load.connections}", f"-d{seconds:g}s", "-s", str(script), f"http://127.0.0.1:{port}"]
        began, used = time.monotonic(), _children_cpu()
        output = subprocess.run(["taskset", "-c", "1", *wrk], capture_output=True, text=True, check=True).stdout
        share = (_children_cpu() - used) / (time.monotonic() - began)
    return Result(**json.loads(output.rstrip().rpartition("\n")[2]), wrk_cpu=share)


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
