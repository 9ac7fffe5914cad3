"""The checks of a key as Prometheus reads them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cardbeat.heartbeat.checks import Checks
from cardbeat.operation.routes import CheckMetricsRoutes
from cardbeat.web.message import Request
from cardbeat.web.router import Router
from tests.kit.postgresql import BOTH_ENGINES
from tests.kit.support import GOOD_CHECK, answer_of

pytestmark = BOTH_ENGINES


@pytest.fixture
def read(app, key):
    """The values of the key's checks, by the name and the part of the id that is shown, by family."""

    def read():
        found = {}
        text = app("GET", "/checks/metrics", key=key).body.decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                values = found.setdefault(
                    (sample.labels["name"], sample.labels["id"]), {}
                )
                values[family.name.removeprefix("cardbeat_check_")] = (
                    sample.value
                )
        return found

    return read


@pytest.fixture
def create(app, key):
    def create(name, **fields):
        body = {**GOOD_CHECK, "name": name, **fields}
        return app.json("POST", "/checks", body, key=key)["check"]["id"]

    return create


def test_a_check_is_up_until_it_is_overdue_and_again_once_it_is_pinged(
    app, key, create, read
):
    check_id = create("db1: backup", period_seconds=60, grace_seconds=5)
    labels = ("db1: backup", check_id[:12])
    now = app.clock.now
    up = {"up": 1, "deadline_timestamp_seconds": now + 65}
    assert read() == {labels: up}
    app("GET", f"/ping/{check_id}/fail")
    app("PUT", f"/checks/{check_id}/snooze", {"seconds": 600}, key=key)
    failed = read()[labels]
    # So an alert can leave it out: `up == 0 unless snoozed_until > time()`.
    assert failed["up"] == 0
    assert failed["snoozed_until_timestamp_seconds"] == now + 600
    app("DELETE", f"/checks/{check_id}/snooze", key=key)
    app("GET", f"/ping/{check_id}")
    pinged = read()[labels]
    del pinged["snoozed_until_timestamp_seconds"]
    assert pinged == up | {"last_ping_timestamp_seconds": now}
    stranger = app("GET", "/checks/metrics", key=app.checks_key())
    assert b"db1" not in stranger.body


@pytest.mark.parametrize(
    ("delivery", "value"), [(None, None), ("ok", 1), ("failing", 0)]
)
def test_whether_alerts_arrive_is_told_where_one_was_tried_and_there_is_a_webhook(
    app, create, read, delivery, value
):
    create("a")
    create("b", webhook_url=None)
    change = "UPDATE checks SET delivery = ?"
    app.service.database.write(
        lambda transaction: transaction.execute(change, (delivery,))
    )
    told = [values.get("delivery_ok") for values in read().values()]
    assert told == [value, None]


def test_any_names_are_labels_and_the_oldest_check_comes_first(
    create, read
):
    names = ['a"b', "a\\b", "a\\nb", "東京 {x}", "a" * 100, "a", "a"]
    labels = [(name, create(name)[:12]) for name in names]
    assert [*read()] == labels


def test_too_many_checks_for_one_answer_are_refused(app, key, create):
    create("a")
    checks = Checks(app.service.database, app.clock, lambda: None)
    router = Router(
        CheckMetricsRoutes(
            checks, app.service.keys, most_checks=0
        ).routes()
    )
    path = "/checks/metrics"
    asked = Request(
        "GET", path, path, headers={"authorization": f"Bearer {key}"}
    )
    assert answer_of(router, asked).status == 403
