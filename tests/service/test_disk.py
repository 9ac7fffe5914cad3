"""While the disk has less than its reserve or is full: what is refused, and what goes on."""

import contextlib
import json

import pytest

from tests.kit.support import GOOD_CHECK
from tests.kit.systems import LIMITS


@pytest.fixture
def low_disk(app, one, monkeypatch):
    """From now on, that is after a key and a check were made, too little is free."""
    monkeypatch.setattr(app.service.database.reserve, "spare", lambda: -1)


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


def test_on_a_low_disk_nothing_new_is_taken(app, one, low_disk):
    refused = [
        app("POST", "/checks", GOOD_CHECK, key=one.key),
        one("POST", "/test-alert"),
        app("POST", "/register"),
        app("POST", "/register", {"email": "b@example.com"}),
    ]
    require_refused(refused, "disk_low")
    assert app.json("GET", "/checks", key=one.key)["checks"] == [
        one.check
    ]
    assert one.types() == []


def require_refused(answers, code):
    for answer in answers:
        assert answer.status == 503
        assert json.loads(answer.body)["code"] == code
        assert int(answer.headers["Retry-After"]) > 0


def test_on_a_low_disk_all_that_there_is_goes_on(app, one, low_disk):
    assert one.ping().status == 200
    app.clock.advance(3661)
    assert app.service.sweep.sweep_once() == 1
    assert one.ping().status == 200
    assert one.types() == ["check.overdue", "check.recovered"]
    for change in (
        {},
        {"period_seconds": 31_536_000},
        {"name": "longer"},
        {"webhook_url": None},
    ):
        assert one("PATCH", "", change).status == 200
    assert app("POST", "/key/webhook-secret", key=one.key).status == 200
    assert app("POST", "/key/read-only", key=one.key).status == 201
    for ended in ("/key/read-only", one.path, "/key"):
        assert app("DELETE", ended, key=one.key).status == 204
    assert app("GET", "/healthz").status == 200


@LIMITS
def test_on_a_full_disk_nothing_is_acknowledged_or_half_done(app, one):
    with full_disk():
        refused = [
            one.ping(method=method) for method in ("GET", "HEAD", "POST")
        ]
        refused += [
            app("POST", "/checks", GOOD_CHECK, key=one.key),
            one("PATCH", "", {"name": "b"}),
            one("DELETE"),
            one("POST", "/test-alert"),
            app("GET", "/healthz"),
        ]
        assert one.read() == one.check
    require_refused(refused, "database_unavailable")
    assert app.json("GET", "/checks", key=one.key)["checks"] == [
        one.check
    ]
    assert one.ping().status == app("GET", "/healthz").status == 200
