"""For benchmarks: a server process of this tree or of another one, and what it uses.

A bench that starts our server takes `--tree DIR`, the checkout whose server is measured (default: this one), and
`--beside DIR`, a second checkout, measured in turn with the first in the same run. Both are only started, as
`python -m cardbeat` in that folder, so any older commit will do.
"""

import argparse
import contextlib
import math
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.kit.support import free_port

ROOT = Path(__file__).parents[2]
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
URL_FILE = "database-url"
"""In a data folder whose checks are in PostgreSQL: where."""

Trees = dict[str, Path]
"""The checkouts of a run by the name their figures are shown under: "now", and "before" if there is a second one."""
Figures = dict[str, float]
"""What one measurement found: a name with its unit -> a number."""
FAILURES = ("not 2xx", "socket errors", "failures")
"""Figures of which the sum over all rounds is shown, not the median."""
Side = TypeVar("Side")
"""What is measured, in the caller's own terms."""


def parser_of(
    description: str | None,
    *,
    trees: bool = True,
    beside: bool = True,
    rounds: int = 0,
) -> argparse.ArgumentParser:
    """A bench's command line: its module's docstring as the help, and the checkouts if it starts our server.

    With `rounds`, their usual number, there is an option for it.
    """
    program = f"python -m tests.bench.{Path(sys.argv[0]).stem}"
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        program, None, description, formatter_class=formatter
    )
    add = parser.add_argument
    if trees:
        add(
            "--tree",
            metavar="DIR",
            type=checkout,
            default=ROOT,
            help="this checkout [this one]",
        )
    if trees and beside:
        add(
            "--beside",
            metavar="DIR",
            type=checkout,
            help="a second one, such as the commit before",
        )
    if rounds:
        shown = f"medians of N rounds [{rounds}]"
        add("--rounds", metavar="N", type=int, default=rounds, help=shown)
    return parser


def checkout(name: str) -> Path:
    tree = Path(name).resolve()
    if not (tree / "cardbeat" / "__main__.py").is_file():
        raise argparse.ArgumentTypeError(
            f"{name} holds no cardbeat/__main__.py"
        )
    return tree


def trees_of(arguments: argparse.Namespace) -> Trees:
    return {"now": arguments.tree} | (
        {"before": arguments.beside} if arguments.beside else {}
    )


def interleaved(
    measures: dict[Side, Callable[[], Figures]], rounds: int
) -> dict[Side, Figures]:
    """Take all measures in turn, there and back, and again in each round: the medians, and the sums of what failed."""
    found: dict[Side, list[Figures]] = {side: [] for side in measures}
    for number in range(rounds):
        for side in measures if number % 2 == 0 else reversed(measures):
            found[side].append(measures[side]())
    return {side: over_rounds(figures) for side, figures in found.items()}


def over_rounds(rounds: list[Figures]) -> Figures:
    together = {}
    for name in rounds[0]:
        over = sum if name in FAILURES else statistics.median
        together[name] = over([figures[name] for figures in rounds])
    return together


def compare(
    arguments: argparse.Namespace, measure: Callable[[Path], Figures]
) -> None:
    """Measure the trees in turn, and print the figures."""
    sides = {
        name: partial(measure, tree)
        for name, tree in trees_of(arguments).items()
    }
    show_figures(interleaved(sides, arguments.rounds))


def show_figures(found: dict[str, Figures]) -> None:
    """A line for each figure: its name, a number for each side, and the first side's as a multiple of each other's."""
    first, *others = found
    heads = [*found, *(f"{first}/{other}" for other in others)]
    print(f"{'':44}", *(f"{head:>14}" for head in heads))
    for what, number in found[first].items():
        numbers = [figures[what] for figures in found.values()]
        ratios = [
            number / other if other else math.nan for other in numbers[1:]
        ]
        print(
            f"{what:44}",
            *(f"{one:14,.2f}" for one in numbers + ratios),
            flush=True,
        )


def percentiles_ms(seconds: list[float]) -> dict[str, float]:
    """Median, 99th percentile and longest of some times, in milliseconds."""
    times = sorted(seconds) or [float("nan")]
    middle, late = (
        times[int(len(times) * part)] * 1000 for part in (0.5, 0.99)
    )
    return {"p50 ms": middle, "p99 ms": late, "longest ms": times[-1] * 1000}


def raise_descriptor_limit() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True)
class Server:
    port: int
    pid: int
    data: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    def memory_bytes(self) -> int:
        return memory_bytes(self.pid)

    def connect(self, data: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        client.sendall(data)
        return client

    def answers(self) -> bool:
        with (
            contextlib.suppress(ConnectionError),
            self.connect(HEALTH) as client,
        ):
            return client.recv(4096).startswith(b"HTTP/1.1 200")
        return False


def memory_bytes(pid: int) -> int:
    """What a process has in memory, without its children."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and its children so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + sum(
        cpu_seconds(child) for child in children_of(pid)
    )


def children_of(pid: int) -> list[int]:
    """The processes that any thread of a process has started and that still run."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += [
                int(child) for child in (task / "children").read_text().split()
            ]
    return found


@contextlib.contextmanager
def serving(
    *options: str,
    tree: Path = ROOT,
    data: Path | None = None,
    command: tuple[str, ...] = ("-m", "cardbeat"),
) -> Iterator[Server]:
    """`python -m cardbeat` of a tree, with a data folder of its own if none is given.

    `command` replaces what the interpreter runs.
    """
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        data = data or Path(folder) / "data"
        line = [
            sys.executable,
            *command,
            "--port",
            str(port),
            *options,
            "--data",
            str(data),
        ]
        # One call to the kernel for each write, so a log on disk costs what it costs in use.
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(
                line, cwd=tree, stderr=log, env=environment_of(data)
            )
            server = Server(port, process.pid, data)
            try:
                # The port takes clients before the server answers them.
                while not server.answers():
                    if process.poll() is not None:
                        raise SystemExit(
                            f"the server ended with status {process.returncode}"
                        )
                    time.sleep(0.001)
                yield server
            finally:
                process.terminate()
                process.wait(60)


def environment_of(data: Path) -> dict[str, str]:
    """The variables of a process that uses a data folder, which may hold the URL of a database."""
    file = data / URL_FILE
    return os.environ | (
        {"CARDBEAT_DATABASE": file.read_text()} if file.exists() else {}
    )


def create_key(tree: Path, data: Path, *options: str) -> str:
    """A new key, made by the command line of a tree: a cards key unless the options say otherwise."""
    command = [
        sys.executable,
        "-m",
        "cardbeat",
        "keys",
        "create",
        "--data",
        str(data),
        *options,
    ]
    made = subprocess.run(
        command,
        cwd=tree,
        env=environment_of(data),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return re.search(r"sk_\S+", made.stdout)[0]
