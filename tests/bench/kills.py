"""SIGKILL under load, again and again: nothing that was acknowledged is missing afterwards.

    python -m tests.bench.kills [KILLS] [--tree DIR]

Clients ping, PATCH and order test alerts while checks turn overdue and recover. In the end every
acknowledged ping and change is stored, every alert has arrived, and each outage was told once and
in order.
"""

import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.bench.running import arguments_of
from tests.data.crash.cluster import Node
from tests.data.crash.load import File, Load

CLIENTS = 8
LONG_SECONDS = 4
"""In so long a life checks turn overdue and recover."""


def main():
    arguments = arguments_of(__doc__, "kills", trees=1, kills=100)
    with tempfile.TemporaryDirectory() as folder:
        node = node_of(arguments.tree, Path(folder) / "node")
        database = File(node.folder / "data")
        node.start()
        try:
            with Load([node], CLIENTS) as load:
                starts = []
                for number in range(arguments.kills):
                    starts.append(kill(node, is_long=number % 4 == 0))
                    load.wait()
                load.settle(database, "main")
                missing = load.missing(database, "main")
                print(load.summary())
        finally:
            node.kill()
        (found,) = database.execute("PRAGMA integrity_check")[0]
    middle = median(starts)
    print(f"restart: median {middle:.2f} s, worst {max(starts):.2f} s")
    if missing or found != "ok":
        sys.exit("\n".join([*missing, found]))
    print("nothing is missing, and the database is sound")


def node_of(tree, folder):
    path = f"PYTHONPATH={tree}"
    command = ("env", path, sys.executable, "-P", "-m", "cardbeat")
    return Node(folder, command, "", "--sweep-seconds", "0.2")


def kill(node, is_long):
    """How many seconds the next start takes."""
    time.sleep(LONG_SECONDS if is_long else random.uniform(0.1, 1))
    node.kill()
    began = time.monotonic()
    node.start()
    return time.monotonic() - began


if __name__ == "__main__":
    main()
