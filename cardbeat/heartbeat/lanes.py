"""Whose alert is posted next, so that a slow or dead receiver holds up nobody else's. Pure: no clock, thread or row.

A courier is a thread that posts. Couriers are shared by key, and limited for each host and each address. Which of them
may post for a receiver, and for how long, follows from how long its earlier posts took.
"""

import sys
from collections import deque
from dataclasses import dataclass, field

from cardbeat.fair_queue import FairQueue
from cardbeat.heartbeat.places import Place, Places, remember

COURIERS = 512
"""Posts that run at once."""
KEPT_SHARE = 4
"""One in so many couriers is kept for receivers that were quick, and one in so many for all others."""
LONG_SHARE = 4
"""One in so many couriers may make a long post."""
LONG_SECONDS = 10.0
"""How long a post may take in all."""
BRIEF_SECONDS = 2.0
"""From here on a post counts as slow; one that may not be long ends here, and is made anew as a long one."""

QUICK, NEW, SLOW = range(3)
"""The pace of a receiver, which is a key's host, at its last post; one that gave no answer at all is new again."""


@dataclass(slots=True, eq=False)
class CheckQueue:
    """A check's undelivered alerts in order, by their `seq`; the first is the one being sent or waited for.

    Its tests are in a queue of their own: a test waits for no outage whose receiver failed.
    """

    check_seq: int
    key: str
    host: str
    alerts: list[int]
    is_test: bool = False
    entry: int = 0
    """The number of its entry in the schedule while it waits for its time; 0 while it is due or being posted for."""
    pace: int = NEW
    """Of the check's receiver, as known when the queue was put among those that wait for a courier."""
    is_long: bool = False
    """Whether its post may take `LONG_SECONDS`."""
    places: "list[Place[CheckQueue]]" = field(default_factory=list)
    """Its host and then, once known, the address that is posted to; empty while no post runs."""
    woken_by: "tuple[Place[CheckQueue], bool] | None" = None
    """The place that it waited for and is tried at, and whether among the slow ones there."""
    crowded: str | None = None
    """An address that its post found no room at."""


