"""While the disk has less than its reserve or is full: what is refused, and what goes on."""

import contextlib
import json

import pytest

from tests.support import GOOD_CHECK
from tests.systems import LIMITS


@pytest.fixture
def low_disk(app, key, check, monkeypatch):
    """From now on, that is after a key and a check were made, too little is free."""
    assert app("POST", "/key/read-only", key=key).status == 201
    monkeypatch.setattr(app.service.database.reserve, "is_low", lambda: True)


@contextlib.contextmanager
def full_disk():
    """No file of this process can be written to."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_low_disk_nothing_new_is_taken(app, key, check, low_disk):
    path = f"/checks/{check['id']}"
    refused = [
        app("POST", "/checks", GOOD_CHECK, key=key),
        app("POST", f"{path}/test-alert", key=key),
        app("POST", "/register"),
        app("POST", "/register", {"email": "b@example.com"}),
        app("POST", "/key/webhook-secret", key=key),
        app("POST", "/key/read-only", key=key),
    ]
    for answer in refused:
        assert (answer.status, json.loads(answer.body)["code"]) == (503, "disk_low")
        assert int(answer.headers["Retry-After"]) > 0
    assert app.json("GET", "/checks", key=key)["checks"] == [check]
    assert app.json("GET", f"{path}/alerts", key=key)["alerts"] == []


def test_on_a_low_disk_all_that_there_is_goes_on(app, key, check, low_disk):
    path = f"/checks/{check['id']}"
    assert app("GET", f"/ping/{check['id']}").status == 200
    app.clock.advance(3661)
    assert app.service.sweep.sweep_once() == 1
    assert app.json("POST", f"/ping/{check['id']}")["recovered"]
    assert len(app.json("GET", f"{path}/alerts", key=key)["alerts"]) == 2
    for change in ({}, {"period_seconds": 31_536_000}, {"name": "longer"}, {"webhook_url": None}):
        assert app("PATCH", path, change, key=key).status == 200
    for ended in ("/key/read-only", path, "/key"):
        assert app("DELETE", ended, key=key).status == 204
    assert app("GET", "/healthz").status == 200


@LIMITS
def test_on_a_full_disk_nothing_is_acknowledged_or_half_done(app, key, check):
    path = f"/checks/{check['id']}"
    ping = f"/ping/{check['id']}"
    with full_disk():
        refused = [app(method, ping) for method in ("GET", "HEAD", "POST")]
        refused += [
            app("POST", "/checks", GOOD_CHECK, key=key),
            app("PATCH", path, {"name": "b"}, key=key),
            app("DELETE", path, key=key),
            app("POST", f"{path}/test-alert", key=key),
            app("GET", "/healthz"),
        ]
        assert app.json("GET", path, key=key)["check"] == check
    for answer in refused:
        assert (answer.status, json.loads(answer.body)["code"]) == (503, "database_unavailable")
        assert int(answer.headers["Retry-After"]) > 0
    assert app.json("GET", "/checks", key=key)["checks"] == [check]
    assert app("GET", ping).status == app("GET", "/healthz").status == 200


@LIMITS
def test_a_sweep_on_a_full_disk_is_made_up_for(app, key, check):
    app.clock.advance(3661)
    with full_disk(), pytest.raises(Exception, match="database"):
        app.service.sweep.sweep_once()
    assert app.service.sweep.sweep_once() == 1
    alerts = app.json("GET", f"/checks/{check['id']}/alerts", key=key)["alerts"]
    assert [alert["type"] for alert in alerts] == ["check.overdue"]
