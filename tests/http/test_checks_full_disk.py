"""While nothing can be written, no ping is acknowledged; once there is room again, all works without a restart."""

import contextlib
import json

import pytest

from tests.support import GOOD_CHECK

resource = pytest.importorskip("resource")


@contextlib.contextmanager
def full_disk():
    """No file of this process can be written to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_ping_is_acknowledged_only_if_it_is_stored(app, key, check):
    path = f"/ping/{check['id']}"
    assert app("GET", path).status == 200
    with full_disk():
        refused = [app(method, path) for method in ("GET", "HEAD", "POST")]
    assert app("GET", path).status == 200
    assert {answer.status for answer in refused} == {503}
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    assert {json.loads(answer.body)["code"] for answer in refused} == {"database_unavailable"}
    assert app.json("GET", f"/checks/{check['id']}", key=key)["check"]["ping_count"] == 2


def test_nothing_else_is_half_done(app, key, check):
    path = f"/checks/{check['id']}"
    with full_disk():
        requests = [
            app("POST", "/checks", GOOD_CHECK, key=key),
            app("PATCH", path, {"name": "b"}, key=key),
            app("DELETE", path, key=key),
            app("POST", f"{path}/test-alert", key=key),
            app("GET", "/healthz"),
        ]
        assert app.json("GET", path, key=key)["check"] == check
    assert {answer.status for answer in requests} == {503}
    assert app.json("GET", "/checks", key=key)["checks"] == [check]
    assert app("GET", "/healthz").status == 200


def test_a_sweep_on_a_full_disk_is_made_up_for(app, key, check):
    app.clock.advance(3661)
    with full_disk(), pytest.raises(Exception, match="database"):
        app.service.sweep.sweep_once()
    assert app.json("GET", f"/checks/{check['id']}/alerts", key=key)["alerts"] == []
    assert app.service.sweep.sweep_once() == 1
    assert [alert["type"] for alert in app.json("GET", f"/checks/{check['id']}/alerts", key=key)["alerts"]] == [
        "check.overdue"
    ]
