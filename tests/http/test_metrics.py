from functools import partial
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cardbeat.errors import Unavailable
from cardbeat.operation.metrics import BOUNDS, DURATIONS, Metrics, Samples
from cardbeat.web.message import Request, Response
from tests import client
from tests.http.conftest import served
from tests.support import wait_until

CHECK = {"name": "a", "period_seconds": 60, "grace_seconds": 0}


def samples(text):
    """Every value by its name and labels, as `name{label=value}`."""
    return {
        sample.name
        + "".join(f"{{{name}={value}}}" for name, value in sample.labels.items()): sample.value
        for found in text_string_to_metric_families(text)
        for sample in found.samples
    }


def test_they_are_prometheus_text_with_a_meaning_for_each(app):
    answer = app("GET", "/metrics")
    families = list(text_string_to_metric_families(answer.body.decode()))
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert len(families) == 14
    assert all(found.documentation.endswith(".") and found.type != "unknown" for found in families)


@pytest.fixture
def ask(app):
    """Asks the application behind its server, which is who tells of answers."""
    with served(app):
        port = app.service.server.server_address[1]
        yield partial(client.ask, SimpleNamespace(port=port))


@pytest.fixture
def read(ask):
    return lambda: samples(ask("GET", "/metrics").body.decode())


TOTAL = "cardbeat_http_requests_total"


def make_use(app, ask):
    """Ask for all that is counted; returns what no number may tell."""
    key, cards_key = app.checks_key(), app.cards_key()
    ids = [app.json("POST", "/checks", CHECK, key=key)["check"]["id"] for _ in range(3)]
    app.clock.advance(61)
    first = f"/ping/{ids[0]}"
    for call in (f"GET {first}", "HEAD /ping/x", f"GET {first}/{key}", "PUT /register", "GET /x"):
        ask(*call.split())
    app.service.sweep.sweep_once()
    ask("POST", f"/ping/{ids[1]}")
    for _ in range(3):
        assert ask("GET", f"/og?title=secret&key={cards_key}").status == 200
    return (*ids, key, cards_key, "secret")


def test_what_is_done_is_counted_by_what_it_is_and_no_secret_told(app, ask, read):
    secrets = make_use(app, ask)
    # Answers are counted after the iteration of the loop in which they are given.
    wait_until(lambda: COUNTED.items() <= read().items())
    text = ask("GET", "/metrics").body.decode()
    assert not [secret for secret in secrets if secret in text]
    found = samples(text)
    for name in ("card_render_duration_seconds_sum", "sweep_age_seconds", "sweep_duration_seconds"):
        assert 0 <= found[f"cardbeat_{name}"] < 60
    assert found["cardbeat_store_bytes"] > 1000


COUNTED = {
    f"{TOTAL}{{route=/ping/{{id}}}}{{method=GET}}{{status=200}}": 1,
    f"{TOTAL}{{route=/ping/{{id}}}}{{method=HEAD}}{{status=404}}": 1,
    f"{TOTAL}{{route=/register}}{{method=PUT}}{{status=405}}": 1,
    f"{TOTAL}{{route=none}}{{method=GET}}{{status=404}}": 2,
    "cardbeat_http_request_duration_seconds_count{route=/ping/{id}}": 3,
    "cardbeat_cards_total{cache=miss}": 1,
    "cardbeat_cards_total{cache=hit}": 2,
    "cardbeat_card_render_duration_seconds_count": 1,
    "cardbeat_checks{status=on_time}": 2,
    "cardbeat_checks{status=overdue}": 1,
    "cardbeat_pings_total{recovered=false}": 1,
    "cardbeat_pings_total{recovered=true}": 1,
    "cardbeat_connections_shed_total": 0,
    **{
        f"cardbeat_alert_attempts_total{{outcome={it}}}": 0
        for it in ("delivered", "retried", "failed")
    },
}


def test_the_oldest_alert_that_is_due_tells_its_age(app, clock, read):
    assert read()["cardbeat_alert_oldest_due_seconds"] == 0
    key = app.checks_key()
    check = app.json(
        "POST", "/checks", CHECK | {"webhook_url": "https://hooks.example/x"}, key=key
    )["check"]
    clock.advance(62)
    app.service.sweep.sweep_once()
    assert read()["cardbeat_alert_oldest_due_seconds"] == 0
    clock.advance(40)
    app("GET", f"/ping/{check['id']}")
    assert read()["cardbeat_alert_oldest_due_seconds"] == 40


def test_they_are_there_when_the_database_is_not(app, monkeypatch):
    def totals(self):
        raise Unavailable("database_unavailable")

    monkeypatch.setattr("cardbeat.heartbeat.checks.Checks.totals", totals)
    answer = app("GET", "/metrics")
    assert answer.status == 200
    assert not [
        name for name in samples(answer.body.decode()) if name.startswith("cardbeat_checks")
    ]


def test_a_duration_counts_for_every_bound_that_it_keeps():
    metrics = Metrics(*[MagicMock()] * 5, shed=int)
    asked = Request("GET", "/", "/", pattern="/")
    taken = (BOUNDS[0], BOUNDS[0] * 1.01, 1e9)
    metrics.observe([(asked, Response(), seconds) for seconds in taken])
    text = metrics.read(asked).body.decode()
    for bound, total in {"0.0001": 1, "0.0005": 2, "10": 2, "+Inf": 3}.items():
        assert f'{DURATIONS}_bucket{{route="/",le="{bound}"}} {total}\n' in text
    assert f'{DURATIONS}_count{{route="/"}} 3\n' in text


def test_labels_may_hold_anything():
    value = 'a"b\\n\\c\nd{}=,東京 \u2028'
    text = Samples("/metrics")
    text.add("cardbeat_checks", 1.5, name=value)
    assert samples(text.response().body.decode()) == {f"cardbeat_checks{{name={value}}}": 1.5}
