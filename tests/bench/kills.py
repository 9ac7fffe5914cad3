"""SIGKILL under load, again and again: nothing that was acknowledged is missing afterwards.

    python -m tests.bench.kills [KILLS] [--tree DIR]

Clients ping, PATCH and order test alerts while checks turn overdue and recover. In the end every
acknowledged ping and change is stored, every alert has arrived, and each outage was told once and
in order.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.running import parser_of
from tests.data.crash.cluster import Node
from tests.data.crash.load import File, Load

CLIENTS = 8
LONG_SECONDS = 4
"""In so long a life checks turn overdue and recover."""


def main(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = (
            "env",
            f"PYTHONPATH={arguments.tree}",
            sys.executable,
            "-P",
            "-m",
            "cardbeat",
        )
        node = Node(
            Path(folder) / "node", command, "", "--sweep-seconds", "0.2"
        )
        database = File(node.folder / "data")
        node.start()
        try:
            with Load([node], CLIENTS) as load:
                starts = kill_again_and_again(node, load, arguments.kills)
                load.settle(database, "main")
                missing = load.missing(database, "main")
                report(load, starts)
        finally:
            node.kill()
        missing += [
            row[0]
            for row in database.execute("PRAGMA integrity_check")
            if row[0] != "ok"
        ]
    if missing:
        sys.exit("\n".join(missing))
    print("nothing is missing, and the database is sound")


def kill_again_and_again(node: Node, load: Load, kills: int) -> list[float]:
    """How long each start took, in seconds."""
    starts = []
    for number in range(kills):
        time.sleep(LONG_SECONDS if number % 4 == 0 else random.uniform(0.1, 1))
        node.kill()
        began = time.monotonic()
        node.start()
        starts.append(time.monotonic() - began)
        load.wait()
    return sorted(starts)


def report(load: Load, starts: list[float]) -> None:
    print(load.summary())
    print(
        f"restart: median {starts[len(starts) // 2]:.2f} s, worst {starts[-1]:.2f} s"
    )


if __name__ == "__main__":
    parser = parser_of(__doc__, beside=False)
    parser.add_argument(
        "kills",
        metavar="KILLS",
        nargs="?",
        type=int,
        default=100,
        help="[100]",
    )
    main(parser.parse_args())
