"""10,000 checks turn overdue in one sweep of a running server, while pings go on.

    python -m tests.bench.burst [--tree DIR] [--beside DIR] [--rounds N]

Prints how long the sweep took, the rate of alerts at one receiver, and the pings' times beside it.
"""

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.checks import (
    Check,
    count,
    create_checks_key,
    database,
    insert,
    pinging,
    wait_long,
)
from tests.bench.receivers import address, receiving
from tests.bench.running import (
    Figures,
    Server,
    compare,
    parser_of,
    percentiles_ms,
    serving,
)

CHECKS = 10_000


def main(arguments: argparse.Namespace) -> None:
    with receiving(hosts=1, hanging=0) as port:
        compare(arguments, partial(measure, f"http://{address(0)}:{port}/"))


def measure(url: str, tree: Path) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        create_checks_key(tree, data)
        now = int(time.time())
        insert(
            data,
            [
                Check(f"check-{number}", 1, url, now - 3600)
                for number in range(CHECKS)
            ],
        )
        insert(data, [Check("pinged", 3600, None, now)])
        with serving(
            "--allow-private-webhooks", tree=tree, data=data
        ) as server:
            return watch(server)


def watch(server: Server) -> Figures:
    with database(server.data) as connection:
        wait_long(lambda: count(connection, "alerts") > 0)
        began = time.monotonic()
        with pinging(server, "pinged") as pings:
            wait_long(
                lambda: (
                    count(connection, "checks WHERE status = 'overdue'")
                    == CHECKS
                )
            )
            swept = time.monotonic() - began
            wait_long(
                lambda: (
                    count(connection, "alerts WHERE state = 'delivered'")
                    == CHECKS
                )
            )
            seconds = time.monotonic() - began
    return {
        "sweep, s": swept,
        "alerts a second": CHECKS / seconds,
        "pings": len(pings),
        **{
            f"ping {name}": number
            for name, number in percentiles_ms(pings).items()
        },
    }


if __name__ == "__main__":
    main(parser_of(__doc__, rounds=1).parse_args())
