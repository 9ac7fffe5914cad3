"""Whose alert is posted next."""

import heapq
import itertools

import pytest

from cardbeat.heartbeat.delivery import lanes as module
from cardbeat.heartbeat.delivery.lanes import KEPT_SHARE, LONG_SHARE, CheckQueue, Lanes
from cardbeat.heartbeat.delivery.places import PARTS, REMEMBERED
from cardbeat.heartbeat.webhooks.permit import BRIEF_SECONDS, LONG_SECONDS
from cardbeat.host.descriptors import Shares

COURIERS = Shares().couriers
ATTACKERS = 28
CHECKS_EACH = 100


def queue(host="a", check_seq=1, key="key", port=443):
    return CheckQueue(check_seq, key, host, 1, port)


def lanes_with(*hosts):
    lanes = Lanes(COURIERS)
    for number, host in enumerate(hosts):
        lanes.add(queue(host, number))
    return lanes


def take_all(lanes):
    return list(iter(lanes.take, None))


def hosts_of(queues):
    return [taken.host for taken in queues]


def answered(lanes, *queues, seconds=0.1):
    """Let queues be posted and answered."""
    for one in queues:
        lanes.add(one)
        lanes.done(lanes.take(), seconds, answered=True)


# One host.


def test_a_host_gets_one_post_until_it_has_answered_and_then_four():
    lanes = lanes_with(*"aaaaaab")
    first = take_all(lanes)
    assert hosts_of(first) == ["a", "b"]
    lanes.done(first[0], 0.1, answered=True)
    assert hosts_of(take_all(lanes)) == ["a"] * 4


def test_ports_of_a_host_do_not_hold_up_each_other_and_get_three_posts_together_until_they_answer():
    lanes = Lanes(COURIERS)
    for port in (1, 1, 1, 2, 2, 3, 4, 5):
        lanes.add(queue(port=port))
    first = take_all(lanes)
    assert [taken.port for taken in first] == [1, 2, 3]
    lanes.done(first[0], 0.1, answered=True)
    assert [taken.port for taken in take_all(lanes)] == [4, 1]


def test_a_host_that_never_answers_gets_one_after_the_other():
    lanes = lanes_with(*"aaa")
    for _ in range(3):
        (taken,) = take_all(lanes)
        lanes.done(taken, 0.1, answered=False)
    assert take_all(lanes) == []


def test_slow_receivers_get_two_and_leave_room_for_the_others_of_their_host():
    lanes = Lanes(COURIERS)
    for key in ("s1", "s2", "s3"):
        answered(lanes, queue("a", key=key), seconds=5)
    for key in ("s1", "s2", "s3"):
        lanes.add(queue("a", key=key))
    assert [taken.key for taken in take_all(lanes)] == ["s1", "s2"]
    for key in ("q1", "q2", "q3"):
        lanes.add(queue("a", key=key))
    quick = take_all(lanes)
    assert [(taken.key, taken.is_long) for taken in quick] == [("q1", False), ("q2", False)]
    lanes.done(quick[0], 0.1, answered=True)
    assert [taken.key for taken in take_all(lanes)] == ["q3"]


def test_what_is_due_for_a_host_without_room_waits_there_and_holds_up_no_turn():
    lanes = lanes_with("a")
    first = lanes.take()
    for number in range(1000):
        lanes.add(queue("a", number))
    assert not any(lane.waiting for lane in lanes._lanes)
    lanes.done(first, 0.1, answered=True)
    assert hosts_of(take_all(lanes)) == ["a"] * 4


def test_the_keys_of_one_host_take_turns():
    lanes = Lanes(COURIERS)
    answered(lanes, queue())
    for key in ("x", "x", "x", "y", "z"):
        lanes.add(queue("a", key=key))
    running = take_all(lanes)
    order = [taken.key for taken in running]
    while running:
        lanes.done(running.pop(0), 0.1, answered=False)
        more = take_all(lanes)
        order += [taken.key for taken in more]
        running += more
    assert sorted(order[:3]) == ["x", "y", "z"]
    assert len(order) == 5


