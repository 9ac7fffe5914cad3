import json
import subprocess
import sys
import threading

import pytest

from cardbeat.config import Config
from cardbeat.errors import TooMany
from cardbeat.keys.store import Keys
from cardbeat.web.message import Request
from tests.postgresql import BOTH_ENGINES, POSTGRESQL, SQLITE
from tests.support import App, service_of, wait_until

pytestmark = BOTH_ENGINES

CHANGES = (
    "POST /key/rotate",
    "POST /key/webhook-secret",
    "POST /key/read-only",
    "DELETE /key/read-only",
    "DELETE /key",
)


def bodies(app):
    with app.service.database.read() as connection:
        rows = connection.execute("SELECT * FROM keys").fetchall()
    # When a key was used is noted after the answer.
    return [{**dict(zip(row.keys(), row, strict=True)), "used_at": None} for row in rows]


def test_registering_without_a_body_issues_a_cards_key(app):
    answer = app("POST", "/register")
    issued = json.loads(answer.body)
    assert answer.status == 201
    assert list(issued) == ["key", "scope", "tier", "created_at"]
    assert (issued["scope"], issued["tier"]) == ("cards", "free")
    assert issued["key"].startswith("sk_")
    assert len(issued["key"]) >= 35
    assert answer.headers["Cache-Control"] == "no-store"


def test_registering_an_address_issues_a_checks_key_each_time(app):
    first, second = (app.json("POST", "/register", {"email": "ops@example.com"}) for _ in range(2))
    assert set(first) == {"key", "scope", "tier", "created_at", "email", "webhook_secret"}
    assert (first["scope"], first["email"]) == ("checks", "ops@example.com")
    assert first["webhook_secret"].startswith("whsec_")
    assert first["key"] != second["key"]


def test_no_key_is_stored_as_it_is(app):
    values = [app.cards_key(), app.checks_key()]
    stored = repr(bodies(app))
    assert not any(value in stored or value[3:] in stored for value in values)


@SQLITE
@pytest.mark.parametrize("email", ["", "@", "a@", "@b", "a@b@c", "x" * 250 + "@b.cd", None, 5, True])
def test_an_address_of_another_form_is_refused_and_no_key_issued(app, email):
    answer = app("POST", "/register", {"email": email})
    assert answer.status == 400
    assert json.loads(answer.body)["field"] == "email"
    assert bodies(app) == []


@SQLITE
@pytest.mark.parametrize("character", list(" \n\0\x7f\u0085\u00a0\u2028\u2029"))
def test_an_address_with_a_space_or_a_control_character_is_refused(app, character):
    assert app("POST", "/register", {"email": f"a{character}b@c"}).status == 400
    assert bodies(app) == []


@SQLITE
@pytest.mark.parametrize("character", list("\u202e\u2066\u200f\u061c\u200b\u00ad\ufeff\U000e0041"))
def test_an_address_with_a_character_that_is_not_seen_or_turns_the_text_is_refused(app, character):
    answer = app("POST", "/register", {"email": f"a{character}b@c"})
    assert (answer.status, json.loads(answer.body)["field"]) == (400, "email")
    assert bodies(app) == []


@SQLITE
@pytest.mark.parametrize("email", ["\u3164@b", "a@\u115f", "\u200d@b", "\ufe0f\u180b@\u2800"])
def test_an_address_that_shows_nothing_on_one_side_is_refused(app, email):
    answer = app("POST", "/register", {"email": email})
    assert (answer.status, json.loads(answer.body)["field"]) == (400, "email")
    assert "on both sides" in json.loads(answer.body)["error"]
    assert bodies(app) == []


@SQLITE
@pytest.mark.parametrize("email", ["\U0001f468\u200d\U0001f469@b", "\u0645\u06cc\u200c@b", "a\ue000@b", "a\u0378@b"])
def test_an_address_may_hold_all_else_and_the_joiners_that_scripts_and_emoji_need(app, email):
    assert app.json("POST", "/register", {"email": email})["email"] == email


@SQLITE
def test_an_address_of_254_characters_is_taken(app):
    assert app("POST", "/register", {"email": "x" * 250 + "@b.c"}).status == 201


