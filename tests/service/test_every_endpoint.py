"""What holds for all endpoints: which keys and bodies they take, and that a check belongs to its key."""

import json

import pytest

from tests.kit.lists import each
from tests.kit.postgresql import BOTH_ENGINES
from tests.kit.support import GOOD_CHECK

pytestmark = BOTH_ENGINES

READS = {
    "GET /key",
    "GET /checks",
    "GET /checks/{id}",
    "GET /checks/{id}/alerts",
    "GET /checks/{id}/outages",
    "GET /checks/outages",
    "GET /checks/metrics",
}
"""What a read-only key may do."""
BODIES = {
    "POST /checks": GOOD_CHECK,
    "PATCH /checks/{id}": {"name": "b"},
    "PUT /checks/{id}/snooze": {"seconds": 60},
}
"""What the others take is no body."""
UNKNOWN_ID = "0" * 32


@pytest.fixture
def calls(app):
    """All that take a checks key, as `GET /checks/{id}`."""
    routes = app.service.router.routes
    found = {f"{it.method} {it.pattern}" for it in routes if it.guard}
    assert found >= READS | set(BODIES)
    return found


@pytest.fixture
def ask(app, check):
    def ask(call, check_id=check["id"], **options):
        method, target = call.replace("{id}", check_id).split()
        return app(method, target, BODIES.get(call), **options)

    return ask


def stored(app):
    """The rows of keys and checks. A use of a key is noted by any request, and left out."""
    with app.service.database.read() as connection:
        keys = connection.execute(
            "SELECT hash, read_hash, revoked_at FROM keys ORDER BY seq"
        )
        rows = [*map(tuple, keys.fetchall())]
        checks = connection.execute(
            "SELECT * FROM checks ORDER BY seq"
        ).fetchall()
    return rows, [*map(tuple, checks)]


def code_of(answer):
    return answer.status, json.loads(answer.body)["code"]


def test_without_a_known_key_it_is_401_and_with_one_for_cards_403(
    app, ask, calls
):
    cards_key = app.cards_key()
    before = stored(app)
    for header in ("", "Bearer", "Bearer ", "Basic c2s6", "sk_unknown"):
        assert (
            app("GET", "/key", headers={"authorization": header}).status
            == 401
        )
    for call in calls:
        for key, code in (
            (None, "key_missing"),
            ("sk_unknown", "key_unknown"),
        ):
            answer = ask(call, key=key)
            assert code_of(answer) == (401, code), call
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        answer = ask(call, key=cards_key)
        assert answer.status == (200 if call == "GET /key" else 403), call
        # It is public, so it ends on the command line alone.
        assert (
            "/key" not in call
            or call == "GET /key"
            or b"keys revoke" in answer.body
        )
    assert stored(app) == before


def test_a_read_only_key_reads_everything_and_changes_nothing(
    app, key, check, ask, calls
):
    reader = app.json("POST", "/key/read-only", key=key)["key"]
    before = stored(app)
    for call in calls:
        answer = ask(call, check["id"][:12], key=reader)
        assert answer.status == (200 if call in READS else 403), call
        assert call in READS or (
            code_of(answer)[1],
            b"read-only" in answer.body,
        ) == (
            "wrong_scope",
            True,
        )
    assert app("GET", f"/og?title=a&key={reader}").status == 403
    assert stored(app) == before


def test_another_keys_check_is_like_none(app, check, ask, calls):
    other = app.checks_key()
    before = stored(app)
    for call in calls:
        if "{id}" in call:
            ids = (check["id"], UNKNOWN_ID, "x" * 5000, "é\x00")
            answers = [ask(call, one, key=other) for one in ids]
            assert set(each(answers, "status")) == {404}
            assert len(set(each(answers, "body"))) == 1
    assert stored(app) == before


SENT = (
    (b"junk", "text/plain", 415),
    (b'{"a": 1}', "", 415),
    (b'{"a": NaN}', "application/json", 400),
    (b'{"unknown": 1}', "application/json", 400),
)


def test_a_body_is_what_an_endpoint_takes_or_changes_nothing(
    app, key, check, calls
):
    before = stored(app)
    for call in {*calls, "POST /register"}:
        method, target = call.replace("{id}", check["id"]).split()
        for body, content_type, status in SENT if method != "GET" else ():
            headers = {
                "content-type": content_type,
                "authorization": f"Bearer {key}",
            }
            answer = app(method, target, body=body, headers=headers)
            assert answer.status == status, (call, body)
    assert stored(app) == before
