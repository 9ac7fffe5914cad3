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
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.kit.client import ask
from tests.kit.support import free_port

ROOT = Path(__file__).parents[2]
URL_FILE = "database-url"
"""In a data folder whose checks are in PostgreSQL: where."""

FAILURES = ("not 2xx", "socket errors", "failures")
"""Figures of which the sum over all rounds is shown, not the median."""


def arguments_of(description, /, *words, trees=2, **options):
    """What a bench is to do, from its command line. `description` is the help.

    So many checkouts may be named. `options` have their usual values: False for a switch, None for
    a text, a list where there may be several. Those of `words` are given without their names.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for name in ("tree", "beside")[:trees]:
        parser.add_argument(f"--{name}", type=resolved)
    for name, usual in options.items():
        rules = {"default": usual}
        if usual is False:
            rules["action"] = "store_true"
        elif isinstance(usual, list):
            rules |= {"nargs": "*", "type": type(usual[0])}
        elif usual is not None:
            rules["type"] = type(usual)
        if name in words:
            parser.add_argument(name, **{"nargs": "?"} | rules)
        else:
            parser.add_argument(f"--{name.replace('_', '-')}", **rules)
    parser.set_defaults(tree=ROOT)
    return parser.parse_args()


def resolved(name):
    return Path(name).resolve()


def trees_of(arguments):
    """The checkouts by the name their figures are shown under: "now", and "before" if there is a second one."""
    found = {"now": arguments.tree}
    if arguments.beside:
        found["before"] = arguments.beside
    return found


def compare(measures, rounds):
    """Take all measures in turn, there and back, in each round; print the medians, and the sums of what failed."""
    found = {side: [] for side in measures}
    for number in range(rounds):
        order = list(measures)
        if number % 2:
            order.reverse()
        for side in order:
            found[side].append(measures[side]())
    show_figures(
        {side: over_rounds(taken) for side, taken in found.items()}
    )


def compare_trees(arguments, measure):
    sides = {}
    for name, tree in trees_of(arguments).items():
        sides[name] = partial(measure, tree)
    compare(sides, arguments.rounds)


def over_rounds(rounds):
    together = {}
    for name in rounds[0]:
        over = sum if name in FAILURES else statistics.median
        together[name] = over([figures[name] for figures in rounds])
    return together


def show_figures(found):
    """A line for each figure: its name, a number for each side, and the first side's as a multiple of each other's."""
    first, *others = found
    heads = [*found, *(f"{first}/{other}" for other in others)]
    print(" " * 44 + "".join(f"{head:>15}" for head in heads))
    for what, number in found[first].items():
        line = f"{what:44}"
        for figures in found.values():
            line += f"{figures[what]:15,.2f}"
        for other in others:
            ratio = number / (found[other][what] or math.nan)
            line += f"{ratio:15,.2f}"
        print(line, flush=True)


def percentiles_ms(seconds):
    """Median, 95th and 99th percentile, and longest of some times, in milliseconds."""
    times = sorted(one * 1000 for one in seconds) or [math.nan]
    return {
        "p50 ms": times[len(times) // 2],
        "p95 ms": times[len(times) * 95 // 100],
        "p99 ms": times[len(times) * 99 // 100],
        "longest ms": times[-1],
    }


def raise_descriptor_limit():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True)
class Server:
    port: int
    pid: int
    data: Path

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def answers(self):
        """Whether it does, be it that there is no such page."""
        with contextlib.suppress(OSError):
            return bool(ask(self, "GET", "/healthz"))
        return False


def memory_mb(pid):
    """What a process has in memory, without its children."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(pid):
    """CPU time of a process and its children so far."""
    fields = (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    )
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf(
        "SC_CLK_TCK"
    )
    return seconds + sum(map(cpu_seconds, children_of(pid)))


def children_of(pid):
    """The processes that any thread of a process has started and that still run."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += map(int, (task / "children").read_text().split())
    return found


@contextlib.contextmanager
def serving(*options, tree=ROOT, data=None, command=("-m", "cardbeat")):
    """`python -m cardbeat` of a tree, with a data folder of its own if none is given.

    `command` replaces what the interpreter runs.
    """
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        data = data or Path(folder) / "data"
        line = [
            sys.executable,
            *command,
            f"--port={port}",
            f"--data={data}",
        ]
        # One call to the kernel for each write, so a log on disk costs what it costs in use.
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(
                [*line, *options],
                cwd=tree,
                stderr=log,
                env=environment_of(data),
            )
            server = Server(port, process.pid, data)
            try:
                # The port takes clients before the server answers them.
                while not server.answers():
                    if process.poll() is not None:
                        raise SystemExit("the server has ended")
                    time.sleep(0.001)
                yield server
            finally:
                process.terminate()
                process.wait(60)


def environment_of(data):
    """The variables of a process that uses a data folder, which may hold the URL of a database."""
    variables = dict(os.environ)
    if (data / URL_FILE).exists():
        variables["CARDBEAT_DATABASE"] = (data / URL_FILE).read_text()
    return variables


def create_key(tree, data, *options):
    """A new key, made by the command line of a tree: a cards key unless the options say otherwise."""
    command = "-m cardbeat keys create --tier unlimited --data"
    made = subprocess.run(
        [sys.executable, *command.split(), data, *options],
        cwd=tree,
        env=environment_of(data),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return re.search(r"sk_\S+", made.stdout)[0]