@SQLITE
@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{}", "application/json", 400),
        (b'{"email": "a@b"}', "text/plain", 415),
        (b'{"email": "a@b"}', "", 415),
        (b'{"email": "a@b"}', "application/json; charset=utf-8", 201),
        (b'{"email": "a@b"}', "Application/JSON", 201),
        (b'{"email": "a@b", "email": "c@d"}', "application/json", 400),
        (b'{"email": "a@b", "name": "x"}', "application/json", 400),
        (b'{"email": NaN}', "application/json", 400),
        (b'{"email": "\\ud800@b"}', "application/json", 400),
        (b'{"email": "\xff@b"}', "application/json", 400),
        (b"[" * 60_000, "application/json", 400),
        (b'{"email": ' * 9_000, "application/json", 400),
        (b'{"email": "' + b"[{" * 100 + b'\\"[@b"}', "application/json", 201),
        (b'["a@b"]', "application/json", 400),
        (b"null", "application/json", 400),
        (b'{"email": {"a": "b"}}', "application/json", 400),
        (b'{"email": ' + b"9" * 10_000 + b"}", "application/json", 400),
    ],
)
def test_bodies(app, body, content_type, status):
    answer = app("POST", "/register", body=body, headers={"content-type": content_type})
    assert answer.status == status
    assert len(bodies(app)) == (status == 201)


@SQLITE
@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"junk", "text/plain", 415),
        (b'{"a": NaN}', "application/json", 400),
        (b'{"dry_run": true}', "application/json", 400),
        (b"{}", "application/json", None),
    ],
)
@pytest.mark.parametrize("call", CHANGES)
def test_what_takes_no_body_changes_nothing_when_one_says_something(app, call, body, content_type, status):
    key = app.checks_key()
    before = bodies(app)
    headers = {"authorization": f"Bearer {key}", "content-type": content_type}
    answer = app(*call.split(), body=body, headers=headers)
    assert answer.status in ([status] if status else [200, 201, 204])
    assert (bodies(app) == before) is (status is not None or call == "DELETE /key/read-only")


