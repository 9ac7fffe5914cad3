"""How long a start takes: the server's first answer, and commands, beside imports that any Python program may have.

    python -m tests.bench.start [--tree DIR] [--beside DIR] [--rounds N]

This Python builds the artifact of each checkout and runs it. Times are in seconds from the start
of the process, those of the server up to its answer to `GET /healthz`, with the database of an earlier start. Ratios
are to `python -c "import http.server, sqlite3, PIL.Image"` in the same round. The memory is that of the server some
seconds later, when it has loaded what its first answer did not need.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.running import (
    arguments_of,
    compare,
    memory_mb,
    serving,
    trees_of,
)
from tests.kit.client import checks_key, new_check

IMPORTS = ("-c", "import http.server, sqlite3, PIL.Image")
MOST = {
    "first answer": 2.0,
    "--version": 0.7,
    "card": 1.7,
    "checks ping": 1.5,
}
"""What a start should take at most, in multiples of the imports."""
LOADED_SECONDS = 3.0


def main():
    arguments = arguments_of(__doc__, rounds=10)
    with contextlib.ExitStack() as stack:
        sides = {}
        for side, tree in trees_of(arguments).items():
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory())
            )
            artifact = folder / "cardbeat.pyz"
            build = (tree / "build_zipapp.py", "--output", artifact)
            run(*build, stdout=subprocess.DEVNULL)
            server = stack.enter_context(serving(command=(artifact,)))
            key = checks_key(server)
            new_check(server, key, name="job")
            sides[side] = partial(
                measure, artifact, folder / "data", server.url, key
            )
            # The measured starts find its database.
            first_answer(artifact, folder / "data")
        compare(sides, arguments.rounds)


def measure(artifact, data, url, key):
    """One start of each kind. `checks ping` pings another server with a key of it."""
    environment = os.environ | {"CARDBEAT_KEY": key}
    title = "Designing reliable background jobs"
    picture = data.with_name("card.png")
    commands = {
        "--version": ("--version",),
        "card": ("card", "--title", title, "--output", picture),
        "checks ping": ("checks", "ping", "job", "--url", url),
    }
    imports = run(*IMPORTS)
    answered, memory = first_answer(artifact, data)
    seconds = {"first answer": answered}
    for name, command in commands.items():
        options = {"env": environment, "stdout": subprocess.DEVNULL}
        seconds[name] = run(artifact, *command, **options)
    figures = {"imports, s": imports}
    for name, most in MOST.items():
        figures[f"{name}, s"] = seconds[name]
        ratio = seconds[name] / imports
        figures[f"{name}, of the imports (most {most})"] = ratio
    return figures | {"server, MB": memory}


def run(*command, **options):
    """How long this Python takes for it, in seconds."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, **options)
    return time.perf_counter() - began


def first_answer(artifact, data):
    """After how many seconds it came, and how many MB the server takes later."""
    began = time.perf_counter()
    with serving(command=(artifact,), data=data) as server:
        seconds = time.perf_counter() - began
        time.sleep(LOADED_SECONDS)
        return seconds, memory_mb(server.pid)


if __name__ == "__main__":
    main()
