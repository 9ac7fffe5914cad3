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


def test_changes_and_deletions_go_on(app, key, check, low_disk):
    path = f"/checks/{check['id']}"
    assert app("PATCH", path, {"name": "b"}, key=key).status == 200
    assert app("DELETE", path, key=key).status == 204
    assert app("DELETE", "/key", key=key).status == 204
    assert app("GET", "/healthz").status == 200
