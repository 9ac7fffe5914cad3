"""What goes wrong, and when: each kind of fault comes by chance, at any moment, and ends after a while."""

import sqlite3
from functools import partial

from tests.model import disk
from tests.model.network import ANSWERS, HANGS, SLOW
from tests.model.troubles import SLOWEST_SECONDS, Trouble


class Faults:
    """A fault that cannot happen at the moment, such as the crash of a server that is down, comes later."""

    def __init__(self, world):
        self._world = world
        self._luck = world.luck
        self._sweep_seconds = world.sweep_seconds
        self._gap_seconds = max(
            600.0,
            self._sweep_seconds * world.options["sweeps_between_faults"],
        )
        """What passes on average between two faults of the machine, and between two of receivers."""
        world.disk.read_late = self.read_late

    def begin(self):
        world = self._world
        of_machine = {
            "crashes": world.server.crash,
            "crashes at a commit": self.crash_at_commit,
            "suspensions": self.suspend,
            "sleeps of the machine": self.sleep,
            "power cuts": world.cut,
            "disks full": partial(self.spoil, sqlite3.SQLITE_FULL),
            "disks read-only": partial(
                self.spoil, sqlite3.SQLITE_READONLY
            ),
            "disks slow": self.slow_down,
            "jumps of the clock": self.jump,
            "restarts": world.server.stop,
        }
        self._every(self._gap_seconds, of_machine)
        self._begin_changes()
        kinds = (HANGS, SLOW, *ANSWERS.keys() - {"takes"})
        of_receivers = {
            f"receivers: {does}": partial(self.receiver, does)
            for does in sorted(kinds)
        }
        self._every(self._gap_seconds, of_receivers)
        sweeps = world.options["sweeps_between_revocations"]
        revocations = max(600.0, self._sweep_seconds * sweeps)
        self._every(
            revocations,
            {"keys revoked": lambda: world.any_owner().revoke()},
        )

    def _begin_changes(self):
        """What owners do to their checks."""
        world = self._world
        of_people = {
            "checks edited": lambda: world.any_owner().edit(),
            "checks edited twice at once": lambda: (
                world.any_owner().edit_twice()
            ),
            "checks moved": lambda: world.any_owner().move(),
            "checks deleted": lambda: world.any_owner().delete(),
            "tests of alerts": lambda: world.any_owner().test(),
        }
        self._every(self._gap_seconds / 2, of_people)
        of_nights = {
            "checks snoozed": lambda: world.any_owner().snooze(),
            "reminders changed": lambda: world.any_owner().remind(),
        }
        self._every(self._gap_seconds / 10, of_nights)

    def _every(self, seconds, kinds):
        left = []

        def strike():
            # Each kind in turn, in another order each time, so that all of them come.
            if not left:
                left.extend(self._luck.sample(list(kinds), len(kinds)))
            if self._world.scheduler.is_asleep:
                # Nothing happens on it, and people find it silent.
                self._world.scheduler.after(self._sweep_seconds, strike)
                return
            struck = next(
                (
                    kind
                    for kind in left
                    if self._strikes(kind, kinds[kind])
                ),
                None,
            )
            if struck is not None:
                left.remove(struck)
            self._world.scheduler.after(
                self._luck.expovariate(1 / seconds), strike
            )

        self._world.scheduler.after(
            self._luck.expovariate(1 / seconds), strike
        )

    def _strikes(self, kind, fault):
        self._world.note("fault", kind)
        has_struck = fault()
        self._world.counts[kind] += has_struck
        return has_struck

    def _for_a_while(self, end):
        """Mostly short; now and then an outage that must be credited."""
        longer = self._sweep_seconds * self._luck.uniform(0.2, 5.0)
        seconds = self._luck.choice(
            (self._luck.uniform(0.1, 8.0), longer)
        )
        self._world.scheduler.after(seconds, end)

    def crash_at_commit(self):
        """The process dies at its next commit, if nothing else ends it before."""
        process = self._world.server.process
        if process is None or process is self._world.disk.doomed:
            return False
        self._world.disk.doomed = process
        return True

    def suspend(self):
        world = self._world
        process = world.server.process
        if process is None or process.frozen is not None:
            return False
        world.scheduler.suspend(process)
        world.look()

        def resume():
            if world.scheduler.is_asleep:
                world.scheduler.after(self._sweep_seconds, resume)
                return
            world.scheduler.resume(process)
            world.look()

        self._for_a_while(resume)
        return True

    def sleep(self):
        """Of the machine: its monotonic clock stands still meanwhile."""
        world = self._world
        scheduler = world.scheduler
        process = (
            world.server.process if world.server.is_running else None
        )
        began = world.now
        if process:
            scheduler.suspend(process)
        scheduler.is_asleep = True
        world.look()

        def wake_up():
            seconds = world.now - began
            scheduler.slept += seconds
            world.model.slept(seconds)
            # A commit that was under way goes on, for as long as it had left.
            world.disk.slow_until += seconds
            scheduler.is_asleep = False
            if process:
                scheduler.resume(process)
            world.look()

        scheduler.after(
            self._luck.uniform(0.1, 6.0) * self._sweep_seconds, wake_up
        )
        return True

    def spoil(self, trouble):
        world = self._world
        if world.disk.trouble is not None:
            return False
        world.disk.trouble = trouble
        world.look()

        def mend():
            world.disk.trouble = None
            world.look()

        self._for_a_while(mend)
        return True

    def slow_down(self):
        """So that what takes milliseconds takes longer than a sweep's interval."""
        world = self._world
        slow = world.disk
        if slow.pace != disk.BRIEF:
            return False
        slowest = self._luck.choice(
            (1.0, 5.0, min(3.0 * self._sweep_seconds, SLOWEST_SECONDS))
        )
        seconds = self._luck.choice((3.0, 8.0)) * slowest
        began = world.now
        slow.pace = (0.1 * slowest, slowest)
        slow.slow_until = max(slow.slow_until, began + seconds)
        world.look()

        def mend():
            left = slow.slow_until - world.now
            if left > 0 or world.scheduler.is_asleep:
                world.scheduler.after(max(1.0, left), mend)
                return
            slow.pace = disk.BRIEF
            world.model.troubles.add(
                Trouble(began, world.now, slow=4 * slowest)
            )
            world.look()

        world.scheduler.after(seconds, mend)
        return True

    def read_late(self, seconds):
        """A sweep waited for a read so long that pings may not have been taken either: that may be credited."""
        if seconds > self._sweep_seconds / 2:
            now = self._world.now
            self._world.model.troubles.add(Trouble(now - seconds, now))

    def jump(self):
        world = self._world
        most = self._luck.choice((30.0, 3600.0, 40 * 86400.0))
        seconds = most * self._luck.uniform(-1, 1)
        world.scheduler.jump_seconds += seconds
        world.model.jumped(seconds)
        jump = Trouble(
            world.now,
            world.now,
            forward=max(0.0, seconds),
            back=max(0.0, -seconds),
        )
        world.model.troubles.add(jump)
        world.look(is_disturbed=True)
        return True

    def receiver(self, does):
        network = self._world.network
        taking = [
            host
            for host, doing in network.doing.items()
            if doing == "takes"
        ]
        if not taking:
            return False
        host = self._luck.choice(taking)
        network.doing[host] = does

        def mend():
            if network.doing[host] == does:
                network.doing[host] = "takes"

        self._world.scheduler.after(
            self._gap_seconds * self._luck.uniform(0.05, 2.0), mend
        )
        return True
