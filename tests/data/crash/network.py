"""A network that falls apart: a namespace behind a router that drops what it is given while it is told so."""

import contextlib
import os
import random
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network

from tests.kit.postgresql import ENDS_WITH_US

PRIVATE = IPv4Network("10.219.0.0/16")
"""Where a few addresses are chosen. Who has one of them as well is out of reach from here meanwhile."""


class Refused(Exception):
    """The system grants no namespaces, or no links between them."""


class Namespace:
    """A network of its own, which ends with the last process in it. This object holds one."""

    def __init__(self) -> None:
        # It reads its input until that ends: at the latest with us.
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo made; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said = self._holder.stdout.readline()
        if said != b"made\n":
            self.close()
            raise Refused(said.decode().strip())
        self.command = ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net")
        """What to put before a command that is to run there."""
        self.run("ip", "link", "set", "lo", "up")

    def run(self, *command: str) -> None:
        run(*self.command, *command)

    def link(
        self,
        name: str,
        address: str,
        other: "Namespace | None",
        other_name: str,
        other_address: str,
    ) -> None:
        """A cable to another namespace, or to that of this process. The addresses have the length of their network."""
        there = str(other._holder.pid if other else os.getpid())
        self.run(
            "ip",
            "link",
            "add",
            name,
            "type",
            "veth",
            "peer",
            "name",
            other_name,
            "netns",
            there,
        )
        run_there = other.run if other else run
        for run_at_end, end, at in (
            (self.run, name, address),
            (run_there, other_name, other_address),
        ):
            run_at_end("ip", "address", "add", at, "dev", end)
            run_at_end("ip", "link", "set", end, "up")

    def close(self) -> None:
        self._holder.kill()
        self._holder.communicate()


class Network:
    """A far namespace, with one way to here that stays, and one through a router that may drop everything.

    `here` and `there` are the addresses of the way that stays, ours first; `behind_router` and `behind_cut` those of
    the other one.
    """

    def __init__(self) -> None:
        part = random.choice(list(PRIVATE.subnets(new_prefix=28)))
        direct, inner, outer, _ = part.subnets(new_prefix=30)
        self.addresses = str(part)
        self.here, self.there = str(direct[1]), str(direct[2])
        self.behind_router, self.behind_cut = str(outer[1]), str(inner[2])
        self._name = f"cb{os.getpid()}"
        with contextlib.ExitStack() as undo:
            self.far = Namespace()
            undo.callback(self.far.close)
            self._router = Namespace()
            undo.callback(self._router.close)
            self._lay_cables(inner, outer)
            self._forward("1")
            undo.pop_all()

    def _lay_cables(self, inner: IPv4Network, outer: IPv4Network) -> None:
        self.far.link(
            "direct",
            f"{self.there}/30",
            None,
            f"{self._name}d",
            f"{self.here}/30",
        )
        self._router.link(
            "inner",
            f"{inner[1]}/30",
            self.far,
            "router",
            f"{self.behind_cut}/30",
        )
        self._router.link(
            "outer",
            f"{outer[2]}/30",
            None,
            f"{self._name}r",
            f"{self.behind_router}/30",
        )
        self.far.run("ip", "route", "add", str(outer), "via", str(inner[1]))
        run("ip", "route", "add", str(inner), "via", str(outer[2]))

    @contextlib.contextmanager
    def cut(self) -> Iterator[None]:
        """Nothing passes the router, and nobody is told."""
        self._forward("0")
        try:
            yield
        finally:
            self._forward("1")

    def close(self) -> None:
        # With their namespaces they would go too, but some time later.
        for end in "dr":
            run("ip", "link", "delete", f"{self._name}{end}")
        self.far.close()
        self._router.close()

    def _forward(self, value: str) -> None:
        self._router.run(
            "sh", "-c", f"echo {value} >/proc/sys/net/ipv4/ip_forward"
        )


def run(*command: str) -> None:
    """Raises `Refused`."""
    ran = subprocess.run(
        [*ENDS_WITH_US, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if ran.returncode:
        raise Refused(f"{' '.join(command)}: {ran.stdout.decode().strip()}")
