"""The checks of a key as Prometheus reads them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cardbeat.operation import check_metrics
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
        return app.json("POST", "/checks", {**GOOD_CHECK, "name": name, **fields}, key=key)["check"]["id"]

    return create


def test_a_check_is_up_until_it_is_overdue_and_again_once_it_is_pinged(app, clock, create, read):
    check_id = create("db1: backup", period_seconds=60, grace_seconds=5)
    labels = ("db1: backup", check_id[:12])
    assert read() == {(UP, *labels): 1, (DEADLINE, *labels): clock.now + 65}
    clock.advance(66)
    app.service.sweep.sweep_once()
    assert read()[UP, *labels] == 0
    app("GET", f"/ping/{check_id}")
    assert read() == {(UP, *labels): 1, (LAST_PING, *labels): clock.now, (DEADLINE, *labels): clock.now + 65}


def test_a_snooze_is_told_so_that_an_alert_can_leave_it_out(app, clock, key, create, read):
    """`up == 0 unless snoozed_until > time()`."""
    check_id = create("a", period_seconds=60, grace_seconds=5)
    app("GET", f"/ping/{check_id}/fail")
    assert (read()[UP, "a", check_id[:12]], SNOOZED in {name for name, *_ in read()}) == (0, False)
    app("PUT", f"/checks/{check_id}/snooze", {"seconds": 600}, key=key)
    assert (read()[UP, "a", check_id[:12]], read()[SNOOZED, "a", check_id[:12]]) == (0, clock.now + 600)
    app("DELETE", f"/checks/{check_id}/snooze", key=key)
    assert read().get((SNOOZED, "a", check_id[:12]), 0) <= clock.now


@pytest.mark.parametrize(("delivery", "value"), [("ok", 1), ("failing", 0)])
def test_whether_alerts_arrive_is_told_where_one_was_tried_and_there_is_a_webhook(app, create, read, delivery, value):
    create("a")
    create("b", webhook_url=None)
    assert DELIVERY not in {name for name, *_ in read()}
    app.service.database.write(lambda connection: connection.execute("UPDATE checks SET delivery = ?", (delivery,)))
    assert [(name, found) for (family, name, _), found in read().items() if family == DELIVERY] == [("a", value)]


@SQLITE
@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\\nb", "東京 {x}", "a" * 100])
def test_any_name_is_a_label(create, read, name):
    ids = [create(name)[:12] for _ in range(2)]
    assert [labels for family, *labels in read() if family == UP] == [[name, one] for one in ids]


@SQLITE
def test_no_more_of_an_id_is_shown_than_tells_checks_apart(app, key, create):
    check_id = create("a")
    assert check_id.encode() not in app("GET", "/checks/metrics", key=key).body


@SQLITE
def test_they_are_prometheus_text_with_a_meaning_for_each(app, key, create):
    create("a")
    answer = app("GET", "/checks/metrics", key=key)
    families = list(text_string_to_metric_families(answer.body.decode()))
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert [found.name for found in families] == list(NAMES)
    assert all(found.documentation.endswith(".") and found.type == "gauge" for found in families)


@SQLITE
def test_they_take_a_checks_key_and_show_no_other_keys_checks(app, create):
    create("a")
    assert b"cardbeat_check_up{" not in app("GET", "/checks/metrics", key=app.checks_key()).body
    assert [app("GET", "/checks/metrics", key=key).status for key in (None, "sk_a", app.cards_key())] == [401, 401, 403]


@SQLITE
def test_the_path_is_no_checks(app, key):
    assert app("PATCH", "/checks/metrics", {}, key=key).status == 405


def asked(heart):
    """What a key with five checks reads."""
    issued = heart.keys.issue("ops@example.com").wait()
    heart.key = issued.key
    checks = [heart.create() for _ in range(5)]
    router = Router(CheckMetricsRoutes(heart.checks, heart.keys).routes())
    headers = {"authorization": f"Bearer {issued.value}"}
    answer = answer_of(router, Request("GET", "/checks/metrics", "/checks/metrics", headers=headers))
    return answer, [check.name for check in checks]


def test_all_checks_are_in_the_oldest_first_also_past_a_pause(database, clock, monkeypatch):
    monkeypatch.setattr(check_metrics, "STRETCH_CHECKS", 2)
    answer, names = asked(Heart(database, clock))
    found = list(text_string_to_metric_families(answer.body.decode()))
    assert [sample.labels["name"] for sample in found[0].samples] == names


@pytest.mark.parametrize(("most_checks", "status"), [(5, 200), (4, 403)])
def test_more_checks_than_one_answer_holds_are_refused(database, clock, most_checks, status, monkeypatch):
    monkeypatch.setattr(check_metrics, "MOST_CHECKS", most_checks)
    answer, _ = asked(Heart(database, clock))
    assert (answer.status, b"more than 4 checks" in answer.body) == (status, status == 403)
