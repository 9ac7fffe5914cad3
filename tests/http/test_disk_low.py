"""While the disk has less than its reserve, nothing new is taken, and all that there is goes on."""

import json

import pytest

from tests.support import GOOD_CHECK


@pytest.fixture
def low_disk(app, key, check, monkeypatch):
    """From now on, that is after a key and a check were made, too little is free."""
    monkeypatch.setattr(app.service.database.reserve, "is_low", lambda: True)


def test_nothing_new_is_taken(app, key, check, low_disk):
    refused = [
        app("POST", "/checks", GOOD_CHECK, key=key),
        app("POST", f"/checks/{check['id']}/test-alert", key=key),
        app("POST", "/register"),
        app("POST", "/register", {"email": "b@example.com"}),
        app("POST", "/key/webhook-secret", key=key),
        app("POST", "/key/read-only", key=key),
    ]
    assert {(answer.status, json.loads(answer.body)["code"]) for answer in refused} == {(503, "disk_low")}
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    assert app.json("GET", "/checks", key=key)["checks"] == [check]
    assert app.json("GET", f"/checks/{check['id']}/alerts", key=key)["alerts"] == []


def test_pings_transitions_and_their_alerts_go_on(app, key, check, low_disk):
    path = f"/checks/{check['id']}"
    assert app("GET", f"/ping/{check['id']}").status == 200
    app.clock.advance(3661)
    assert app.service.sweep.sweep_once() == 1
    assert app.json("POST", f"/ping/{check['id']}")["recovered"]
    types = [alert["type"] for alert in app.json("GET", f"{path}/alerts", key=key)["alerts"]]
    assert types == ["check.recovered", "check.overdue"]


@pytest.mark.parametrize(
    "change",
    [
        {"name": f"{GOOD_CHECK['name']}s"},
        {"webhook_url": f"{GOOD_CHECK['webhook_url']}s"},
        {"name": "\u00e9" * len(GOOD_CHECK["name"])},
        {"name": "n", "webhook_url": f"{GOOD_CHECK['webhook_url']}{'s' * len(GOOD_CHECK['name'])}"},
    ],
)
def test_texts_do_not_become_longer(app, key, check, low_disk, change):
    path = f"/checks/{check['id']}"
    refused = app("PATCH", path, change, key=key)
    assert (refused.status, json.loads(refused.body)["code"]) == (503, "disk_low")
    assert app.json("GET", path, key=key)["check"] == check


def test_a_read_only_key_is_replaced_and_ended(app, key, monkeypatch):
    assert app("POST", "/key/read-only", key=key).status == 201
    monkeypatch.setattr(app.service.database.reserve, "is_low", lambda: True)
    assert app("POST", "/key/read-only", key=key).status == 201
    assert app("DELETE", "/key/read-only", key=key).status == 204
    assert app("POST", "/key/read-only", key=key).status == 503


def test_changes_and_deletions_go_on(app, key, check, low_disk):
    path = f"/checks/{check['id']}"
    shorter = {"name": f"{GOOD_CHECK['name']}s", "webhook_url": GOOD_CHECK["webhook_url"][:-1]}
    for change in ({}, {"period_seconds": 31_536_000}, shorter, {"webhook_url": None}, {"name": "b"}):
        assert app("PATCH", path, change, key=key).status == 200
    assert app("DELETE", path, key=key).status == 204
    assert app("DELETE", "/key", key=key).status == 204
    assert app("GET", "/healthz").status == 200
