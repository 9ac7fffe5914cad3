"""Pings that wait for the same commit: each has its own answer, and all of them few statements."""

from itertools import product

import pytest

from cardbeat.errors import Unavailable
from cardbeat.web.message import Request
from tests.kit.heart import Heart
from tests.kit.lists import each, times
from tests.kit.postgresql import BOTH_ENGINES
from tests.kit.support import GOOD_CHECK, begun, writer_held

pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


def together(heart, *signals):
    """What signals that come to stand in one group are told; each is a verb and a check."""
    with writer_held(heart.database):
        futures = [
            getattr(heart.pings, verb)(check.id)
            for verb, check in signals
        ]
    return [future.wait() for future in futures]


def test_signals_of_one_check_in_a_group_count_in_their_order(heart):
    fails_last, pings_last, other = times(3, heart.create)
    told = together(
        heart,
        *(
            ("ping", fails_last),
            ("fail", pings_last),
            ("ping", other),
            ("fail", fails_last),
        ),
        *(
            ("ping", pings_last),
            ("fail", fails_last),
            ("ping", pings_last),
        ),
    )
    by_turns = ["on_time", "overdue"] * 3
    assert each(told, "status") == [*by_turns, "on_time"]
    assert each(told, "recovered") == [False] * 4 + [True] + [False] * 2
    assert heart.alert_types(fails_last) == ["check.overdue"]
    assert heart.alert_types(pings_last) == [
        "check.overdue",
        "check.recovered",
    ]
    checks = map(heart.read, (fails_last, pings_last, other))
    assert each(checks, "ping_count") == [1, 2, 1]
    assert heart.checks.totals() == {"on_time": 2, "overdue": 1}


def test_a_failure_while_no_alert_can_be_stored_is_not_acknowledged(
    heart,
):
    check = heart.create()
    heart.database.write(
        lambda it: it.execute("ALTER TABLE alerts RENAME TO others")
    )
    with pytest.raises(Unavailable):
        heart.fail(check)
    heart.database.write(
        lambda it: it.execute("ALTER TABLE others RENAME TO alerts")
    )
    assert heart.status(check) == "on_time"
    assert heart.read(check).failed_at is None


def test_many_that_turn_at_once_have_an_alert_each(heart):
    checks = times(20, heart.create)
    told = together(heart, *product(["fail"], checks))
    told += together(heart, *product(["ping"], checks))
    assert each(told, "status") == ["overdue"] * 20 + ["on_time"] * 20
    types = {tuple(heart.alert_types(check)) for check in checks}
    assert types == {("check.overdue", "check.recovered")}


def test_pings_that_wait_go_before_a_deletion_that_waits_too(heart):
    check = heart.create()
    with writer_held(heart.database):
        deleted = begun(
            lambda: heart.checks.delete(heart.key.id, check.id)
        )
        ping = heart.pings.ping(check.id)
    assert ping.wait().status == "on_time"
    deleted.result(60)
    assert heart.ping(check) is None


def test_a_ping_is_on_disk_with_the_first_of_others_however_many_of_one_network_wait(
    app,
):
    check_id = app.json(
        "POST", "/checks", GOOD_CHECK, key=app.checks_key()
    )["check"]["id"]
    stored, answers = [], []
    with writer_held(app.service.database):
        for network, number in (("192.0.2.1", 1000), ("192.0.2.2", 1)):
            for signal in ("", "/fail") * number:
                path = f"/ping/{check_id}{signal}"
                request = Request("GET", path, path, network=network)
                answers.append(
                    app.service.router.find(request)
                    .handler(request)
                    .future
                )
                answers[-1].when_done(
                    lambda network=network: stored.append(network)
                )
    for answer in answers:
        answer.wait()
    assert stored[:4] == ["192.0.2.1", "192.0.2.2"] * 2
