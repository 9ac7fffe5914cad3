"""How fast alerts are delivered: to one receiver, and to 500 hosts of which half hang.

    python -m tests.bench.delivery [--tree DIR] [--beside DIR] [--rounds N]

The alerts are in the database when the server starts. Prints seconds from when it takes connections to the last
delivered alert of a host that answers, what it makes for these that half of the hosts hang, and the server's CPU time
until then. Not from the first delivered alert: how many are posted before that is recorded differs between commits.
"""

import tempfile
import time
from pathlib import Path

from tests.bench.checks import Check, count, database, fill, wait_long
from tests.bench.receivers import address, receiving
from tests.bench.running import (
    arguments_of,
    compare_trees,
    cpu_seconds,
    serving,
)

HOSTS = 500
ALERTS = 5000
TO_ONE = 10_000


def measure(tree):
    one, one_cpu = seconds_for(tree, hosts=1, alerts=TO_ONE, hanging=0)
    none, none_cpu = seconds_for(tree, HOSTS, ALERTS, hanging=0)
    half, half_cpu = seconds_for(tree, HOSTS, ALERTS, hanging=HOSTS // 2)
    return {
        "one receiver, alerts a second": TO_ONE / one,
        "  CPU s": one_cpu,
        f"{HOSTS} hosts, {ALERTS:,} alerts, s": none,
        "  CPU s of these": none_cpu,
        "half of them hanging, the other alerts, s": half,
        "  CPU s of that": half_cpu,
        "half hanging/none": half / none,
    }


def seconds_for(tree, hosts, alerts, hanging):
    """Until every alert to a host that answers is recorded as delivered, and the CPU time taken for it."""
    expected = alerts * (hosts - hanging) // hosts
    delivered = "alerts WHERE state = 'delivered'"
    with (
        receiving(hosts, hanging) as port,
        tempfile.TemporaryDirectory() as folder,
    ):
        data = Path(folder)
        store_alerts(tree, data, hosts, port, alerts)
        options = "--allow-private-webhooks"
        with (
            serving(options, tree=tree, data=data) as server,
            database(data) as connection,
        ):
            began = time.monotonic()
            wait_long(lambda: count(connection, delivered) >= expected)
            return time.monotonic() - began, cpu_seconds(server.pid)


def store_alerts(tree, data, hosts, port, alerts):
    """An alert for each of as many checks, spread evenly over the hosts."""
    now = int(time.time())
    checks = []
    rows = []
    for number in range(alerts):
        host = address(number % hosts)
        check = f"check-{number}"
        checks.append(
            Check(check, 100_000, f"http://{host}:{port}/", now)
        )
        rows.append((f"msg_{number}", check, host, now, now, now))
    fill(tree, data, checks)
    sql = """
        INSERT INTO alerts (id, check_id, receiver, deadline_at, created_at, next_attempt_at,
            key_id, type, outage, ping_count)
        SELECT ?, ?, ?, ?, ?, ?, id, 'check.overdue', 1, 0 FROM keys"""
    with database(data) as connection:
        connection.execute("BEGIN")
        connection.executemany(sql, rows)
        connection.execute("COMMIT")


if __name__ == "__main__":
    compare_trees(arguments_of(__doc__, rounds=1), measure)
