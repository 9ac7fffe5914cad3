"""The limits of posts: how many run at once, and how many are begun in an hour.

Each is one integer. Who reaches it waits, and others go on. `docs/limits.md` lists them.
"""

import math
import socket
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple

from cardbeat.clock import Clock
from cardbeat.config import FREE, Tier
from cardbeat.heartbeat.alerts.outbox import Due, Queue

SENDERS = 128
"""Most posts at once, each in a thread. Few on a host that grants few descriptors."""
KEPT_SHARE = 4
"""Every fourth sender is kept for checks whose last alert was taken: 32."""
EACH = 4
"""Most posts at once to one host, and to one address; one of them is kept for such checks."""
FIRST_POSTS = 240
"""First posts of a limited key in an hour, or twice the checks of its tier if that is more."""
FIRST_POSTS_TO_ADDRESS = 700
"""First posts of all limited keys to one address in an hour, without those of such checks."""
POST_SECONDS = 10.0
"""Longest time until a connection, and from then on for all of the exchange."""
RESTS = 3
"""A host that was silent for t seconds gets no post of that key for this many times t."""
RESTS_FROM_SECONDS = 1.0
HOSTS = 1000
"""Most hosts of a key of which something is remembered."""
REMEMBERED = 10_000
"""Most hosts that have answered, and keys, that are remembered."""
HOUR_SECONDS = 3600
MOST_NAMES = 50_000
"""Beyond this, the name whose hour began first is forgotten, and starts from zero."""


class Postponed(Exception):
    """No address may be entered now. This is no attempt, and it is to be repeated."""


class Run:
    """Alerts of one queue for one host, posted one after another by one sender."""

    def __init__(self, limits: "Limits", queue: Queue, due: Sequence[Due]) -> None:
        self.queue = queue
        self.host = due[0].receiver
        self.due = due
        self.is_first = False
        """Whether the alert that is being posted was not tried before."""
        self.address: str | None = None
        self.late_at = math.inf
        self.is_late = False
        """Whether the connection was shut down, because the post took too long."""
        self._limits = limits
        self._connection: socket.socket | None = None

    def enter(self, address: str) -> bool:
        """Whether it may connect to this address, given as `address_name`."""
        with self._limits.lock:
            return self._limits.enter(self, address)

    def connected(self, connection: socket.socket) -> None:
        """Note a connection, which is shut down after `POST_SECONDS`."""
        with self._limits.lock:
            # A second descriptor, closed here alone: so no other connection can have its number.
            self._connection = connection.dup()
            self.late_at = self._limits.monotonic() + POST_SECONDS

    def end_if_late(self) -> None:
        """Shut the connection down if its time is over: this ends every wait for the receiver."""
        if self._connection is not None and self._limits.monotonic() >= self.late_at:
            self.is_late = True
            self.late_at = math.inf
            # The receiver may have closed it.
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def leave_connection(self) -> None:
        """Forget the connection, after each post."""
        with self._limits.lock:
            self.late_at = math.inf
            self.is_late = False
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class _Host(NamedTuple):
    """A host of a key: until when it rests, and its address if that could not be entered."""

    rests_until: float = -math.inf
    address: str | None = None