def test_deep_bodies_do_not_need_a_deep_stack():
    """A parser that trusts the stack kills the process here, from Python 3.12 on."""
    script = """
import threading
from cardbeat.web.message import Request

def read():
    for body in (b"[" * 60_000, b'{"a":' * 10_000):
        try:
            Request("POST", "/", "/", headers={"content-type": "application/json"}, body=body).json_object(())
        except Exception as error:
            print(error.code, error.sentence)

threading.stack_size(256 * 1024)
thread = threading.Thread(target=read)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "invalid_json The body is nested too deeply.\n" * 2), done.stderr


@SQLITE
def test_the_double_among_many_members_is_named(app):
    members = ", ".join(f'"m{n}": 0' for n in (*range(5_000), 4_321))
    answer = app("POST", "/register", body=f"{{{members}}}".encode(), headers={"content-type": "application/json"})
    assert (json.loads(answer.body)["code"], json.loads(answer.body)["field"]) == ("duplicate_field", "m4321")


@SQLITE
def test_an_unknown_member_is_named(app):
    answer = app.json("POST", "/register", {"email": "a@b", "nmae": "x"})
    assert (answer["code"], answer["field"]) == ("unknown_field", "nmae")


@SQLITE
def test_registration_is_limited_for_each_address(tmp_path, config, clock):
    service = service_of(type(config)(data=tmp_path, port=0, register_per_minute=2), clock)
    app = App(service, clock)
    try:
        assert [app("POST", "/register").status for _ in range(3)] == [201, 201, 429]
        refused = app("POST", "/register")
        assert int(refused.headers["Retry-After"]) in range(1, 61)
        assert app("POST", "/register", client="192.0.2.7").status == 201
        assert [app("POST", "/register", client=f"2001:db8::{n}").status for n in range(3)] == [201, 201, 429]
    finally:
        service.close()


@pytest.fixture
def limited(tmp_path, config, clock):
    """The application with the limit of registrations that is the default."""
    service = service_of(type(config)(data=tmp_path, port=0), clock)
    yield App(service, clock)
    service.close()


@SQLITE
def test_a_wider_network_gets_ten_times_as_many_keys(limited):
    clients = [f"2001:db8:7:{number:x}::1" for number in range(2000)]
    answers = [limited("POST", "/register", client=client).status for client in clients]
    assert answers == [201] * 300 + [429] * 1700
    assert limited("POST", "/register", client="2001:db8:8::1").status == 201


@SQLITE
def test_what_one_network_is_refused_is_not_taken_from_the_wider_one(limited):
    assert [limited("POST", "/register", client="2001:db8:7:1::1").status for _ in range(400)].count(201) == 30
    others = [limited("POST", "/register", client=f"2001:db8:7:{number:x}::1").status for number in range(2, 302)]
    assert others == [201] * 270 + [429] * 30


@SQLITE
def test_networks_inside_one_ipv4_address_count_together(limited):
    clients = [f"2002:c000:207:{number:x}::1" for number in range(40)]
    answers = [limited("POST", "/register", client=client).status for client in clients]
    assert answers == [201] * 30 + [429] * 10
    assert limited("POST", "/register", client="::ffff:192.0.2.7").status == 429


@SQLITE
def test_a_registration_above_the_limit_is_refused_by_its_head(limited):
    for _ in range(30):
        limited("POST", "/register")
    request = Request("POST", "/register", "/register", headers={"content-type": "application/json"}, body=b"{")
    route = limited.service.router.find(request)
    with pytest.raises(TooMany):
        route.guard.find(request, lambda _: None)


@SQLITE
def test_refused_registrations_do_not_count(tmp_path, config, clock):
    service = service_of(type(config)(data=tmp_path, port=0, register_per_minute=1), clock)
    app = App(service, clock)
    try:
        assert app("POST", "/register", {"email": "nobody"}).status == 400
        assert app("POST", "/register").status == 201
    finally:
        service.close()


@SQLITE
@SQLITE
@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 201), ("none", 201), ("x", 403)]
)
def test_a_page_of_another_site_registers_no_key_for_its_visitors(app, site, status):
    answer = app("POST", "/register", headers={"sec-fetch-site": site})
    assert answer.status == status
    assert len(bodies(app)) == (status == 201)
    if status == 403:
        assert json.loads(answer.body)["code"] == "cross_site"


def test_closed_registration_is_refused(tmp_path, config, clock):
    service = service_of(type(config)(data=tmp_path, port=0, registration_open=False), clock)
    try:
        answer = App(service, clock)("POST", "/register")
        assert (answer.status, json.loads(answer.body)["code"]) == (403, "registration_closed")
    finally:
        service.close()


def test_a_key_reads_its_own_limits_and_use(app):
    key = app.checks_key()
    app("POST", "/checks", {"name": "a", "period_seconds": 60, "grace_seconds": 0}, key=key)
    read = app.json("GET", "/key", key=key)
    assert (read["scope"], read["tier"], read["email"]) == ("checks", "free", "ops@example.com")
    limits = {"max_checks": 100, "min_period_seconds": 1, "renders_per_minute": 120, "test_alerts_per_hour": 30}
    assert read["limits"] == limits
    assert read["usage"] == {"checks": 1, "renders": 0, "test_alerts": 0}
    assert "key" not in read
    assert "webhook_secret" not in read
    assert key.startswith(read["prefix"])


def test_a_key_reads_how_many_test_alerts_it_had_in_the_last_hour(app):
    key = app.checks_key()
    body = {"name": "a", "period_seconds": 60, "grace_seconds": 0, "webhook_url": "https://hooks.example/x"}
    check = app.json("POST", "/checks", body, key=key)["check"]

    def used():
        return app.json("GET", "/key", key=key)["usage"]["test_alerts"]

    for _ in range(2):
        assert app("POST", f"/checks/{check['id']}/test-alert", key=key).status == 202
        app.clock.advance(1800)
    assert used() == 1
    app.clock.advance(1800)
    assert used() == 0


def test_rotation_gives_the_same_key_a_new_value_and_ends_the_old_one(app):
    old = app.checks_key()
    created = app.json("POST", "/checks", {"name": "a", "period_seconds": 60, "grace_seconds": 0}, key=old)
    answer = app("POST", "/key/rotate", key=old)
    new = json.loads(answer.body)["key"]
    assert answer.status == 200
    assert app("GET", "/checks", key=old).status == 401
    assert app.json("GET", f"/checks/{created['check']['id']}", key=new)["check"] == created["check"]


def test_concurrent_rotations_leave_one_living_value(app):
    old = app.checks_key()
    barrier = threading.Barrier(8)
    answers = []

    def rotate():
        barrier.wait()
        answers.append(app("POST", "/key/rotate", key=old))

    threads = [threading.Thread(target=rotate) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] + [401] * 7


@pytest.mark.parametrize("call", CHANGES)
def test_a_cards_key_is_public_and_changes_nothing_of_itself(app, call):
    key = app.cards_key()
    before = bodies(app)
    answer = app(*call.split(), key=key)
    refusal = json.loads(answer.body)
    assert (answer.status, refusal["code"]) == (403, "wrong_scope")
    assert "keys revoke" in refusal["error"]
    assert bodies(app) == before
    assert app("GET", "/key", key=key).status == 200


def test_a_new_webhook_secret_is_shown_once_and_is_another_each_time(app):
    issued = app.json("POST", "/register", {"email": "ops@example.com"})
    first, second = (app.json("POST", "/key/webhook-secret", key=issued["key"]) for _ in range(2))
    assert list(first) == ["webhook_secret"]
    assert first["webhook_secret"].startswith("whsec_")
    assert len({issued["webhook_secret"], first["webhook_secret"], second["webhook_secret"]}) == 3
    assert "webhook_secret" not in app.json("GET", "/key", key=issued["key"])


def test_a_replaced_webhook_secret_is_not_kept_for_longer_than_it_signs(app):
    issued = app.json("POST", "/register", {"email": "ops@example.com"})
    app("POST", "/key/webhook-secret", key=issued["key"])
    assert issued["webhook_secret"] in repr(bodies(app))
    app.clock.advance(24 * 3600)
    app.service.removal.start()
    wait_until(lambda: issued["webhook_secret"] not in repr(bodies(app)))


def test_revocation_takes_the_checks_along(app):
    key = app.checks_key()
    check = app.json("POST", "/checks", {"name": "a", "period_seconds": 60, "grace_seconds": 0}, key=key)["check"]
    assert app("DELETE", "/key", key=key).status == 204
    assert app("GET", "/key", key=key).status == 401
    assert app("GET", f"/ping/{check['id']}").status == 404
    app.service.removal.finish()
    assert bodies(app) == []


def test_of_a_revoked_key_nothing_that_is_anyones_is_kept_while_its_checks_go(app):
    key = app.checks_key()
    app("POST", "/key/webhook-secret", key=key)
    app("DELETE", "/key", key=key)
    assert "example.com" not in repr(bodies(app))
    assert "whsec_" not in repr(bodies(app))


@SQLITE
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic c2s6", "Bearer sk_unknown", "sk_unknown"])
def test_without_a_known_key_it_is_401(app, header):
    headers = {} if header is None else {"authorization": header}
    for call in ("GET /key", "GET /checks", *CHANGES):
        answer = app(*call.split(), headers=headers)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@SQLITE
def test_scopes_do_not_open_each_others_endpoints(app):
    cards, checks = app.cards_key(), app.checks_key()
    assert app("GET", "/checks", key=cards).status == 403
    answer = app("GET", f"/og?title=x&key={checks}")
    assert answer.status == 403
    assert "cards key" in json.loads(answer.body)["error"]


def test_a_change_by_another_process_is_seen_once_it_is_reported_as_done(app):
    key = app.cards_key()
    assert app("GET", "/key", key=key).status == 200
    keys = Keys(app.service.database, app.clock, {})
    with app.service.database.read() as connection:
        (key_id,) = connection.execute("SELECT id FROM keys").fetchone()
    keys.revoke(key_id).wait()
    assert app("GET", "/key", key=key).status == 401


@pytest.fixture
def nodes(postgresql, tmp_path, clock):
    """Two whole servers over one database."""
    options = {"port": 0, "register_per_minute": 2, "database": postgresql.emptied(tmp_path)}
    services = [service_of(Config(data=tmp_path / name, **options), clock) for name in ("first", "second")]
    yield [App(service, clock) for service in services]
    for service in services:
        service.close()


@POSTGRESQL
def test_each_node_counts_registrations_and_renders_by_itself(nodes):
    assert [[app("POST", "/register").status for _ in range(3)] for app in nodes] == [[201, 201, 429]] * 2
    key = nodes[0].json("POST", "/register", client="192.0.2.7")["key"]
    assert nodes[0]("GET", f"/og?title=a&key={key}").headers["X-Cache"] == "MISS"
    assert [app.json("GET", "/key", key=key)["usage"]["renders"] for app in nodes] == [1, 0]
