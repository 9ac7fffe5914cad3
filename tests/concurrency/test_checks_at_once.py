import json
import random
import threading
from functools import partial

import pytest

from cardbeat.config import Tier
from cardbeat.errors import Refusal
from cardbeat.heartbeat.check import Check, Settings
from cardbeat.heartbeat.checks import Checks, Told
from cardbeat.heartbeat.removal import Removal
from cardbeat.heartbeat.routes import CheckRoutes
from cardbeat.web.message import Request
from cardbeat.web.router import Router
from tests.heart import Heart, at_once
from tests.postgresql import BOTH_ENGINES
from tests.support import answer_of, writer_held

pytestmark = BOTH_ENGINES


@pytest.fixture
def heart(database, clock):
    return Heart(database, clock)


@pytest.fixture
def other_process(heart, open_again):
    """A second server's view of the same database."""
    return Heart(open_again(), heart.clock)


class MeetingChecks(Checks):
    """Holds every reader until as many as `meeting` has places have read."""

    meeting = threading.Barrier(2)

    def get(self, key_id, check_id):
        check = super().get(key_id, check_id)
        self.meeting.wait(10)
        return check


def patch(router, key_value, check, **changes):
    headers = {"authorization": f"Bearer {key_value}", "content-type": "application/json"}
    path = f"/checks/{check.id}"
    answer = answer_of(router, Request("PATCH", path, path, headers=headers, body=json.dumps(changes).encode()))
    return answer.status, json.loads(answer.body)


def test_of_two_patches_from_one_version_exactly_one_succeeds(heart):
    issued = heart.keys.issue("ops@example.com").wait()
    checks = MeetingChecks(heart.database, heart.clock, heart.alerts, heart.delivery)
    router = Router(CheckRoutes(checks, heart.keys, heart.alerts, "https://beats.example", False).routes())
    check = checks.create(issued.key, Settings("a", 60, 0, None)).wait()
    for round_number in range(1, 201):
        answers = at_once(
            partial(patch, router, issued.value, check, name=f"name {round_number}"),
            partial(patch, router, issued.value, check, period_seconds=100 + round_number),
        )
        (won,) = [body for status, body in answers if status == 200]
        (lost,) = [body for status, body in answers if status == 409]
        stored = heart.checks.get(issued.key.id, check.id)
        assert won["check"] == stored.as_json("https://beats.example")
        assert stored.version == 1 + round_number
        assert "retry" in lost["error"]


def test_many_patches_raise_the_version_by_the_number_of_successes(heart):
    check = heart.create()

    def update(number):
        read = heart.read(check)
        return heart.checks.update(read, heart.settings(read, grace_seconds=number)).wait()

    results = at_once(*(partial(update, number) for number in range(50)))
    won = [result for result in results if isinstance(result, Check)]
    assert all(isinstance(result, Check) or result.status == 409 for result in results)
    assert heart.read(check).version == 1 + len(won)
    assert heart.read(check) == max(won, key=lambda result: result.version)


def test_a_patch_never_loses_a_ping_beside_it(heart):
    check = heart.create()

    def update():
        read = heart.read(check)
        return heart.checks.update(read, heart.settings(read)).wait()

    heart.pass_time(10)
    results = at_once(*[partial(heart.ping, check), update] * 25)
    stored = heart.read(check)
    assert stored.ping_count == 25
    assert stored.deadline_at == int(heart.clock.now) + 60
    assert stored.version == 1 + sum(isinstance(result, Check) for result in results)


def test_fifty_pings_at_once_recover_a_check_once(heart):
    check = heart.create()
    heart.pass_time(61)
    heart.sweep.sweep_once()
    beats = at_once(*[partial(heart.ping, check)] * 50)
    assert sum(beat.recovered for beat in beats) == 1
    assert heart.read(check).ping_count == 50
    assert heart.alert_types(check) == ["check.overdue", "check.recovered"]


