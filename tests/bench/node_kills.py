"""Two nodes over PostgreSQL under load: a node, the primary or the standby is killed or stopped.

    python -m tests.bench.node_kills [--primary N] [--node N] [--standby N] [--suspended N]
        [--without-standby]

Clients ping, PATCH and order test alerts at both nodes while checks turn overdue and recover. In
the end every acknowledged ping and change is stored, every alert has arrived, and each outage was
told once and in order. A standby, which every commit waits for, takes the place of a killed
primary, and gets a standby itself. A standby that stops goes on, or the primary is killed before,
by turns. A suspended node goes on after its lease has ended.
With `--without-standby` no commit waits, and the standby is behind at each kill of the primary: so
it must find that something is missing.
"""

import contextlib
import random
import sys
import time

from tests.bench.running import arguments_of
from tests.data.crash.cluster import Node, Pair, folder_for_all
from tests.data.crash.load import Load
from tests.kit.client import metric
from tests.kit.postgresql import installed

CLIENTS = 6
COUNTS = {"primary": 20, "node": 50, "standby": 10, "suspended": 3}
"""Of kills of the primary and of nodes, and of stops of the standby and of the node that alerts."""
OFTEN = 5
"""With every so many kills of the primary the node that sends alerts is killed too.

After every so many kills the next one waits until an alert was sent.
"""


def main():
    arguments = arguments_of(
        __doc__, trees=0, **COUNTS, without_standby=False
    )
    programs = installed()
    if programs is None:
        sys.exit(
            "PostgreSQL is not installed: apt-get install postgresql"
        )
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(folder_for_all())
        pair = stack.enter_context(
            contextlib.closing(Pair(folder, programs))
        )
        schema = pair.new_schema()
        nodes = []
        for name in ("one", "two"):
            place = folder / f"node-{name}"
            nodes.append(start_node(stack, place, pair.url(schema)))
        load = stack.enter_context(Load(nodes, CLIENTS))
        kill_in_turn(Kills(pair, nodes, load), arguments)
        load.settle(pair.primary, schema)
        missing = load.missing(pair.primary, schema)
        print(load.summary())
    print(f"{len(missing)} demands not met", *missing[:3], sep="\n    ")
    if bool(missing) is not arguments.without_standby:
        sys.exit("not as it must be")


def start_node(stack, folder, url):
    command = (sys.executable, "-m", "cardbeat")
    node = Node(folder, command, url, "--sweep-seconds", "0.5")
    stack.callback(node.kill)
    node.start()
    return node


def kill_in_turn(kills, arguments):
    if arguments.without_standby:
        kills.primary = kills.primary_before_its_standby
    for what in COUNTS:
        for number in range(getattr(arguments, what)):
            getattr(kills, what)(number)
            kills.load.wait()


class Kills:
    """Of two nodes under load, and of their databases."""

    def __init__(self, pair, nodes, load):
        self.pair = pair
        self.nodes = nodes
        self.load = load

    def primary(self, number):
        time.sleep(random.uniform(0, 2))
        also = []
        if number % OFTEN == OFTEN - 1:
            also.append(self.sends_alerts())
        for node in also:
            node.kill()
        self.pair.fail_over()
        for node in also:
            node.start()
        self.load.wait()
        if number % OFTEN == 0:
            self.load.wait_for_outages(1)
        self.pair.add_standby()

    def primary_before_its_standby(self, _number):
        """When the standby has not had its last changes."""
        self.pair.add_standby(is_synchronous=False)
        self.load.wait()
        self.pair.standby.kill()
        self.load.wait()
        self.pair.primary.kill()
        self.pair.standby.start()
        self.pair.fail_over()

    def node(self, number):
        time.sleep(random.uniform(0, 2))
        node = random.choice(self.nodes)
        if number % OFTEN == 0:
            node = self.sends_alerts()
        node.kill()
        self.load.wait()
        if number % OFTEN == 0:
            self.load.wait_for_outages(1)
        node.start()

    def standby(self, number):
        """By turns it stops for a while, or the primary is killed before it goes on."""
        is_kill = number % 2 == 1
        if not is_kill:
            self.pair.add_standby()
        with self.pair.standby.suspended():
            time.sleep(random.uniform(0.5, 8))
            if is_kill:
                self.pair.primary.kill()
        if is_kill:
            self.pair.fail_over()

    def suspended(self, _number):
        with self.sends_alerts().suspended():
            self.load.wait_for_outages(1)

    def sends_alerts(self):
        """The node that sends them, once one does: it is the one that sweeps."""
        before = {node: last_sweep(node) for node in self.nodes}
        while True:
            time.sleep(0.1)
            for node in self.nodes:
                if last_sweep(node) not in (0, before[node]):
                    return node


def last_sweep(node):
    """How long the last sweep of a node took: it is never the same twice. 0 before the first."""
    with contextlib.suppress(OSError):
        return metric(node, "cardbeat_sweep_duration_seconds")
    return 0


if __name__ == "__main__":
    main()
