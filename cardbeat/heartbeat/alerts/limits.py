"""The limits of posts: how many run at once, and how many are begun in an hour.

Each is one integer. Who reaches it waits, and others go on. `docs/limits.md` lists them.
"""

import math
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from cardbeat.clock import Clock
from cardbeat.config import FREE, Tier
from cardbeat.heartbeat.alerts.outbox import Due, Queue

SENDERS = 128
"""Most posts at once, each in a thread. Few on a host that grants few descriptors."""
KEPT_SHARE = 4
"""Every fourth sender is kept for checks whose last alert was taken: 32."""
FURTHER_SHARE = 6
"""Every sixth sender: most posts of limited keys at once beside the first one of each, 21."""
EACH = 4
"""Most posts at once to one host, and to one address; one of them is kept for such checks."""
FIRST_POSTS = 240
"""First posts of a limited key in an hour, or twice the checks of its tier if that is more."""
FIRST_POSTS_TO_ADDRESS = 700
"""First posts of all limited keys to one address in an hour, without those of such checks."""
POST_SECONDS = 10.0
"""Longest time until a connection, and from then on for all of the exchange."""
SILENT_SECONDS = 1.0
"""A host that gives no answer for this time counts as silent."""
HOSTS = 1000
"""Most hosts of a key of which something is remembered; then all are forgotten."""
REMEMBERED = 10_000
"""The same of hosts that have answered, of keys, and of names that an `HourlyLimit` counts."""
HOUR_SECONDS = 3600


class Postponed(Exception):
    """No address may be entered now. This is no attempt, and it is to be repeated."""


