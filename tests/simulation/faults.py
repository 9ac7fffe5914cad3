"""What goes wrong, and when: each kind of fault comes by chance, at any moment, and ends after a while."""

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation import disk
from tests.simulation.machine import Server
from tests.simulation.network import HANGS, SLOW
from tests.simulation.scheduler import Process
from tests.simulation.troubles import SLOWEST_SECONDS, Trouble

if TYPE_CHECKING:
    from tests.simulation.world import World

RECEIVERS = {
    "receivers that hang": HANGS,
    "receivers that refuse": "refuses",
    "receivers gone (410)": "is gone",
    "receivers that redirect": "redirects",
    "receivers that fail (500)": "fails",
    "receivers that are slow": SLOW,
    "receivers that are busy (429)": "is busy",
    "receivers that are hasty (503)": "is hasty",
}


CRASHES_AT_COMMIT = "crashes at a commit"
"""Counted when the commit comes."""

Fault = Callable[[], bool]
"""Lets it happen, if it can; whether it does."""


class Faults:
    """`gap_seconds` passes on average between two faults of the machine, and between two of receivers.

    A fault tells whether it struck: what cannot happen at the moment, such as the crash of a server that is down, is
    not counted and comes later.
    """

    def __init__(self, world: "World", gap_seconds: float) -> None:
        self._world = world
        self._luck = world.luck
        self._gap_seconds = gap_seconds
        world.disk.read_late = self.read_late
        self._of_machine: dict[str, Fault] = {
            "crashes": self.crash,
            CRASHES_AT_COMMIT: self.crash_at_commit,
            "suspensions": self.suspend,
            "sleeps of the machine": self.sleep,
            "power cuts": self.cut,
            "disks full": lambda: self.spoil(sqlite3.SQLITE_FULL),
            "disks read-only": lambda: self.spoil(sqlite3.SQLITE_READONLY),
            "disks slow": self.slow_down,
            "jumps of the clock": self.jump,
            "restarts": self.restart,
        }
        self._of_people: dict[str, Fault] = {
            "checks edited": lambda: world.any_owner().edit(),
            "checks edited twice at once": lambda: world.any_owner().edit_twice(),
            "checks moved": lambda: world.any_owner().move(),
            "checks deleted": lambda: world.any_owner().delete(),
            "tests of alerts": lambda: world.any_owner().test(),
        }
        self._of_nights: dict[str, Fault] = {
            "checks snoozed": lambda: world.any_owner().snooze(),
            "reminders changed": lambda: world.any_owner().remind(),
        }
        self._of_keys: dict[str, Fault] = {"keys revoked": lambda: world.any_owner().revoke()}

    @property
    def kinds(self) -> list[str]:
        return [*self._of_machine, *self._of_people, *self._of_nights, *RECEIVERS, *self._of_keys]

    def begin(self) -> None:
        gap_seconds = self._gap_seconds
        self._every(gap_seconds, self._of_machine)
        if jumps := self._world.options["sweeps_between_jumps"]:
            self._every(self._world.sweep_seconds * jumps, {"jumps of the clock": self.jump})
        self._every(gap_seconds / 2, self._of_people)
        self._every(gap_seconds / 10, self._of_nights)
        self._every(gap_seconds, {kind: lambda does=does: self.receiver(does) for kind, does in RECEIVERS.items()})
        revocations = max(600.0, self._world.sweep_seconds * self._world.options["sweeps_between_revocations"])
        self._every(revocations, self._of_keys)

    def _every(self, seconds: float, kinds: dict[str, Fault]) -> None:
        left: list[str] = []

        def strike() -> None:
            # Each kind in turn, in another order each time, so that all of them come.
            if not left:
                left.extend(self._luck.sample(list(kinds), len(kinds)))
            if self._world.machine.is_asleep:
                # Nothing happens on it, and people find it silent.
                self._world.scheduler.after(self._world.sweep_seconds, strike)
                return
            struck = next((kind for kind in left if self._strikes(kind, kinds[kind])), None)
            if struck is not None:
                left.remove(struck)
            self._world.scheduler.after(self._luck.expovariate(1 / seconds), strike)

        self._world.scheduler.after(self._luck.expovariate(1 / seconds), strike)

    def _strikes(self, kind: str, fault: Fault) -> bool:
        self._world.note("fault", kind)
        has_struck = fault()
        if has_struck and kind != CRASHES_AT_COMMIT:
            self._world.count(kind)
        return has_struck

    def _for_a_while(self, end: Callable[[], None], longest_sweeps: float = 5.0) -> None:
        """Mostly short; now and then an outage that must be credited."""
        sweep = self._world.sweep_seconds
        seconds = self._luck.choice((self._luck.uniform(0.1, 8.0), sweep * self._luck.uniform(0.2, longest_sweeps)))
        self._world.scheduler.after(seconds, end)

    def _any_process(self, is_fit: Callable[[Process], bool]) -> tuple[Server, Process] | None:
        running = [(server, server.process) for server in self._world.servers if server.process is not None]
        fit = [(server, process) for server, process in running if is_fit(process)]
        return self._luck.choice(fit) if fit else None

    def crash(self) -> bool:
        found = self._any_process(lambda _: True)
        if found is not None:
            found[0].crash()
        return found is not None

    def crash_at_commit(self) -> bool:
        """The process dies at its next commit, if nothing else ends it before."""
        doomed = self._world.disk.doomed
        found = self._any_process(lambda process: process not in doomed)
        if found is None:
            return False
        server, process = found

        def die() -> None:
            if server.process is process:
                self._world.count(CRASHES_AT_COMMIT)
                server.crash()

        doomed[process] = die
        return True

    def suspend(self) -> bool:
        found = self._any_process(lambda process: process.frozen is None)
        if found is None:
            return False
        process = found[1]
        self._world.scheduler.suspend(process)
        self._world.look()

        def resume() -> None:
            if self._world.machine.is_asleep:
                self._world.scheduler.after(self._world.sweep_seconds, resume)
                return
            if not process.is_dead:
                self._world.scheduler.resume(process)
            self._world.look()

        self._for_a_while(resume)
        return True

    def sleep(self) -> bool:
        """Of the machine: its monotonic clock stands still meanwhile."""
        world = self._world
        processes = [server.process for server in world.servers if server.process and server.process.frozen is None]
        began = world.now
        for process in processes:
            world.scheduler.suspend(process)
        world.machine.is_asleep = True
        world.look()

        def wake_up() -> None:
            world.scheduler.slept += world.now - began
            world.model.slept(world.now - began)
            # A commit that was under way goes on, for as long as it had left.
            world.disk.slow_until += world.now - began
            world.machine.is_asleep = False
            for process in processes:
                if not process.is_dead:
                    world.scheduler.resume(process)
            world.look()

        world.scheduler.after(self._luck.uniform(0.1, 6.0) * world.sweep_seconds, wake_up)
        return True

    def cut(self) -> bool:
        is_anything_on = self._any_process(lambda _: True) is not None
        if is_anything_on:
            self._world.cut()
        return is_anything_on

    def spoil(self, trouble: int) -> bool:
        if self._world.disk.trouble is not None:
            return False
        self._world.disk.trouble = trouble
        self._world.look()

        def mend() -> None:
            if self._world.disk.trouble == trouble:
                self._world.disk.trouble = None
            self._world.look()

        self._for_a_while(mend)
        return True

    def slow_down(self) -> bool:
        """So that what takes milliseconds takes longer than a sweep's interval."""
        if self._world.disk.pace != disk.BRIEF:
            return False
        slowest = self._luck.choice((1.0, 5.0, min(3.0 * self._world.sweep_seconds, SLOWEST_SECONDS)))
        seconds = self._luck.choice((3.0, 8.0)) * slowest
        began = self._world.now
        self._world.disk.pace = (0.1 * slowest, slowest)
        self._world.disk.slow_until = max(self._world.disk.slow_until, self._world.now + seconds)
        self._world.look()

        def mend() -> None:
            left = self._world.disk.slow_until - self._world.now
            if left > 0 or self._world.machine.is_asleep:
                self._world.scheduler.after(max(1.0, left), mend)
                return
            self._world.disk.pace = disk.BRIEF
            self._world.model.troubles.add(Trouble(began, self._world.now, slow=4 * slowest))
            self._world.look()

        self._world.scheduler.after(seconds, mend)
        return True

    def read_late(self, seconds: float) -> None:
        """A sweep waited for a read so long that pings may not have been taken either: that may be credited."""
        if seconds > self._world.sweep_seconds / 2:
            now = self._world.now
            self._world.model.troubles.add(Trouble(now - seconds, now))

    def jump(self) -> bool:
        world = self._world
        seconds = self._luck.choice((-1, 1)) * self._luck.choice((30.0, 3600.0, 40 * 86400.0)) * self._luck.random()
        world.machine.jump_seconds += seconds
        world.model.jumped(seconds)
        world.model.troubles.add(Trouble(world.now, world.now, forward=max(0.0, seconds), back=max(0.0, -seconds)))
        world.look(is_disturbed=True)
        return True

    def restart(self) -> bool:
        listening = [server for server in self._world.servers if server.is_listening]
        if listening:
            self._luck.choice(listening).stop()
        return bool(listening)

    def receiver(self, does: str) -> bool:
        network = self._world.network
        taking = [host for host, doing in network.doing.items() if doing == "takes"]
        if not taking:
            return False
        host = self._luck.choice(taking)
        network.doing[host] = does

        def mend() -> None:
            if network.doing[host] == does:
                network.doing[host] = "takes"

        self._world.scheduler.after(self._gap_seconds * self._luck.uniform(0.05, 2.0), mend)
        return True
