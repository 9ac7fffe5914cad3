"""10,000 checks turn overdue in one sweep of a running server, while pings go on.

    python -m tests.bench.burst [--tree DIR] [--beside DIR] [--rounds N]

Prints how long the sweep took, the rate of alerts at one receiver, and the pings' times beside it.
"""

import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.checks import (
    Check,
    count,
    database,
    fill,
    pinging,
    wait_long,
)
from tests.bench.receivers import address, receiving
from tests.bench.running import (
    arguments_of,
    compare_trees,
    percentiles_ms,
    serving,
)

CHECKS = 10_000


def main():
    arguments = arguments_of(__doc__, rounds=1)
    with receiving(hosts=1, hanging=0) as port:
        url = f"http://{address(0)}:{port}/"
        compare_trees(arguments, partial(measure, url))


def measure(url, tree):
    now = int(time.time())
    checks = [Check("pinged", 3600, None, now)]
    for number in range(CHECKS):
        checks.append(Check(f"check-{number}", 1, url, now - 3600))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        fill(tree, data, checks)
        options = "--allow-private-webhooks"
        with serving(options, tree=tree, data=data) as server:
            return watch(server)


def watch(server):
    with database(server.data) as connection:

        def wait_for(number, rows):
            wait_long(lambda: count(connection, rows) >= number)
            return time.monotonic()

        began = wait_for(1, "alerts")
        with pinging(server, "pinged") as pings:
            swept = wait_for(CHECKS, "checks WHERE status = 'overdue'")
            ended = wait_for(CHECKS, "alerts WHERE state = 'delivered'")
    figures = {
        "sweep, s": swept - began,
        "alerts a second": CHECKS / (ended - began),
        "pings": len(pings),
    }
    return figures | percentiles_ms(pings)


if __name__ == "__main__":
    main()