class Limits:
    """Which posts may begin now. Used under `lock` only. `tiers` has the limits of keys."""

    def __init__(
        self,
        lock: AbstractContextManager[Any],
        tiers: Mapping[str, Tier],
        monotonic: Clock = time.monotonic,
        senders: int = SENDERS,
    ) -> None:
        self.lock = lock
        self.monotonic = monotonic
        self._tiers = tiers
        self._senders = senders
        self._senders_of_new = max(1, senders - senders // KEPT_SHARE)
        self._running: Counter[str] = Counter()
        """Runs in all, and by what they occupy: a key, a host, an address."""
        self._new: Counter[str] = Counter()
        """The same, of checks whose last alert was not taken."""
        self._first_posts = HourlyLimit(monotonic)
        self._answered: OrderedDict[str, bool] = OrderedDict()
        self._hosts: OrderedDict[str, OrderedDict[str, _Host]] = OrderedDict()

    def has_room(self, queue: Queue) -> bool:
        """Whether one more post of a key may begin: it has fewer than there are free senders.

        So one key alone gets half of them, and a further key finds one free. Example: of the 96 for
        new checks 28 keys have 3 each, and 12 are free.
        """
        key = f"key {queue.key_id}"
        if self._running[key] >= self._senders - self._running[""]:
            return False
        if not queue.is_new:
            return True
        free = self._senders_of_new - self._new[""]
        is_alone = self._new[key] == self._new[""]
        return self._new[key] < free or (is_alone and free > 0)

    def is_full(self, queue: Queue, host: str) -> bool:
        """Whether a host gets no further post of this queue now."""
        # A check whose last alert was taken has a receiver that answers.
        most = EACH if not queue.is_new or host in self._answered else 1
        if self._running[f"host {host}"] >= min(most, EACH - queue.is_new):
            return True
        known = self._known(queue, host)
        return self.monotonic() < known.rests_until or self._is_crowded(queue, known.address)

    def full_hosts(self, queue: Queue) -> list[str]:
        """The hosts that get no further post of this queue now, as far as they are known."""
        occupied = [name[len("host ") :] for name in self._running if name.startswith("host ")]
        hosts = dict.fromkeys([*occupied, *self._hosts_of(queue)])
        return [host for host in hosts if self.is_full(queue, host)]

    def silent_hosts(self, queue: Queue) -> list[str]:
        """The hosts that were silent when this key posted to them last."""
        hosts = self._hosts_of(queue).items()
        return [host for host, known in hosts if known.rests_until > -math.inf]

    def dry_hosts(self, queue: Queue) -> list[str]:
        """The hosts that get no first post of this queue in this hour, as far as they are known."""
        hosts = self._hosts_of(queue).items()
        return [host for host, known in hosts if self._is_dry(queue, known.address)]

    def begin(self, run: Run) -> None:
        """Count a run, also at the address that its host had before."""
        run.address = self._known(run.queue, run.host).address
        self._add(run, 1)

    def end(self, run: Run) -> None:
        self._add(run, -1)

    def enter(self, run: Run, address: str) -> bool:
        """Whether a run may connect to an address; it leaves the address that it entered before."""
        self._add(run, -1)
        run.address = None
        is_dry = run.is_first and self._is_dry(run.queue, address)
        if is_dry or self._is_crowded(run.queue, address):
            self._remember(run, address=address)
        else:
            run.address = address
            if run.is_first and self._is_counted(run.queue):
                self._first_posts.take(f"address {address}", FIRST_POSTS_TO_ADDRESS)
        self._add(run, 1)
        return run.address is not None

    def has_first_posts(self, queue: Queue) -> bool:
        """Whether the key may begin one more alert in this hour."""
        return self._first_posts.taken(f"key {queue.key_id}") < self._first_posts_of(queue)

    def begin_post(self, run: Run) -> bool:
        """Count the post that begins, unless the key has begun too many alerts in this hour."""
        most = self._first_posts_of(run.queue)
        return not run.is_first or not self._first_posts.take(f"key {run.queue.key_id}", most)

    def postponed(self, run: Run) -> None:
        """Take back what `begin_post` has counted."""
        if run.is_first:
            self._first_posts.give_back(f"key {run.queue.key_id}")

    def note(self, run: Run, has_answered: bool, seconds: float) -> None:
        """Note that a host has answered, or was silent for so long."""
        if has_answered:
            _keep(self._answered, run.host, True, REMEMBERED)
            if self._known(run.queue, run.host).rests_until > -math.inf:
                self._remember(run, rests_until=-math.inf)
        elif seconds >= RESTS_FROM_SECONDS:
            self._answered.pop(run.host, None)
            self._remember(run, rests_until=self.monotonic() + RESTS * seconds)

    def _hosts_of(self, queue: Queue) -> "OrderedDict[str, _Host]":
        return self._hosts.get(queue.key_id, OrderedDict())

    def _known(self, queue: Queue, host: str) -> _Host:
        return self._hosts_of(queue).get(host, _Host())

    def _remember(self, run: Run, **values: Any) -> None:
        hosts = self._hosts_of(run.queue)
        _keep(hosts, run.host, self._known(run.queue, run.host)._replace(**values), HOSTS)
        _keep(self._hosts, run.queue.key_id, hosts, REMEMBERED)

    def _is_crowded(self, queue: Queue, address: str | None) -> bool:
        return self._running[f"address {address}"] >= EACH - queue.is_new

    def _is_dry(self, queue: Queue, address: str | None) -> bool:
        taken = self._first_posts.taken(f"address {address}")
        return self._is_counted(queue) and taken >= FIRST_POSTS_TO_ADDRESS

    def _is_counted(self, queue: Queue) -> bool:
        """Whether its first posts count for the sum of an address."""
        return queue.is_new and self._first_posts_of(queue) < math.inf

    def _first_posts_of(self, queue: Queue) -> float:
        """The first posts of its key in an hour; infinite for a key without limits."""
        most_checks = self._tiers.get(queue.tier, FREE).max_checks
        return math.inf if most_checks is None else max(FIRST_POSTS, 2 * most_checks)

    def _add(self, run: Run, number: int) -> None:
        names = ["", f"key {run.queue.key_id}", f"host {run.host}"]
        if run.address is not None:
            names.append(f"address {run.address}")
        counters = [self._running, self._new] if run.queue.is_new else [self._running]
        for counts in counters:
            for name in names:
                counts[name] += number
                if not counts[name]:
                    del counts[name]


class HourlyLimit:
    """Counts by name. The hour of a name begins with the first one that is taken.

    Example with 30: 30 are taken between 12:10 and 12:20. The next one is taken at 13:10. Any
    thread may use it.
    """

    def __init__(self, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Name -> when its hour ends, and how many were taken in it. Used under the lock only.
        self._taken: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def take(self, name: str, most: float) -> float:
        """Take one. Returns 0, or the seconds until one is left, and then takes none."""
        with self._lock:
            now = self._monotonic()
            ends_at, taken = self._of(name, now)
            if taken >= most:
                return ends_at - now
            if not taken:
                self._taken.pop(name, None)
            self._taken[name] = ends_at, taken + 1
            if len(self._taken) > MOST_NAMES:
                self._taken.popitem(last=False)
            return 0

    def give_back(self, name: str) -> None:
        """Take back a `take` that was in vain."""
        with self._lock:
            ends_at, taken = self._of(name, self._monotonic())
            if taken:
                self._taken[name] = ends_at, taken - 1

    def taken(self, name: str) -> int:
        """How many were taken in the hour that runs."""
        with self._lock:
            return self._of(name, self._monotonic())[1]

    def _of(self, name: str, now: float) -> tuple[float, int]:
        ends_at, taken = self._taken.get(name, (now, 0))
        return (ends_at, taken) if now < ends_at else (now + HOUR_SECONDS, 0)


def _keep(known: "OrderedDict[str, Any]", name: str, value: object, most: int) -> None:
    """Keep a value under a name, and at most so many: the oldest goes."""
    known[name] = value
    known.move_to_end(name)
    if len(known) > most:
        known.popitem(last=False)
