"""Two nodes over PostgreSQL under load: its primary or a node killed with SIGKILL, or stopped, again and again.

    python -m tests.bench.node_kills [--primary N] [--nodes N] [--standby N] [--suspended N] [--without-standby]

Clients ping, PATCH and order test alerts at both nodes while checks go overdue and recover. In the end every
acknowledged ping and change is stored, every acknowledged alert has arrived, and each outage was told once and in
order. A standby, which every commit waits for, takes the place of a killed primary, and gets a standby itself. Where
it is the standby that stops for some seconds, every other time the primary is killed before it goes on. A suspended
node goes on after its lease has ended.
With `--without-standby` no commit waits, and the standby is behind at each kill of the primary: so it must find that
something is missing.
"""

import argparse
import contextlib
import random
import sys
import time
from pathlib import Path

from tests.bench.running import parser_of
from tests.crash.client import metric
from tests.crash.cluster import Node, Pair, folder_for_all, installed
from tests.crash.load import Load

CLIENTS = 6
BOTH_EVERY = 5
"""With every so many kills of the primary the node that sends alerts is killed at the same moment."""
OUTAGE_EVERY = 5
"""After every so many kills the next one waits until an alert was sent: by another node, if it was killed."""


def main(arguments: argparse.Namespace) -> None:
    if (programs := installed()) is None:
        sys.exit("PostgreSQL is not installed: apt-get install postgresql")
    with folder_for_all() as folder, contextlib.closing(Pair(folder, programs)) as pair:
        schema = pair.new_schema()
        nodes = [new_node(folder / f"node-{number}", pair.url(schema)) for number in range(2)]
        try:
            with Load(nodes, CLIENTS) as load:
                kills = Kills(pair, nodes, load)
                for number in range(arguments.primary):
                    kills.kill_behind() if arguments.without_standby else kills.kill_primary(number)
                for number in range(arguments.nodes):
                    kills.kill_node(number)
                for number in range(arguments.standby):
                    kills.stop_standby(number)
                for _ in range(arguments.suspended):
                    kills.suspend_node()
                load.settle(pair.primary, schema)
                report(kills, load.missing(pair.primary, schema), is_control=arguments.without_standby)
        finally:
            for node in nodes:
                node.kill()


def new_node(folder: Path, url: str) -> Node:
    node = Node(folder, (sys.executable, "-m", "cardbeat"), url, "--sweep-seconds", "0.5")
    node.start()
    return node


class Kills:
    """Kills, and how long clients and alerts had to wait after each."""

    def __init__(self, pair: Pair, nodes: list[Node], load: Load) -> None:
        self.pair = pair
        self.nodes = nodes
        self.load = load
        self.primary: list[float] = []
        self.node: list[float] = []
        self.alert: list[float] = []
        """Until the next alert after the node that sends them was killed."""

    def kill_primary(self, number: int) -> None:
        time.sleep(random.uniform(0, 2))
        node = self.sends_alerts() if number % BOTH_EVERY == BOTH_EVERY - 1 else None
        began = time.monotonic()
        if node:
            node.kill()
        self.pair.fail_over()
        if node:
            node.start()
        self.load.wait()
        self.primary.append(time.monotonic() - began)
        if number % OUTAGE_EVERY == 0:
            self.load.wait_for_outages(1)
        self.pair.add_standby()

    def kill_behind(self) -> None:
        """The primary, when the standby has not had its last changes, and none of them has waited for that."""
        self.pair.add_standby(is_synchronous=False)
        self.load.wait()
        self.pair.standby.kill()
        self.load.wait()
        began = time.monotonic()
        self.pair.primary.kill()
        self.pair.standby.start()
        self.pair.fail_over()
        self.load.wait()
        self.primary.append(time.monotonic() - began)

    def kill_node(self, number: int) -> None:
        time.sleep(random.uniform(0, 2))
        node = self.sends_alerts() if number % OUTAGE_EVERY == 0 else random.choice(self.nodes)
        began = time.monotonic()
        node.kill()
        self.node.append(self.load.wait())
        if number % OUTAGE_EVERY == 0:
            self.load.wait_for_outages(1)
            self.alert.append(time.monotonic() - began)
        node.start()
        self.load.wait()

    def stop_standby(self, number: int) -> None:
        if number % 2 == 0:
            self.pair.add_standby()
        with self.pair.standby.suspended():
            time.sleep(random.uniform(0.5, 8))
            if number % 2:
                self.pair.primary.kill()
        if number % 2:
            self.pair.fail_over()
        self.load.wait()

    def suspend_node(self) -> None:
        node = self.sends_alerts()
        with node.suspended():
            self.load.wait_for_outages(1)
        self.load.wait()

    def sends_alerts(self) -> Node:
        """The node that sends them, once one does: it is the one that sweeps."""
        before = {node: self._swept(node) for node in self.nodes}
        while True:
            time.sleep(0.1)
            for node in self.nodes:
                if self._swept(node) not in (0, before[node]):
                    return node

    def _swept(self, node: Node) -> float:
        """How long the last sweep of a node took: it is never the same twice. 0 before the first."""
        with contextlib.suppress(OSError):
            return metric(node, "cardbeat_sweep_duration_seconds")
        return 0


def report(kills: Kills, missing: list[str], *, is_control: bool) -> None:
    totals, load = kills.load.totals(), kills.load
    counts = ", ".join(f"{number:,} {what}" for what, number in totals.items())
    print(f"{len(kills.primary)} kills of the primary, {len(kills.node)} of nodes; acknowledged: {counts}")
    refused, lost = (sum(getattr(client, what) for client in load.clients) for what in ("refused", "lost"))
    print(f"{refused:,} requests refused, {lost:,} without an answer")
    print(f"{load.outages():,} outages told; {load.doubles()} alerts arrived twice under one id")
    for what, seconds in (("primary", kills.primary), ("node", kills.node)):
        if times := sorted(seconds):
            shown = f"median {times[len(times) // 2]:.1f} s, longest {times[-1]:.1f} s"
            print(f"until each client was acknowledged something after the kill of a {what}: {shown}")
    if kills.alert:
        print(f"until the next alert after the node was killed that sends them: longest {max(kills.alert):.1f} s")
    print(f"{len(missing)} demands not met", *missing[:3], sep="\n    ")
    if bool(missing) is not is_control:
        sys.exit("what a control must find missing is there" if is_control else "something is missing")


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("--primary", metavar="N", type=int, default=20, help="kills of the primary [20]")
    parser.add_argument("--nodes", metavar="N", type=int, default=50, help="kills of nodes [50]")
    parser.add_argument("--standby", metavar="N", type=int, default=10, help="stops of the standby [10]")
    parser.add_argument("--suspended", metavar="N", type=int, default=3, help="stops of the node that alerts [3]")
    parser.add_argument("--without-standby", action="store_true", help="the control, which must find a loss")
    main(parser.parse_args())