def test_of_many_keys_that_wait_for_one_host_all_come_to_their_turn():
    lanes = Lanes(COURIERS)
    for number in range(200):
        lanes.add(queue("a", number, f"key-{number}"))
    served = []
    while (taken := lanes.take()) is not None:
        served.append(taken.check_seq)
        lanes.done(taken, 0.1, answered=True)
    assert sorted(served) == list(range(200))


# One address.


def post_to(lanes, taken, address):
    """Let a taken queue's post find this address; whether there is room."""
    if lanes.enter(taken, address):
        return True
    lanes.postpone(taken, 0.01)
    return False


def test_an_address_gets_one_post_until_it_has_answered_and_then_four_whatever_the_hosts():
    lanes = lanes_with(*(f"host-{number}" for number in range(50)))
    running = [taken for taken in take_all(lanes) if post_to(lanes, taken, "one")]
    assert len(running) == 1
    assert take_all(lanes) == []
    lanes.done(running.pop(), 0.1, answered=True)
    running = take_all(lanes)
    assert len(running) == 4
    assert all(lanes.enter(taken, "one") for taken in running)


def test_where_hosts_lead_is_remembered_so_that_they_need_no_courier_while_they_wait():
    lanes = lanes_with("a", "b")
    running = take_all(lanes)
    assert [post_to(lanes, taken, "one") for taken in running] == [True, False]
    assert take_all(lanes) == []
    lanes.done(running[0], 0.1, answered=False)
    (waited,) = take_all(lanes)
    assert (waited.host, waited.places[PARTS].name) == ("b", "one")


def test_one_that_found_no_room_does_not_count_as_slow_and_holds_nothing():
    lanes = lanes_with("a", "b", "b")
    running = take_all(lanes)
    for taken in running:
        post_to(lanes, taken, "one")
    assert lanes.running == 1
    lanes.done(running[0], 0.1, answered=True)
    assert [(taken.host, taken.pace) for taken in take_all(lanes)] == [("b", module.NEW)]


def test_a_post_that_goes_on_to_another_address_leaves_the_one_before():
    lanes = lanes_with("a", "b")
    first, second = take_all(lanes)
    assert lanes.enter(first, "one")
    assert not lanes.enter(second, "one")
    assert lanes.enter(first, "two")
    assert lanes.enter(first, "two")
    assert lanes.enter(second, "one")


def test_an_address_that_is_free_again_wakes_who_waits_though_the_host_leads_elsewhere_by_now():
    lanes = lanes_with("a", "b", "c")
    running = take_all(lanes)
    assert [post_to(lanes, taken, "one") for taken in running] == [True, False, False]
    lanes._address_of["b"] = "two"
    lanes.done(running[0], 0.1, answered=False)
    woken = take_all(lanes)
    assert {(taken.host, taken.places[PARTS].name) for taken in woken} == {("b", "two"), ("c", "one")}


def test_at_an_address_that_long_posts_share_others_are_brief():
    lanes = Lanes(COURIERS)
    answered(lanes, queue("a"))
    lanes.add(queue("a"))
    taken = lanes.take()
    lanes.enter(taken, "one")
    lanes.done(taken, 0.1, answered=True)
    for host in "bcde":
        lanes.add(queue(host, key=host))
    running = take_all(lanes)
    assert all(taken.is_long for taken in running)
    assert all(lanes.enter(taken, "one") for taken in running)
    assert [taken.is_long for taken in running] == [True, True, False, False]
    assert lanes._running_long == 2
    for taken in running:
        lanes.done(taken, 1, answered=False)
    assert lanes._running_long == lanes.running == 0


def test_ports_of_an_address_do_not_hold_up_each_other_and_get_three_posts_together_until_they_answer():
    lanes = Lanes(COURIERS)
    for number, port in enumerate((1, 1, 1, 2, 2, 3, 4, 5)):
        lanes.add(queue(f"host-{number}", number, port=port))
    running = [taken for taken in take_all(lanes) if post_to(lanes, taken, "one")]
    assert [taken.port for taken in running] == [1, 2, 3]


# Couriers.