class Lanes:
    """The queues that are due, in three lanes by the pace of their receivers.

    In each lane the keys take turns, weighed by the time that their posts took, and the lanes take turns too. At most
    `couriers` posts run at once. Some couriers are kept for quick receivers and as many for all others, so that neither
    wait for the other. Only some may make long posts: those for slow receivers, and others while there is room. All
    other posts end after `BRIEF_SECONDS`, so that there is soon a courier for the next key, whatever receivers do. Not
    safe for threads: its owner holds a lock.
    """

    def __init__(self, couriers: int = COURIERS) -> None:
        self._couriers = couriers
        self._most_in_lane = couriers - couriers // KEPT_SHARE
        self._most_long = max(1, couriers // LONG_SHARE)
        self.running = 0
        self._running_quick = 0
        self._running_long = 0
        self._lanes = tuple(FairQueue[CheckQueue](sys.maxsize) for _ in (QUICK, NEW, SLOW))
        self._turns = deque((QUICK, NEW, SLOW))
        self._hosts = Places[CheckQueue]()
        self._addresses = Places[CheckQueue]()
        self._paces: dict[tuple[str, str], int] = {}
        """By key and host."""
        self._address_of: dict[str, str] = {}
        """Where hosts led to last."""

    def add(self, queue: CheckQueue) -> None:
        """The first alert of a queue is due."""
        is_slow = self._pace_of(queue) == SLOW
        host = self._hosts.used(queue.host)
        if host is None or host.has_room(is_slow):
            self._put_in_lane(queue)
        else:
            host.wait(queue.key, queue, is_slow)

    def take(self) -> CheckQueue | None:
        """The next queue to post for, None if there is none now; `done` or `postpone` must follow."""
        while (queue := self._next()) is not None:
            lane = self._lanes[queue.pace]
            if queue.pace != self._pace_of(queue):
                lane.done(queue.key, 0)
                self._put_in_lane(queue)
                continue
            begins = self._begin(queue)
            if not begins:
                lane.done(queue.key, 0)
            self._settle(queue)
            if begins:
                return queue
        return None

    def enter(self, queue: CheckQueue, address: str) -> bool:
        """Whether the post for a taken queue may go to this address, by its name; it leaves that it went to before.

        If it may not, and to no other either, `postpone` is to follow: the queue then waits for this address.
        """
        host, *before = queue.places
        if before and before[0].name == address:
            return True
        queue.places = [host]
        self._leave(self._addresses, before, queue)
        place = self._addresses.at(address)
        if not place.has_room(queue.pace == SLOW):
            queue.crowded = queue.crowded or address
            return False
        if queue.is_long and not place.has_room(True):
            self._shorten(queue)
        place.enter(queue.is_long)
        queue.places.append(place)
        remember(self._address_of, queue.host, address)
        return True

    def done(self, queue: CheckQueue, seconds: float, answered: bool | None) -> None:
        """The post for a taken queue took `seconds`, with or without an answer; None if nothing was sent at all."""
        if answered is not None:
            self._remember_pace(queue, SLOW if seconds >= BRIEF_SECONDS else QUICK if answered else NEW)
        if answered:
            for places, place in zip((self._hosts, self._addresses), queue.places, strict=False):
                places.answered(place)
        self._end(queue, seconds)

    def postpone(self, queue: CheckQueue, seconds: float) -> None:
        """The post for a taken queue came to no end: it found no room at its address, or could not be long.

        It is due again, for that address or as a long one.
        """
        if queue.crowded is not None:
            remember(self._address_of, queue.host, queue.crowded)
        else:
            self._remember_pace(queue, SLOW)
        self._end(queue, seconds)
        self.add(queue)

    def _put_in_lane(self, queue: CheckQueue) -> None:
        queue.pace = self._pace_of(queue)
        self._lanes[queue.pace].put(queue.key, queue)

    def _next(self) -> CheckQueue | None:
        """The queue whose turn it is, from the lane whose turn it is."""
        for pace in self._turns:
            if self._has_courier(pace) and (taken := self._lanes[pace].take()) is not None:
                self._turns.remove(pace)
                self._turns.append(pace)
                return taken[1]
        return None

    def _has_courier(self, pace: int) -> bool:
        in_lane = self._running_quick if pace == QUICK else self.running - self._running_quick
        is_free = self.running < self._couriers and in_lane < self._most_in_lane
        return is_free and (pace != SLOW or self._running_long < self._most_long)

    def _begin(self, queue: CheckQueue) -> bool:
        """Whether there is room for a post at the queue's host and address; where there is none, the queue waits."""
        places = [self._hosts.at(queue.host)]
        if (address := self._address_of.get(queue.host)) is not None:
            places.append(self._addresses.at(address))
        is_slow = queue.pace == SLOW
        for place in places:
            if not place.has_room(is_slow):
                place.wait(queue.key, queue, is_slow)
                self._hosts.forget_idle(places[0])
                for other in places[1:]:
                    self._addresses.forget_idle(other)
                return False
        queue.is_long = self._running_long < self._most_long and all(place.has_room(True) for place in places)
        for place in places:
            place.enter(queue.is_long)
        queue.places, queue.crowded = places, None
        self.running += 1
        self._running_quick += queue.pace == QUICK
        self._running_long += queue.is_long
        return True

    def _shorten(self, queue: CheckQueue) -> None:
        for place in queue.places:
            place.leave(True)
            place.enter(False)
        queue.is_long = False
        self._running_long -= 1

    def _end(self, queue: CheckQueue, seconds: float) -> None:
        """Let the courier go, and the places at the host and the address."""
        self._lanes[queue.pace].done(queue.key, seconds)
        self.running -= 1
        self._running_quick -= queue.pace == QUICK
        self._running_long -= queue.is_long
        (host, *address), queue.places = queue.places, []
        self._leave(self._hosts, [host], queue)
        self._leave(self._addresses, address, queue)

    def _leave(self, kind: Places[CheckQueue], places: list[Place[CheckQueue]], queue: CheckQueue) -> None:
        for place in places:
            place.leave(queue.is_long)
            self._wake(place)
            kind.forget_idle(place)

    def _wake(self, place: Place[CheckQueue]) -> None:
        for queue, is_slow in place.woken():
            queue.woken_by = (place, is_slow)
            self._put_in_lane(queue)

    def _settle(self, queue: CheckQueue) -> None:
        """If it waited for a place, it has got that or waits again: while there is room, others are tried."""
        if queue.woken_by is not None:
            (place, is_slow), queue.woken_by = queue.woken_by, None
            place.tried(queue.key, is_slow)
            self._wake(place)

    def _pace_of(self, queue: CheckQueue) -> int:
        return self._paces.get((queue.key, queue.host), NEW)

    def _remember_pace(self, queue: CheckQueue, pace: int) -> None:
        if pace == NEW:
            self._paces.pop((queue.key, queue.host), None)
        else:
            remember(self._paces, (queue.key, queue.host), pace)
