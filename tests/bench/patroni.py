"""Two nodes over a PostgreSQL that Patroni keeps alive: its primary is killed under load, with all that is on its host.

    python -m tests.bench.patroni [KILLS]

Two members in synchronous mode, and etcd, all on this machine. To be run by root, after

    apt-get install patroni etcd-server postgresql

Each member runs in a namespace of processes, so that Patroni and PostgreSQL die at the same moment. What must be there
in the end is as in `tests.bench.node_kills`.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.artifact import free_port
from tests.bench.node_kills import CLIENTS, new_node
from tests.bench.running import parser_of
from tests.crash.cluster import AS_NOBODY, ENDS_WITH_US, Postgres, folder_for_all, installed
from tests.crash.load import Load
from tests.support import wait_until

ON_A_HOST = (*ENDS_WITH_US, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *ENDS_WITH_US, *AS_NOBODY)
TTL_SECONDS = 20
"""After so long without a word from the primary a standby takes its place: Patroni's shortest."""


def main(arguments: argparse.Namespace) -> None:
    programs = installed()
    if programs is None or not all(map(shutil.which, ("patroni", "etcd"))) or os.getuid() != 0:
        sys.exit("this needs root, and: apt-get install patroni etcd-server postgresql")
    with folder_for_all() as folder, etcd(folder) as etcd_port, contextlib.ExitStack() as ends:
        members = [Member(folder, programs, name, etcd_port) for name in ("one", "two")]
        for member in members:
            ends.callback(member.kill)
            member.start()
            wait_until(lambda: primary_of(members) is not None, 120)
        wait_until(lambda: has_standby(members), 120)
        addresses = ",".join(f"127.0.0.1:{member.server.port}" for member in members)
        primary_of(members).server.execute("CREATE SCHEMA test")
        url = f"postgresql://cardbeat@{addresses}/postgres?options=-csearch_path%3Dtest"
        nodes = [new_node(folder / f"node-{number}", url) for number in range(2)]
        for node in nodes:
            ends.callback(node.kill)
        with Load(nodes, CLIENTS) as load:
            pauses = [kill_primary(members, load) for _ in range(arguments.kills)]
            server = primary_of(members).server
            load.settle(server, "test")
            report(pauses, load, load.missing(server, "test"))


@contextlib.contextmanager
def etcd(folder: Path) -> Iterator[int]:
    """The port of its clients."""
    port, url = free_port(), "http://127.0.0.1:"
    options = {
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": f"{url}{port}",
        "advertise-client-urls": f"{url}{port}",
        "listen-peer-urls": f"{url}{free_port()}",
        "unsafe-no-fsync": "true",
    }
    command = [*ENDS_WITH_US, "etcd", *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "etcd.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield port
        finally:
            process.kill()


class Member:
    """A host with Patroni, which starts PostgreSQL there."""

    def __init__(self, folder: Path, programs: Path, name: str, etcd_port: int) -> None:
        self.server = Postgres(folder / name, programs)
        self.api = free_port()
        self._settings = self.server.folder / "patroni.json"
        self._settings.write_text(json.dumps(settings(self, programs, name, etcd_port)))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [*ON_A_HOST, "patroni", str(self._settings)]
        with (self.server.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.server.folder, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def is_(self, role: str) -> bool:
        """Whether Patroni's API says that this is the `primary`, or a standby that is `synchronous`."""
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.api}/{role}", timeout=2):
            return True
        return False


def settings(member: Member, programs: Path, name: str, etcd_port: int) -> dict[str, object]:
    """Those of Patroni, in JSON, which is YAML."""
    api, address = f"127.0.0.1:{member.api}", f"127.0.0.1:{member.server.port}"
    everybody = ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
    parameters = {"fsync": "off", "shared_buffers": "16MB", "unix_socket_directories": str(member.server.folder)}
    return {
        "scope": "cardbeat",
        "name": name,
        "restapi": {"listen": api, "connect_address": api},
        "etcd3": {"host": f"127.0.0.1:{etcd_port}"},
        "bootstrap": {
            "dcs": {
                "ttl": TTL_SECONDS,
                "loop_wait": 2,
                "retry_timeout": 8,
                "synchronous_mode": True,
                "synchronous_mode_strict": True,
                "postgresql": {"use_pg_rewind": True, "parameters": {"wal_log_hints": "on"}},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"auth": "trust"}],
            "pg_hba": everybody,
        },
        "postgresql": {
            "listen": address,
            "connect_address": address,
            "data_dir": str(member.server.data),
            "bin_dir": str(programs),
            "pgpass": str(member.server.folder / "pgpass"),
            "authentication": {"superuser": {"username": "cardbeat"}, "replication": {"username": "replicator"}},
            "parameters": parameters,
            "pg_hba": everybody,
        },
    }


def primary_of(members: list[Member]) -> Member | None:
    return next((member for member in members if member.is_("primary")), None)


def has_standby(members: list[Member]) -> bool:
    """Whether each commit waits for one, which can take the primary's place."""
    return any(member.is_("synchronous") for member in members) and primary_of(members) is not None


def kill_primary(members: list[Member], load: Load) -> float:
    """How long it took until each client was acknowledged something."""
    primary = primary_of(members)
    began = time.monotonic()
    primary.kill()
    # No commit is confirmed before the other one has a standby itself.
    wait_until(lambda: any(member.is_("primary") for member in members if member is not primary), 120)
    primary.start()
    load.wait(180)
    pause = time.monotonic() - began
    wait_until(lambda: has_standby(members), 120)
    return pause


def report(pauses: list[float], load: Load, missing: list[str]) -> None:
    counts = ", ".join(f"{number:,} {what}" for what, number in load.totals().items())
    print(f"{len(pauses)} kills of the primary under Patroni; acknowledged: {counts}")
    print(f"{load.outages():,} outages told; {load.doubles()} alerts arrived twice under one id")
    times = sorted(pauses)
    shown = f"median {times[len(times) // 2]:.0f} s, longest {times[-1]:.0f} s"
    print(f"until each client was acknowledged something: {shown}")
    print(f"{len(missing)} demands not met", *missing[:3], sep="\n    ")
    if missing:
        sys.exit("something is missing")


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("kills", metavar="KILLS", nargs="?", type=int, default=5, help="[5]")
    main(parser.parse_args())