def test_a_quarter_of_the_couriers_is_kept_for_receivers_that_were_quick_and_one_for_all_others():
    lanes = Lanes(couriers=8)
    answered(lanes, *(queue(f"quick-{number}") for number in range(10)))
    for number in range(10):
        lanes.add(queue(f"new-{number}"))
    assert len(take_all(lanes)) == 6
    for number in range(10):
        lanes.add(queue(f"quick-{number}"))
    assert hosts_of(take_all(lanes)) == ["quick-0", "quick-1"]

    other = Lanes(couriers=8)
    answered(other, *(queue(f"quick-{number}") for number in range(10)))
    for number in range(10):
        other.add(queue(f"quick-{number}"))
    assert len(take_all(other)) == 6
    for number in range(10):
        other.add(queue(f"new-{number}"))
    assert hosts_of(take_all(other)) == ["new-0", "new-1"]


def test_a_quarter_of_the_couriers_make_long_posts_and_the_others_brief_ones():
    lanes = Lanes(COURIERS)
    for number in range(COURIERS):
        lanes.add(queue(f"new-{number}", key=f"key-{number}"))
    running = take_all(lanes)
    assert len(running) == COURIERS - COURIERS // KEPT_SHARE
    assert sum(taken.is_long for taken in running) == COURIERS // LONG_SHARE


def test_a_brief_post_that_came_to_no_end_is_made_anew_as_a_long_one_when_there_is_room():
    lanes = Lanes(couriers=4)
    for host in "ab":
        lanes.add(queue(host))
    long, brief = take_all(lanes)
    assert (long.is_long, brief.is_long) == (True, False)
    lanes.postpone(brief, BRIEF_SECONDS)
    assert take_all(lanes) == []
    lanes.done(long, LONG_SECONDS, answered=False)
    (again,) = take_all(lanes)
    assert (again, again.is_long) == (brief, True)


def test_slow_receivers_have_a_quarter_of_the_couriers():
    lanes = Lanes(couriers=8)
    slow = [queue(f"slow-{number}", key=f"key-{number}") for number in range(8)]
    answered(lanes, *slow, seconds=5)
    for one in slow:
        lanes.add(one)
    assert [taken.is_long for taken in take_all(lanes)] == [True, True]


def test_one_key_leaves_long_posts_to_others():
    lanes = Lanes(COURIERS)
    for number in range(COURIERS):
        lanes.add(queue(f"new-{number}", key="many"))
    running = take_all(lanes)
    assert 10 <= sum(taken.is_long for taken in running) <= 20
    lanes.done(running.pop(), 0.1, answered=True)
    lanes.add(queue("other", key="other"))
    assert "other" in [taken.key for taken in take_all(lanes) if taken.is_long]


def test_a_slow_receiver_that_is_quick_once_is_a_quick_one():
    lanes = Lanes(COURIERS)
    answered(lanes, queue(), seconds=5)
    lanes.add(queue())
    taken = lanes.take()
    assert taken.pace == module.SLOW
    lanes.done(taken, 0.1, answered=True)
    lanes.add(queue())
    assert lanes.take().pace == module.QUICK


def test_what_one_key_makes_of_a_host_is_nothing_to_another_key():
    lanes = Lanes(COURIERS)
    answered(lanes, queue(key="bad"), seconds=9)
    lanes.add(queue(key="good"))
    assert lanes.take().pace == module.NEW


def test_no_more_than_all_couriers_run_at_once():
    lanes = Lanes(COURIERS)
    answered(lanes, *(queue(f"quick-{number}") for number in range(COURIERS)))
    for number in range(COURIERS):
        lanes.add(queue(f"quick-{number}"))
        lanes.add(queue(f"new-{number}"))
    running = take_all(lanes)
    assert len(running) == lanes.running == COURIERS
    lanes.done(running.pop(), 0.1, answered=True)
    assert len(take_all(lanes)) == 1


def test_the_keys_take_turns_and_a_turn_is_weighed_by_its_time():
    lanes = Lanes(couriers=1)
    for number in range(8):
        lanes.add(queue(f"slow-{number}", key="slow"))
        lanes.add(queue(f"quick-{number}", key="quick"))
    order = []
    for _ in range(10):
        taken = lanes.take()
        order.append(taken.key)
        lanes.done(taken, 1.0 if taken.key == "slow" else 0.25, answered=False)
    assert order.count("slow") <= 3


