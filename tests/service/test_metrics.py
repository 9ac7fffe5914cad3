"""The metrics of the whole service, as Prometheus reads them."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cardbeat.errors import Unavailable
from cardbeat.operation.routes import BOUNDS, DURATIONS, Metrics
from cardbeat.web.message import Request, Response
from tests.kit.client import ask
from tests.kit.support import GOOD_CHECK, wait_until
from tests.service.conftest import served


def values(answer):
    """Every value by its name without `cardbeat_` and the values of its labels."""
    return {
        " ".join(
            (
                sample.name.removeprefix("cardbeat_"),
                *sample.labels.values(),
            )
        ): sample.value
        for found in text_string_to_metric_families(answer.body.decode())
        for sample in found.samples
    }


@pytest.fixture
def read(app):
    return lambda: values(app("GET", "/metrics"))


def test_they_are_prometheus_text_with_a_meaning_for_each(app):
    answer = app("GET", "/metrics")
    families = list(text_string_to_metric_families(answer.body.decode()))
    assert (
        answer.headers["Content-Type"]
        == "text/plain; version=0.0.4; charset=utf-8"
    )
    assert len(families) == 14
    assert all(
        found.documentation.endswith(".") and found.type != "unknown"
        for found in families
    )


COUNTED = {
    "http_requests_total /ping/{id} GET 200": 1,
    "http_requests_total /ping/{id} HEAD 404": 1,
    "http_requests_total /register PUT 405": 1,
    "http_requests_total none GET 404": 2,
    "http_request_duration_seconds_count /ping/{id}": 3,
    "cards_total miss": 1,
    "cards_total hit": 2,
    "card_render_duration_seconds_count": 1,
    "checks on_time": 2,
    "checks overdue": 1,
    "pings_total false": 1,
    "pings_total true": 1,
    "connections_shed_total": 0,
    "alert_attempts_total failed": 0,
}


def test_what_is_done_is_counted_by_what_it_is_and_no_secret_told(
    app, read
):
    key = app.checks_key()
    cards_key = app.cards_key()
    check = {
        **GOOD_CHECK,
        "period_seconds": 60,
        "grace_seconds": 0,
        "webhook_url": None,
    }
    ids = [
        app.json("POST", "/checks", check, key=key)["check"]["id"]
        for _ in range(3)
    ]
    app.clock.advance(61)
    first = f"/ping/{ids[0]}"
    calls = (
        f"GET {first}",
        "HEAD /ping/x",
        f"GET {first}/{key}",
        "PUT /register",
        "GET /x",
    )
    # The server tells of answers, after the iteration of its loop in which they are given.
    with served(app):
        server = SimpleNamespace(
            port=app.service.server.server_address[1]
        )
        for call in calls:
            ask(server, *call.split())
        app.service.sweep.sweep_once()
        ask(server, "POST", f"/ping/{ids[1]}")
        for _ in range(3):
            assert (
                ask(
                    server, "GET", f"/og?title=secret&key={cards_key}"
                ).status
                == 200
            )
        wait_until(lambda: COUNTED.items() <= read().items())
    text = app("GET", "/metrics").body.decode()
    for secret in (*ids, key, cards_key, "secret"):
        assert secret not in text


def test_the_store_and_the_sweep_tell_how_large_old_and_long_they_are(
    app, read
):
    app.service.sweep.sweep_once()
    app("GET", f"/og?title=a&key={app.cards_key()}")
    wait_until(lambda: read()["store_bytes"] > 1000)
    for name in ("sweep_age_seconds", "sweep_duration_seconds"):
        assert 0 <= read()[name] < 60


def test_the_oldest_alert_that_is_due_tells_its_age(
    app, clock, key, check, read
):
    clock.advance(3661)
    app.service.sweep.sweep_once()
    assert read()["alert_oldest_due_seconds"] == 0
    clock.advance(40)
    app("GET", f"/ping/{check['id']}")
    assert read()["alert_oldest_due_seconds"] == 40


def test_they_are_there_when_the_database_is_not(monkeypatch, read):
    refusing = MagicMock(side_effect=Unavailable("database_unavailable"))
    monkeypatch.setattr(
        "cardbeat.heartbeat.checks.Checks.totals", refusing
    )
    assert not [name for name in read() if name.startswith("checks")]


def test_a_duration_counts_for_every_bound_that_it_keeps():
    metrics = Metrics(*[MagicMock()] * 5, shed=int)
    asked = Request("GET", "/", "/", pattern="/")
    taken = (BOUNDS[0], BOUNDS[0] * 1.01, 1e9)
    metrics.observe([(asked, Response(), seconds) for seconds in taken])
    text = metrics.read(asked).body.decode()
    for bound, total in {
        "0.0001": 1,
        "0.0005": 2,
        "10": 2,
        "+Inf": 3,
    }.items():
        assert (
            f'{DURATIONS}_bucket{{route="/",le="{bound}"}} {total}\n'
            in text
        )
    assert f'{DURATIONS}_count{{route="/"}} 3\n' in text
