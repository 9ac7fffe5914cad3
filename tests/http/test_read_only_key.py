"""What a read-only key sees and may do, and when it ends."""

import json
import re

import pytest

from cardbeat.config import Config
from cardbeat.errors import Refusal
from cardbeat.keys.key import CHECKS, READ
from cardbeat.keys.store import hash_of
from tests.postgresql import BOTH_ENGINES, POSTGRESQL, SQLITE
from tests.support import GOOD_CHECK, App, service_of

pytestmark = BOTH_ENGINES

READS = ("GET /key", "GET /checks", "GET /checks/{id}", "GET /checks/{id}/alerts", "GET /checks/metrics")
SECRET_URL = "https://hooks.example:8443/services/T0/B0/token?also=secret"


@pytest.fixture
def check(app, key):
    return app.json("POST", "/checks", {**GOOD_CHECK, "webhook_url": SECRET_URL}, key=key)["check"]


@pytest.fixture
def reader(app, key):
    return reader_of(app, key)


def reader_of(app, key):
    return app.json("POST", "/key/read-only", key=key)["key"]


def row_of(app):
    with app.service.database.read() as connection:
        return connection.execute("SELECT * FROM keys WHERE scope = 'checks'").fetchone()


def test_it_is_issued_to_a_checks_key_and_shown_once(app, key):
    answer = app("POST", "/key/read-only", key=key)
    issued = json.loads(answer.body)
    assert (answer.status, list(issued), issued["scope"]) == (201, ["key", "scope"], "read")
    assert re.fullmatch("sk_[A-Za-z0-9_-]{32,}", issued["key"])
    assert issued["key"] != key
    assert row_of(app)["read_hash"] == hash_of(issued["key"])
    assert issued["key"] not in repr(tuple(row_of(app)))
    assert app("POST", "/key/read-only", key=app.cards_key()).status == 403


def test_a_checks_key_says_whether_it_has_one_and_the_read_only_key_names_no_address(app, key):
    assert app.json("GET", "/key", key=key)["read_only_prefix"] is None
    reader = reader_of(app, key)
    assert app.json("GET", "/key", key=key)["read_only_prefix"] == reader[:8]
    own = app.json("GET", "/key", key=reader)
    assert (own["scope"], own["prefix"]) == ("read", reader[:8])
    assert not own.keys() & {"email", "read_only_prefix", "key"}
    assert "read_only_prefix" not in app.json("GET", "/key", key=app.cards_key())


def test_it_reads_everything_and_learns_neither_ping_ids_nor_webhook_urls(app, clock, key, check, reader):
    clock.advance(3700)
    app.service.sweep.sweep_once()
    short = check["id"][:12]
    answers = {call: app(*call.format(id=short).split(), key=reader) for call in READS}
    assert {call: answer.status for call, answer in answers.items()} == dict.fromkeys(READS, 200)
    for call, answer in answers.items():
        told = answer.body.decode() + repr(answer.headers)
        for secret in (check["id"], check["id"][:13], check["id"][12:], "/ping/", "8443", "services", "token", "@"):
            assert secret not in told, call
    (listed,) = json.loads(answers["GET /checks"].body)["checks"]
    hidden = {"id": short, "ping_url": None, "webhook_url": "https://hooks.example"}
    assert listed == {**app.json("GET", f"/checks/{check['id']}", key=key)["check"], **hidden}
    assert json.loads(answers["GET /checks/{id}"].body)["check"] == listed
    assert answers["GET /checks/{id}"].headers["ETag"] == '"1"'
    assert [one["type"] for one in json.loads(answers["GET /checks/{id}/alerts"].body)["alerts"]] == ["check.overdue"]


@SQLITE
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (None, None),
        ("http://Hooks.Example:80/x", "http://hooks.example"),
        ("HTTPS://[2606:4700::1]:444/x", "https://[2606:4700::1]"),
        ("https://0x08080808/x", "https://8.8.8.8"),
    ],
)
def test_of_a_webhook_url_it_sees_the_scheme_and_the_host(app, key, reader, url, shown):
    app("POST", "/checks", {**GOOD_CHECK, "webhook_url": url}, key=key)
    assert [one["webhook_url"] for one in app.json("GET", "/checks", key=reader)["checks"]] == [shown]


def test_it_can_not_find_the_rest_of_an_id_by_trying_longer_and_longer_ones(app, check, reader):
    for length in (1, 11, 13, 31, 32):
        assert app("GET", f"/checks/{check['id'][:length]}", key=reader).status == 404
        assert app("GET", f"/checks?after={check['id'][:length]}", key=reader).status == 400
    for other in ("0" * 12, "%00" * 12, "%25" * 12, "_" * 12):
        assert app("GET", f"/checks/{other}", key=reader).status == 404
        assert app("GET", f"/checks?after={other}", key=reader).status == 400
    assert app("GET", f"/ping/{check['id'][:12]}").status == 404


def test_it_turns_pages_by_short_ids(app, key, reader):
    made = [app.json("POST", "/checks", {**GOOD_CHECK, "name": f"job {n}"}, key=key)["check"]["id"] for n in range(3)]
    first = app.json("GET", "/checks?limit=2", key=reader)
    assert first["next"] == made[1][:12]
    second = app.json("GET", f"/checks?limit=2&after={first['next']}", key=reader)
    assert second["next"] is None
    assert [one["id"] for one in first["checks"] + second["checks"]] == [one[:12] for one in made]