def test_two_sweeps_at_once_turn_each_check_once(heart, other_process):
    checks = [heart.create() for _ in range(300)]
    heart.pass_time(61)
    turned = at_once(heart.sweep.sweep_once, heart.sweep.sweep_once, other_process.sweep.sweep_once)
    assert sum(turned) == 300
    assert all(heart.alert_types(check) == ["check.overdue"] for check in checks)


def test_a_ping_beside_a_sweep_recovers_once_or_comes_before_it(heart, other_process):
    for _ in range(20):
        check = heart.create()
        heart.pass_time(61)
        beat, *turned = at_once(partial(heart.ping, check), heart.sweep.sweep_once, other_process.sweep.sweep_once)
        assert beat.recovered == sum(turned)
        assert heart.alert_types(check) == (["check.overdue", "check.recovered"] if beat.recovered else [])
        assert heart.status(check) == "on_time"
        heart.checks.delete(heart.key.id, check.id).wait()


def test_a_crowd_of_creations_stops_at_the_tiers_limit(database, clock):
    heart = Heart(database, clock, Tier(max_checks=10))
    results = at_once(*[heart.create] * 50)
    assert sum(isinstance(result, Check) for result in results) == 10
    assert {result.status for result in results if isinstance(result, Refusal)} == {403}
    assert heart.checks.usage(heart.key.id)[0] == 10


def test_a_key_revoked_beside_creations_leaves_no_check(heart):
    results = at_once(*[heart.create] * 20, partial(heart.keys.revoke, heart.key.id), *[heart.create] * 20)
    assert {result.status for result in results if isinstance(result, Exception)} <= {401}
    Removal(heart.database).finish()
    assert heart.checks.totals() == {"on_time": 0, "overdue": 0}


def test_whatever_happens_at_once_the_alerts_of_a_check_alternate(heart, other_process):
    checks = [heart.create(period_seconds=5) for _ in range(10)]
    chance = random.Random(1)

    def act(own):
        for _ in range(60):
            check = chance.choice(checks)
            deed = chance.choice(("ping", "ping", "sweep", "patch", "wait"))
            if deed == "ping":
                own.ping(check)
            elif deed == "sweep":
                own.sweep.sweep_once()
            elif deed == "wait":
                heart.clock.advance(2)
            else:
                read = own.checks.get(heart.key.id, check.id)
                own.checks.update(read, heart.settings(read, grace_seconds=chance.randrange(5))).wait()

    results = at_once(*[partial(act, own) for own in (heart, other_process) * 4])
    assert all(result is None or getattr(result, "status", None) == 409 for result in results)
    for check in checks:
        types = heart.alert_types(check)
        assert types == ["check.overdue", "check.recovered"] * (len(types) // 2) + ["check.overdue"] * (len(types) % 2)
        assert (heart.status(check) == "overdue") == bool(len(types) % 2)


def test_a_check_deleted_beside_everything_is_gone(heart):
    for _ in range(20):
        check = heart.create()
        heart.pass_time(61)
        results = at_once(
            lambda check=check: heart.checks.delete(heart.key.id, check.id).wait(),
            partial(heart.ping, check),
            lambda check=check: heart.checks.update(check, heart.settings(check)).wait(),
            heart.sweep.sweep_once,
        )
        allowed = (type(None), Told, Check, int)
        assert all(isinstance(result, allowed) or result.status in (404, 409) for result in results)
        assert heart.alert_types(check) == []


def test_a_change_that_waits_for_the_writer_has_the_time_at_which_it_is_made(heart):
    changed = heart.create()
    settings = [heart.settings(changed, name="b"), heart.settings(changed, webhook_url="https://hooks.example/b")]
    with writer_held(heart.database):
        created = heart.checks.create(heart.key, settings[0])
        renamed = heart.checks.update(changed, settings[0])
        moved = heart.checks.update(changed._replace(version=2), settings[1])
        heart.pass_time(100)
    now = int(heart.clock())
    assert [created.wait().clock_from, renamed.wait().updated_at, moved.wait().updated_at] == [now] * 3