def test_one_that_became_slow_while_it_waited_moves_to_the_slow_ones():
    lanes = lanes_with("a", "a")
    lanes.done(lanes.take(), 5, answered=False)
    assert lanes.take().pace == module.SLOW


def test_an_alert_that_is_gone_tells_nothing_of_its_receiver():
    lanes = Lanes(COURIERS)
    answered(lanes, queue())
    lanes.add(queue())
    lanes.done(lanes.take(), 0.01, answered=None)
    lanes.add(queue())
    assert lanes.take().pace == module.QUICK


# Many strangers, whose receivers do their worst, and somebody else: time passes as the posts take it.


class Clock:
    """Lets the posts of lanes take their time. `seconds_of` tells how long a queue's receiver is silent for."""

    def __init__(self, lanes, seconds_of, address_of):
        self.lanes, self.seconds_of, self.address_of = lanes, seconds_of, address_of
        self.now = 0.0
        self.ends = []
        self.at_address = {}
        self.most_at_address = 0
        self.delivered_at = {}
        self._entries = itertools.count()

    def run_until(self, condition, most_seconds=120):
        self._begin()
        while not condition():
            assert self.now < most_seconds, "this did not come true in time"
            self.now, _, taken, address = heapq.heappop(self.ends)
            if address is None:
                self.lanes.add(taken)
            else:
                self._end(taken, address)
            self._begin()

    def come(self, queues):
        """Let queues be due at these times."""
        for due_at, one in queues:
            heapq.heappush(self.ends, (due_at, next(self._entries), one, None))

    def _begin(self):
        while (taken := self.lanes.take()) is not None:
            address = self.address_of(taken)
            if not self.lanes.enter(taken, address):
                self.lanes.postpone(taken, 0.0)
                continue
            self.at_address[address] = self.at_address.get(address, 0) + 1
            self.most_at_address = max(self.most_at_address, self.at_address[address])
            limit = LONG_SECONDS if taken.is_long else BRIEF_SECONDS
            end = self.now + min(self.seconds_of(taken), limit)
            heapq.heappush(self.ends, (end, next(self._entries), taken, address))

    def _end(self, taken, address):
        self.at_address[address] -= 1
        seconds, limit = self.seconds_of(taken), LONG_SECONDS if taken.is_long else BRIEF_SECONDS
        if seconds > limit and not taken.is_long:
            self.lanes.postpone(taken, limit)
            return
        is_answered = seconds <= limit
        self.lanes.done(taken, min(seconds, limit), is_answered)
        if is_answered:
            self.delivered_at[taken.check_seq] = self.now
        if taken.key.startswith("attacker"):
            # There is always another alert, or another try.
            self.lanes.add(taken)


SILENT = 3600.0


def attack(lanes, count=ATTACKERS):
    """The checks of so many keys, each on a host of its own."""
    for key, check in itertools.product(range(count), range(CHECKS_EACH)):
        number = key * CHECKS_EACH + check
        lanes.add(CheckQueue(number, f"attacker-{key}", f"n{number}.attacker.example", 1))


VICTIM = 10**6


def strangers(silent_seconds=SILENT, address=None):
    lanes = Lanes(COURIERS)
    return lanes, Clock(
        lanes,
        lambda taken: silent_seconds if taken.key.startswith("attacker") else 0.05,
        lambda taken: address if address and taken.key.startswith("attacker") else f"address of {taken.host}",
    )


