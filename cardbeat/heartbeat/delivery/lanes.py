"""Which due alert is posted next, so that slow or dead receivers do not delay others. Pure: no clock, thread or row.

A courier is a thread that posts. Keys share the couriers fairly, and each host and each address has a limit. The time
that a receiver's last post took decides how many couriers it may have now, and for how long.
"""

import math
import sys
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

from cardbeat.concurrency.fair_queue import FairQueue
from cardbeat.heartbeat.delivery.places import NEW, PARTS, QUICK, SLOW, Memory, Place, Places, remember
from cardbeat.heartbeat.webhooks.permit import BRIEF_SECONDS

KEPT_SHARE = 4
"""One courier in 4 is kept for receivers that were quick, and one in 4 for all others; the rest are for both."""
LONG_SHARE = 4
"""One courier in 4 may make a long post."""
FREE_FOR_EACH_LONG = 8
"""A key that has N long posts may begin one more while more than 8 x N are free: alone 15 at once, among 60 keys two.

Long posts take 10 s if nobody answers. Without this rule a few keys have all of them, and another key's alert waits.
"""


@dataclass(slots=True, eq=False)
class CheckQueue:
    """A check with waiting alerts. `alert` is the `seq` of the first; the others are in the database alone.

    The check's tests have a queue of their own, so no test waits behind an outage that could not be delivered.
    """

    check_seq: int
    key: str
    host: str
    alert: int
    port: int = 443
    is_test: bool = False
    alert_id: str = ""
    """Its `id`, as in `Attempt`."""
    is_reminder: bool = False
    is_granted: bool = False
    """Whether the operator chose the tier of its key."""
    registered_at: float = -math.inf
    """When its key was registered, in seconds of a clock that only goes forward."""
    weight: float = 1.0
    """How many times the share of a new key its key has of the time at a place."""
    pace: int = NEW
    """The pace of its receiver when the queue was put into a lane."""
    is_long: bool = False
    """Whether its post may take `LONG_SECONDS`."""
    places: "list[Place[CheckQueue]]" = field(default_factory=list)
    """Its host and then, once known, the address that is posted to, `PARTS` of each; empty while no post runs."""
    woken_by: "tuple[Place[CheckQueue], int] | None" = None
    """The place where it waited and is tried now, and the pace with which it waited."""
    crowded: str | None = None
    """The first address where its post found no room."""
    refused: str | None = None
    """The first address that may get no more posts now."""
    is_counted: bool = False
    """Whether its alert is among those that its key may cause; a retry needs no other turn."""
    is_extra: bool = False
    """Whether its post is a try before its time, which is counted only if it ends the alert."""
    is_moved: bool = False
    """Whether its check was moved while it was taken: what comes next must be read again."""
    is_taken: bool = False
    """Whether a post runs for it, or has ended and is not recorded yet."""
    is_replaced: bool = False
    """Whether another queue replaced it because its check was moved. It is never posted for."""