def test_a_short_id_of_two_checks_is_none_of_them(app, key, reader):
    """The pages after the second one began again with it, without end."""
    made = [app.json("POST", "/checks", {**GOOD_CHECK, "name": f"job {n}"}, key=key)["check"]["id"] for n in range(3)]
    alike = made[0][:12] + made[1][12:]
    sql = "UPDATE checks SET id = ? WHERE id = ?"
    app.service.database.write(lambda it: it.execute(sql, (alike, made[1])).rowcount)
    for path in (f"/checks/{alike[:12]}", f"/checks/{alike[:12]}/alerts"):
        assert app("GET", path, key=reader).status == 404
    assert app("GET", f"/checks?after={alike[:12]}", key=reader).status == 400
    assert app.json("GET", f"/checks/{made[2][:12]}", key=reader)["check"]["name"] == "job 2"


def test_checks_of_others_do_not_exist_for_it(app, check):
    stranger = app.checks_key()
    reader = reader_of(app, stranger)
    for path in (f"/checks/{check['id'][:12]}", f"/checks/{check['id'][:12]}/alerts"):
        assert app("GET", path, key=reader).status == 404
    assert app.json("GET", "/checks", key=reader)["checks"] == []
    # Also where one of its own begins alike.
    own = app.json("POST", "/checks", GOOD_CHECK, key=stranger)["check"]["id"]
    alike = check["id"][:12] + own[12:]
    app.service.database.write(lambda it: it.execute("UPDATE checks SET id = ? WHERE id = ?", (alike, own)).rowcount)
    assert app.json("GET", f"/checks/{alike[:12]}", key=reader)["check"]["name"] == GOOD_CHECK["name"]
    assert app.json("GET", f"/checks/{alike[:12]}", key=reader)["check"]["api_key_id"] != check["api_key_id"]


def test_it_changes_nothing(app, check, reader):
    guarded = [route for route in app.service.router.routes if route.guard and "register" not in route.pattern]
    calls = {f"{route.method} {route.pattern}" for route in guarded}
    assert calls > set(READS)
    for call in calls - set(READS):
        before = repr(tuple(row_of(app)))
        answer = app(*call.format(id=check["id"][:12]).split(), {}, key=reader)
        refusal = json.loads(answer.body)
        assert (answer.status, refusal["code"]) == (403, "wrong_scope"), call
        assert "read-only" in refusal["error"]
        assert repr(tuple(row_of(app))) == before
    card = app("GET", f"/og?title=a&key={reader}")
    assert (card.status, json.loads(card.body)["code"]) == (403, "wrong_scope")


def test_another_one_ends_the_one_before(app, key, reader):
    assert app("GET", "/checks", key=reader).status == 200
    other = reader_of(app, key)
    assert [app("GET", "/checks", key=one).status for one in (reader, other)] == [401, 200]


@pytest.mark.parametrize("call", ["DELETE /key/read-only", "POST /key/rotate", "DELETE /key"])
def test_it_ends_with_a_request_and_with_each_end_of_its_key(app, key, reader, call):
    assert app("GET", "/checks", key=reader).status == 200
    assert app(*call.split(), key=key).status in (200, 204)
    assert app("GET", "/checks", key=reader).status == 401
    assert (row_of(app)["read_hash"], row_of(app)["read_prefix"]) == (None, None)


def test_it_ends_once_and_the_checks_key_goes_on(app, key, reader):
    assert [app("DELETE", "/key/read-only", key=key).status for _ in range(2)] == [204, 204]
    assert app("GET", "/checks", key=reader).status == 401
    assert app.json("GET", "/key", key=key)["read_only_prefix"] is None


@SQLITE
def test_the_value_before_a_rotation_makes_no_read_only_key_however_close_they_are(app, key):
    keys = app.service.keys
    known = keys.find(hash_of(key))
    keys.rotate(known).wait()
    for change in (keys.issue_reader, keys.end_reader):
        with pytest.raises(Refusal) as refused:
            change(known).wait()
        assert refused.value.status == 401
    assert row_of(app)["read_hash"] is None


@SQLITE
def test_its_requests_wait_in_a_queue_of_their_own(app, key, reader):
    owner, second = (app.service.keys.find(hash_of(value)) for value in (key, reader))
    assert (owner.scope, second.scope, owner.id) == (CHECKS, READ, second.id)
    assert owner.queue != second.queue


@pytest.fixture
def nodes(postgresql, tmp_path, clock):
    """Two whole servers over one database."""
    database = postgresql.emptied(tmp_path)
    folders = [tmp_path / name for name in ("first", "second")]
    services = [service_of(Config(data=folder, port=0, database=database), clock) for folder in folders]
    yield [App(service, clock) for service in services]
    for service in services:
        service.close()


@POSTGRESQL
@pytest.mark.parametrize("call", ["POST /key/read-only", "DELETE /key/read-only", "POST /key/rotate", "DELETE /key"])
def test_no_node_takes_it_once_its_end_is_answered(nodes, call):
    here, there = nodes
    key = here.checks_key()
    reader = reader_of(here, key)
    assert there("GET", "/checks", key=reader).status == 200
    here(*call.split(), key=key)
    assert [app("GET", "/checks", key=reader).status for app in nodes] == [401, 401]