@pytest.mark.parametrize("address", [None, "one"], ids=["many addresses", "one address"])
@pytest.mark.parametrize("seconds", [1.9, 9.0, SILENT], ids=["quick enough", "slow", "silent"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_beside_2800_bad_receivers_of_28_keys_an_alert_goes_out_in_two_seconds(known, seconds, address):
    lanes, clock = strangers(seconds, address)
    if known:
        answered(lanes, queue("good.example", VICTIM, "victim"))
    attack(lanes)
    for moment in (0.1, 3.0, 11.0, 25.0):
        clock.run_until(lambda moment=moment: clock.now >= moment)
        lanes.add(queue("good.example", VICTIM, "victim"))
        began = clock.now
        clock.delivered_at.pop(VICTIM, None)
        clock.run_until(lambda: VICTIM in clock.delivered_at)
        assert clock.now - began <= 2.2
    assert clock.most_at_address <= 4


@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_also_where_the_bad_receivers_were_quick_once(known):
    lanes, clock = strangers()
    for key, check in itertools.product(range(ATTACKERS), range(CHECKS_EACH)):
        number = key * CHECKS_EACH + check
        answered(lanes, queue(f"n{number}.attacker.example", number, f"attacker-{key}"))
    if known:
        answered(lanes, queue("good.example", VICTIM, "victim"))
    attack(lanes)
    clock.run_until(lambda: clock.now >= 0.1 or len(clock.ends) > 100)
    lanes.add(queue("good.example", VICTIM, "victim"))
    clock.run_until(lambda: VICTIM in clock.delivered_at)
    assert clock.now <= 2.2


def test_also_where_the_address_is_the_same_as_theirs():
    lanes, clock = strangers(address="shared")
    clock.address_of = lambda _taken: "shared"
    lanes.add(queue("good.example", VICTIM, "victim"))
    clock.run_until(lambda: VICTIM in clock.delivered_at)
    attack(lanes)
    clock.run_until(lambda: clock.now >= 15)
    lanes.add(queue("good.example", VICTIM, "victim"))
    began, clock.delivered_at = clock.now, {}
    clock.run_until(lambda: VICTIM in clock.delivered_at)
    assert clock.now - began <= 4.5
    assert clock.most_at_address <= 4


def test_a_hundred_alerts_of_one_receiver_go_out_beside_them():
    lanes, clock = strangers()
    attack(lanes)
    clock.run_until(lambda: clock.now >= 5)
    for number in range(100):
        lanes.add(queue("good.example", VICTIM + number, "victim"))
    began = clock.now
    clock.run_until(lambda: len(clock.delivered_at) == 100)
    assert clock.now - began <= 5


def test_with_a_thousand_such_keys_a_known_receiver_still_has_its_alert_in_seconds():
    lanes, clock = strangers()
    answered(lanes, queue("good.example", VICTIM, "victim"))
    for number in range(5000):
        lanes.add(CheckQueue(number, f"attacker-{number % 1000}", f"n{number}.attacker.example", 1))
    clock.run_until(lambda: clock.now >= 1 or clock.ends)
    lanes.add(queue("good.example", VICTIM, "victim"))
    clock.run_until(lambda: VICTIM in clock.delivered_at)
    assert clock.now <= 0.1


def honest_waits(lanes, clock, seconds, times=12, weight=1.0):
    """How long the alerts of one key wait, one after the other, whose receiver takes so many seconds for each."""
    waits = []
    for _ in range(times):
        lanes.add(CheckQueue(VICTIM, "victim", "good.example", 1, weight=weight))
        began = clock.now
        clock.delivered_at.pop(VICTIM, None)
        clock.run_until(lambda: VICTIM in clock.delivered_at, most_seconds=began + 60)
        waits.append(clock.now - began - seconds)
        next_at = clock.now + 3
        clock.run_until(lambda next_at=next_at: clock.now >= next_at, most_seconds=clock.now + 60)
    return waits


def clock_of_attack(lanes, honest, silent):
    """In which posts of the attackers' keys take `silent` seconds, and those of others `honest`."""
    return Clock(
        lanes,
        lambda taken: silent if taken.key.startswith("attacker") else honest,
        lambda taken: f"address of {taken.host}",
    )


@pytest.mark.parametrize("silent", [SILENT, 9.8], ids=["silent", "slow"])
@pytest.mark.parametrize("honest", [2.5, 3.0, 9.0])
def test_an_honest_receiver_that_takes_seconds_is_not_starved_by_60_keys_with_100_silent_ones_each(honest, silent):
    """The strangers' alerts become due over ten seconds, so that their posts don't all end at the same moments."""
    lanes = Lanes(COURIERS)
    clock = clock_of_attack(lanes, honest, silent)
    clock.come(
        [
            (number / 600, CheckQueue(number, f"attacker-{number % 60}", f"n{number}.attacker.example", 1))
            for number in range(6000)
        ]
    )
    clock.run_until(lambda: clock.now >= 0.5)
    waits = honest_waits(lanes, clock, honest)
    assert max(waits) <= 4
    assert sorted(waits)[len(waits) // 2] <= 1


@pytest.mark.parametrize("elsewhere", [False, True], ids=["", "and 6,000 silent ones elsewhere"])
@pytest.mark.parametrize(("honest", "most"), [(0.05, 3.0), (3.0, 5.0)], ids=["quick", "slow"])
@pytest.mark.parametrize(("keys", "checks"), [(1, 6), (3, 5), (10, 2), (60, 3)])
def test_a_silent_port_of_its_host_does_not_hold_back_an_alert(keys, checks, honest, most, elsewhere):
    assert max(waits_beside_silent_ports(keys, checks, honest, ports=1, elsewhere=elsewhere)) <= most


@pytest.mark.parametrize("ports", [2, 4, 180])
@pytest.mark.parametrize("honest", [0.05, 3.0], ids=["quick", "slow"])
@pytest.mark.parametrize(("keys", "checks"), [(1, 6), (3, 5), (10, 2), (60, 3)])
def test_where_many_ports_are_silent_an_alert_waits_for_one_turn_of_each_key(keys, checks, honest, ports):
    most = (keys + 2) * (BRIEF_SECONDS if honest < BRIEF_SECONDS else LONG_SECONDS)
    assert max(waits_beside_silent_ports(keys, checks, honest, ports)) <= most


def waits_beside_silent_ports(keys, checks, honest, ports, elsewhere=False):
    """How long three alerts of a key wait at a host that has not answered yet, and of which these ports are silent."""
    lanes = Lanes(COURIERS)
    clock = clock_of_attack(lanes, honest, SILENT)
    clock.come(
        (number / 1000, queue("good.example", number, f"attacker-{number % keys}", 1 + number % ports))
        for number in range(keys * checks)
    )
    clock.come(
        (number / 600, queue(f"n{number}.attacker.example", VICTIM + 1 + number, f"attacker-{number % 60}"))
        for number in range(6000 if elsewhere else 0)
    )
    clock.run_until(lambda: clock.now >= 1)
    waits = []
    for _ in range(3):
        lanes.add(queue("good.example", VICTIM, "victim"))
        began = clock.now
        clock.delivered_at.pop(VICTIM, None)
        clock.run_until(lambda: VICTIM in clock.delivered_at, most_seconds=began + 700)
        waits.append(clock.now - began)
        next_at = clock.now + 3
        clock.run_until(lambda next_at=next_at: clock.now >= next_at, most_seconds=next_at + 10)
    return waits


@pytest.mark.parametrize("honest", [0.05, 3.0], ids=["quick", "slow"])
@pytest.mark.parametrize(("proof", "most"), [("its own", 0.01), ("another key's", 0.01), ("none", 4.1)])
@pytest.mark.parametrize("keys", [1, 4, 28])
def test_names_that_lead_to_silent_ports_of_its_address_do_not_hold_back_an_alert(keys, proof, most, honest):
    """A receiver that has answered anybody is not held back. Any other waits behind keys that are older only."""
    lanes = Lanes(COURIERS)
    clock = clock_of_attack(lanes, honest, SILENT)
    clock.address_of = lambda _taken: "shared"
    if proof != "none":
        lanes.add(queue("good.example", VICTIM, "victim" if proof == "its own" else "another"))
        clock.run_until(lambda: VICTIM in clock.delivered_at)
    for number in range(keys * CHECKS_EACH):
        name, key = f"n{number}.attacker.example", f"attacker-{number % keys}"
        young = CheckQueue(number, key, name, 1, 1 + number % 100, registered_at=0.0)
        clock.come([(clock.now + number / 1000, young)])
    clock.run_until(lambda: clock.now >= 5)
    waits = honest_waits(lanes, clock, honest, times=8)
    # A receiver that takes longer than a brief post also waits for the end of a long one.
    assert max(waits) <= most + (LONG_SECONDS if proof == "none" and honest > BRIEF_SECONDS else 0)
    assert clock.most_at_address <= 4


def front(keys, honest, seconds_of):
    """Many hosts at one port of one address, as behind a proxy of a provider; those of attackers take so many seconds.

    Among them is a receiver that takes `honest` seconds and was posted to before.
    """
    lanes = Lanes(COURIERS)
    clock = clock_of_attack(lanes, honest, SILENT)
    clock.seconds_of = lambda taken: seconds_of(taken) if taken.key.startswith("attacker") else honest
    clock.address_of = lambda _taken: "shared"
    lanes.add(queue("good.example", VICTIM, "victim"))
    clock.run_until(lambda: VICTIM in clock.delivered_at)
    for number in range(keys * 60):
        one = CheckQueue(number, f"attacker-{number % keys}", f"n{number}.attacker.example", 1, registered_at=0.0)
        clock.come([(clock.now + number / 1000, one)])
    clock.run_until(lambda: clock.now >= 10)
    return lanes, clock


@pytest.mark.parametrize(("honest", "most"), [(0.05, 3.7), (3.0, 10.1)], ids=["quick", "slow"])
@pytest.mark.parametrize("keys", [1, 10, 28, 120])
def test_receivers_that_take_their_time_hold_back_no_alert_to_another_of_their_address(keys, honest, most):
    """A turn of 9 s weighed no more than one of 0.05 s: an alert waited for up to 86 s."""
    lanes, clock = front(keys, honest, lambda taken: 9.0 if taken.check_seq % 6 == 5 else 1.8)
    assert max(honest_waits(lanes, clock, honest, weight=31.0)) <= most
    assert clock.most_at_address <= 4


@pytest.mark.parametrize("keys", [10, 28, 120])
@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_many_alerts_go_out_beside_silent_receivers_of_their_address(keys, known):
    """Between two of them was a brief post of 2 s to a silent one, and new ones waited among these."""
    lanes, clock = front(keys, 0.05, lambda _taken: SILENT)
    began, key, host = clock.now, "victim" if known else "other", "good.example" if known else "new.example"
    for number in range(60):
        lanes.add(CheckQueue(VICTIM + 1 + number, key, host, 1, weight=31.0))
    clock.run_until(lambda: len(clock.delivered_at) == 61)
    assert clock.now - began <= 8


def test_a_key_whose_tier_the_operator_chose_is_next_at_an_address():
    lanes, clock = front(28, 0.05, lambda _taken: 1.8)
    began = clock.now
    lanes.add(CheckQueue(VICTIM + 1, "young", "young.example", 1, is_granted=True, registered_at=9.0))
    clock.run_until(lambda: VICTIM + 1 in clock.delivered_at)
    assert clock.now - began <= 1.9


# Memory.


def test_a_stranger_with_thousands_of_receivers_makes_no_pace_of_another_key_forgotten():
    lanes = Lanes(COURIERS)
    answered(lanes, queue("good.example", key="victim"), seconds=3)
    for number in range(REMEMBERED + 1):
        answered(lanes, queue(str(number), key=f"attacker-{number % 200}"), seconds=3)
    lanes.add(queue("good.example", key="victim"))
    assert lanes.take().pace == module.SLOW


def test_a_receiver_that_answers_all_the_time_is_not_forgotten_for_newer_ones():
    lanes = Lanes(COURIERS)
    answered(lanes, queue("good.example", key="victim"))
    for number in range(REMEMBERED):
        answered(lanes, queue("good.example", key="victim"), queue(str(number)))
    for _ in range(3):
        lanes.add(queue("good.example", key="victim"))
    assert len(take_all(lanes)) == 3


def test_nothing_is_kept_of_hosts_and_addresses_without_work():
    lanes = lanes_with("a", "b")
    for taken in take_all(lanes):
        lanes.enter(taken, f"address of {taken.host}")
        lanes.done(taken, 0.1, answered=True)
    assert lanes._hosts._used == lanes._addresses._used == {}


def test_only_so_much_is_remembered():
    lanes = Lanes(COURIERS)
    for number in range(REMEMBERED + 1):
        lanes.add(queue(str(number), number))
        taken = lanes.take()
        lanes.enter(taken, f"address {number}")
        lanes.done(taken, 0.1, answered=True)
    memories = (lanes._paces._values["key"], lanes._address_of, lanes._hosts._answered, lanes._addresses._answered)
    assert [len(memory) for memory in memories] == [REMEMBERED] * 4
    assert "0" not in lanes._address_of
