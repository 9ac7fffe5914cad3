"""The checks of a key as Prometheus reads them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cardbeat.operation.check_metrics import CheckMetricsRoutes
from cardbeat.web.message import Request
from cardbeat.web.router import Router
from tests.heart import Heart
from tests.postgresql import BOTH_ENGINES, SQLITE
from tests.support import GOOD_CHECK, answer_of

pytestmark = BOTH_ENGINES

UP = "cardbeat_check_up"
LAST_PING = "cardbeat_check_last_ping_timestamp_seconds"
DEADLINE = "cardbeat_check_deadline_timestamp_seconds"
DELIVERY = "cardbeat_check_delivery_ok"
SNOOZED = "cardbeat_check_snoozed_until_timestamp_seconds"
NAMES = (UP, LAST_PING, DEADLINE, SNOOZED, DELIVERY)


@pytest.fixture
def read(app, key):
    """Every value of the key's checks by the family, the check's name and the part of its id that is shown."""

    def read():
        text = app("GET", "/checks/metrics", key=key).body.decode()
        return {
            (found.name, sample.labels["name"], sample.labels["id"]): sample.value
            for found in text_string_to_metric_families(text)
            for sample in found.samples
        }

    return read


@pytest.fixture
def create(app, key):
    def create(name, **fields):
        return app.json("POST", "/checks", {**GOOD_CHECK, "name": name, **fields}, key=key)[
            "check"
        ]["id"]

    return create


def test_a_check_is_up_until_it_is_overdue_and_again_once_it_is_pinged(app, key, create, read):
    check_id = create("db1: backup", period_seconds=60, grace_seconds=5)
    labels = ("db1: backup", check_id[:12])
    now = app.clock.now
    assert read() == {(UP, *labels): 1, (DEADLINE, *labels): now + 65}
    app("GET", f"/ping/{check_id}/fail")
    app("PUT", f"/checks/{check_id}/snooze", {"seconds": 600}, key=key)
    # So an alert can leave it out: `up == 0 unless snoozed_until > time()`.
    assert (read()[UP, *labels], read()[SNOOZED, *labels]) == (0, now + 600)
    app("DELETE", f"/checks/{check_id}/snooze", key=key)
    app("GET", f"/ping/{check_id}")
    up = {UP: 1, LAST_PING: now, DEADLINE: now + 65}
    assert {name: value for (name, *_), value in read().items() if name != SNOOZED} == up
    stranger = app("GET", "/checks/metrics", key=app.checks_key())
    assert b"db1" not in stranger.body


@pytest.mark.parametrize(("delivery", "value"), [("ok", 1), ("failing", 0)])
def test_whether_alerts_arrive_is_told_where_one_was_tried_and_there_is_a_webhook(
    app, create, read, delivery, value
):
    create("a")
    create("b", webhook_url=None)
    assert DELIVERY not in {name for name, *_ in read()}
    app.service.database.write(
        lambda connection: connection.execute("UPDATE checks SET delivery = ?", (delivery,))
    )
    assert [(name, found) for (family, name, _), found in read().items() if family == DELIVERY] == [
        ("a", value)
    ]


@SQLITE
@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\\nb", "東京 {x}", "a" * 100])
def test_any_name_is_a_label(create, read, name):
    ids = [create(name)[:12] for _ in range(2)]
    assert [labels for family, *labels in read() if family == UP] == [[name, one] for one in ids]


@pytest.mark.parametrize(("most_checks", "status"), [(5, 200), (4, 403)])
def test_all_checks_are_in_the_oldest_first_unless_they_are_too_many(
    database, clock, most_checks, status
):
    heart = Heart(database, clock)
    issued = heart.keys.issue("ops@example.com")
    heart.key = issued.key
    names = [heart.create().name for _ in range(5)]
    router = Router(CheckMetricsRoutes(heart.checks, heart.keys, most_checks).routes())
    headers = {"authorization": f"Bearer {issued.value}"}
    answer = answer_of(
        router, Request("GET", "/checks/metrics", "/checks/metrics", headers=headers)
    )
    assert answer.status == status
    if status == 200:
        up = next(iter(text_string_to_metric_families(answer.body.decode())))
        assert [sample.labels["name"] for sample in up.samples] == names
