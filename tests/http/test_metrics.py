import http.client
import socket
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cardbeat.errors import Unavailable
from cardbeat.operation.metrics import BOUNDS_SECONDS, PING, Answers, Histogram, family
from cardbeat.web.message import Request, Response
from tests.support import wait_until

DURATIONS = "cardbeat_http_request_duration_seconds"

CHECK = {"name": "a", "period_seconds": 60, "grace_seconds": 0}


@pytest.fixture
def client(app):
    """A connection to the application behind its server, which is who tells of answers."""
    server = app.service.server
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    yield connection
    connection.close()
    server.stop()
    thread.join()


@pytest.fixture
def ask(client):
    def ask(method, target):
        client.request(method, target)
        answer = client.getresponse()
        return answer.status, answer.read()

    return ask


def samples(text):
    """Every value by its name and labels, as `name{label=value}`."""
    return {
        sample.name + "".join(f"{{{name}={value}}}" for name, value in sample.labels.items()): sample.value
        for found in text_string_to_metric_families(text)
        for sample in found.samples
    }


@pytest.fixture
def read(ask):
    return lambda: samples(ask("GET", "/metrics")[1].decode())


def test_they_are_prometheus_text_with_a_meaning_for_each(app):
    answer = app("GET", "/metrics")
    families = list(text_string_to_metric_families(answer.body.decode()))
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert len(families) == 14
    assert all(found.documentation.endswith(".") and found.type != "unknown" for found in families)


def test_requests_are_counted_by_route_method_and_status(ask, read):
    ask("GET", "/ping/nobody")
    ask("HEAD", "/ping/somebody")
    ask("PUT", "/register")
    ask("GET", "/no/such/path")
    found = read()
    total = "cardbeat_http_requests_total"
    assert found[f"{total}{{route=/ping/{{id}}}}{{method=GET}}{{status=404}}"] == 1
    assert found[f"{total}{{route=/ping/{{id}}}}{{method=HEAD}}{{status=404}}"] == 1
    assert found[f"{total}{{route=/register}}{{method=PUT}}{{status=405}}"] == 1
    assert found[f"{total}{{route=none}}{{method=GET}}{{status=404}}"] == 1
    assert found["cardbeat_http_request_duration_seconds_count{route=/ping/{id}}"] == 2


def test_what_is_no_request_is_counted_too(app, read):
    with socket.create_connection(app.service.server.server_address[:2], timeout=10) as sock:
        sock.sendall(b"nonsense\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 400 ")
    counted = "cardbeat_http_requests_total{route=none}{method=-}{status=400}"
    # Both clients may be served in one iteration of the loop, after which its answers are counted.
    wait_until(lambda: counted in read())
    assert read()[counted] == 1


def test_cards_are_counted_by_hit_and_miss_and_their_drawing_is_timed(app, ask, read):
    target = f"/og?title=x&key={app.cards_key()}"
    assert [ask("GET", target)[0] for _ in range(3)] == [200] * 3
    found = read()
    assert found["cardbeat_cards_total{cache=miss}"] == 1
    assert found["cardbeat_cards_total{cache=hit}"] == 2
    assert found["cardbeat_card_render_duration_seconds_count"] == 1
    assert found["cardbeat_card_render_duration_seconds_sum"] > 0
    assert found["cardbeat_store_bytes"] > 1000


def test_checks_and_pings_are_counted_by_what_they_are(app, clock, ask, read):
    key = app.checks_key()
    ids = [app.json("POST", "/checks", CHECK, key=key)["check"]["id"] for _ in range(3)]
    clock.advance(61)
    ask("GET", f"/ping/{ids[0]}")
    app.service.sweep.sweep_once()
    assert read()["cardbeat_checks{status=on_time}"] == 1
    assert read()["cardbeat_checks{status=overdue}"] == 2
    ask("POST", f"/ping/{ids[1]}")
    found = read()
    assert found["cardbeat_checks{status=overdue}"] == 1
    assert found["cardbeat_pings_total{recovered=false}"] == 1
    assert found["cardbeat_pings_total{recovered=true}"] == 1


def test_a_sweep_tells_its_age_and_duration(app, read):
    app.service.sweep.sweep_once()
    found = read()
    assert 0 <= found["cardbeat_sweep_age_seconds"] < 60
    assert 0 < found["cardbeat_sweep_duration_seconds"] < 60


