"""How fast alerts are delivered: to one receiver, and to 500 hosts of which half hang.

    python -m tests.bench.delivery [--tree DIR] [--beside DIR] [--rounds N]

The alerts are in the database when the server starts. Prints seconds from when it takes connections to the last
delivered alert of a host that answers, what it makes for these that half of the hosts hang, and the server's CPU time
until then. Not from the first delivered alert: how many are posted before that is recorded differs between commits.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.bench.checks import (
    Check,
    count,
    create_checks_key,
    database,
    insert,
    wait_long,
)
from tests.bench.receivers import address, receiving
from tests.bench.running import Figures, compare, parser_of, serving

HOSTS = 500


def main(arguments: argparse.Namespace) -> None:
    compare(arguments, measure)


def measure(tree: Path) -> Figures:
    one, one_cpu = seconds_for(tree, hosts=1, alerts=10_000, hanging=0)
    none, none_cpu = seconds_for(tree, hosts=HOSTS, alerts=5000, hanging=0)
    half, half_cpu = seconds_for(
        tree, hosts=HOSTS, alerts=5000, hanging=HOSTS // 2
    )
    return {
        "one receiver, alerts a second": 10_000 / one,
        "  CPU s": one_cpu,
        f"{HOSTS} hosts, 5,000 alerts, s": none,
        "  CPU s of these": none_cpu,
        "half of them hanging, the others' 2,500, s": half,
        "  CPU s of that": half_cpu,
        "half hanging/none": half / none,
    }


def seconds_for(
    tree: Path, hosts: int, alerts: int, hanging: int
) -> tuple[float, float]:
    """Until every alert to a host that answers is recorded as delivered, and the CPU time taken for it."""
    expected = alerts * (hosts - hanging) // hosts
    with (
        receiving(hosts, hanging) as port,
        tempfile.TemporaryDirectory() as folder,
    ):
        data = Path(folder)
        create_checks_key(tree, data)
        fill(data, hosts, port, alerts)
        with (
            serving(
                "--allow-private-webhooks", tree=tree, data=data
            ) as server,
            database(data) as connection,
        ):
            began = time.monotonic()
            wait_long(
                lambda: (
                    count(connection, "alerts WHERE state = 'delivered'")
                    >= expected
                )
            )
            return time.monotonic() - began, server.cpu_seconds()


def fill(data: Path, hosts: int, port: int, alerts: int) -> None:
    """An alert for each of as many checks, spread evenly over the hosts."""
    now = int(time.time())
    places = [address(number % hosts) for number in range(alerts)]
    urls = [f"http://{place}:{port}/" for place in places]
    insert(
        data,
        [Check(f"check-{n}", 100_000, url, now) for n, url in enumerate(urls)],
    )
    with database(data) as connection:
        (key_id,) = connection.execute("SELECT id FROM keys").fetchone()
        # A schema before 10 has fewer columns.
        known = {
            row[1] for row in connection.execute("PRAGMA table_info(alerts)")
        }
        connection.execute("BEGIN")
        for number, place in enumerate(places):
            values = {
                "id": f"msg_{number}",
                "check_id": f"check-{number}",
                "key_id": key_id,
                "receiver": place,
                "type": "check.overdue",
                "outage": 1,
                "deadline_at": now,
                "ping_count": 0,
                "created_at": now,
                "next_attempt_at": now,
            }
            stored = {
                name: value for name, value in values.items() if name in known
            }
            marks = ", ".join("?" * len(stored))
            sql = f"INSERT INTO alerts ({', '.join(stored)}) VALUES ({marks})"
            connection.execute(sql, list(stored.values()))
        connection.execute("COMMIT")


if __name__ == "__main__":
    main(parser_of(__doc__, rounds=1).parse_args())