class Lanes:
    """The queues that are due, in three lanes by the pace of their receivers.

    Couriers go to the lanes round robin, and in each lane to the keys, weighed by the time of their posts. At most
    `couriers` posts run at once; the shares above say for which receivers. A post that may not be long ends after
    `BRIEF_SECONDS`, so a courier is free soon even if no receiver answers. The owner of this object holds a lock.
    """

    def __init__(self, couriers: int) -> None:
        self._couriers = couriers
        self._most_in_lane = couriers - couriers // KEPT_SHARE
        self._most_long = max(1, couriers // LONG_SHARE)
        self.running = 0
        self._running_quick = 0
        self._running_long = 0
        self._long_of = Counter[str]()
        """The long posts of each key."""
        self._lanes = tuple(FairQueue[CheckQueue](sys.maxsize, BRIEF_SECONDS) for _ in (QUICK, NEW, SLOW))
        self._next_lanes = deque((QUICK, NEW, SLOW))
        self._hosts = Places[CheckQueue]()
        self._addresses = Places[CheckQueue]()
        self._paces = Memory[str, int]()
        """By key and host."""
        self._address_of = OrderedDict[str, str]()
        """The address that each host had at its last post."""

    def add(self, queue: CheckQueue) -> None:
        """Take a queue that is due."""
        if not self._wait(queue, self._hosts.at(queue.host, queue.port), self._pace_of(queue)):
            self._put_in_lane(queue)

    def take(self) -> CheckQueue | None:
        """The next queue to post for, None if there is none now. `done` or `postpone` must follow."""
        while (queue := self._next()) is not None:
            lane = self._lanes[queue.pace]
            if queue.pace != self._pace_of(queue) and not queue.is_replaced:
                lane.done(queue.key, 0)
                self._put_in_lane(queue)
                continue
            begins = not queue.is_replaced and self._begin(queue)
            if not begins:
                lane.done(queue.key, 0)
            if queue.woken_by is not None:
                # If the place that has woken it still has room, wake others.
                (place, pace), queue.woken_by = queue.woken_by, None
                place.tried(queue.key, pace, begins)
                self._wake(place)
            if begins:
                return queue
        return None

    def enter(self, queue: CheckQueue, address: str) -> bool:
        """Whether the post for a taken queue may go to this address. It leaves the address that it entered before.

        If no address has room, `postpone` must follow: the queue then waits for the first one.
        """
        before = queue.places[PARTS:]
        if before and before[0].name == address:
            return True
        del queue.places[PARTS:]
        self._leave(before, queue.is_long)
        places = self._addresses.at(address, queue.port)
        if not all(place.has_room(queue.pace == SLOW) for place in places):
            queue.crowded = queue.crowded or address
            return False
        if queue.is_long and not all(place.has_room(True) for place in places):
            for entered in queue.places:
                entered.leave(True)
                entered.enter(False)
            queue.is_long = False
            self._count_long(queue.key, -1)
        for place in places:
            place.enter(queue.is_long)
        queue.places += places
        remember(self._address_of, queue.host, address)
        return True

    def done(self, queue: CheckQueue, seconds: float, answered: bool | None) -> None:
        """End the post for a taken queue: it took `seconds`, with or without an answer; None if nothing was sent."""
        pace, places = self._pace_of(queue), queue.places
        if answered is not None:
            self._remember_pace(queue, SLOW if seconds >= BRIEF_SECONDS else QUICK if answered else NEW)
        is_first = [place.note(queue.key, seconds, bool(answered)) for place in places]
        self._end(queue, seconds)
        if answered and (any(is_first) or pace != self._pace_of(queue)):
            # What waits of its key waits where other rules hold now.
            for place in places:
                for waits in place.taken_out(queue.key, queue.host):
                    self.add(waits)

    def postpone(self, queue: CheckQueue, seconds: float) -> None:
        """End the post for a taken queue without a result: it found no room at an address, or had too little time.

        The queue is due again, for that address or for a long post.
        """
        if queue.crowded is not None:
            remember(self._address_of, queue.host, queue.crowded)
        else:
            self._remember_pace(queue, SLOW)
        self._end(queue, seconds)
        queue.is_taken = False
        self.add(queue)

    def _put_in_lane(self, queue: CheckQueue) -> None:
        queue.pace = self._pace_of(queue)
        self._lanes[queue.pace].put(queue.key, queue)

    def _next(self) -> CheckQueue | None:
        """The next queue of the next lane that may have a courier."""
        for pace in self._next_lanes:
            may_run = self._may_be_long if pace == SLOW else None
            if self._has_courier(pace) and (taken := self._lanes[pace].take(may_run=may_run)) is not None:
                return taken[1]
        return None

    def _has_courier(self, pace: int) -> bool:
        in_lane = self._running_quick if pace == QUICK else self.running - self._running_quick
        is_free = self.running < self._couriers and in_lane < self._most_in_lane
        return is_free and (pace != SLOW or self._running_long < self._most_long)

    def _may_be_long(self, key: str) -> bool:
        """Whether a key may have one more long post: the last ones are left to keys that have none."""
        return self._long_of[key] * FREE_FOR_EACH_LONG < self._most_long - self._running_long

    def _begin(self, queue: CheckQueue) -> bool:
        """Begin a post if there is room at the queue's host and address; if not, the queue waits there, and False."""
        places = self._hosts.at(queue.host, queue.port)
        if (address := self._address_of.get(queue.host)) is not None:
            places += self._addresses.at(address, queue.port)
        if self._wait(queue, places, queue.pace):
            return False
        # Only now: what begins nothing must not cost its lane the turn.
        self._next_lanes.remove(queue.pace)
        self._next_lanes.append(queue.pace)
        queue.is_long = self._may_be_long(queue.key) and all(place.has_room(True) for place in places)
        for place in places:
            place.enter(queue.is_long)
        queue.places, queue.crowded, queue.refused, queue.is_taken = places, None, None, True
        self.running += 1
        self._running_quick += queue.pace == QUICK
        self._count_long(queue.key, queue.is_long)
        return True

    def _wait(self, queue: CheckQueue, places: list[Place[CheckQueue]], pace: int) -> bool:
        """Whether one of these places has no room for the queue, which then waits there."""
        for place in places:
            if not place.has_room(pace == SLOW):
                place.wait(queue.key, queue, pace)
                return True
        return False

    def _count_long(self, key: str, change: int) -> None:
        self._running_long += change
        self._long_of[key] += change
        if not self._long_of[key]:
            del self._long_of[key]

    def _end(self, queue: CheckQueue, seconds: float) -> None:
        """Free the courier, and the room at the host and the address."""
        self._lanes[queue.pace].done(queue.key, seconds)
        self.running -= 1
        self._running_quick -= queue.pace == QUICK
        self._count_long(queue.key, -queue.is_long)
        places, queue.places = queue.places, []
        self._leave(places, queue.is_long)

    def _leave(self, places: list[Place[CheckQueue]], is_long: bool) -> None:
        for place in places:
            place.leave(is_long)
        # The whole before its port: else what waits for the port could always be tried before what waits for the whole.
        for place in reversed(places):
            self._wake(place)

    def _wake(self, place: Place[CheckQueue]) -> None:
        for queue, pace in place.woken():
            queue.woken_by = (place, pace)
            self._put_in_lane(queue)
        place.forget_if_idle()

    def _pace_of(self, queue: CheckQueue) -> int:
        return self._paces.get(queue.key, queue.host, NEW)

    def _remember_pace(self, queue: CheckQueue, pace: int) -> None:
        if pace == NEW:
            self._paces.forget(queue.key, queue.host)
        else:
            self._paces.put(queue.key, queue.host, pace)
