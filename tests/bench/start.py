"""How long a start takes: the server's first answer, and commands, beside imports that any Python program may have.

    python -m tests.bench.start [--tree DIR] [--beside DIR] [--rounds N]

This Python builds the artifact of each checkout and runs it. Times are in seconds from the start
of the process, those of the server up to its answer to `GET /healthz`, with the database of an earlier start. Ratios
are to `python -c "import http.server, sqlite3, PIL.Image"` in the same run. The memory is that of the server some
seconds later, when it has loaded what its first answer did not need.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench.running import (
    Figures,
    Server,
    interleaved,
    parser_of,
    serving,
    trees_of,
)
from tests.kit.client import checks_key, new_check

IMPORTS = "imports"
MOST = {"first answer": 2.0, "--version": 0.7, "card": 1.7, "checks ping": 1.5}
"""What a start should take at most, in multiples of the imports."""
LOADED_SECONDS = 3.0


def main(arguments: argparse.Namespace) -> None:
    with contextlib.ExitStack() as stack:
        measures: dict[tuple[str, str], Callable[[], Figures]] = {}
        for side, tree in trees_of(arguments).items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for name, measure in measures_of(stack, tree, folder).items():
                measures[side, name] = measure
        found = interleaved(measures, arguments.rounds)
    for (side, name), figures in found.items():
        ratio = figures["seconds"] / found[side, IMPORTS]["seconds"]
        memory = f"{figures['MB']:8.1f} MB" if "MB" in figures else ""
        most = MOST.get(name, 1)
        print(
            f"{side:6} {name:12} {figures['seconds']:6.3f} s {ratio:6.2f} (most {most}){memory}"
        )


def measures_of(
    stack: contextlib.ExitStack, tree: Path, folder: Path
) -> dict[str, Callable[[], Figures]]:
    """What is measured with one artifact, by name. The server of `checks ping` runs all the time."""
    artifact = [sys.executable, str(folder / "cardbeat.pyz")]
    build = [sys.executable, tree / "build_zipapp.py", "--output", artifact[1]]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    serving_it = partial(serving, command=(artifact[1],))
    server = stack.enter_context(serving_it())
    key = checks_key(server)
    new_check(server, key, name="job")
    card = (
        "card",
        "--title",
        "Designing reliable background jobs",
        "--output",
        folder / "card.png",
    )
    commands = {
        IMPORTS: (
            sys.executable,
            "-c",
            "import http.server, sqlite3, PIL.Image",
        ),
        "--version": (*artifact, "--version"),
        "card": (*artifact, *card),
        "checks ping": (
            *artifact,
            "checks",
            "ping",
            "job",
            "--url",
            server.url,
        ),
    }
    environment = os.environ | {"CARDBEAT_KEY": key}
    measures = {
        name: partial(timed, command, environment)
        for name, command in commands.items()
    }
    again = folder / "again"
    with serving_it(data=again):
        # The measured starts find its database.
        pass
    return measures | {
        "first answer": lambda: first_answer(serving_it(data=again))
    }


def timed(command: tuple[str, ...], environment: dict[str, str]) -> Figures:
    began = time.perf_counter()
    subprocess.run(
        command, env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return {"seconds": time.perf_counter() - began}


def first_answer(start: contextlib.AbstractContextManager[Server]) -> Figures:
    began = time.perf_counter()
    with start as server:
        seconds = time.perf_counter() - began
        time.sleep(LOADED_SECONDS)
        return {"seconds": seconds, "MB": server.memory_bytes() / 1e6}


if __name__ == "__main__":
    main(parser_of(__doc__, rounds=10).parse_args())
