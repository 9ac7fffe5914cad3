"""Whose alert is posted next."""

from cardbeat.heartbeat.lanes import COURIERS, DOUBTFUL_SHARE, REMEMBERED, CheckQueue, Lanes


def queue(host="a", check_seq=1):
    return CheckQueue(check_seq, host, [1])


def lanes_with(*hosts):
    lanes = Lanes()
    for number, host in enumerate(hosts):
        lanes.add(queue(host, number))
    return lanes


def take_all(lanes):
    return list(iter(lanes.take, None))


def answered(lanes, *queues):
    """Let queues be posted and answered at once."""
    for one in queues:
        lanes.add(one)
    for taken in take_all(lanes):
        lanes.done(taken, 0.1, answered=True)


def test_a_host_gets_three_posts_at_a_time_after_the_first_of_every_other():
    lanes = lanes_with(*"aaaaab")
    assert lanes.ready() == 2
    assert [taken.host for taken in take_all(lanes)] == ["a", "b", "a", "a"]


def test_a_host_gets_a_fourth_for_receivers_that_were_quick():
    lanes = Lanes()
    answered(lanes, queue("a", 1))
    for check_seq in (2, 3, 4, 5, 1):
        lanes.add(queue("a", check_seq))
    assert {taken.check_seq for taken in take_all(lanes)} == {1, 2, 3, 4}


def test_no_host_gets_a_fifth():
    lanes = Lanes()
    for check_seq in range(5):
        answered(lanes, queue("a", check_seq))
    for check_seq in range(5):
        lanes.add(queue("a", check_seq))
    assert len(take_all(lanes)) == 4


def test_receivers_that_were_slow_get_two_and_leave_room_for_the_others_of_their_host():
    lanes = Lanes()
    for check_seq in range(3):
        lanes.add(queue("a", check_seq))
        lanes.done(lanes.take(), 5, answered=True)
    for check_seq in range(3):
        lanes.add(queue("a", check_seq))
    assert [taken.check_seq for taken in take_all(lanes)] == [0, 1]
    for check_seq in (3, 4, 5):
        lanes.add(queue("a", check_seq))
    (one,) = take_all(lanes)
    lanes.done(one, 0.1, answered=True)
    assert [taken.check_seq for taken in take_all(lanes)] == [4]


def test_quick_and_new_receivers_of_a_host_take_turns():
    lanes = Lanes()
    answered(lanes, *(queue("a", check_seq) for check_seq in range(3)))
    for check_seq in (0, 1, 2, 10, 11, 12):
        lanes.add(queue("a", check_seq))
    order = []
    for _ in range(6):
        taken = lanes.take()
        order.append(taken.check_seq)
        lanes.done(taken, 0.1, answered=True)
    assert order == [0, 10, 1, 11, 2, 12]


def test_a_slow_receiver_does_not_make_its_host_slow_again_and_again():
    lanes = Lanes()
    lanes.add(queue("a", 1))
    lanes.done(lanes.take(), 10, answered=False)
    answered(lanes, queue("a", 2))
    lanes.add(queue("a", 1))
    slow = lanes.take()
    assert slow.doubtful
    lanes.done(slow, 10, answered=False)
    lanes.add(queue("a", 2))
    assert not lanes.take().doubtful


def test_silent_hosts_with_many_checks_leave_couriers_for_the_rest():
    silent = COURIERS // 2
    lanes = lanes_with(
        *(f"silent-{number}" for number in range(silent)), *(f"silent-{number}" for number in range(silent))
    )
    assert len(take_all(lanes)) == silent + COURIERS // DOUBTFUL_SHARE


def test_hosts_take_turns():
    lanes = lanes_with("a", "a", "a", "b", "c")
    order = []
    for _ in range(5):
        taken = lanes.take()
        order.append(taken.host)
        lanes.done(taken, 0.1, answered=False)
    assert order == ["a", "b", "c", "a", "a"]


def test_slow_hosts_keep_to_a_lane_of_their_own():
    hosts = [f"slow-{number}" for number in range(COURIERS)]
    lanes = lanes_with(*hosts)
    for taken in take_all(lanes):
        lanes.done(taken, 10, answered=False)
    for number, host in enumerate(hosts):
        lanes.add(queue(host, number))
    assert len(take_all(lanes)) == COURIERS // DOUBTFUL_SHARE
    lanes.add(queue("new", 9999))
    assert [taken.host for taken in take_all(lanes)] == ["new"]


def test_that_lane_has_a_quarter_of_the_couriers():
    lanes = Lanes(couriers=8)
    for number in range(8):
        lanes.add(queue(str(number), number))
        lanes.done(lanes.take(), 10, answered=False)
        lanes.add(queue(str(number), number))
    assert len(take_all(lanes)) == 2


def test_a_slow_host_that_answers_quickly_leaves_that_lane():
    lanes = lanes_with("a")
    lanes.done(lanes.take(), 10, answered=False)
    lanes.add(queue())
    again = lanes.take()
    assert again.doubtful
    lanes.done(again, 0.1, answered=True)
    lanes.add(queue())
    assert not lanes.take().doubtful


def test_no_more_than_all_couriers_run_at_once():
    lanes = lanes_with(*(str(number) for number in range(COURIERS + 100)))
    running = take_all(lanes)
    assert len(running) == COURIERS
    lanes.done(running.pop(), 0.1, answered=True)
    assert len(take_all(lanes)) == 1


def test_nothing_is_remembered_of_quick_hosts_without_work():
    lanes = lanes_with("a", "b")
    for taken, seconds in zip(take_all(lanes), (0.1, 10), strict=True):
        lanes.done(taken, seconds, answered=False)
    assert list(lanes._hosts) == ["b"]


def test_only_so_many_receivers_are_remembered():
    lanes = Lanes()
    for check_seq in range(REMEMBERED + 1):
        answered(lanes, queue("a", check_seq))
    assert len(lanes._paces) == REMEMBERED
    assert 0 not in lanes._paces


def test_only_so_many_slow_hosts_are_remembered():
    lanes = Lanes()
    for number in range(REMEMBERED + 1):
        lanes.add(queue(str(number), number))
        lanes.done(lanes.take(), 10, answered=False)
    assert len(lanes._hosts) == REMEMBERED
