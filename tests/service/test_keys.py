"""The endpoints `/register` and `/key`."""

import json

import pytest

from tests.kit.lists import times
from tests.kit.postgresql import BOTH_ENGINES, SQLITE
from tests.kit.support import GOOD_CHECK, wait_until

pytestmark = BOTH_ENGINES


def stored(app):
    """The rows of keys. A use is noted by any request, and left out."""
    with app.service.database.read() as connection:
        rows = connection.execute(
            "SELECT * FROM keys ORDER BY seq"
        ).fetchall()
    found = [*map(dict, rows)]
    for row in found:
        del row["used_at"]
    return found


def test_registering_without_a_body_issues_a_cards_key(app):
    answer = app("POST", "/register")
    issued = json.loads(answer.body)
    assert answer.status == 201
    assert answer.headers["Cache-Control"] == "no-store"
    assert list(issued) == ["key", "scope", "tier", "created_at"]
    assert issued["scope"] == "cards"
    assert issued["tier"] == "free"
    assert issued["key"].startswith("sk_")
    assert len(issued["key"]) >= 35


def test_registering_an_address_issues_a_checks_key_each_time(app):
    first, second = times(
        2, app.json, "POST", "/register", {"email": "ops@example.com"}
    )
    assert set(first) == {
        "key",
        "scope",
        "tier",
        "created_at",
        "email",
        "webhook_secret",
    }
    assert first["scope"] == "checks"
    assert first["email"] == "ops@example.com"
    assert first["webhook_secret"].startswith("whsec_")
    assert first["key"] != second["key"]


def test_no_value_is_stored(app):
    values = [app.cards_key(), app.checks_key()]
    values.append(
        app.json("POST", "/key/read-only", key=values[1])["key"]
    )
    text = repr(stored(app))
    assert not any(value[3:] in text for value in values)


ADDRESSES = {
    400: [
        "",
        "@",
        "a@",
        "@b",
        "a@b@c",
        "x" * 250 + "@b.cd",
        None,
        5,
        True,
        "\ud800@b",
    ]
    + [f"a{it}b@c" for it in " \n\0\x7f\u0085\u00a0\u2028\u2029"],
    201: [
        "x" * 250 + "@b.c",
        "\U0001f468\u200d\U0001f469@b",
        "\u0645\u06cc\u200c@b",
    ],
}


@SQLITE
@pytest.mark.parametrize("status", ADDRESSES)
def test_an_address_has_one_at_and_no_spaces_or_controls(app, status):
    for email in ADDRESSES[status]:
        assert (
            app("POST", "/register", {"email": email}).status == status
        ), repr(email)
    assert (stored(app) == []) == (status == 400)


BODIES = {
    400: [
        *(
            b"{}",
            b"null",
            b'["a@b"]',
            b"[" * 60_000,
            b'{"email": ' * 9_000,
        ),
        *(
            b'{"email": "a@b", "email": "c@d"}',
            b'{"email": "a@b", "name": "x"}',
            b'{"email": NaN}',
        ),
        *(
            b'{"email": "\xff@b"}',
            b'{"email": {"a": "b"}}',
            b'{"email": ' + b"9" * 10_000 + b"}",
        ),
    ],
    201: [b'{"email": "' + b"[{" * 100 + b'\\"[@b"}'],
}


@SQLITE
def test_a_body_is_an_object_of_json(app):
    for status, bodies in BODIES.items():
        for body in bodies:
            headers = {"content-type": "Application/JSON; charset=utf-8"}
            answer = app("POST", "/register", body=body, headers=headers)
            assert answer.status == status, body[:50]
    assert len(stored(app)) == 1


@SQLITE
def test_a_member_that_is_unknown_or_given_twice_is_named(app):
    members = ", ".join(
        f'"m{n}": 0' for n in (*range(5_000), 4_321)
    ).encode()
    told = (
        (b'"email": "a@b", "nmae": "x"', "unknown_field", "nmae"),
        (members, "duplicate_field", "m4321"),
    )
    for body, code, field in told:
        headers = {"content-type": "application/json"}
        refusal = app.json(
            "POST", "/register", body=b"{%b}" % body, headers=headers
        )
        assert refusal["code"] == code
        assert refusal["field"] == field


@SQLITE
def test_only_issued_keys_count_for_the_limit_of_a_client(app_of):
    app = app_of(register_per_minute=2)
    for body in ({"email": "nobody"}, {"mail": "a@b"}, {}):
        assert app("POST", "/register", body).status == 400
    assert [app("POST", "/register").status for _ in range(2)] == [
        201
    ] * 2
    refused = app("POST", "/register")
    assert refused.status == 429
    assert int(refused.headers["Retry-After"]) in range(1, 31)
    assert app("POST", "/register", client="192.0.2.7").status == 201


def test_a_key_reads_its_own_limits_and_use(app):
    key = app.checks_key()
    app("POST", "/checks", GOOD_CHECK, key=key)
    read = app.json("GET", "/key", key=key)
    assert read["scope"] == "checks"
    assert read["tier"] == "free"
    assert read["email"] == "ops@example.com"
    limits = {
        "max_checks": 100,
        "min_period_seconds": 1,
        "renders_per_minute": 120,
    }
    assert read["limits"] == {**limits, "test_alerts_per_hour": 30}
    assert read["usage"] == {"checks": 1, "renders": 0, "test_alerts": 0}
    assert not read.keys() & {"key", "webhook_secret"}
    assert key.startswith(read["prefix"])


def test_rotation_gives_the_same_key_a_new_value_and_ends_the_old_one(
    app,
):
    old = app.checks_key()
    created = app.json("POST", "/checks", GOOD_CHECK, key=old)
    answer = app("POST", "/key/rotate", key=old)
    new = json.loads(answer.body)["key"]
    assert answer.status == 200
    assert app("GET", "/checks", key=old).status == 401
    assert (
        app.json("GET", f"/checks/{created['check']['id']}", key=new)
        == created
    )


def test_a_new_webhook_secret_is_shown_once(app):
    issued = app.json("POST", "/register", {"email": "ops@example.com"})
    answer = app.json("POST", "/key/webhook-secret", key=issued["key"])
    assert list(answer) == ["webhook_secret"]
    assert answer["webhook_secret"].startswith("whsec_")
    assert answer["webhook_secret"] != issued["webhook_secret"]
    assert "webhook_secret" not in app.json(
        "GET", "/key", key=issued["key"]
    )


def test_revocation_takes_the_checks_along_and_at_once_what_is_anyones(
    app,
):
    key = app.checks_key()
    app("POST", "/key/webhook-secret", key=key)
    check = app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]
    app.service.tidy.start()
    assert app("DELETE", "/key", key=key).status == 204
    assert not any(
        secret in repr(stored(app))
        for secret in ("example.com", "whsec_")
    )
    assert app("GET", "/key", key=key).status == 401
    assert app("GET", f"/ping/{check['id']}").status == 404
    wait_until(lambda: stored(app) == [])
