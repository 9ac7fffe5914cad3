"""How fast alerts are delivered: to one receiver, and to 500 hosts of which half hang.

    python -m tests.bench.delivery [--tree DIR] [--beside DIR] [--rounds N]

The alerts are in the database when the server starts. Prints seconds from the first delivered alert to the last one
of a host that answers, and what it makes for these that half of the hosts hang.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from tests.bench.checks import Check, count, create_checks_key, database, insert, wait_until
from tests.bench.receivers import address, receiving
from tests.bench.running import Figures, add_rounds, compare, parser_of, serving

HOSTS = 500
BODY = json.dumps({"type": "check.overdue", "data": {"check": {"name": "job"}}, "text": "The job is overdue. " * 9})


def main(arguments: argparse.Namespace) -> None:
    compare(arguments, measure)


def measure(tree: Path) -> Figures:
    one = seconds_for(tree, hosts=1, alerts=10_000, hanging=0)
    none = seconds_for(tree, hosts=HOSTS, alerts=5000, hanging=0)
    half = seconds_for(tree, hosts=HOSTS, alerts=5000, hanging=HOSTS // 2)
    return {
        "one receiver, alerts a second": 10_000 / one,
        f"{HOSTS} hosts, 5,000 alerts, s": none,
        "half of them hanging, the others' 2,500, s": half,
        "half hanging/none": half / none,
    }


def seconds_for(tree: Path, hosts: int, alerts: int, hanging: int) -> float:
    """Until every alert to a host that answers is recorded as delivered."""
    expected = alerts * (hosts - hanging) // hosts
    with receiving(hosts, hanging) as port, tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        create_checks_key(tree, data)
        fill(data, [f"http://{address(number)}:{port}/" for number in range(hosts)], alerts)
        with (
            serving("--allow-private-webhooks", tree=tree, data=data),
            database(data) as connection,
        ):
            wait_until(lambda: count(connection, "alerts WHERE state = 'delivered'") > 0, "the first alert")
            began = time.monotonic()
            wait_until(lambda: count(connection, "alerts WHERE state = 'delivered'") >= expected, "the last alert")
            return time.monotonic() - began


def fill(data: Path, urls: list[str], alerts: int) -> None:
    """An alert for each of as many checks, spread evenly over the hosts."""
    now = int(time.time())
    insert(data, [Check(f"check-{number}", 100_000, urls[number % len(urls)], now) for number in range(alerts)])
    with database(data) as connection:
        connection.execute(
            "INSERT INTO alerts (id, check_id, type, outage, body, created_at, next_attempt_at)"
            " SELECT 'msg_' || id, id, 'check.overdue', 1, ?1, ?2, ?2 FROM checks ORDER BY seq",
            (BODY, now),
        )


if __name__ == "__main__":
    parser = parser_of(__doc__)
    add_rounds(parser)
    main(parser.parse_args())