class Run:
    """Alerts of one queue for one host, posted one after another by one sender."""

    def __init__(
        self,
        limits: "Limits",
        queue: Queue,
        host: str,
        due: Sequence[Due],
    ) -> None:
        self.queue = queue
        self.host = host
        self.seqs = [one.seq for one in due]
        self.check_ids = {one.check_id for one in due}
        """The checks of its alerts that have no result yet."""
        self.is_further = False
        """Whether a limited key had other posts when this one began."""
        self.is_first = False
        """Whether the next post counts as a first one of its key."""
        self.address: str | None = None
        self.late_at = math.inf
        self.is_late = False
        """Whether the connection was shut down, because the post took too long."""
        self._limits = limits
        self._connection: socket.socket | None = None

    def enter(self, address: str | None) -> bool:
        """Whether it may connect to this address, given as `address_name`; None is any proxy's."""
        return self._limits.enter(self, address)

    def connected(self, connection: socket.socket) -> None:
        """Note a connection, which is shut down after `POST_SECONDS`."""
        with self._limits.lock:
            # A second descriptor, closed here alone: so no other connection can have its number.
            self._connection = connection.dup()
            self.late_at = self._limits.monotonic() + POST_SECONDS

    def end_if_late(self) -> None:
        """Shut the connection down if its time is over: this ends every wait for the receiver."""
        if (
            self._connection is not None
            and self._limits.monotonic() >= self.late_at
        ):
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
        self._most_further = senders // FURTHER_SHARE
        self._running: Counter[str] = Counter()
        """Runs in all, and by what they occupy: a key, a host, an address.

        `new` are those of checks whose last alert was not taken.
        """
        self._first_posts = HourlyLimit(monotonic)
        self._answered: set[str] = set()
        self._troubled: defaultdict[str, dict[str, str]] = defaultdict(
            dict
        )
        """By key and host the address that could not be entered; "" for a host that was silent."""

    def has_room(self, queue: Queue) -> bool:
        """Whether one more post of a key may begin.

        1. It has fewer than there are free senders. So one key alone gets half of them. Example: of
        the 96 for new checks 28 unlimited keys have 3 each, and 12 are free.
        2. Beside others a limited key has one, and few more that all such keys share. So 100 of
        them leave senders to other keys, whatever their receivers did before.
        """
        free = self._senders - self._running["all"]
        own = self._running[f"key {queue.key_id}"]
        if own >= free:
            return False
        is_beside = 0 < own < self._running["all"]
        has_further = self._running["further"] < self._most_further
        if is_beside and self._is_limited(queue) and not has_further:
            return False
        own_new = self._running[f"new of {queue.key_id}"]
        free_new = self._senders_of_new - self._running["new"]
        is_alone = own_new == self._running["new"]
        return (
            not queue.is_new
            or own_new < free_new
            or (is_alone and free_new > 0)
        )

    def is_full(self, queue: Queue, host: str) -> bool:
        """Whether a host gets no further post of this queue now."""
        most = EACH - queue.is_new
        if queue.is_new and host not in self._answered:
            # Others have a receiver that answers.
            most = 1
        address = self._troubled_of(queue).get(host)
        return self._running[f"host {host}"] >= most or self._is_crowded(
            queue, address
        )

    def excluded(
        self, queue: Queue
    ) -> tuple[list[str], list[str], list[str]]:
        """The hosts that get no further post of this queue now, as far as they are known.

        Then those that had trouble when its key posted to them last. Then those that get no first
        post of it in this hour.
        """
        troubled = self._troubled_of(queue)
        hosts = set(troubled)
        for name in self._running:
            if name.startswith("host "):
                hosts.add(name.removeprefix("host "))
        full = [host for host in hosts if self.is_full(queue, host)]
        dry = [
            host
            for host in troubled
            if self._is_dry(queue, troubled[host])
        ]
        return full, list(troubled), dry

    def has_first_posts(self, queue: Queue) -> bool:
        """Whether the key may begin one more alert in this hour."""
        taken = self._first_posts.taken(f"key {queue.key_id}")
        return taken < self._most_first_posts(queue)

    def begin(self, run: Run) -> None:
        """Count a run, also at the address that could not be entered last."""
        troubled = self._troubled_of(run.queue)
        run.address = troubled.get(run.host) or None
        own = self._running[f"key {run.queue.key_id}"]
        run.is_further = own > 0 and self._is_limited(run.queue)
        self.count(run, 1)

    def enter(self, run: Run, address: str | None) -> bool:
        """Whether a run may connect to an address; it leaves the address that it entered before.

        A first post is counted at the first address that is entered.
        """
        with self.lock:
            self.count(run, -1)
            run.address = None
            may_enter = not self._is_crowded(run.queue, address)
            if may_enter and run.is_first:
                may_enter = self._take_first_post(run.queue, address)
                run.is_first = not may_enter
            if may_enter:
                run.address = address
            elif address is not None:
                self._note_trouble(run, address)
            self.count(run, 1)
            return may_enter

    def note(self, run: Run, has_answered: bool, seconds: float) -> None:
        """Note that a host has answered, or was silent for so long."""
        if has_answered:
            if len(self._answered) >= REMEMBERED:
                self._answered.clear()
            self._answered.add(run.host)
            self._troubled_of(run.queue).pop(run.host, None)
        elif seconds >= SILENT_SECONDS:
            self._note_trouble(run, "")

    def _troubled_of(self, queue: Queue) -> dict[str, str]:
        return self._troubled.get(queue.key_id, {})

    def _note_trouble(self, run: Run, address: str) -> None:
        """Where too much is known, all is forgotten."""
        if len(self._troubled) > REMEMBERED:
            self._troubled.clear()
        hosts = self._troubled[run.queue.key_id]
        if len(hosts) >= HOSTS:
            hosts.clear()
        hosts[run.host] = address

    def _take_first_post(self, queue: Queue, address: str | None) -> bool:
        """Count a first post, unless the key or the address had all of this hour."""
        most = self._most_first_posts(queue)
        if self._is_dry(queue, address) or self._first_posts.take(
            f"key {queue.key_id}", most
        ):
            return False
        if address is not None and queue.is_new and most < math.inf:
            self._first_posts.take(f"address {address}", math.inf)
        return True

    def _is_crowded(self, queue: Queue, address: str | None) -> bool:
        return self._running[f"address {address}"] >= EACH - queue.is_new

    def _is_dry(self, queue: Queue, address: str | None) -> bool:
        """Whether an address gets no first post of this queue in this hour."""
        taken = self._first_posts.taken(f"address {address}")
        return (
            queue.is_new
            and self._is_limited(queue)
            and taken >= FIRST_POSTS_TO_ADDRESS
        )

    def _is_limited(self, queue: Queue) -> bool:
        return self._most_first_posts(queue) < math.inf

    def _most_first_posts(self, queue: Queue) -> float:
        """The first posts of a key in an hour; infinite for a key without limits."""
        most_checks = self._tiers.get(queue.tier, FREE).max_checks
        if most_checks is None:
            return math.inf
        return max(FIRST_POSTS, 2 * most_checks)

    def count(self, run: Run, number: int) -> None:
        """Count a run at all that it occupies, or with -1 count it no more."""
        names = ["all", f"key {run.queue.key_id}", f"host {run.host}"]
        if run.address is not None:
            names.append(f"address {run.address}")
        if run.queue.is_new:
            names += ["new", f"new of {run.queue.key_id}"]
        if run.is_further:
            names.append("further")
        for name in names:
            self._running[name] += number
            if not self._running[name]:
                del self._running[name]


class HourlyLimit:
    """Counts by name. An hour begins with the first one that is taken after the hour before.

    Example with 30: 30 are taken between 12:10 and 12:20. The next one is taken at 13:10. Any
    thread may use it.
    """

    def __init__(self, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # Both are used under the lock only.
        self._taken: Counter[str] = Counter()
        self._ends_at = -math.inf

    def take(self, name: str, most: float) -> float:
        """Take one. Returns 0, or the seconds until one is left, and then takes none."""
        with self._lock:
            now = self._monotonic()
            if now >= self._ends_at or len(self._taken) > REMEMBERED:
                self._taken.clear()
                self._ends_at = now + HOUR_SECONDS
            if self._taken[name] >= most:
                return self._ends_at - now
            self._taken[name] += 1
            return 0

    def taken(self, name: str) -> int:
        """How many were taken in the hour that runs."""
        with self._lock:
            if self._monotonic() >= self._ends_at:
                return 0
            return self._taken[name]