def test_connections_that_were_closed_because_too_much_was_held_are_counted(app, read, monkeypatch):
    assert read()["cardbeat_connections_shed_total"] == 0
    monkeypatch.setattr(type(app.service.server), "connections_shed", 3)
    assert read()["cardbeat_connections_shed_total"] == 3


def test_alerts_are_counted_by_outcome(read):
    outcomes = {name for name in read() if name.startswith("cardbeat_alert_attempts_total")}
    assert outcomes == {f"cardbeat_alert_attempts_total{{outcome={it}}}" for it in ("delivered", "retried", "failed")}


def test_the_oldest_alert_that_is_due_tells_its_age(app, clock, read):
    assert read()["cardbeat_alert_oldest_due_seconds"] == 0
    key = app.checks_key()
    check = app.json("POST", "/checks", CHECK | {"webhook_url": "https://hooks.example/x"}, key=key)["check"]
    clock.advance(62)
    app.service.sweep.sweep_once()
    assert read()["cardbeat_alert_oldest_due_seconds"] == 0
    clock.advance(40)
    app("GET", f"/ping/{check['id']}")
    assert read()["cardbeat_alert_oldest_due_seconds"] == 40


def test_no_key_or_check_id_is_in_them(app, ask):
    key, cards_key = app.checks_key(), app.cards_key()
    check = app.json("POST", "/checks", CHECK, key=key)["check"]
    ask("GET", f"/ping/{check['id']}")
    ask("GET", f"/og?title=secret&key={cards_key}")
    ask("GET", f"/ping/{check['id']}/{key}")
    text = ask("GET", "/metrics")[1].decode()
    assert not any(secret in text for secret in (key, cards_key, check["id"], check["api_key_id"], "secret"))


def test_they_are_there_when_the_database_is_not(app, monkeypatch):
    def totals():
        raise Unavailable("database_unavailable", "The database can't be used now; try again soon.")

    monkeypatch.setattr("cardbeat.heartbeat.checks.Checks.totals", lambda self: totals())
    monkeypatch.setattr("cardbeat.heartbeat.outbox.pending.PendingAlerts.first_due_at", lambda self: totals())
    answer = app("GET", "/metrics")
    assert answer.status == 200
    assert (
        not {"cardbeat_checks{status=on_time}", "cardbeat_alert_oldest_due_seconds"}
        & samples(answer.body.decode()).keys()
    )


def test_every_answer_counts():
    answers = Answers()
    request = Request("GET", "/ping/a", "/ping/a", pattern=PING)
    answers.observe([(request, Response(200, b'{"recovered":true}', {"X-Cache": "HIT"}), 0.25)] * 3)
    found = samples("".join(family(name, each) for name, each in answers.samples().items()))
    assert found["cardbeat_http_requests_total{route=/ping/{id}}{method=GET}{status=200}"] == 3
    assert found["cardbeat_http_request_duration_seconds_sum{route=/ping/{id}}"] == 0.75
    assert found["cardbeat_cards_total{cache=hit}"] == 3
    assert found["cardbeat_pings_total{recovered=true}"] == 3


def test_a_duration_counts_for_every_bound_that_it_keeps():
    histogram = Histogram()
    for seconds in (BOUNDS_SECONDS[0], BOUNDS_SECONDS[0] * 1.01, 1e9):
        histogram.observe(seconds)
    found = samples(family(DURATIONS, histogram.samples({"route": "/"})))
    assert found[f"{DURATIONS}_bucket{{route=/}}{{le=0.0001}}"] == 1
    assert found[f"{DURATIONS}_bucket{{route=/}}{{le=0.0005}}"] == 2
    assert found[f"{DURATIONS}_bucket{{route=/}}{{le=10}}"] == 2
    assert found[f"{DURATIONS}_bucket{{route=/}}{{le=+Inf}}"] == found[f"{DURATIONS}_count{{route=/}}"] == 3


def test_labels_may_hold_anything():
    value = 'a"b\\n\\c\nd{}=,'
    assert samples(family("cardbeat_checks", [("", {"name": value}, 1.5)])) == {f"cardbeat_checks{{name={value}}}": 1.5}
