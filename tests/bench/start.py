"""How long a start takes: the server's first answer, and commands, beside imports that any Python program may have.

    python -m tests.bench.start [--tree DIR] [--beside DIR] [--rounds N] [PYTHON ...]

Each PYTHON, which needs Pillow, builds the artifact of each checkout and runs it. Times are in seconds from the start
of the process, those of the server up to its answer to `GET /healthz`, with the database of an earlier start. Ratios
are to `python -c "import http.server, sqlite3, PIL.Image"` in the same run. The memory is that of the server some
seconds later, when it has loaded what its first answer did not need.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.bench.running import HEALTH, Figures, Server, add_rounds, free_port, interleaved, parser_of, trees_of
from tests.browser.api import Api

IMPORTS = "imports"
MOST = {"first answer": 2.5, "--version": 1.5, "card": 2.5, "checks ping": 1.5}
"""What a start should take at most, in multiples of the imports."""
LOADED_SECONDS = 3.0


def main(arguments: argparse.Namespace) -> None:
    with contextlib.ExitStack() as stack:
        measures: dict[tuple[str, str, str], Callable[[int], Figures]] = {}
        for python in arguments.python:
            for side, tree in trees_of(arguments).items():
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                for name, measure in measures_of(stack, python, tree, folder).items():
                    measures[python, side, name] = measure
        found = interleaved(measures, arguments.rounds)
    for python, side, name in found:
        figures, imports = found[python, side, name], found[python, side, IMPORTS]
        ratio = f"{figures['seconds'] / imports['seconds']:6.2f} (most {MOST[name]})" if name in MOST else ""
        memory = f"{figures['MB']:8.1f} MB" if "MB" in figures else ""
        print(f"{python} {side:6} {name:12} {figures['seconds']:6.3f} s {ratio}{memory}")


def measures_of(
    stack: contextlib.ExitStack, python: str, tree: Path, folder: Path
) -> dict[str, Callable[[int], Figures]]:
    """What is measured with one artifact, by name. The server that `checks ping` asks runs all the time."""
    pyz = str(folder / "cardbeat.pyz")
    subprocess.run([python, tree / "build_zipapp.py", "--output", pyz], check=True, stdout=subprocess.DEVNULL)
    server = stack.enter_context(started([python, pyz], folder))
    api = Api(server.url)
    key = api.checks_key()
    api.check(key, name="job")
    card = ("card", "--title", "Designing reliable background jobs", "--output", str(folder / "card.png"))
    ping = ("checks", "ping", "job", "--url", server.url)
    commands = {
        IMPORTS: (python, "-c", "import http.server, sqlite3, PIL.Image"),
        "--version": (python, pyz, "--version"),
        "card": (python, pyz, *card),
        "checks ping": (python, pyz, *ping),
    }
    again = folder / "again"
    again.mkdir()
    measures = {name: partial(timed, command, os.environ | {"CARDBEAT_KEY": key}) for name, command in commands.items()}
    with started([python, pyz], again):
        # The measured starts find its database.
        pass
    return measures | {"first answer": lambda _: first_answer([python, pyz], again)}


def timed(command: tuple[str, ...], environment: dict[str, str], _number: int) -> Figures:
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return {"seconds": time.perf_counter() - began}


def first_answer(command: list[str], folder: Path) -> Figures:
    began = time.perf_counter()
    with started(command, folder) as server:
        seconds = time.perf_counter() - began
        time.sleep(LOADED_SECONDS)
        return {"seconds": seconds, "MB": server.memory_bytes() / 1e6}


@contextlib.contextmanager
def started(command: list[str], folder: Path) -> Iterator[Server]:
    """A server that has answered for the first time."""
    port = free_port()
    process = subprocess.Popen([*command, "--port", str(port)], cwd=folder, stderr=subprocess.DEVNULL)
    try:
        answer_of(process, port)
        yield Server(port, process.pid, folder / "cardbeat-data")
    finally:
        process.terminate()
        process.wait()


def answer_of(process: "subprocess.Popen[bytes]", port: int) -> None:
    while process.poll() is None:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 60) as client:
            client.sendall(HEALTH)
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
            return
        time.sleep(0.001)
    raise SystemExit(f"the server ended with status {process.returncode}")


if __name__ == "__main__":
    parser = parser_of(__doc__)
    add_rounds(parser, 10)
    parser.add_argument("python", metavar="PYTHON", nargs="*", default=[sys.executable], help="[this one]")
    main(parser.parse_args())
